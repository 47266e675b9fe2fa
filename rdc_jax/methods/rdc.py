"""Ranking Distance Calibration on fixed features."""

import dataclasses

from jaxtyping import Array, Float

from rdc_jax.core import calibration
from rdc_jax.core.params import RDCParams
from rdc_jax.methods.base import FeatureMethod, Task, register
from rdc_jax.models.model import Model
from rdc_jax.runtime.errors import UserError


@register("rdc")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDC(FeatureMethod):
    """Distances calibrated in the original space and in the task's subspace.

    Attributes:
      rdc: How distances are calibrated.
    """

    title = "RDC"
    transductive = True
    uses_neighbours = True

    rdc: RDCParams = RDCParams()

    def class_distances(self, task: Task) -> Float[Array, "q c"]:
        """Mean calibrated distance to the supports of each class."""
        return calibrated(task, self.rdc).class_distances

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse neighbourhoods that are the whole task."""
        super().check(task, model)
        check_neighbours(task, self.rdc)


@register("rdc_one_space", subspace="none")
class RDCOneSpace(RDC):
    """Distances calibrated in the original space alone (Eq. 3-8)."""

    title = "RDC w/o subspace"


def calibrated(task: Task, params: RDCParams) -> calibration.RDCOutput:
    """Calibrate the distances of a task's features (``rdc_jax.rdc``)."""
    return calibration.rdc(
        task.support,
        task.support_labels,
        task.query,
        task.num_classes,
        params=params,
        support_mask=task.support_mask,
        query_mask=task.query_mask,
    )


def check_neighbours(task: Task, params: RDCParams) -> None:
    """Refuse neighbourhoods that are the whole task.

    Raises:
      UserError: ``k`` or ``k2`` is too large, or ``lam`` no weight.
    """
    if not 0 <= params.lam <= 1:
        raise UserError(f"lam is {params.lam}: it must be in 0 to 1")
    n = task.support.shape[0] + task.query.shape[0]
    for name, value, most in (("k", params.k, n - 1), ("k2", params.k2, n)):
        if value > most:
            raise UserError(
                f"{name} is {value}, but a task of {task.support.shape[0]} supports "
                f"has {n} images: use at most {most}, or tasks with more queries"
            )
