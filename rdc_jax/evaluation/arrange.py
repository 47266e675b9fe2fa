"""Which methods are computed together."""

from collections.abc import Mapping, Sequence

from rdc_jax.evaluation.adapting import AdaptationScorer
from rdc_jax.evaluation.datasets import Source
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.evaluation.scoring import FeatureScorer
from rdc_jax.methods.adapt import Adaptation
from rdc_jax.models.model import Model

Scorer = FeatureScorer | AdaptationScorer


def arrange(
    options: Options,
    models: Mapping[str, Model],
    source: Source | None,
    recorded: Mapping[str, Sequence[str]],
) -> list[Scorer]:
    """Make scorers of the methods of a run, those on record first, then quick ones.

    Methods on the same features of the same model share a scorer; each that adapts has
    its own. Scorers on record stay as they are, and methods added since make up others.

    Args:
      options: The typed config of the run.
      models: By name, that of ``config.checkpoint`` by the empty one.
      source: Where distractors come from.
      recorded: Columns of the scorers on record, by name.
    """
    on_record = {column: name for name in recorded for column in recorded[name]}
    groups: dict[str, list[Entry]] = {name: [] for name in recorded}
    for entry in sorted(options.methods, key=_adapts):
        name = on_record.get(entry.name) or _new_name(entry, options, recorded)
        groups.setdefault(name, []).append(entry)
    scorers: list[Scorer] = []
    for name, entries in groups.items():
        if not entries:
            continue
        if name in recorded:
            columns = list(recorded[name])
            entries.sort(key=lambda entry: columns.index(entry.name))
        model = models[entries[0].checkpoint]
        if _adapts(entries[0]):
            scorers.append(AdaptationScorer(entries[0], model, options, source))
        else:
            scorers.append(FeatureScorer(name, tuple(entries), model, options))
    return scorers


def _adapts(entry: Entry) -> bool:
    return isinstance(entry.method, Adaptation)


def _new_name(
    entry: Entry, options: Options, recorded: Mapping[str, Sequence[str]]
) -> str:
    """The name of a scorer that is not on record, as ``features@model+1``."""
    if _adapts(entry):
        return entry.name
    views = options.views(entry)
    other = f"({views.described})" if views not in (None, options.features) else ""
    base = entry.method.inputs + other + "@" * bool(entry.checkpoint) + entry.checkpoint
    names = [base, *(f"{base}+{number}" for number in range(1, len(recorded) + 1))]
    return next(name for name in names if name not in recorded)
