"""Methods that share a pass over the episodes: all on features, one that trains."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from rdc_jax.evaluation.engine import Pass
from rdc_jax.evaluation.feature_pass import FeaturePass
from rdc_jax.evaluation.finetune_pass import FinetunePass, Steps
from rdc_jax.evaluation.judge import Judge
from rdc_jax.evaluation.options import Entry, Options, check
from rdc_jax.evaluation.targets import Target
from rdc_jax.models.functional import apply_fn
from rdc_jax.models.model import Model

FEATURES = "features"  # The group of all methods that need features.

Embed = Callable[[], Float32[np.ndarray, "n d"]]


class Group(NamedTuple):
    """Methods whose counts are computed together.

    Attributes:
      name: ``features``, or the method's name.
      title: What people call it.
      columns: What is counted.
      shown: The column that progress is told by.
      open: From a shot, a target and a way to get its features to a pass.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    shown: str
    open: Callable[[int, Target, Embed], Pass]


def make_groups(options: Options, backbone: Model) -> list[Group]:
    """Group the methods of a run, each tried on shapes before the long work.

    Args:
      options: Of the run.
      backbone: The network.

    Returns:
      Quick groups first.

    Raises:
      UserError: A method does not fit the network or the tasks.
    """
    groups = []
    on_features = tuple(m for m in options.methods if m.method.inputs != "images")
    for shot in options.shots:
        for entry in options.methods:
            check(entry, options.task(shot, (1,)), backbone)
    if on_features:
        groups.append(_feature_group(on_features, options, backbone))
    for method in options.methods:
        if method.method.inputs == "images":
            groups.append(_finetune_group(method, options, backbone))
    return groups


def _feature_group(
    methods: tuple[Entry, ...], options: Options, backbone: Model
) -> Group:
    image = jax.ShapeDtypeStruct((1, options.image_size, options.image_size, 3), "f4")
    d = jax.eval_shape(backbone, image).shape[1]
    judges = {}
    for shot in options.shots:
        spec = options.spec(shot)
        judges[shot] = Judge(methods, options.way, options.rdc, spec.support_size)
        n = spec.support_size + spec.query_size
        shapes = (
            jax.ShapeDtypeStruct((n, d), np.float32),
            jax.ShapeDtypeStruct((n,), np.int32),
        )
        jax.eval_shape(judges[shot], *shapes)

    def open_pass(shot: int, target: Target, embed: Embed) -> Pass:
        return FeaturePass(judges[shot], embed(), target.samplers[shot])

    columns = next(iter(judges.values())).columns
    return Group(FEATURES, "Features", columns, methods[-1].name, open_pass)


def _finetune_group(method: Entry, options: Options, backbone: Model) -> Group:
    fitted: Any = method.method
    dtype = jnp.dtype(fitted.finetune.dtype)
    apply = apply_fn(backbone.backbone.clone(dtype=dtype))  # type: ignore[union-attr]
    finetuner = fitted.finetuner(apply, options.way, options.image_size)
    variables = {part: tree["backbone"] for part, tree in backbone.variables.items()}
    steps = {
        shot: Steps(method.name, finetuner, options.spec(shot).support_size)
        for shot in options.shots
    }
    for shot, each in steps.items():
        spec = options.spec(shot)
        each.check(variables, spec.support_size + spec.query_size)

    def open_pass(shot: int, target: Target, embed: Embed) -> Pass:
        del embed
        return FinetunePass(
            steps[shot],
            variables,
            target.pixels.images,
            target.samplers[shot],
            seed=options.seed,
        )

    columns = next(iter(steps.values())).columns
    return Group(method.name, method.title, columns, method.name, open_pass)
