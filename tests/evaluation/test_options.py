"""Mistakes in a config are told by field, before anything is opened."""

import pytest

from rdc_jax.configs import eval as eval_config
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime.errors import UserError


def read(variant="test", **changes):
    config = eval_config.get_config(variant)
    config.update_from_flattened_dict({"checkpoint": "somewhere", **changes})
    return Options.from_config(config.to_dict())


@pytest.mark.parametrize("variant", eval_config.VARIANTS)
def test_every_variant_can_be_read(variant):
    options = read(variant)
    assert options.shots == (1, 5)
    assert [m.name for m in options.methods] == [
        "npc",
        "npc_l2",
        "rdc_one_space",
        "rdc",
        *(["rdc_plus"] if variant == "demo" else []),
    ]


def test_paper_is_the_paper_s_protocol():
    options = read("paper")
    assert (options.way, options.query, options.episodes) == (5, 15, 2000)
    assert (options.image_size, len(options.datasets)) == (224, 8)
    params = options.rdc
    assert (params.k, params.k2, params.lam, params.dim) == (10, 8, 0.5, 64)


def test_lists_are_words_with_commas():
    options = read(datasets=" cub, isic,cub,", methods="rdc,npc", shots="5,1,5")
    assert options.datasets == ("cub", "isic")
    assert [method.name for method in options.methods] == ["rdc", "npc"]
    assert options.shots == (5, 1)


def test_without_a_checkpoint_demo_trains_and_paper_asks_for_one():
    assert read("demo", checkpoint="").pretrain["source"] == "synthetic:objects"
    with pytest.raises(UserError, match=r"config\.checkpoint is empty"):
        read("paper", checkpoint="")


def test_k_matters_only_to_methods_that_use_it():
    assert read(methods="npc,npc_l2", **{"rdc.k": 1000}).rdc.k == 1000


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("methods", "npc,rdcc", "unknown method 'rdcc': did you mean rdc"),
        ("methods", " , ", r"config\.methods is empty"),
        ("baseline", "nothing", "unknown method 'nothing'"),
        ("plugins", "/nowhere/mine.py", "plugin /nowhere/mine.py is not there"),
        ("shots", "1;5", r"config\.shots is '1;5'"),
        ("shots", "0", "shot=0"),
        ("way", 1, r"config\.way is 1"),
        ("episodes", 0, r"config\.episodes is 0"),
        ("chunk", -1, r"config\.chunk is -1"),
        ("dirichlet", -1.0, "dirichlet=-1.0"),
        ("rdc.k", 0, r"config\.rdc\.k must be an int >= 1"),
        ("rdc.k", 30, "rdc_one_space: k is 30, but a task of 5 supports has 30 images"),
        ("rdc.k2", 31, "method rdc_one_space: k2 is 31"),
        ("rdc.lam", 1.5, r"method rdc_one_space: lam is 1\.5"),
        ("methods", "npc,rdc(k=30)", r"method rdc\(k=30\): k is 30"),
    ],
)
def test_mistakes_name_the_field(field, value, message):
    with pytest.raises(UserError, match=message) as caught:
        read(**{field: value})
    assert "\n" not in str(caught.value)
