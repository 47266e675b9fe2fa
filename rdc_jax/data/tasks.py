"""Few-shot tasks as arrays of image indices.

Task ``i`` of a data set is a function of (seed, data set name, ``i``, way, shot,
query) and of the labels, and of nothing else: not of how many tasks are made at a
time, in which order, or on how many devices.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int, Int32, Int64, Integer

from rdc_jax.data import philox
from rdc_jax.data.composition import Composition, compose
from rdc_jax.data.task_spec import TaskSpec, span
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)

FILLER = -2  # The label of rows that fill a task up; -1 is that of no class.


class Tasks(NamedTuple):
    """Tasks, one a row: ``n`` images, of which the first ``s`` are support.

    Support rows are in the order of their labels. Query rows are in random order, so
    that nothing can be learnt from a query's place. Where tasks differ in size, both
    are filled up: with image 0, of label ``FILLER``.
    """

    indices: Int32[np.ndarray, "e n"]  # images of the data set
    labels: Int32[np.ndarray, "e n"]  # of the task, 0 ... way - 1
    classes: Int32[np.ndarray, "e c"]  # the data set's class id of each label, or -1

    @property
    def mask(self) -> Bool[np.ndarray, "e n"]:
        """Which rows are images of the task."""
        return self.labels != FILLER


class TaskSampler:
    """Makes the tasks of one data set, by number.

    Classes with fewer than ``shot + query`` images are left out, with a warning that
    names them; fewer classes than ways is a ``UserError``.

    >>> import numpy as np
    >>> labels, spec = np.repeat(np.arange(8), 20), TaskSpec(way=5, shot=1, query=2)
    >>> tasks = TaskSampler(labels, spec, seed=0, dataset="cub")(range(100))
    >>> tasks.indices.shape, tasks.classes.shape
    ((100, 15), (100, 5))
    >>> tasks.labels[0, :5]  # the support
    array([0, 1, 2, 3, 4], dtype=int32)

    Args:
      labels: Class id of every image.
      spec: The shape of a task.
      seed: Another seed is another set of tasks.
      dataset: Name of the data set; another name is another set of tasks.
      class_names: Names by class id, for messages.
      query_labels: Class ids of the images that queries are drawn from, if these are
        others. They are numbered after those of ``labels``.
    """

    def __init__(
        self,
        labels: Integer[np.ndarray, "n"],
        spec: TaskSpec,
        *,
        seed: int,
        dataset: str,
        class_names: Sequence[str] | None = None,
        query_labels: Integer[np.ndarray, "m"] | None = None,
    ) -> None:
        self.spec = spec
        pools = [labels] if query_labels is None else [labels, query_labels]
        most = 1 + max(int(pool.max(initial=-1)) for pool in pools)
        count = max(most, len(class_names or ()))
        sizes = [np.bincount(pool, minlength=count) for pool in pools]
        self.classes = _usable_classes(sizes, spec, dataset, class_names)
        by_class = [_by_class(pool, count) for pool in pools]
        self._support = [by_class[0][label] for label in self.classes]
        self._query: list[np.ndarray] | None = None
        if query_labels is not None:
            own = [by_class[1][label] for label in self.classes]
            self._query = [len(labels) + images for images in own]
        self._sizes = [size[self.classes] for size in sizes]
        identity = {"seed": int(seed), "dataset": dataset, **spec.identity}
        self._key = int(checksums.of_json(identity)[:32], 16)

    def __call__(self, numbers: range | Integer[np.ndarray, "e"]) -> Tasks:
        """Make the tasks of these numbers, in this order."""
        spec, numbers = self.spec, np.asarray(numbers, np.int64)
        if numbers.size and numbers.min() < 0:
            raise UserError(f"task {numbers.min()}: tasks are numbered from 0")
        way = spec.most_ways
        # Always as many draws, whatever becomes of them.
        queries = span(spec.query)[1] if spec.dirichlet is None else spec.query_size
        depth = min(spec.most_shots, int(self._sizes[0].max())) + queries
        widths = (way, way * depth, spec.query_size, way, 3 + way if spec.varies else 0)
        uniform = philox.uniforms(self._key, numbers, sum(widths))
        by_class, by_image, by_order, by_count, by_size = np.split(
            uniform, np.cumsum(widths)[:-1], axis=1
        )
        ways = min(way, len(self.classes))
        chosen_ec = np.zeros((len(numbers), way), np.int64)
        for row, uniform_c in enumerate(by_class[:, :ways].tolist()):
            chosen_ec[row, :ways] = philox.without_replacement(
                uniform_c, len(self.classes)
            )
        sizes = [size_c[chosen_ec] for size_c in self._sizes]
        counts = compose(spec, ways, sizes, by_count, by_size)
        uniform_ecm = by_image.reshape(len(numbers), way, depth)
        n = spec.support_size + spec.query_size
        indices_en = np.zeros((len(numbers), n), np.int32)
        labels_en = np.full((len(numbers), n), FILLER, np.int32)
        for row, chosen_c in enumerate(chosen_ec):
            one = Composition(*(part[row] for part in counts))
            drawn = self._draw(chosen_c, one, uniform_ecm[row], by_order[row])
            for start, indices, labels in drawn:
                indices_en[row, start : start + len(indices)] = indices
                labels_en[row, start : start + len(indices)] = labels
        classes_ec = np.where(counts.support > 0, self.classes[chosen_ec], -1)
        return Tasks(indices_en, labels_en, classes_ec.astype(np.int32))

    def _draw(
        self,
        chosen_c: Int64[np.ndarray, "c"],
        counts: Composition,
        uniform_cm: Float64[np.ndarray, "c m"],
        uniform_q: Float64[np.ndarray, "q"],
    ) -> list[tuple[int, Int[np.ndarray, "r"], Int[np.ndarray, "r"]]]:
        """Supports of one task, then queries: first row, images and their labels."""
        ways = np.arange(len(chosen_c))
        support, query = [], []
        for c, uniform_m in enumerate(uniform_cm.tolist()):
            shot, asked = int(counts.support[c]), int(counts.query[c])
            label, apart = chosen_c[c], self._query is not None
            images = self._support[label]
            needed = uniform_m[: shot if apart else shot + asked]
            drawn = images[philox.without_replacement(needed, len(images))]
            support.append(drawn[:shot])
            query.append(drawn[shot:])
            if self._query is not None:
                images, needed = self._query[label], uniform_m[shot : shot + asked]
                query[c] = images[philox.without_replacement(needed, len(images))]
        labels_q = np.repeat(ways, counts.query)
        order_q = uniform_q[: len(labels_q)].argsort(kind="stable")
        return [
            (0, np.concatenate(support), np.repeat(ways, counts.support)),
            (
                self.spec.support_size,
                np.concatenate(query)[order_q],
                labels_q[order_q],
            ),
        ]


def _by_class(labels: np.ndarray, count: int) -> list[np.ndarray]:
    """Images of each class."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=count))[:-1])


