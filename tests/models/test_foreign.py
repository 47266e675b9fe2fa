"""Networks of other libraries give the features that they give there."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from models import foreign_cases as cases
from safetensors.numpy import load_file, save_file

from rdc_jax.models import Preprocessing, load_backbone, load_model, weights
from rdc_jax.models.load import read_checkpoint
from rdc_jax.models.preprocessing import FIELD
from rdc_jax.runtime.errors import UserError

pytestmark = pytest.mark.usefixtures("optimised")

FAST = ("dinov2",)
NAMES = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
    for name in cases.MADE
]


def plainly(model, dtype="float32"):
    """The model for images that are normalised as it wants already."""
    spec = dataclasses.replace(model.spec, preprocessing=FIELD, dtype=dtype)
    return model.replace(spec=spec)


@pytest.fixture(scope="module")
def dinov2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    return folder, cases.MADE["dinov2"](folder)


@pytest.mark.parametrize("name", NAMES)
def test_features_are_those_of_the_library(name, tmp_path):
    original = cases.MADE[name](tmp_path)
    alone = tmp_path / "best.pth"
    model = plainly(load_model(alone if alone.is_file() else tmp_path))
    # As it was trained, larger, smaller; any size where there are no positions.
    sizes = (28, 35, 21) if model.arch == "vit" else (64, 70)
    # open_clip has no other sizes while it runs.
    for size in sizes if name != "open_clip" else (28,):
        want = original(cases.images(size))
        got = np.asarray(model(cases.images(size)))
        assert np.abs(got - want).max() < 1e-5 * np.abs(want).max(), size
    half = np.asarray(plainly(model, "bfloat16")(cases.images(size)))
    cosine = (half * want).sum(1) / np.linalg.norm(half, axis=1)
    assert (cosine / np.linalg.norm(want, axis=1) > 0.999).all()


def test_colours_are_those_of_the_processor(dinov2, tmp_path):
    folder, original = dinov2
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    processor = {
        "crop_size": {"height": 28, "width": 28},
        "do_center_crop": True,
        "image_mean": [0.5, 0.4, 0.3],
        "image_std": [0.2, 0.3, 0.4],
        "resample": 3,
        "size": {"shortest_edge": 32},
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    model = load_backbone(tmp_path)
    assert model.preprocessing == Preprocessing(
        size=28,
        edge=32,
        keep_aspect=True,
        interpolation="bicubic",
        mean=(0.5, 0.4, 0.3),
        std=(0.2, 0.3, 0.4),
    )
    assert model.metadata["image_size"] == 28
    images = cases.images(28)
    pixels = images * np.array(FIELD.std) + np.array(FIELD.mean)
    own = (pixels - np.array([0.5, 0.4, 0.3])) / np.array([0.2, 0.3, 0.4])
    want = original(own.astype(np.float32))
    np.testing.assert_allclose(model(images), want, rtol=1e-4, atol=1e-4)
    assert model.fingerprint != load_backbone(folder).fingerprint


def test_intermediates_are_maps(dinov2):
    model = load_backbone(dinov2[0])
    _, named, _ = model.apply(cases.images(35))
    assert {*named} == {
        *("stem", "block1", "block2", "class1", "class2", "patches", "features")
    }
    assert named["block2"].shape == named["patches"].shape == (2, 5, 5, 32)
    assert named["class2"].shape == (2, 32)


def test_images_smaller_than_a_patch_are_refused(dinov2):
    with pytest.raises(UserError, match=r"images of 6 x 6 px .* patch .* 7 px"):
        load_backbone(dinov2[0])(cases.images(6))


def test_a_converted_file_gives_the_same_network(dinov2, tmp_path):
    variables, metadata = read_checkpoint(dinov2[0])
    weights.write(tmp_path / "small.safetensors", variables, metadata)
    before, after = load_model(dinov2[0]), load_model(tmp_path / "small.safetensors")
    assert before.spec == after.spec
    got, want = after(cases.images(28)), before(cases.images(28))
    np.testing.assert_allclose(got, want, atol=0.1 * np.abs(want).max())  # bfloat16


def test_pieces_of_weights_are_put_together(dinov2, tmp_path):
    tensors = load_file(dinov2[0] / "model.safetensors")
    names = sorted(tensors)
    index = {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-{number}.safetensors"
        save_file({name: tensors[name] for name in part}, tmp_path / file)
        index |= dict.fromkeys(part, file)
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": index})
    )
    (tmp_path / "config.json").write_bytes((dinov2[0] / "config.json").read_bytes())
    assert load_model(tmp_path).fingerprint == load_model(dinov2[0]).fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("layernorm.bias"), r"lacks layernorm\.bias of a vit"),
        (lambda t: t.update(odd=np.zeros(2)), "has odd, which a vit has no place for"),
        (
            lambda t: t.update({"layernorm.bias": np.zeros(3, np.float32)}),
            r"layernorm\.bias is \(3,\)",
        ),
        (
            lambda t: [t.pop(name) for name in list(t) if "layer.1" in name],
            r"lacks encoder\.layer\.1\..* and \d+ more",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(dinov2, tmp_path, change, message):
    tensors = load_file(dinov2[0] / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((dinov2[0] / "config.json").read_bytes())
    with pytest.raises(UserError, match=message):
        load_model(tmp_path)


def test_other_directories_are_told_what_is_known(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "swin"}')
    with pytest.raises(UserError, match="has a config and no weights"):
        load_model(tmp_path)
    save_file({"odd": np.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="is a swin: known are dinov2, "):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"no network that is known.* such as odd"):
        load_model(tmp_path)


def test_a_vision_transformer_lowers_for_accelerators(dinov2):
    model = load_backbone(dinov2[0])
    images = jax.ShapeDtypeStruct((2, 28, 28, 3), jnp.float32)
    for dtype in ("float32", "bfloat16"):
        of = jax.jit(plainly(model, dtype).embed)
        exported = export.export(of, platforms=["cpu", "cuda", "tpu"])(images)
        assert set(exported.platforms) == {"cpu", "cuda", "tpu"}
