"""Each reading of RDC-FT makes the first steps of an independent torch program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from methods.adapted import QUERY, SHOT, WAY, make_model, make_task

import rdc_jax
from rdc_jax.data.transforms import test_batch as transformed
from rdc_jax.data.transforms import train_batch
from rdc_jax.methods import get_method
from rdc_jax.methods.finetune_options import FinetuneOptions

STEPS = 3
PARAMS = rdc_jax.RDCParams(k=4, k2=3, dim=4)
SEVERAL = {
    "rows": "queries",
    "total": "sum",
    "tau_squared": False,
    "attention": "target",
    "trained": "raw",
    "weight_decay": 0.1,
    "labelled": True,
    "target": "mean",
}
READINGS = [{name: value} for name, value in SEVERAL.items()]
READINGS += [
    {"attention": "original"},
    {"target": "fixed"},
    {"target_pass": "plain"},
    {"augment": True},
    {"augment": True, "target_pass": "plain"},
    {"batch": 7},
    {"mirror": True},
]


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def task():
    return make_task()


def name_of(readings):
    return " ".join(f"{name}={value}" for name, value in readings.items())


@pytest.mark.parametrize(
    "readings",
    [
        SEVERAL,
        {"target_pass": "plain", "augment": True, "batch": 7},
        *(pytest.param(one, marks=pytest.mark.slow) for one in READINGS),
    ],
    ids=name_of,
)
def test_first_steps_equal_a_torch_reference(model, task, readings):
    pytest.importorskip("torch", reason="needs the extra [torch]")
    from methods import torch_finetune

    options = FinetuneOptions(learning_rate=1e-2, **readings)
    method = get_method("rdc_ft", rdc=PARAMS, finetune=options, image_size=tiny.SIZE)
    state = jax.jit(method.init)(jax.random.key(0), model, task)
    # Differences of longer rows keep fewer digits, and Adam's steps show them.
    atol = 3e-3 if options.trained == "raw" else 2e-4
    step, keys = jax.jit(method.step), [jax.random.key(n) for n in range(STEPS)]
    variables = {kind: tree["backbone"] for kind, tree in model.variables.items()}
    theirs = torch_finetune.steps(
        torch_finetune.TinyNet(variables).train(),
        lambda number: torched(views(task, keys[number], **of_images(options))),
        torched(views(task, None)),
        np.asarray(task.support_labels),
        WAY,
        PARAMS,
        reference(readings, keys, WAY * (SHOT + QUERY)),
        STEPS,
    )
    for key, other in zip(keys, theirs, strict=True):
        state = step(state, task, key)
        params = state.params["network"]
        for mine, name, axes in (
            (params["conv"]["kernel"], "conv.weight", (2, 3, 1, 0)),
            (params["norm"]["scale"], "norm.weight", (0,)),
            (params["dense"]["kernel"], "dense.weight", (1, 0)),
        ):
            np.testing.assert_allclose(mine, other[name].transpose(axes), atol=atol)


def of_images(options):
    return {"augment": options.augment, "mirror": options.mirror}


def views(task, key, augment=False, mirror=False):
    images = jnp.concatenate([task.support, task.query])
    if augment:
        return train_batch(jax.random.split(key, len(images)), images, tiny.SIZE)
    plain = transformed(images, tiny.SIZE)
    if not mirror:
        return plain
    turned = jax.random.bernoulli(key, shape=(len(images),))
    return jnp.where(turned[:, None, None, None], plain[:, :, ::-1], plain)


def torched(images):
    import torch

    return torch.from_numpy(np.array(images).transpose(0, 3, 1, 2))


def reference(readings, keys, count):
    """The readings without what the images tell, with the order of small batches."""
    orders = [np.asarray(jax.random.permutation(key, count)) for key in keys]
    return {
        **{k: v for k, v in readings.items() if k not in ("augment", "mirror")},
        "orders": orders,
    }


@pytest.mark.parametrize("keep", ["best", "mean"])
def test_the_weights_that_answer_are_the_best_or_the_mean(model, task, keep):
    """Which are found again among the weights of all steps."""
    options = FinetuneOptions(learning_rate=3e-2, keep=keep, target="fixed", steps=4)
    method = get_method("rdc_ft", rdc=PARAMS, finetune=options, image_size=tiny.SIZE)
    state = jax.jit(method.init)(jax.random.key(0), model, task)
    step, losses, passed = jax.jit(method.step), [], [state.params["network"]]
    images = views(task, None)
    for number in range(4):
        feat_nd, out, _ = state.whole.apply(images, train=True)
        losses.append(float(method.loss({}, state.targets, feat_nd, out, task)))
        state = step(state, task, jax.random.key(number))
        passed.append(state.params["network"])
    if keep == "best":
        expected = passed[int(np.argmin(losses))]
    else:
        expected = jax.tree.map(lambda *rows: sum(rows) / 4, *passed[1:])
    answering = method.adapted(state).variables["params"]["backbone"]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), answering, expected
    )
