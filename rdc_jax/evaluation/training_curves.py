"""When does fine-tuning help, and when does it begin to hurt?"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from rdc_jax.core import statistics
from rdc_jax.evaluation.options import Options
from rdc_jax.methods.adapt import Adaptation


def collect(
    counts: Mapping[str, Int[np.ndarray, " e"]], options: Options, shot: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Read accuracies along fine-tuning from the columns ``method@step``.

    Args:
      counts: Right answers of the episodes of a data set, by column.
      options: Of the run.
      shot: Labelled images a class.

    Returns:
      A ``method``, ``step``, ``accuracy`` and ``ci95`` for each recorded step and the
      last one; and warnings about methods that were better before the last step by
      more than chance.
    """
    queries = options.spec(shot).query_size
    curves, falls = [], []
    for method in options.methods:
        fitted = method.method
        if not (isinstance(fitted, Adaptation) and fitted.recorded):
            continue
        last = sum(phase.steps for phase in fitted.phases)
        names = {step: f"{method.name}@{step}" for step in fitted.recorded}
        names[last] = method.name
        accuracy = {step: 100 * counts[name] / queries for step, name in names.items()}
        for step, values_e in accuracy.items():
            mean, ci95 = statistics.mean(values_e)
            curves.append(
                {"method": method.name, "step": step, "accuracy": mean, "ci95": ci95}
            )
        best = max(accuracy, key=lambda step: accuracy[step].mean())
        loss = statistics.gain(accuracy[best], accuracy[last])
        if statistics.beyond_chance(loss.mean, loss.ci95):
            amount = f"{loss.mean:.2f}{statistics.plus_minus(loss.ci95)}"
            falls.append(
                f"{method.name} was {amount} points better after step {best} than "
                f"after step {last}: fewer --config.finetune.steps or a "
                "lower --config.finetune.learning_rate"
            )
    return curves, falls
