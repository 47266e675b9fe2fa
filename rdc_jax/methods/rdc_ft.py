"""RDC-FT: the network is fine-tuned on each task towards its calibrated distances."""

import dataclasses

from rdc_jax.methods.adapt import Apply, Finetuner
from rdc_jax.methods.calibration import CalibrationObjective, Loss
from rdc_jax.methods.registry import Settings, register_finetuning


def _finetuner(apply: Apply, settings: Settings, loss: Loss = "kl") -> Finetuner:
    options = settings.finetune
    objective = CalibrationObjective(settings.num_classes, settings.rdc, options, loss)
    return Finetuner(apply, objective, options, settings.image_size)


def _without_attention(settings: Settings) -> Settings:
    options = dataclasses.replace(settings.finetune, alpha=0.0)
    return dataclasses.replace(settings, finetune=options)


@register_finetuning("rdc_ft", title="RDC-FT", transductive=True, calibrates=True)
def rdc_ft(apply: Apply, settings: Settings) -> Finetuner:
    """Algorithm 1: the KL loss with attention, calibrated in both spaces."""
    return _finetuner(apply, settings)


@register_finetuning(
    "rdc_ft_original", title="RDC-FT w/o subspace", transductive=True, calibrates=True
)
def rdc_ft_original(apply: Apply, settings: Settings) -> Finetuner:
    """Algorithm 1, calibrated in the original space alone (Table 3)."""
    params = dataclasses.replace(settings.rdc, subspace="none")
    return _finetuner(apply, dataclasses.replace(settings, rdc=params))


@register_finetuning(
    "rdc_ft_kl", title="RDC-FT, KL", transductive=True, calibrates=True
)
def rdc_ft_kl(apply: Apply, settings: Settings) -> Finetuner:
    """The KL loss without attention (Figure 3)."""
    return _finetuner(apply, _without_attention(settings))


@register_finetuning(
    "rdc_ft_mse", title="RDC-FT, MSE", transductive=True, calibrates=True
)
def rdc_ft_mse(apply: Apply, settings: Settings) -> Finetuner:
    """Mean squared differences of distances, without attention (Figure 3)."""
    return _finetuner(apply, _without_attention(settings), "mse")
