import shutil

import pytest
import tiny
from evaluation import worlds

from rdc_jax.configs import eval as eval_config
from rdc_jax.evaluation.run import evaluate
from rdc_jax.models import BACKBONES


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    return worlds.write_images(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return worlds.write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def flags(data_dir, checkpoint, tmp_path_factory):
    """Fields of a small evaluation; features are computed once for all tests."""
    return {
        "datasets": "photos",
        "data_dir": str(data_dir),
        "cache_dir": str(tmp_path_factory.mktemp("cache")),
        "checkpoint": str(checkpoint),
        "image_size": 16,
        "methods": "npc_l2,rdc_one_space",
        "shots": "1,2",
        "query": 4,
        "episodes": 20,
        "chunk": 4,
    }


@pytest.fixture(scope="session")
def make_config(flags):
    """The small evaluation."""

    def make_config():
        config = eval_config.get_config("test")
        config.update(flags)
        return config

    return make_config


@pytest.fixture
def config(make_config, monkeypatch):
    """Of the small evaluation, with the tiny network in the place of the real one."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    return make_config()


@pytest.fixture(scope="session")
def evaluated(make_config, tmp_path_factory):
    """The work directory of a finished evaluation, to be read only."""
    workdir = tmp_path_factory.mktemp("evaluated") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
        evaluate(make_config().to_dict(), workdir)
    return workdir


@pytest.fixture
def finished(evaluated, tmp_path):
    """A copy of it, to be damaged or resumed."""
    return shutil.copytree(evaluated, tmp_path / "run", symlinks=True)
