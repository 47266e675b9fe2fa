"""Few-shot tasks as arrays of image indices.

Task ``i`` of a data set is a function of (seed, data set name, ``i``, way, shot,
query) and of the labels, and of nothing else: not of how many tasks are made at a
time, in which order, or on how many devices.
"""

import dataclasses
import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int, Int32, Int64, Integer
from scipy import special

from rdc_jax.data import philox
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The shape of a task.

    Attributes:
      way: Classes in a task.
      shot: Labelled images of each class.
      query: Images to classify, of each class.
      dirichlet: None for the same number of queries in every class. A positive number
        draws the class proportions of a task's ``way * query`` queries from a symmetric
        Dirichlet distribution with this concentration: small values are more uneven,
        and 2 is the usual setting. A class gives no more queries than it has images.
    """

    way: int = 5
    shot: int = 1
    query: int = 15
    dirichlet: float | int | None = None

    def __post_init__(self) -> None:
        for name in ("way", "shot", "query"):
            if (value := getattr(self, name)) < 1:
                raise UserError(f"{name}={value}: a task needs {name} of at least 1")
        if self.dirichlet is None:
            return
        if not self.dirichlet > 0:
            raise UserError(f"dirichlet={self.dirichlet}: use a number above 0 or None")
        # 2 and 2.0 are one specification, and must be one set of tasks.
        object.__setattr__(self, "dirichlet", float(self.dirichlet))

    @property
    def support_size(self) -> int:
        """Support rows of a task."""
        return self.way * self.shot

    @property
    def query_size(self) -> int:
        """Query rows of a task."""
        return self.way * self.query


class Tasks(NamedTuple):
    """Tasks, one a row: ``n`` images, of which the first ``way * shot`` are support.

    Support rows are in the order of their labels. Query rows are in random order, so
    that nothing can be learnt from a query's place.
    """

    indices: Int32[np.ndarray, "e n"]  # images of the data set
    labels: Int32[np.ndarray, "e n"]  # of the task, 0 ... way - 1
    classes: Int32[np.ndarray, "e c"]  # the data set's class id of each label


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
    """

    def __init__(
        self,
        labels: Integer[np.ndarray, "n"],
        spec: TaskSpec,
        *,
        seed: int,
        dataset: str,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.spec = spec
        self.classes = _usable_classes(labels, spec, dataset, class_names)
        by_class = np.argsort(labels, kind="stable")
        images = np.split(by_class, np.cumsum(np.bincount(labels))[:-1])
        self._images = [images[label] for label in self.classes]
        identity = {"seed": int(seed), "dataset": dataset, **dataclasses.asdict(spec)}
        self._key = int(checksums.of_json(identity)[:32], 16)

    def __call__(self, numbers: range | Integer[np.ndarray, "e"]) -> Tasks:
        """Make the tasks of these numbers, in this order."""
        spec, numbers = self.spec, np.asarray(numbers, np.int64)
        if numbers.size and numbers.min() < 0:
            raise UserError(f"task {numbers.min()}: tasks are numbered from 0")
        # Always as many draws, whatever becomes of them.
        depth = spec.shot + (spec.query if spec.dirichlet is None else spec.query_size)
        widths = (spec.way, spec.way * depth, spec.query_size, spec.way)
        uniform = philox.uniforms(self._key, numbers, sum(widths))
        by_class, by_image, by_order, by_count = np.split(
            uniform, np.cumsum(widths)[:-1], axis=1
        )
        chosen = [
            philox.without_replacement(uniform_c, len(self.classes))
            for uniform_c in by_class.tolist()
        ]
        chosen_ec = np.array(chosen, np.int64).reshape(-1, spec.way)
        counts_ec = self._query_counts(by_count, chosen_ec)
        uniform_ecm = by_image.reshape(len(numbers), spec.way, depth)
        drawn = [
            self._draw(*task)
            for task in zip(chosen_ec, counts_ec, uniform_ecm, by_order, strict=True)
        ]
        drawn_ein = np.array(drawn, np.int32).reshape(
            len(numbers), 2, spec.support_size + spec.query_size
        )
        return Tasks(
            indices=drawn_ein[:, 0],
            labels=drawn_ein[:, 1],
            classes=self.classes[chosen_ec].astype(np.int32),
        )

    def _query_counts(
        self, uniform_ec: np.ndarray, chosen_ec: np.ndarray
    ) -> Int64[np.ndarray, "e c"]:
        """How many queries each class of each task gives."""
        if self.spec.dirichlet is None:
            return np.full(chosen_ec.shape, self.spec.query)
        # A Dirichlet draw is a row of gamma draws over its sum, and only their ratios
        # matter. The inverse distribution takes one uniform each, where rejection
        # sampling would take any number.
        weight_ec = special.gammaincinv(self.spec.dirichlet, uniform_ec)
        size_c = np.array([len(images) for images in self._images])
        room_ec = size_c[chosen_ec] - self.spec.shot
        return philox.proportional_counts(weight_ec, room_ec, self.spec.query_size)

    def _draw(
        self,
        chosen_c: Int64[np.ndarray, "c"],
        counts_c: Int64[np.ndarray, "c"],
        uniform_cm: Float64[np.ndarray, "c m"],
        uniform_q: Float64[np.ndarray, "q"],
    ) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"]]:
        """Images of one task and their labels, the support first."""
        shot, ways = self.spec.shot, np.arange(self.spec.way)
        support, query = [], []
        for c, count, uniform_m in zip(
            chosen_c, counts_c, uniform_cm.tolist(), strict=True
        ):
            images = self._images[c]
            needed = uniform_m[: shot + count]
            drawn = images[philox.without_replacement(needed, len(images))]
            support.append(drawn[:shot])
            query.append(drawn[shot:])
        order_q = uniform_q.argsort(kind="stable")
        indices = [*support, np.concatenate(query)[order_q]]
        labels = [np.repeat(ways, shot), np.repeat(ways, counts_c)[order_q]]
        return np.concatenate(indices), np.concatenate(labels)


def _usable_classes(
    labels: np.ndarray,
    spec: TaskSpec,
    dataset: str,
    class_names: Sequence[str] | None,
) -> Int64[np.ndarray, "usable"]:
    """Class ids with enough images for a task; says which are left out."""
    sizes = np.bincount(labels, minlength=len(class_names or ()))
    needed = spec.shot + spec.query
    usable = np.flatnonzero(sizes >= needed)
    if len(usable) < spec.way:
        raise UserError(
            f"{dataset} has {len(usable)} classes with the {needed} images that "
            f"shot={spec.shot} and query={spec.query} need, fewer than way={spec.way}; "
            "lower one of the three, or add images"
        )
    # Without names, an id without images is no class.
    small = [
        class_names[i] if class_names else str(i)
        for i in np.flatnonzero(sizes < needed).tolist()
        if class_names or sizes[i]
    ]
    if small:
        _log.warning(
            "%s: classes with fewer than %d images are left out of the tasks: %s",
            *(dataset, needed, ", ".join(small)),
        )
    return usable
