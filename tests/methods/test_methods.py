"""Every method, by one contract; then what each of them is."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import rdc as oracle

import rdc_jax
from rdc_jax import methods
from rdc_jax.methods import Episode, Settings
from rdc_jax.runtime.errors import UserError

WAY, SHOT, QUERY, D = 3, 2, 4, 16
SETTINGS = Settings(num_classes=WAY, rdc=rdc_jax.RDCParams(k=4, k2=3, dim=6))
BUILT_IN = ("npc", "protonet", "npc_l2", "npc_subspace", "rdc_original", "rdc")


def make_episode(seed=0):
    key = jax.random.key(seed)
    centre_cd = jax.random.normal(jax.random.fold_in(key, 0), (WAY, D))
    labels_s = jnp.repeat(jnp.arange(WAY), SHOT)
    labels_q = jnp.tile(jnp.arange(WAY), QUERY)
    labels_n = jnp.concatenate([labels_s, labels_q])
    noise_nd = jax.random.normal(jax.random.fold_in(key, 1), (len(labels_n), D))
    feat_nd = centre_cd[labels_n] + noise_nd
    s = WAY * SHOT
    return Episode(feat_nd[:s], labels_s, feat_nd[s:])


@functools.cache
def jitted(name):
    return jax.jit(lambda episode: methods.find(name).classify(episode, SETTINGS))


@pytest.fixture(params=BUILT_IN)
def classify(request):
    return jitted(request.param)


def test_one_distance_for_each_query_and_class(classify):
    dist_qc = classify(make_episode())
    assert dist_qc.shape == (WAY * QUERY, WAY)
    assert np.isfinite(dist_qc).all()


def test_an_episode_has_no_labels_of_queries():
    assert Episode._fields == ("support", "support_labels", "query")


def test_the_order_of_queries_does_not_matter(classify):
    episode = make_episode()
    order = jax.random.permutation(jax.random.key(7), len(episode.query))
    shuffled = episode._replace(query=episode.query[order])
    expected_qc = classify(episode)[order]
    np.testing.assert_allclose(classify(shuffled), expected_qc, atol=1e-5)


@pytest.mark.parametrize("name", BUILT_IN)
def test_only_transductive_methods_look_at_other_queries(name):
    episode = make_episode()
    alone = episode._replace(query=episode.query.at[1:].multiply(-1.0))
    first, other = (jitted(name)(e)[0] for e in (episode, alone))
    assert methods.find(name).transductive == bool(np.abs(first - other).max() > 1e-4)


@pytest.mark.parametrize("name", ["npc_l2", "rdc"])
def test_works_under_vmap(name):
    one, other = make_episode(0), make_episode(1)
    both = jax.tree.map(lambda *x: jnp.stack(x), one, other)
    mapped_eqc = jax.jit(jax.vmap(jitted(name)))(both)
    expected_qc = jitted(name)(other)
    np.testing.assert_allclose(mapped_eqc[1], expected_qc, rtol=1e-4, atol=1e-5)


def test_npc_takes_raw_features_and_npc_l2_normalised_ones():
    episode = make_episode()
    scaled = episode._replace(query=episode.query * 3.0)
    for name, changes in (("npc", True), ("npc_l2", False)):
        same = np.allclose(jitted(name)(scaled), jitted(name)(episode))
        assert same is not changes


@pytest.mark.parametrize(
    ("name", "subspace"), [("rdc", "tanh"), ("rdc_original", "none")]
)
def test_rdc_is_the_paper_s_and_rdc_original_lacks_the_subspace(name, subspace):
    episode = make_episode()
    params = dataclasses.replace(SETTINGS.rdc, subspace=subspace)
    arrays = (np.asarray(x) for x in episode)
    expected_qc, *_ = oracle.rdc(*arrays, WAY, params)
    np.testing.assert_allclose(jitted(name)(episode), expected_qc, atol=1e-5)


def test_built_in_methods_are_listed():
    assert set(BUILT_IN) <= set(methods.names())
    assert all(methods.find(name).needs == "features" for name in BUILT_IN)


def test_npc_subspace_is_npc_on_projected_features():
    episode = make_episode()
    feat_np = rdc_jax.subspace(
        jnp.concatenate([episode.support, episode.query]), SETTINGS.rdc
    )
    s = len(episode.support)
    expected_qc = oracle.npc(
        *map(np.asarray, (feat_np[:s], episode.support_labels, feat_np[s:])), WAY
    )
    np.testing.assert_allclose(jitted("npc_subspace")(episode), expected_qc, atol=1e-5)


def test_a_variant_is_the_method_with_other_parameters():
    episode = make_episode()
    method = methods.find_variant("rdc(lam=0.2;labels=False)")
    assert method.name == "rdc(lam=0.2;labels=False)" and method.transductive
    params = dataclasses.replace(SETTINGS.rdc, lam=0.2, labels=False)
    expected = jitted("rdc")(episode), rdc_jax.rdc(*episode, WAY, params=params)
    got_qc = method.classify(episode, SETTINGS)
    np.testing.assert_allclose(got_qc, expected[1].class_distances, atol=1e-6)
    assert not np.allclose(got_qc, expected[0], atol=1e-4)


def test_a_variant_of_fine_tuning_has_options_of_its_own():
    method = methods.find_variant(
        "rdc_ft(learning_rate=1e-4;layers=block3+block4;record=5+10;k=6)"
    )
    made = method.make(lambda *unused: None, SETTINGS)
    assert made.options.learning_rate == 1e-4
    assert made.options.layers == ("block3", "block4")
    assert made.options.record == (5, 10)
    assert made.objective.rdc.k == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rdc(lam)", r"write parameters as in rdc\(lam=0.3;k=6\)"),
        ("rdc(lamda=1)", "no field 'lamda'; known are k, k2, lam"),
        ("rdc(k=many)", "k=many: invalid literal"),
        ("rdc(k=0)", "RDCParams.k must be an int >= 1"),
        ("rdc(labels=yes)", "must be True or False"),
        ("rdc_ft(batch_norm=off)", "choose from batch"),
        ("rcd(k=3)", "did you mean rdc"),
    ],
)
def test_mistakes_in_a_variant_are_told(text, message):
    with pytest.raises(UserError, match=message) as caught:
        methods.find_variant(text)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_told_with_the_nearest_one():
    with pytest.raises(
        UserError, match=r"'rcd': did you mean rdc\? known are finetune"
    ):
        methods.find("rcd")


def test_a_name_cannot_be_taken_twice():
    with pytest.raises(UserError, match="there is a method 'rdc' already"):
        methods.register("rdc", title="Mine", transductive=False)


def test_a_name_must_fit_into_a_list():
    with pytest.raises(UserError, match="'a,b': use letters"):
        methods.register("a,b", title="Mine", transductive=False)


PLUGIN = """
import jax.numpy as jnp
from rdc_jax.methods import register

@register("from_a_file", title="Nearest support", transductive=False)
def nearest(episode, settings):
    dist_qs = jnp.linalg.norm(episode.query[:, None] - episode.support, axis=-1)
    own_sc = episode.support_labels[:, None] == jnp.arange(settings.num_classes)
    return jnp.where(own_sc, dist_qs[:, :, None], jnp.inf).min(axis=1)
"""


def test_a_plugin_brings_a_method_and_may_be_named_again(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    assert methods.load_plugin(path) == methods.load_plugin(str(path)) == path
    dist_qc = methods.find("from_a_file").classify(make_episode(), SETTINGS)
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


def test_a_linear_head_stands_on_fixed_features():
    options = methods.find("finetune_linear").options(Settings(num_classes=5))
    assert (options.layers, options.batch_norm) == (("none",), "running")
