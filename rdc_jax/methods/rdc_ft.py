"""RDC-FT: the network is fine-tuned on each task towards its calibrated distances."""

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple

from jax import lax
from jaxtyping import Array, Bool, Float, Key

from rdc_jax.core import calibration, losses
from rdc_jax.methods.adapt import on_features
from rdc_jax.methods.base import Task, register
from rdc_jax.methods.gradient import GradientAdaptation
from rdc_jax.methods.rdc import calibrated, check_neighbours
from rdc_jax.models.model import Model


class Target(NamedTuple):
    """What the distances of a task are to become.

    Attributes:
      distances: D̂_com.
      neighbours: R̂ of the original space, which get more attention.
    """

    distances: Float[Array, "n n"]
    neighbours: Bool[Array, "n n"]


@register("rdc_ft")
@dataclasses.dataclass(frozen=True, kw_only=True)
class RDCFT(GradientAdaptation):
    """Algorithm 1: the KL loss with attention, calibrated in both spaces."""

    title = "RDC-FT"
    transductive = True
    uses_neighbours = True
    divergence: ClassVar[Literal["kl", "mse"]] = "kl"

    def check(self, task: Task, model: Model | None = None) -> None:
        """Refuse neighbourhoods that are the whole task."""
        super().check(task, model)
        check_neighbours(task, self.rdc)

    def start(
        self, key: Key[Array, ""], feat_nd: Float[Array, "n d"], task: Task
    ) -> tuple[Any, Target | None]:
        """No head; the target, if it is to stay as it is now."""
        del key
        fixed = self.finetune.target == "fixed"
        return {}, self._target(feat_nd, task) if fixed else None

    def loss(
        self,
        head_params: Any,
        targets: Target | None,
        feat_nd: Float[Array, "n d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Divergence of D_o from D̂_com (Eq. 11-12), which is not derived."""
        del head_params, out
        target = self._target(feat_nd, task) if targets is None else targets
        original_nn = calibration.original_distances(feat_nd, self.rdc)
        options = self.finetune
        if self.divergence == "mse":
            return losses.mse_loss(original_nn, *target, options.alpha)
        return losses.kl_loss(
            original_nn,
            *target,
            options.alpha,
            options.tau,
            sign=options.sign,
            include_self=options.include_self,
        )

    def _target(self, feat_nd: Float[Array, "n d"], task: Task) -> Target:
        """Target and mask carry no gradient."""
        fixed_nd = lax.stop_gradient(feat_nd)
        out = calibrated(on_features(task, fixed_nd), self.rdc)
        return Target(out.distances, out.neighbours)


@register("rdc_ft_one_space", subspace="none")
class RDCFTOneSpace(RDCFT):
    """Algorithm 1, calibrated in the original space alone (Table 3)."""

    title = "RDC-FT w/o subspace"


@register("rdc_ft_kl", alpha=0.0)
class RDCFTKL(RDCFT):
    """The KL loss without attention (Figure 3)."""

    title = "RDC-FT, KL"


@register("rdc_ft_mse", alpha=0.0)
class RDCFTMSE(RDCFT):
    """Mean squared differences of distances, without attention (Figure 3)."""

    title = "RDC-FT, MSE"
    divergence = "mse"
