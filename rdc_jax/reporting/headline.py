"""Did it help? The answer in one sentence a method, and in cards."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from rdc_jax.evaluation import published
from rdc_jax.reporting import variants
from rdc_jax.reporting.runs import Run, Verdict, average_gain, verdict

# Below this many tasks it matters that Student's interval takes accuracies as normal.
_FEW_TASKS = 30
# What a warning says of one data set alone.
_AMOUNT = re.compile(r"[\d.]+( ± [\d.]+)? points | from \d+% to \d+%|\d+% of (?=query)")
_ANSWERS: dict[Verdict, str] = {
    "helps": "yes in {shot}-shot tasks, by {points:.1f} points on average",
    "unclear": "not clearly in {shot}-shot tasks",
    "hurts": "no in {shot}-shot tasks, where it loses {points:.1f} points on average",
}


class Card(NamedTuple):
    """What one of the main methods does in one shot.

    Attributes:
      method: Its title.
      shot: Labelled images a class.
      before: Mean accuracy of the baseline on the same data sets.
      after: Of the method.
      gain: Over the baseline.
      ci95: Its interval, over tasks; the data sets are taken as they are.
      counts: Of the data sets, by the verdict on each.
    """

    method: str
    shot: int
    before: float
    after: float
    gain: float
    ci95: float | None
    counts: dict[Verdict, int]

    @property
    def verdict(self) -> Verdict:
        """Of the average gain."""
        return verdict(self.gain, self.ci95)


def main_methods(run: Run) -> list[str]:
    """Name the methods that the run is about, one without and one with fine-tuning.

    Of each kind that is the last transductive one, for configs name methods from plain
    to full. Variants with parameters of their own, ``rdc(k=6)``, come after all others,
    and first those whose parameters are the config's.
    """
    names = [name for name in run.titles if name != run.baseline]
    transductive = {row["method"] for row in run.rows if row["transductive"]}
    kinds = (
        [name for name in names if name not in run.adapting],
        [name for name in names if name in run.adapting],
    )

    def rank(name: str) -> tuple[bool, bool, bool]:
        default = variants.is_default(name, run.config)
        return name in transductive, "(" not in name, default

    found = [max(reversed(kind), key=rank) for kind in kinds if kind]
    # A fine-tuning method stands alone if there is nothing transductive beside it.
    return [name for name in found if name in transductive] or found[-1:]


def cards(run: Run) -> list[list[Card]]:
    """Make the cards of each main method, one a shot."""
    found = []
    for method in main_methods(run):
        shots = [shot for shot in run.shots if method in run.compared(shot)]
        found.append([_card(run, shot, method) for shot in shots])
    return [each for each in found if each]


def _card(run: Run, shot: int, method: str) -> Card:
    assert run.baseline is not None
    rows, base = run.compared(shot)[method], run.accuracies(shot, run.baseline)
    verdicts = [verdict(row["gain"], row["gain_ci95"]) for row in rows]
    counts: dict[Verdict, int] = {each: verdicts.count(each) for each in _ANSWERS}
    gain, ci95 = average_gain(rows)
    return Card(
        method=run.titles[method],
        shot=shot,
        before=sum(base[row["dataset"]]["accuracy"] for row in rows) / len(rows),
        after=sum(row["accuracy"] for row in rows) / len(rows),
        gain=gain,
        ci95=ci95,
        counts={each: count for each, count in counts.items() if count},
    )


def answers(run: Run) -> list[str]:
    """Say of each main method whether it helped, and whether that rests on little."""
    told = []
    for each in cards(run):
        texts = [
            _ANSWERS[card.verdict].format(shot=card.shot, points=abs(card.gain))
            for card in each
        ]
        text = "; ".join(texts)
        told.append(f"Did {each[0].method} help? {text[0].upper()}{text[1:]}.")
    if not told:
        return ["No method was compared with a baseline: there is no gain to tell of."]
    fewest = min(row["episodes"] for row in run.rows)
    if fewest < _FEW_TASKS:
        tasks = "1 task" if fewest == 1 else f"{fewest} tasks"
        told.append(f"Only {tasks} a data set: too few to conclude from.")
    return told


def paper_notes(run: Run) -> list[str]:
    """Say what the published numbers were measured on, if the page shows any."""
    shown = {
        published.name_of(method)
        for shot in run.shots
        for method in run.titles
        if run.published(shot, method)
    }
    if any(published.systems(run.config, run.datasets, shot) for shot in run.shots):
        shown.add("systems")
    content = published.content()
    notes = [text for name, text in content["notes"].items() if name in shown]
    return [content["note"], *notes] if shown else []


def warnings(run: Run) -> list[str]:
    """Write warnings that differ in data set and amount alone as one.

    Methods have their titles there, as in the tables.
    """
    names = "|".join(map(re.escape, sorted(run.titles, key=len, reverse=True)))
    places = {f"{d} {s}-shot: ": (d, s) for d in run.datasets for s in run.shots}
    groups: dict[tuple[int, str], dict[str, str]] = {}
    for text in run.results["warnings"]:
        start = next((start for start in places if text.startswith(start)), "")
        dataset, shot = places.get(start, ("", 0))
        text = re.sub(
            rf"(?<![\w.])({names})(?!\w)",
            lambda match: run.titles[match[1]],
            text.removeprefix(start),
        )
        groups.setdefault((shot, _AMOUNT.sub("", text)), {})[dataset] = text
    return [
        f"{shot}-shot, {listing([*texts])}: "
        f"{common if len(texts) > 1 else next(iter(texts.values()))}"
        if shot
        else next(iter(texts.values()))
        for (shot, common), texts in groups.items()
    ]


def listing(names: Sequence[object]) -> str:
    """Join names as people do.

    >>> listing(["cub", "cars", "isic"])
    'cub, cars and isic'
    """
    words = [str(name) for name in names]
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last
