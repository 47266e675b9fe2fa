"""Which methods are computed together."""

from collections.abc import Mapping, Sequence

from rdc_jax.evaluation.datasets import Source
from rdc_jax.evaluation.options import Entry, Options, check
from rdc_jax.evaluation.scoring import AdaptationScorer, FeatureScorer, Scorer
from rdc_jax.methods.adapt import Adaptation
from rdc_jax.models.model import Model


def arrange(
    options: Options,
    models: Mapping[str, Model],
    source: Source | None,
    recorded: Mapping[str, Sequence[str]] = {},
) -> list[Scorer]:
    """Make scorers of the methods of a run, quick ones first.

    Methods on the same features of the same model share a scorer, as each method that
    adapts has its own. Those on record stay as they are; methods that were added since
    make up new ones.

    Args:
      options: Of the run.
      models: By name.
      source: Where distractors come from.
      recorded: Columns of the scorers on record, by name.

    Raises:
      UserError: A method does not fit its model or the tasks.
    """
    groups: dict[str, list[Entry]] = {}
    on_record = {
        column: name for name, columns in recorded.items() for column in columns
    }
    for entry in options.methods:
        for shot in options.shots:
            check(entry, options.task(shot, (1,)), models[entry.checkpoint])
        name = on_record.get(entry.name) or _free_name(entry, recorded)
        groups.setdefault(name, []).append(entry)
    order = {name: number for number, name in enumerate(recorded)}
    scorers: list[Scorer] = []
    for name, entries in groups.items():
        first = entries[0]
        model = models[first.checkpoint]
        if isinstance(first.method, Adaptation):
            scorers.append(
                AdaptationScorer(
                    entry=first, model=model, options=options, source=source
                )
            )
        else:
            columns = [*recorded.get(name, ())]
            if columns:
                entries.sort(key=lambda entry: columns.index(entry.name))
            scorers.append(
                FeatureScorer(
                    name=name, entries=tuple(entries), model=model, options=options
                )
            )
    adapts = {s.name: isinstance(s, AdaptationScorer) for s in scorers}
    return sorted(
        scorers, key=lambda s: (order.get(s.name, len(order)), adapts[s.name])
    )


def _free_name(entry: Entry, recorded: Mapping[str, Sequence[str]]) -> str:
    """The name of a new scorer that takes this method."""
    if isinstance(entry.method, Adaptation):
        return entry.name
    inputs, at = entry.method.inputs, "@" * bool(entry.checkpoint)
    base = f"{inputs}{at}{entry.checkpoint}"
    names = [base, *(f"{base}+{number}" for number in range(1, len(recorded) + 1))]
    return next(name for name in names if name not in recorded)
