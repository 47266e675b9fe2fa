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
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import Tasks, TaskSampler
from rdc_jax.data.transforms import test_batch
from rdc_jax.methods import Method, Task, get_method
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
    *,
    embedded: bool = False,
) -> Validate:
    """Prepare the validation of a run: the same tasks each time.

    Args:
      objective: It says which method answers.
      pixels: Images of the held-out classes.
      options: Of the run.
      layout: Of the devices.
      embedded: ``pixels`` has what the network makes of images.

    Returns:
      A function from variables to named accuracies in percent.

    Raises:
      UserError: The method works on images, or a task cannot be made.
    """
    method = get_method(objective.method)
    inputs = method.inputs
    if inputs == "images":
        raise UserError(
            f"config.method={options.method} is validated by {objective.method}, which "
            f"needs {inputs}: set --config.validation.episodes=0"
        )
    way, size = options.validation.way, options.image_size
    tasks_by_shot = _draw_tasks(pixels, options)
    embed = jax.jit(
        lambda model, images: model.inputs(inputs, test_batch(images, size))[0],
        out_shardings=layout.replicated,
    )

    def validate(variables: Variables) -> dict[str, float]:
        model = Model(objective.spec, variables)
        feat_nd = pixels.images
        if not embedded:
            feat_nd = _embed_all(functools.partial(embed, model), feat_nd, layout)
        return {
            f"val_{way}way_{shot}shot": 100
            * float(_accuracy(method, way, shot, model, feat_nd, tasks))
            for shot, tasks in tasks_by_shot.items()
        }

    return validate


def _draw_tasks(pixels: PixelCache, options: Options) -> dict[int, Tasks]:
    """The tasks of each shot."""
    given, tasks = options.validation, {}
    for shot in given.shots:
        sampler = TaskSampler(
            pixels.labels,
            TaskSpec(way=given.way, shot=shot, query=given.query),
            seed=options.seed,
            dataset=pixels.name,
            class_names=pixels.class_names,
        )
        tasks[shot] = sampler(range(given.episodes))
    return tasks


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _accuracy(
    method: Method,
    way: int,
    shot: int,
    model: Model,
    feat_nd: Float[Array, "n ..."],
    tasks: Tasks,
) -> Float[Array, ""]:
    """Mean accuracy of a method over tasks."""
    s = way * shot

    def one_task(indices_m: Array, labels_m: Array) -> Float[Array, ""]:
        feat_md = feat_nd[indices_m]
        task = Task(feat_md[:s], labels_m[:s], feat_md[s:], way)
        answer_qc = method.told(task, model, labels_m[s:])
        return jnp.mean(predictions(answer_qc) == labels_m[s:])

    each_task = over_episodes(one_task, chunk=_TASKS_AT_A_TIME)
    return jnp.mean(each_task(tasks.indices, tasks.labels))


def _embed_all(
    embed: Callable[[Array], Array],
    images: UInt8[np.ndarray, "n h w 3"],
    layout: processes.Layout,
) -> Float[np.ndarray, "n ..."]:
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
