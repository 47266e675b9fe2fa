"""From features of a task to answers."""

import dataclasses
import math
from typing import Any

from rdc_jax.core.params import RDCParams
from rdc_jax.predict.answers import Answers
from rdc_jax.predict.embedding import Pictures
from rdc_jax.predict.task import Support, calibrated_distances, plain_distances
from rdc_jax.predict.temperature import fit_temperature, probabilities
from rdc_jax.predict.unknown import unknown_shares
from rdc_jax.runtime.errors import UserError

# Measured on eight domains (docs/predict.md): with fewer queries than twice the
# supports calibration loses against class means, with more it gains.
_QUERIES_A_SUPPORT = 2
_NEAREST = 3  # supports to show of each query
# Larger batches than these bring no more accuracy, or less.
_BATCH, _BATCH_A_SUPPORT, _LARGEST_BATCH = 150, 4, 2048

_NOT_FITTED = (
    "every class has one labelled example, so probabilities and unknown scores are "
    "those of a typical task; with two or more examples a class they are fitted to "
    "yours"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How to classify: what ``RDCClassifier`` takes, checked."""

    params: RDCParams = dataclasses.field(default_factory=RDCParams)
    transductive: bool | str = "auto"
    temperature: float | None = None
    reject_below: float = 0.5
    unknown_above: float = 0.95
    batch_size: int | None = None

    def __post_init__(self) -> None:
        def need(name: str, value: Any, right: bool, use: str) -> None:
            if not right:
                raise UserError(f"{name}={value!r}: use {use}")

        params, mode, heat = self.params, self.transductive, self.temperature
        least, most, size = self.reject_below, self.unknown_above, self.batch_size
        right = isinstance(params, RDCParams)
        need("params", params, right, "rdc_jax.RDCParams(...)")
        need("lam", params.lam, bool(0 <= params.lam <= 1), "a number from 0 to 1")
        modes = ("auto", True, False)
        need("transductive", mode, mode in modes, "auto, True, False")
        right = heat is None or 0 < heat < math.inf
        need("temperature", heat, right, "a number above 0")
        need("reject_below", least, 0 <= least <= 1, "a number from 0 to 1")
        need("unknown_above", most, 0 <= most <= 1, "a number from 0 to 1")
        need("batch_size", size, size is None or size >= 1, "at least 1")


def classify(
    support: Support, query: Pictures, options: Options, *, backbone: str = ""
) -> Answers:
    """Classify queries by a task's supports; the answers are in the queries' order."""
    s, q = len(support.labels), len(query.features)
    default = min(max(_BATCH, _BATCH_A_SUPPORT * s), _LARGEST_BATCH)
    batch_size = options.batch_size or default
    transductive, note = _choose(s, min(q, batch_size), options)
    plain_qc, support_qs = plain_distances(support, query.features)
    class_qc = plain_qc
    if transductive:
        class_qc, support_qs = calibrated_distances(
            support, query.features, options.params, batch_size
        )
    temperature, fitted = options.temperature, True
    if temperature is None:
        temperature, fitted = fit_temperature(support, transductive=transductive)
    return Answers(
        support=support,
        query=query,
        distances=class_qc,
        probabilities=probabilities(class_qc, temperature),
        plain=plain_qc.argmin(axis=1),
        unknown_scores=unknown_shares(support, plain_qc),
        nearest=support_qs.argsort(axis=1, kind="stable")[:, :_NEAREST],
        temperature=temperature,
        transductive=transductive,
        reject_below=options.reject_below,
        unknown_above=options.unknown_above,
        notes=tuple(filter(None, (note, "" if fitted else _NOT_FITTED))),
        backbone=backbone,
    )


def _choose(supports: int, together: int, options: Options) -> tuple[bool, str]:
    """Whether queries are compared with each other, and a note on it or nothing."""
    wanted = max(_QUERIES_A_SUPPORT * supports, options.params.k)
    if options.transductive is False or together >= wanted:
        return options.transductive is not False, ""
    few = f"RDC needs about {wanted} pictures to classify at a time and has {together}"
    if options.transductive is True:
        return True, f"{few}; the nearest class mean may do better"
    return False, f"{few}, so the nearest class mean was used"
