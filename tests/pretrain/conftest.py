import shutil

import pytest
import tiny

from rdc_jax.configs.pretrain import get_config
from rdc_jax.models import BACKBONES
from rdc_jax.pretrain.run import pretrain


@pytest.fixture(scope="session")
def images_dir(tmp_path_factory):
    return tiny.write_images(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def make_config(images_dir, tmp_path_factory):
    """A run of 6 steps of the tiny network; validated and saved every 3."""
    cache_dir = tmp_path_factory.mktemp("cache")

    def make_config():
        config = get_config("test")
        with config.unlocked():
            config.update(
                source="tiny",
                data_dir=str(images_dir),
                cache_dir=str(cache_dir),
                image_size=tiny.SIZE,
                stored_size=tiny.SIZE,
                batch_size=16,
                steps_per_epoch=0,
                log_every=2,
            )
            config.validation.update(way=3, shots="1,2", query=4, episodes=8)
        return config

    return make_config


@pytest.fixture
def config(make_config, monkeypatch):
    """Of a short run, with the tiny network in the place of the real one."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    return make_config()


@pytest.fixture(scope="session")
def run_once(make_config, tmp_path_factory):
    """Train with some settings; gives a work directory, to be read only."""

    def run_once(**settings):
        config = make_config()
        config.update_from_flattened_dict(settings)
        workdir = tmp_path_factory.mktemp("trained") / "run"
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
            pretrain(config.to_dict(), workdir)
        return workdir

    return run_once


@pytest.fixture(scope="session")
def trained(run_once):
    """The work directory of a finished run, to be read only."""
    return run_once()


@pytest.fixture
def finished(trained, tmp_path):
    """A copy of it, to be damaged or resumed."""
    return shutil.copytree(trained, tmp_path / "run", symlinks=True)
