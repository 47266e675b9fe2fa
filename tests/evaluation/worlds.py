"""Small worlds: features with classes, images in folders, a tiny network."""

import jax
import jax.numpy as jnp
import numpy as np
import tiny
from PIL import Image

import rdc_jax
from rdc_jax import methods
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.evaluation.scoring import Wanted, judge_on_features
from rdc_jax.models.checkpoints import Checkpoints

SPEC = TaskSpec(way=4, shot=2, query=5)
ALL = ("npc", "npc_l2", "rdc_one_space", "rdc")
PARAMS = rdc_jax.RDCParams(k=5, k2=3, dim=8)


def make_features(*, classes=7, per_class=12, d=24, spread=1.2, seed=0):
    """Gaussian classes, some of which overlap."""
    rng = np.random.default_rng(seed)
    labels_n = np.repeat(np.arange(classes), per_class).astype(np.int32)
    centre_cd = rng.normal(size=(classes, d))
    feat_nd = centre_cd[labels_n] + spread * rng.normal(size=(len(labels_n), d))
    return np.maximum(feat_nd, 0).astype(np.float32), labels_n


def make_sampler(labels_n, *, spec=SPEC, seed=0):
    return TaskSampler(labels_n, spec, seed=seed, dataset="world")


def make_task(number=0, *, spec=SPEC):
    """A task of the world, and the labels of its queries."""
    feat_nd, labels_n = make_features()
    tasks, s = (
        make_sampler(labels_n, spec=spec)(range(number, number + 1)),
        spec.support_size,
    )
    feat_md, labels_m = feat_nd[tasks.indices[0]], tasks.labels[0]
    arrays = map(jnp.asarray, (feat_md[:s], labels_m[:s], feat_md[s:]))
    return methods.Task(*arrays, num_classes=spec.way), jnp.asarray(labels_m[s:])


def counts_of(*names, params=PARAMS, diagnosed=None):
    """What counts the right answers of methods on one task."""
    found = tuple(methods.get_method(name, rdc=params) for name in names or ALL)

    def counts(task, labels_q):
        judged = judge_on_features(found, diagnosed, Wanted(), None, task, labels_q)
        return judged.counts

    return counts


def write_images(root, *, name="photos", classes=5, per_class=9):
    """Write an image folder: noise on colours that a random network tells apart."""
    rng = np.random.default_rng(0)
    for c in range(classes):
        folder = root / name / f"class{c}"
        folder.mkdir(parents=True)
        colour = rng.integers(90, 166, 3)
        for i in range(per_class):
            noise = rng.integers(-90, 90, (16, 16, 3)) + rng.integers(-40, 40, 3)
            pixels = (colour + noise).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
    return root


def write_checkpoint(root, *, seed=0):
    """Write the weights of a tiny network that has not been trained."""
    network = tiny.TinyNet()
    images = jnp.zeros((1, tiny.SIZE, tiny.SIZE, 3))
    variables = jax.jit(network.init)(jax.random.key(seed), images)
    with Checkpoints(root / "checkpoints") as checkpoints:
        checkpoints.save(
            1,
            variables={part: {"backbone": tree} for part, tree in variables.items()},
            training={"step": np.asarray(1, np.int32)},
            metadata={"arch": "resnet10", "image_size": tiny.SIZE},
        )
    return root
