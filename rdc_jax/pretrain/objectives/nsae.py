"""NSAE (Liang et al. 2021), our reading: classify images and their reconstructions."""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdc_jax.data.transforms import between_0_and_1, normalize
from rdc_jax.models.model import Model, Variables
from rdc_jax.pretrain.objectives import base
from rdc_jax.pretrain.objectives.cross_entropy import CrossEntropy, linear_spec
from rdc_jax.pretrain.options import Options
from rdc_jax.runtime.errors import UserError


@dataclasses.dataclass(frozen=True, kw_only=True)
class NSAE(CrossEntropy):
    """Cross-entropy, squared error of decoded images, cross-entropy of these.

    Images are compared from 0 to 1, and normalised again before the network sees them.

    Attributes:
      reconstruction: Weight of the squared error.
      noise: Weight of the decoded images' cross-entropy.
    """

    reconstruction: float
    noise: float
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "error", "decoded_accuracy")

    def init(self, key: PRNGKeyArray, size: int) -> Variables:
        """Draw the weights of backbone, head and decoder."""
        variables = super().init(key, size)
        decoder: Any = Model(self.spec, {}).decoder
        width = variables["params"]["head"]["kernel"].shape[0]
        drawn = decoder.init(jax.random.fold_in(key, 1), jnp.zeros((1, width)))
        params = {**variables["params"], "decoder": drawn["params"]}
        return {**variables, "params": params}

    def loss(
        self,
        variables: Variables,
        batch: base.Batch,
        key: PRNGKeyArray,
        *,
        train: bool = True,
    ) -> tuple[Float[Array, ""], base.Aux]:
        """Compute the three losses; both passes leave batch statistics."""
        model = Model(self.spec, variables)
        features_bd, _, stats = model.apply(batch.images, train, key)
        made = model.decode(features_bd)
        error = jnp.square(made - between_0_and_1(batch.images)).mean()
        again = model.replace(variables={**variables, "batch_stats": stats})
        decoded_bd, _, stats = again.apply(normalize(255 * made), train, key)
        of_images, of_decoded = (
            base.classify(
                model.apply_head(feat_bd),
                batch.labels,
                stats,
                smoothing=self.label_smoothing,
            )
            for feat_bd in (features_bd, decoded_bd)
        )
        value = of_images[0] + self.reconstruction * error + self.noise * of_decoded[0]
        metrics = {
            "accuracy": of_images[1].metrics["accuracy"],
            "error": error,
            "decoded_accuracy": of_decoded[1].metrics["accuracy"],
        }
        return value, base.Aux(metrics, stats)


@base.register("nsae")
def nsae(
    options: Options,
    num_classes: int,
    *,
    reconstruction: float = 1.0,
    noise: float = 1.0,
) -> NSAE:
    """Classification of the base classes and of images that a decoder makes."""
    if len(options.phases) > 1:
        raise UserError(
            "config.method=nsae decodes images of one size: set --config.phases=''"
        )
    size = (("size", options.image_size),)
    spec = dataclasses.replace(
        linear_spec(options, num_classes),
        decoder="deconvolutions",
        decoder_options=size,
    )
    return NSAE(
        spec, options.label_smoothing, reconstruction=reconstruction, noise=noise
    )
