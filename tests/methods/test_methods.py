"""What each method is; test_contract.py holds what all on features promise."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import rdc as oracle

import rdc_jax
from rdc_jax import methods
from rdc_jax.methods import FeatureMethod, Task
from rdc_jax.methods.finetune_options import FinetuneOptions
from rdc_jax.models.model import Model, Spec
from rdc_jax.runtime.errors import UserError

WAY, SHOT, QUERY, D = 3, 2, 4, 16
PARAMS = rdc_jax.RDCParams(k=4, k2=3, dim=6)
BUILT_IN = ("npc", "protonet", "npc_l2", "npc_subspace", "rdc", "rdc_one_space")
ON_FEATURES = [
    name
    for name in methods.names()
    if issubclass(type(methods.get_method(name)), FeatureMethod)
]


def make_task(seed=0):
    key = jax.random.key(seed)
    centre_cd = jax.random.normal(jax.random.fold_in(key, 0), (WAY, D))
    labels_s = jnp.repeat(jnp.arange(WAY), SHOT)
    labels_q = jnp.tile(jnp.arange(WAY), QUERY)
    labels_n = jnp.concatenate([labels_s, labels_q])
    noise_nd = jax.random.normal(jax.random.fold_in(key, 1), (len(labels_n), D))
    feat_nd = centre_cd[labels_n] + noise_nd
    s = WAY * SHOT
    return Task(feat_nd[:s], labels_s, feat_nd[s:], WAY, key=key)


@functools.cache
def jitted(name):
    return jax.jit(methods.get_method(name, rdc=PARAMS))


@pytest.fixture(params=ON_FEATURES)
def method(request):
    return methods.get_method(request.param, rdc=PARAMS)


@pytest.fixture
def classify(method):
    return jitted(method.name)


def test_a_task_has_no_labels_of_queries():
    fields = {field.name for field in dataclasses.fields(Task)}
    assert "support_labels" in fields and not any("query_l" in name for name in fields)


def test_only_transductive_methods_look_at_other_queries(method, classify):
    task = make_task()
    alone = task.replace(query=task.query.at[1:].multiply(-1.0))
    first, other = (classify(each)[0] for each in (task, alone))
    assert method.transductive == bool(np.abs(first - other).max() > 1e-4)


def test_features_are_prepared_as_the_method_says():
    task, steps = make_task(), ("power", "l2", "centre")
    s = len(task.support)
    feat_nd = rdc_jax.prepare(jnp.concatenate([task.support, task.query]), steps)
    expected_qc = jitted("npc")(task.replace(support=feat_nd[:s], query=feat_nd[s:]))
    got_qc = methods.get_method("npc(prepare=power+l2+centre)")(task)
    np.testing.assert_allclose(got_qc, expected_qc, atol=1e-6)
    assert methods.get_method("npc(prepare=none)").prepare == ()


def test_get_gives_a_jitted_function_of_one_episode():
    task = make_task()
    got_qc = rdc_jax.get("rdc(k=4;k2=3;dim=6)")(
        *(task.support, task.support_labels, task.query), num_classes=WAY
    )
    np.testing.assert_allclose(got_qc, jitted("rdc")(task), atol=1e-6)
    with pytest.raises(UserError, match="'rdc_ft' needs images"):
        rdc_jax.get("rdc_ft")


@pytest.mark.parametrize(
    ("metadata", "head"), [({"method": "cross_entropy"}, None), ({}, "linear")]
)
def test_protonet_refuses_a_model_that_was_trained_otherwise(metadata, head):
    method = methods.get_method("protonet")
    task, spec = make_task(), Spec("resnet10")
    method.check(task, Model(spec, {}, {"method": "protonet"}))
    method.check(task, Model(spec, {}, {}))  # A file that tells nothing.
    with pytest.raises(UserError, match="needs a model trained by protonet"):
        method.check(task, Model(Spec("resnet10", head=head), {}, metadata))


def test_npc_takes_raw_features_and_npc_l2_normalised_ones():
    task = make_task()
    scaled = task.replace(query=task.query * 3.0)
    for name, changes in (("npc", True), ("npc_l2", False)):
        same = np.allclose(jitted(name)(scaled), jitted(name)(task))
        assert same is not changes


@pytest.mark.parametrize(
    ("name", "subspace"), [("rdc", "tanh"), ("rdc_one_space", "none")]
)
def test_rdc_is_the_paper_s_and_rdc_one_space_lacks_the_subspace(name, subspace):
    task = make_task()
    params = dataclasses.replace(PARAMS, subspace=subspace)
    arrays = map(np.asarray, (task.support, task.support_labels, task.query))
    expected_qc, *_ = oracle.rdc(*arrays, WAY, params)
    np.testing.assert_allclose(jitted(name)(task), expected_qc, atol=1e-5)


def test_built_in_methods_are_listed():
    assert set(BUILT_IN) <= set(methods.names())
    assert set(BUILT_IN) <= set(ON_FEATURES)


def test_npc_subspace_is_npc_on_projected_features():
    task = make_task()
    feat_np = rdc_jax.subspace(jnp.concatenate([task.support, task.query]), PARAMS)
    s = len(task.support)
    expected_qc = oracle.npc(
        *map(np.asarray, (feat_np[:s], task.support_labels, feat_np[s:])), WAY
    )
    np.testing.assert_allclose(jitted("npc_subspace")(task), expected_qc, atol=1e-5)


def test_parameters_follow_the_name():
    task = make_task()
    method = methods.get_method("rdc(lam=0.2;labels=False)", rdc=PARAMS)
    params = dataclasses.replace(PARAMS, lam=0.2, labels=False)
    assert method == methods.get_method("rdc", rdc=params)
    assert method.name == "rdc" and method.rdc == params
    arrays = task.support, task.support_labels, task.query
    expected = rdc_jax.rdc(*arrays, WAY, params=params).class_distances
    np.testing.assert_allclose(jax.jit(method)(task), expected, atol=1e-6)


def test_a_method_has_the_parameters_of_its_groups():
    method = methods.get_method(
        "rdc_ft(learning_rate=1e-4;layers=block3+block4;record=5+10;k=6)",
        finetune=FinetuneOptions(steps=7),
    )
    assert (method.finetune.learning_rate, method.finetune.steps) == (1e-4, 7)
    assert method.finetune.layers == ("block3", "block4")
    assert method.finetune.record == (5, 10)
    assert method.rdc.k == 6


def test_what_makes_a_method_is_no_parameter_of_it():
    assert methods.get_method("rdc_one_space").rdc.subspace == "none"
    options = methods.get_method("finetune_linear").finetune
    assert (options.layers, options.batch_norm) == (("none",), "running")
    with pytest.raises(UserError, match="no parameter 'subspace'"):
        methods.get_method("rdc_one_space(subspace=tanh)")


def test_neighbourhoods_beyond_a_variant_s_own_task_are_refused():
    methods.get_method("rdc(k=17)").check(make_task())
    for text in ("rdc(k=18)", "rdc_ft(k2=19)", "rdc(lam=2)"):
        with pytest.raises(UserError, match=r"^k2? is 1[89], but a task|^lam is 2"):
            methods.get_method(text).check(make_task())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rdc(lam)", r"write parameters as in rdc\(lam=0.3;k=6\)"),
        (
            "rdc(lamda=1)",
            "no parameter 'lamda'; it has prepare, views, layers, k",
        ),
        ("rdc(k=many)", "k=many: invalid literal"),
        ("rdc(k=0)", "RDCParams.k must be an int >= 1"),
        ("rdc(labels=yes)", "must be True or False"),
        ("npc(k=6)", "no parameter 'k'; it has prepare"),
        ("rdc(prepare=l3)", "choose steps from l2, power"),
        ("rdc_ft(batch_norm=off)", "choose from batch"),
        ("rcd(k=3)", "did you mean rdc"),
    ],
)
def test_mistakes_in_a_variant_are_told(text, message):
    with pytest.raises(UserError, match=message) as caught:
        methods.get_method(text)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_told_with_the_nearest_one():
    with pytest.raises(UserError, match=r"'rcd': did you mean rdc\? known are .*rdc"):
        methods.get_method("rcd")


def test_a_name_cannot_be_taken_twice():
    with pytest.raises(UserError, match="there is a method 'rdc' already"):
        methods.register("rdc")


def test_a_name_must_fit_into_a_list():
    with pytest.raises(UserError, match="'a,b': use letters"):
        methods.register("a,b")


PLUGIN = """
import dataclasses
import jax.numpy as jnp
from rdc_jax.methods import FeatureMethod, register

@register("from_a_file")
@dataclasses.dataclass(frozen=True, kw_only=True)
class Nearest(FeatureMethod):
    title, transductive = "Nearest support", False
    power: float = 1.0

    def class_distances(self, task):
        dist_qs = jnp.linalg.norm(task.query[:, None] - task.support, axis=-1)
        own_sc = task.support_labels[:, None] == jnp.arange(task.num_classes)
        dist_qsc = jnp.where(own_sc, dist_qs[:, :, None], jnp.inf)
        return dist_qsc.min(axis=1) ** self.power
"""


def test_a_plugin_brings_a_method_and_may_be_named_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    assert methods.load_plugin(path) == methods.load_plugin(str(path)) == path
    dist_qc = methods.get_method("from_a_file(power=2.0)")(make_task())
    assert dist_qc.shape == (WAY * QUERY, WAY)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not there"),
        ("1 / 0", "failed with ZeroDivisionError"),
        (PLUGIN.replace("from_a_file", "rdc"), "there is a method 'rdc' already"),
    ],
)
def test_a_broken_plugin_is_told_in_one_line(tmp_path, content, message):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        methods.load_plugin(path)
    assert "\n" not in str(caught.value)
