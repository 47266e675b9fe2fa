"""The systems that ``configs/pretrain.py`` has by name."""

import pytest

from rdc_jax.configs.pretrain import CLASSIFIERS, SCALES, SYSTEMS, get_config
from rdc_jax.pretrain.objectives import get_objective
from rdc_jax.pretrain.options import Options


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_comes_in_every_scale(system, scale):
    config = get_config(f"{system},{scale}")
    objective = get_objective(config.method)(Options.from_config(config.to_dict()), 16)
    assert objective.batches == ("domains" if "lft" in system else "tasks")
    assert config.image_size == {"paper": 224, "reduced": 84, "test": 32}[scale]
    steps = config.epochs * config.steps_per_epoch
    assert steps == {"paper": 40_000, "reduced": 2_000, "test": 20}[scale]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("system", CLASSIFIERS)
def test_classifiers_train_on_batches_of_images(system, scale):
    config = get_config(f"{system},{scale}")
    objective = get_objective(config.method)(Options.from_config(config.to_dict()), 16)
    assert objective.batches == "images"
    assert config.image_size == {"paper": 224, "reduced": 84, "test": 32}[scale]
    assert config.batch_size == 16
    assert config.optimiser.learning_rate == 1e-3


def test_a_system_alone_is_of_the_paper_s_scale():
    assert get_config("protonet") == get_config("paper,protonet")


@pytest.mark.parametrize("arg", ["magic", "protonet,huge", "paper,test", ""])
def test_other_variants_are_refused_with_those_there_are(arg):
    with pytest.raises(ValueError, match=r"paper, reduced, test, protonet"):
        get_config(arg)
