"""Any function from images to features is a model, from a Python file too."""

import functools
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.methods import Task, get_method
from rdc_jax.models import Preprocessing, from_function, load_backbone, load_model
from rdc_jax.models.load import read_checkpoint
from rdc_jax.runtime.errors import UserError

IMAGES = np.random.default_rng(0).normal(size=(3, 8, 8, 3)).astype(np.float32)


def quarters(images, *, scale=1.0):
    assert type(images) is np.ndarray and images.flags.writeable
    assert images.dtype == np.float32
    b, h, w, _ = images.shape
    cut = images.reshape(b, 2, h // 2, 2, w // 2, 3)
    return scale * cut.mean(axis=(2, 4)).reshape(b, 12)


def write(path, body):
    path.write_text(textwrap.dedent(body))
    return f"{path}:load"


def test_a_function_gives_features():
    model = from_function(quarters)
    np.testing.assert_allclose(model(IMAGES), quarters(IMAGES.copy()), rtol=1e-6)
    assert model.arch == "quarters" and model.on_host


def test_it_goes_through_shapes_and_jit():
    model = from_function(quarters)
    assert jax.eval_shape(model.embed, jnp.asarray(IMAGES)).shape == (3, 12)
    np.testing.assert_allclose(
        jax.jit(model.embed)(IMAGES), quarters(IMAGES.copy()), rtol=1e-6
    )


def test_its_images_are_normalised_as_it_wants():
    wants = Preprocessing(mean=(0.5,) * 3, std=(0.25,) * 3)
    model = from_function(quarters, preprocessing=wants)
    want = quarters(np.array(wants.renormalised(jnp.asarray(IMAGES))))
    np.testing.assert_allclose(model(IMAGES), want, rtol=1e-5, atol=1e-6)


def test_fingerprints_tell_weights_apart():
    twice = functools.partial(quarters, scale=2.0)
    same = [from_function(quarters).fingerprint for _ in range(2)]
    assert same[0] == same[1]
    assert from_function(twice, name="quarters").fingerprint != same[0]
    assert from_function(quarters, fingerprint="v2").fingerprint != same[0]
    wants = Preprocessing(mean=(0.5,) * 3)
    assert from_function(quarters, preprocessing=wants).fingerprint != same[0]


def test_a_function_of_a_file_is_a_checkpoint(tmp_path):
    path = write(
        tmp_path / "mine.py",
        """
        def load():
            return lambda images: images.mean(axis=(1, 2))
        """,
    )
    for loaded in (load_model(path), load_backbone(path)):
        np.testing.assert_allclose(loaded(IMAGES), IMAGES.mean(axis=(1, 2)), atol=1e-6)
    with pytest.raises(UserError, match="not a file with weights"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def other(): pass", "has no 'load'"),
        ("def load(): return 3", "gives a int: it must give a function"),
        ("def load():\n    import no_such_module", "failed.*No module named"),
    ],
)
def test_mistakes_in_a_file_are_told(tmp_path, body, message):
    with pytest.raises(UserError, match=message):
        load_model(write(tmp_path / "mine.py", body))


def test_features_that_are_no_rows_are_refused():
    with pytest.raises(UserError, match="gives \\(3, 8, 8, 3\\) for 3 images"):
        from_function(np.asarray)(IMAGES)


def test_a_method_that_trains_refuses_it():
    images = jax.ShapeDtypeStruct((4, 18, 18, 3), np.uint8)
    labels = jax.ShapeDtypeStruct((4,), np.int32)
    task = Task(images, labels, images, num_classes=2)
    with pytest.raises(UserError, match="quarters is a function"):
        get_method("rdc_ft").check(task, from_function(quarters))
