"""Batch spectral regularisation (Liu et al. 2020): classification by small features."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.models.model import Model, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.cross_entropy import CrossEntropy, linear_spec
from rdc_jax.pretrain.options import Options


@dataclasses.dataclass(frozen=True, kw_only=True)
class BSR(CrossEntropy):
    """Cross-entropy, and the squared singular values of the batch's features.

    Their sum is the sum of all squared features, so no decomposition is needed.

    Attributes:
      weight: Of that sum.
    """

    weight: float

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the mean cross-entropy, and the sum over the batch."""
        model = Model(self.spec, variables)
        features_bd, _, batch_stats = model.apply(batch.images, train, key)
        logits_bc = model.apply_head(features_bd)
        value, aux = base.classify(
            logits_bc, batch.labels, batch_stats, smoothing=self.label_smoothing
        )
        return value + self.weight * jnp.square(features_bd).sum(), aux


@base.register("bsr")
def bsr(options: Options, num_classes: int, *, weight: float = 1e-3) -> BSR:
    """Classification of the base classes, with batch spectral regularisation."""
    spec = linear_spec(options, num_classes)
    return BSR(spec, options.label_smoothing, weight=weight)
