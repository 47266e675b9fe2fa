"""One episode: what each method gets right, and how its neighbours look."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rdc_jax.core.params import RDCParams
from rdc_jax.core.prototypes import predictions
from rdc_jax.evaluation import diagnostics
from rdc_jax.evaluation.options import Entry
from rdc_jax.methods import Task
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True)
class Judge:
    """Counts of one episode, as a function of its features and labels.

    The labels of queries are used here, and by no method: a ``Task`` lacks them.

    Attributes:
      methods: To be judged.
      num_classes: Classes of a task.
      rdc: Whose neighbour sets are diagnosed.
      support_size: Support rows, which come first.
    """

    methods: tuple[Entry, ...]
    num_classes: int
    rdc: RDCParams
    support_size: int

    @property
    def columns(self) -> tuple[str, ...]:
        """What the counts are: right answers by method, then diagnostics."""
        names = tuple(method.name for method in self.methods)
        return names + (diagnostics.COLUMNS if self.diagnoses else ())

    @property
    def diagnoses(self) -> bool:
        """Whether there are neighbour sets to look at."""
        return any(method.uses_neighbours for method in self.methods)

    def __call__(
        self, feat_nd: Float[Array, "n d"], labels_n: Int[Array, " n"]
    ) -> Int[Array, " m"]:
        """Count; whole numbers, so that sums are exact in any order."""
        s = self.support_size
        task = Task(feat_nd[:s], labels_n[:s], feat_nd[s:], self.num_classes)
        counts = [
            (self._answers(entry, task) == labels_n[s:]).sum() for entry in self.methods
        ]
        if self.diagnoses:
            counts += diagnostics.count(
                feat_nd, labels_n, s, self.num_classes, self.rdc
            )
        return jnp.stack(counts).astype(jnp.int32)

    def _answers(self, entry: Entry, task: Task) -> Int[Array, " q"]:
        dist_qc = entry.method(task)
        expected = (len(task.query), task.num_classes)
        if jnp.shape(dist_qc) != expected:
            raise UserError(
                f"method {entry.name} gives {jnp.shape(dist_qc)} for {expected}, one "
                "distance for each query and class: mend the method"
            )
        return predictions(dist_qc)
