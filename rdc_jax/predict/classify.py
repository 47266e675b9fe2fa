"""From features of a task to answers."""

import dataclasses
import math
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from rdc_jax.methods import FeatureMethod, get_method
from rdc_jax.predict.answers import Answers
from rdc_jax.predict.embedding import Pictures
from rdc_jax.predict.task import (
    Support,
    compared_distances,
    plain_distances,
    unit_rows,
)
from rdc_jax.predict.temperature import TYPICAL, fit_temperature, probabilities
from rdc_jax.predict.unknown import unknown_shares
from rdc_jax.runtime.errors import UserError

# Measured on eight domains (docs/predict.md): of fewer queries class means make more.
_QUERIES = 10
_QUERIES_A_SUPPORT = {"rdc": 2}
_NEAREST = 3  # supports to show of each query
# Larger batches than these bring no more accuracy, or less.
_BATCH, _BATCH_A_SUPPORT, _LARGEST_BATCH = 150, 4, 2048

_ALONE = "nearest class mean (NPC + l2 norm)"
_NOT_FITTED = (
    "every class has one labelled example, so probabilities and unknown scores are "
    "those of a typical task; with two or more examples a class they are fitted to "
    "yours"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How to classify: what ``RDCClassifier`` takes, checked."""

    method: str = "rdc_plus"
    transductive: bool | str = "auto"
    temperature: float | None = None
    reject_below: float = 0.5
    unknown_above: float = 0.95
    batch_size: int | None = None

    def __post_init__(self) -> None:
        def need(name: str, value: Any, right: bool, use: str) -> None:
            if not right:
                raise UserError(f"{name}={value!r}: use {use}")

        mode, heat, size = self.transductive, self.temperature, self.batch_size
        least, most = self.reject_below, self.unknown_above
        # Its distances must be turned into probabilities.
        right, alone = self.comparing.name in TYPICAL, not self.comparing.transductive
        need("method", self.method, right and not alone, "rdc_plus or rdc")
        modes = ("auto", True, False)
        need("transductive", mode, mode in modes, "auto, True, False")
        right = heat is None or 0 < heat < math.inf
        need("temperature", heat, right, "a number above 0")
        need("reject_below", least, 0 <= least <= 1, "a number from 0 to 1")
        need("unknown_above", most, 0 <= most <= 1, "a number from 0 to 1")
        need("batch_size", size, size is None or size >= 1, "at least 1")

    @property
    def comparing(self) -> FeatureMethod:
        """The method, where pictures are compared with each other."""
        return cast(FeatureMethod, get_method(self.method))


def classify(
    support: Support, query: Pictures, options: Options, *, backbone: str = ""
) -> Answers:
    """Classify queries by a task's supports; the answers are in the queries' order."""
    s, q = len(support.labels), len(query.features)
    default = min(max(_BATCH, _BATCH_A_SUPPORT * s), _LARGEST_BATCH)
    batch_size = options.batch_size or default
    transductive, note = _choose(s, min(q, batch_size), options)
    comparing = options.comparing
    plain_qc = class_qc = plain_distances(support, query.features)
    if transductive:
        class_qc = compared_distances(support, query.features, comparing, batch_size)
    temperature, fitted = options.temperature, True
    if temperature is None:
        temperature, fitted = fit_temperature(
            support, comparing.name if transductive else "npc_l2"
        )
    return Answers(
        support=support,
        query=query,
        distances=class_qc,
        probabilities=probabilities(class_qc, temperature),
        plain=plain_qc.argmin(axis=1),
        unknown_scores=unknown_shares(support, plain_qc),
        nearest=_nearest(support, query.features),
        temperature=temperature,
        method=comparing.title if transductive else _ALONE,
        transductive=transductive,
        reject_below=options.reject_below,
        unknown_above=options.unknown_above,
        notes=tuple(filter(None, (note, "" if fitted else _NOT_FITTED))),
        backbone=backbone,
    )


def _choose(supports: int, together: int, options: Options) -> tuple[bool, str]:
    """Whether queries are compared with each other, and a note on it or nothing."""
    a_support = _QUERIES_A_SUPPORT.get(options.comparing.name, 0)
    wanted = max(a_support * supports, _QUERIES)
    if options.transductive is False or together >= wanted:
        return options.transductive is not False, ""
    few = (
        f"{options.comparing.title} needs about {wanted} pictures to classify at a "
        f"time and has {together}"
    )
    if options.transductive is True:
        return True, f"{few}; the nearest class mean may do better"
    return False, f"{few}, so the nearest class mean was used"


def _nearest(
    support: Support, query_qd: Float[np.ndarray, "q d"]
) -> Int[np.ndarray, "q t"]:
    """The nearest supports of each query, nearest first."""
    cosine_qs = unit_rows(query_qd) @ unit_rows(support.features).T
    return (-cosine_qs).argsort(axis=1, kind="stable")[:, :_NEAREST]
