"""Queries of none of a task's classes, put among the others.

A task with them is the task without them, in the same order, with images of other
classes at random places between. Which images and where is a function of (seed, data
set name, number of the task, how many they are) and of the task.
"""

import numpy as np
from jaxtyping import Integer

from rdc_jax.data import philox
from rdc_jax.data.tasks import Tasks
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

NO_CLASS = -1
"""The label of such a query in its task."""


class DistractorQueries:
    """Puts images of other classes among the queries of tasks.

    >>> from rdc_jax.data.task_spec import TaskSpec
    >>> from rdc_jax.data.tasks import TaskSampler
    >>> labels, spec = np.repeat(np.arange(8), 20), TaskSpec(way=5, shot=1, query=2)
    >>> tasks = TaskSampler(labels, spec, seed=0, dataset="cub")(range(4))
    >>> others = DistractorQueries(labels, 3, way=5, seed=0, dataset="cub")
    >>> more = others(tasks, np.arange(4), supports=5)
    >>> more.labels.shape, (more.labels == NO_CLASS).sum(axis=1).tolist()
    ((4, 18), [3, 3, 3, 3])

    Args:
      labels: Class id of every image; negative for images that are not to be drawn.
      count: How many each task gets.
      way: Most classes of a task.
      seed: Another seed is another set of tasks.
      dataset: Name of the data set.

    Raises:
      UserError: A task may leave too few images of other classes.
    """

    def __init__(
        self,
        labels: Integer[np.ndarray, " n"],
        count: int,
        *,
        way: int,
        seed: int,
        dataset: str,
    ) -> None:
        self._labels, self._count = labels, count
        sizes = np.sort(np.bincount(labels[labels >= 0]))
        if (fewest := int(sizes[:-way].sum())) < count:
            raise UserError(
                f"distractor_queries={count}: {dataset} may have as few as {fewest} "
                f"images outside of the {way} classes of a task; take fewer, or lower "
                "way"
            )
        identity = {"seed": seed, "dataset": dataset, "distractor_queries": count}
        self._key = int(checksums.of_json(identity)[:32], 16)

    def __call__(
        self, tasks: Tasks, numbers: Integer[np.ndarray, " e"], *, supports: int
    ) -> Tasks:
        """Give the tasks with more queries.

        Args:
          tasks: Those of the numbers.
          numbers: Which tasks, counted from 0.
          supports: How many rows of a task are no queries.
        """
        (e, n), m = tasks.indices.shape, self._count
        uniform_em = philox.uniforms(self._key, np.asarray(numbers, np.int64), 2 * m)
        indices = np.empty((e, n + m), np.int32)
        labels = np.full((e, n + m), NO_CLASS, np.int32)
        own = np.ones((e, n + m), bool)
        for row, uniform in enumerate(uniform_em.tolist()):
            others = np.flatnonzero(
                (self._labels >= 0) & ~np.isin(self._labels, tasks.classes[row])
            )
            places = philox.without_replacement(uniform[m:], n - supports + m)
            own[row, supports + np.array(places, np.intp)] = False
            drawn = philox.without_replacement(uniform[:m], len(others))
            indices[row, ~own[row]] = others[drawn]
        indices[own], labels[own] = tasks.indices.ravel(), tasks.labels.ravel()
        return Tasks(indices=indices, labels=labels, classes=tasks.classes)
