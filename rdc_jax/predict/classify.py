"""From features of a task to answers."""

import dataclasses

import numpy as np
from jaxtyping import Float

from rdc_jax.core.params import RDCParams
from rdc_jax.predict.answers import Answers
from rdc_jax.predict.plain import plain
from rdc_jax.predict.task import Distances, Support, calibrated
from rdc_jax.predict.temperature import fit_temperature, probabilities
from rdc_jax.runtime.errors import UserError

# Measured on eight domains (docs/predict.md): with fewer queries than twice the
# supports calibration loses against class means, with more it gains.
_QUERIES_A_SUPPORT = 2
# Larger batches than these bring no more accuracy, or less.
_BATCH, _BATCH_A_SUPPORT, _LARGEST_BATCH = 150, 4, 2048

_NOT_FITTED = (
    "every class has one labelled example, so the probabilities are as sure as those "
    "of a typical task; with two or more a class they are fitted to this one"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How to classify.

    Attributes:
      params: Of RDC.
      transductive: Whether queries are compared with each other by RDC; ``auto``:
        where there are enough of them to gain from it.
      temperature: Of the probabilities; ``None``: fitted on the supports.
      reject_below: Answers of a smaller probability are flagged.
      batch_size: Queries that make up a task together, at most; ``None``: 150, or four
        times the supports if that is more, up to 2,048.
      nearest: How many nearest supports to name.
    """

    params: RDCParams = dataclasses.field(default_factory=RDCParams)
    transductive: bool | str = "auto"
    temperature: float | None = None
    reject_below: float = 0.5
    batch_size: int | None = None
    nearest: int = 3

    def __post_init__(self) -> None:
        if not isinstance(self.params, RDCParams):
            raise UserError(f"params={self.params!r}: use rdc_jax.RDCParams(...)")
        if self.transductive not in (True, False, "auto"):
            raise UserError(
                f"transductive={self.transductive!r}: use auto, True, False"
            )
        if self.temperature is not None and not self.temperature > 0:
            raise UserError(f"temperature={self.temperature}: use a number above 0")
        if not 0 <= self.reject_below <= 1:
            raise UserError(
                f"reject_below={self.reject_below}: use a number from 0 to 1"
            )
        if self.batch_size is not None and self.batch_size < 1:
            raise UserError(f"batch_size={self.batch_size}: use at least 1")


def classify(
    support: Support,
    query_qd: Float[np.ndarray, "q d"],
    class_names: tuple[str, ...],
    options: Options,
) -> Answers:
    """Classify queries by a task's supports.

    Args:
      support: The labelled rows.
      query_qd: The queries.
      class_names: One a class.
      options: How.

    Returns:
      The answers, in the order of the queries.
    """
    transductive, note = choose(support, len(query_qd), options)
    without = plain(support, query_qd)
    found = _calibrated(support, query_qd, options) if transductive else without
    if options.temperature is None:
        temperature, fitted = fit_temperature(support, transductive=transductive)
    else:
        temperature, fitted = options.temperature, True
    probability_qc = probabilities(found.classes, temperature)
    count = min(options.nearest, len(support.labels))
    return Answers(
        classes=class_names,
        probabilities=probability_qc,
        predicted=found.classes.argmin(axis=1),
        rejected=probability_qc.max(axis=1) < options.reject_below,
        plain=without.classes.argmin(axis=1),
        nearest=found.supports.argsort(axis=1, kind="stable")[:, :count],
        temperature=temperature,
        transductive=transductive,
        notes=tuple(filter(None, (note, "" if fitted else _NOT_FITTED))),
    )


def class_distances(
    support: Support, query_qd: Float[np.ndarray, "q d"], options: Options
) -> Float[np.ndarray, "q c"]:
    """Distances to the classes alone, by the method that ``classify`` would use."""
    if choose(support, len(query_qd), options)[0]:
        return _calibrated(support, query_qd, options).classes
    return plain(support, query_qd).classes


def choose(support: Support, queries: int, options: Options) -> tuple[bool, str]:
    """Decide whether queries are compared with each other.

    Args:
      support: The labelled rows.
      queries: How many there are.
      options: How to classify.

    Returns:
      Whether, and what the user should know of it; empty if nothing.
    """
    supports = len(support.labels)
    wanted = max(_QUERIES_A_SUPPORT * supports, options.params.k)
    together = min(queries, batch_size(support, options))
    if options.transductive is False or together >= wanted:
        return options.transductive is not False, ""
    few = (
        f"{together} to classify at a time beside {supports} labelled ones are too few "
        f"to gain from being compared with each other (about {wanted} are needed)"
    )
    if options.transductive is True:
        return True, f"{few}; class means may do better"
    return False, f"{few}, so each was classified by itself, by the nearest class mean"


def batch_size(support: Support, options: Options) -> int:
    """How many queries make up a task together, at most."""
    usual = max(_BATCH, _BATCH_A_SUPPORT * len(support.labels))
    return options.batch_size or min(usual, _LARGEST_BATCH)


def _calibrated(support: Support, query_qd: np.ndarray, options: Options) -> Distances:
    return calibrated(support, query_qd, options.params, batch_size(support, options))
