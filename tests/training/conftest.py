import importlib.util
import pathlib

import pytest
from training import tiny

from rdc_jax import models


def _get_config():
    path = pathlib.Path(__file__).resolve().parents[2] / "configs/pretrain.py"
    spec = importlib.util.spec_from_file_location("pretrain_config", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_config


get_config = _get_config()


@pytest.fixture(scope="session")
def images_dir(tmp_path_factory):
    return tiny.write_images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def config(images_dir, tmp_path, monkeypatch):
    """A run of 6 steps of the tiny network; validated and saved every 3."""
    monkeypatch.setattr(models, "create", tiny.create)
    config = get_config("test")
    with config.unlocked():
        config.update(
            source="tiny",
            data_dir=str(images_dir),
            cache_dir=str(tmp_path / "cache"),
            image_size=tiny.SIZE,
            stored_size=tiny.SIZE,
            batch_size=16,
            steps_per_epoch=0,
            log_every=2,
        )
        config.validation.update(way=3, shots="1,2", query=4, episodes=8)
    return config