def _usable_classes(
    sizes: Sequence[np.ndarray],
    spec: TaskSpec,
    dataset: str,
    class_names: Sequence[str] | None,
) -> Int64[np.ndarray, "usable"]:
    """Class ids with enough images for a task; says which are left out."""
    shot, query = spec.needed
    least_ways = span(spec.way)[0]
    if len(sizes) == 1:
        needed, enough = f"{shot + query} images", sizes[0] >= shot + query
    else:
        needed = f"{shot} images to label and {query} to classify"
        enough = (sizes[0] >= shot) & (sizes[1] >= query)
    usable = np.flatnonzero(enough)
    if len(usable) < least_ways:
        raise UserError(
            f"{dataset} has {len(usable)} classes with the {needed} that "
            f"shot={_text(spec.shot)} and query={_text(spec.query)} need, fewer than "
            f"way={_text(spec.way)}; lower one of the three, or add images"
        )
    # Without names, an id without images is no class.
    small = [
        class_names[i] if class_names else str(i)
        for i in np.flatnonzero(~enough).tolist()
        if class_names or any(size[i] for size in sizes)
    ]
    if small:
        _log.warning(
            "%s: classes with fewer than %s are left out of the tasks: %s",
            *(dataset, needed, ", ".join(small)),
        )
    return usable


def _text(number: int | tuple[int, int] | str) -> str:
    return "-".join(map(str, number)) if isinstance(number, tuple) else str(number)
