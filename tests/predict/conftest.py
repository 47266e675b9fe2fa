import dataclasses

import pytest
import tiny
from evaluation import worlds

from rdc_jax.models import BACKBONES


@dataclasses.dataclass(frozen=True)
class Folders:
    """A user's pictures: ``support/<class>/…`` and loose ones in ``query``."""

    support: object
    query: object
    truth: dict


def split(photos, root, *, shots):
    """Put the first pictures of each class into the support, the others loose."""
    truth = {}
    for folder in sorted(photos.iterdir()):
        for i, path in enumerate(sorted(folder.iterdir())):
            name = f"{folder.name}_{path.name}"
            target = root / "query" / name
            if i < shots:
                target = root / "support" / folder.name / path.name
            else:
                truth[name] = folder.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return Folders(root / "support", root / "query", truth)


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    return worlds.write_images(tmp_path_factory.mktemp("photos")) / "photos"


@pytest.fixture
def folders(photos, tmp_path):
    """Five classes, two labelled pictures each, 35 to classify."""
    return split(photos, tmp_path, shots=2)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    return worlds.write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture
def checkpoint(trained, monkeypatch):
    """The weights of a tiny network, which knows its image size."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    return trained
