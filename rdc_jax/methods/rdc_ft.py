"""RDC-FT: the network is fine-tuned on each task towards its calibrated distances."""

import dataclasses
from typing import Any, ClassVar, Literal, NamedTuple, cast

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

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
      rows: Images whose distances count.
      steps: How many targets it is the mean of.
    """

    distances: Float[Array, "n n"]
    neighbours: Bool[Array, "n n"]
    rows: Bool[Array, " n"]
    steps: Int[Array, ""]


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
    ) -> tuple[Any, Target]:
        """No head; the first target."""
        del key
        first = self._target(feat_nd, task)
        return {}, first._replace(steps=jnp.zeros_like(first.steps))

    def renewed(
        self, targets: Target, feat_nd: Float[Array, "n d"], task: Task
    ) -> Target:
        """The target of a step, as ``finetune.target`` says."""
        match self.finetune.target:
            case "fixed":
                return targets
            case "mean":
                new, steps = self._target(feat_nd, task), targets.steps + 1
                moved_nn = (new.distances - targets.distances) / steps
                return new._replace(distances=targets.distances + moved_nn, steps=steps)
            case _:
                return self._target(feat_nd, task)

    def part(self, targets: Target, rows: Int[Array, " b"]) -> Target:
        """The target's rows and columns of some images."""
        return targets._replace(
            distances=targets.distances[rows][:, rows],
            neighbours=targets.neighbours[rows][:, rows],
            rows=targets.rows[rows],
        )

    def loss(
        self,
        head_params: Any,
        targets: Target,
        feat_nd: Float[Array, "n d"],
        out: dict[str, Any],
        task: Task,
    ) -> Float[Array, ""]:
        """Divergence of D_o from D̂_com (Eq. 11-12), which is not derived."""
        del head_params, out, task
        options, matched = self.finetune, targets[:2]
        normalize = options.trained == "l2"
        original_nn = calibration.original_distances(
            feat_nd, self.rdc, normalize=normalize
        )
        if self.divergence == "mse":
            return losses.mse_loss(original_nn, *matched, options.alpha)
        value = losses.kl_loss(
            original_nn,
            *matched,
            options.alpha,
            options.tau,
            sign=options.sign,
            include_self=options.include_self,
            rows=targets.rows,
            attention=cast(losses.Attention, options.attention),
        )
        value = value * targets.rows.sum() if options.total == "sum" else value
        return value if options.tau_squared else value / options.tau**2

    def _target(self, feat_nd: Float[Array, "n d"], task: Task) -> Target:
        """Calibrate, and mark the rows that count."""
        out = calibrated(on_features(task, feat_nd), self.rdc)
        s, n = len(task.support_labels), len(feat_nd)
        target_nn = out.distances
        if self.finetune.labelled:
            same_ss = task.support_labels[:, None] == task.support_labels[None, :]
            known_ss = jnp.where(same_ss, 0, target_nn.max())
            target_nn = target_nn.at[:s, :s].set(known_ss)
        rows = jnp.arange(n) >= (s if self.finetune.rows == "queries" else 0)
        return Target(target_nn, out.neighbours, rows, jnp.ones((), jnp.int32))


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
