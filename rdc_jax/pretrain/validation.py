"""Few-shot accuracy on held-out classes, which decides the best checkpoint."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from rdc_jax.core.batching import over_episodes
from rdc_jax.core.prototypes import predictions
from rdc_jax.data.pixels import PixelCache
from rdc_jax.data.tasks import Tasks, TaskSampler, TaskSpec
from rdc_jax.data.transforms import test_batch
from rdc_jax.methods import Task, get_method
from rdc_jax.models.model import Model, Variables
from rdc_jax.pretrain.objectives import Objective
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime import processes
from rdc_jax.runtime.errors import UserError

_ROWS_A_DEVICE = 64
_TASKS_AT_A_TIME = 50

Validate = Callable[[Variables], dict[str, float]]


def make_validate(
    objective: Objective,
    pixels: PixelCache,
    options: Options,
    layout: processes.Layout,
) -> Validate:
    """Prepare the validation of a run: the same tasks each time.

    Args:
      objective: Names the method that answers.
      pixels: Images of the held-out classes.
      options: Of the run.
      layout: Images are sharded, features replicated.

    Returns:
      A function from variables to named accuracies in percent.

    Raises:
      UserError: The method does not work on features, or a task cannot be made.
    """
    method = get_method(objective.method)
    if method.inputs != "features":
        raise UserError(
            f"config.method={options.method} is validated by {objective.method}, which "
            f"needs {method.inputs}: set --config.validation.episodes=0"
        )
    given = options.validation
    tasks = {}
    for shot in given.shots:
        sampler = TaskSampler(
            pixels.labels,
            TaskSpec(way=given.way, shot=shot, query=given.query),
            seed=options.seed,
            dataset=pixels.name,
            class_names=pixels.class_names,
        )
        tasks[shot] = sampler(range(given.episodes))

    @functools.partial(jax.jit, out_shardings=layout.replicated)
    def embed(variables: Variables, images: UInt8[Array, "b h w 3"]) -> Array:
        model = Model(objective.spec, variables)
        return model.embed(test_batch(images, options.image_size))

    @functools.partial(jax.jit, static_argnames="s")
    def accuracy(
        variables: Variables, feat_nd: Array, episodes: Tasks, s: int
    ) -> Float[Array, ""]:
        model = Model(objective.spec, variables)

        def one_task(indices_m: Array, labels_m: Array) -> Float[Array, ""]:
            feat_md = feat_nd[indices_m]
            task = Task(feat_md[:s], labels_m[:s], feat_md[s:], given.way)
            return jnp.mean(predictions(method(task, model)) == labels_m[s:])

        each_task = over_episodes(one_task, chunk=_TASKS_AT_A_TIME)
        return jnp.mean(each_task(episodes.indices, episodes.labels))

    def validate(variables: Variables) -> dict[str, float]:
        feat_nd = _embed_all(functools.partial(embed, variables), pixels.images, layout)
        shares = {
            shot: float(accuracy(variables, feat_nd, task, given.way * shot))
            for shot, task in tasks.items()
        }
        return {f"val_{given.way}way_{n}shot": 100 * x for n, x in shares.items()}

    return validate


def _embed_all(
    embed: Callable[[Array], Array],
    images: UInt8[np.ndarray, "n h w 3"],
    layout: processes.Layout,
) -> Float[np.ndarray, "n d"]:
    """Features of all images, in batches of which every process takes a part."""
    batch = _ROWS_A_DEVICE * jax.device_count()
    local = batch // jax.process_count()
    first = jax.process_index() * local
    parts = []
    for start in range(0, len(images), batch):
        rows = np.arange(start + first, start + first + local)
        rows = np.minimum(rows, len(images) - 1)  # The last batch repeats an image.
        parts.append(embed(processes.put_batch(layout, np.asarray(images[rows]))))
    return np.concatenate(jax.device_get(parts))[: len(images)]
