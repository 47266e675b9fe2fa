"""RDC-FT's objective: plain distances that move towards calibrated ones (Alg. 1)."""

import dataclasses
from typing import Any, Literal, NamedTuple

from jax import lax
from jaxtyping import Array, Bool, Float

from rdc_jax.core import calibration, losses, prototypes
from rdc_jax.core.params import RDCParams
from rdc_jax.methods.finetune_options import FinetuneOptions

Loss = Literal["kl", "mse"]


class Target(NamedTuple):
    """What the distances of a task are to become.

    Attributes:
      distances: D̂_com.
      neighbours: R̂ of the original space, which get more attention.
    """

    distances: Float[Array, "n n"]
    neighbours: Bool[Array, "n n"]


@dataclasses.dataclass(frozen=True)
class CalibrationObjective:
    """Match D_o to D̂_com; then classify, as a rule by the nearest prototype.

    Attributes:
      num_classes: Classes of the task.
      rdc: How distances are calibrated.
      options: ``alpha``, ``tau``, ``sign``, ``include_self``, ``target`` and ``answer``
        are used.
      loss_name: ``kl`` (Eq. 12) or ``mse`` (Figure 3).
    """

    num_classes: int
    rdc: RDCParams
    options: FinetuneOptions
    loss_name: Loss = "kl"

    queries = True

    def init(self, feat_nd: Array, labels_s: Array) -> tuple[Any, Target | None]:
        """No weights; the target, if it is to stay as it is now."""
        fixed = self.options.target == "fixed"
        return {}, self._target(feat_nd, labels_s) if fixed else None

    def loss(
        self, own: Any, kept: Target | None, feat_nd: Array, labels_s: Array
    ) -> Float[Array, ""]:
        """Divergence of the plain from the calibrated distances."""
        del own
        target = self._target(feat_nd, labels_s) if kept is None else kept
        original_nn = calibration.original_distances(feat_nd, self.rdc)
        options = self.options
        if self.loss_name == "mse":
            return losses.mse_loss(original_nn, *target, options.alpha)
        return losses.kl_loss(
            original_nn,
            *target,
            options.alpha,
            options.tau,
            sign=options.sign,
            include_self=options.include_self,
        )

    def classify(
        self, own: Any, feat_nd: Array, labels_s: Array
    ) -> Float[Array, "q c"]:
        """Distances to prototypes of l2-normalised features (Figure 2), or RDC's."""
        del own
        if self.options.answer == "rdc":
            return self._calibrated(feat_nd, labels_s).class_distances
        s = len(labels_s)
        return prototypes.npc(feat_nd[:s], labels_s, feat_nd[s:], self.num_classes)

    def _target(self, feat_nd: Array, labels_s: Array) -> Target:
        """Target and mask carry no gradient: the calibration is not derived."""
        out = self._calibrated(lax.stop_gradient(feat_nd), labels_s)
        return Target(out.distances, out.neighbours)

    def _calibrated(self, feat_nd: Array, labels_s: Array) -> calibration.RDCOutput:
        s = len(labels_s)
        return calibration.rdc(
            feat_nd[:s], labels_s, feat_nd[s:], self.num_classes, params=self.rdc
        )
