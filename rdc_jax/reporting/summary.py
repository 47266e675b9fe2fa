"""What the main methods gain over the baseline: one card a method and shot."""

from typing import NamedTuple, get_args

from rdc_jax.reporting.runs import Run, Verdict, verdict
from rdc_jax.runtime.config_values import Shot


class Card(NamedTuple):
    """What one of the main methods does in one shot.

    Attributes:
      method: Its title.
      shot: Labelled images a class.
      before: Mean accuracy of the baseline over the data sets.
      after: Mean accuracy of the method.
      gain: Over the baseline, on the same tasks.
      ci95: Its interval over tasks; the data sets are taken as given.
      counts: Data sets by the verdict on each; verdicts on none are left out.
    """

    method: str
    shot: Shot
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
    to full: of RDC's own where the run has some, whatever it compares them with.
    Variants with parameters of their own, ``rdc(k=6)``, come after all others.
    """
    transductive = {row["method"] for row in run.rows if row["transductive"]}

    def rank(name: str) -> tuple[bool, bool, bool]:
        return name in transductive, "(" not in name, name.startswith("rdc")

    found = []
    for adapting in (False, True):
        names = [name for name in run.titles if (name in run.adapting) == adapting]
        names = [name for name in reversed(names) if name != run.baseline]
        found += [max(names, key=rank)] if names else []
    # A fine-tuning method stands alone if there is nothing transductive beside it.
    return [name for name in found if name in transductive] or found[-1:]


def cards(run: Run) -> list[list[Card]]:
    """Make the cards of each main method, one a shot."""
    found = []
    for method in main_methods(run):
        shots = [shot for shot in run.shots if method in run.compared(shot)]
        found.append([_card(run, shot, method) for shot in shots])
    return [each for each in found if each]


def _card(run: Run, shot: Shot, method: str) -> Card:
    assert run.baseline is not None
    after, before = run.average(shot, method), run.average(shot, run.baseline)
    assert after is not None and before is not None
    rows = run.compared(shot)[method]
    verdicts = [verdict(row["gain"], row["gain_ci95"]) for row in rows]
    counts: dict[Verdict, int] = {v: verdicts.count(v) for v in get_args(Verdict)}
    return Card(
        method=run.titles[method],
        shot=shot,
        before=before["accuracy"],
        after=after["accuracy"],
        gain=after["gain"],
        ci95=after["gain_ci95"],
        counts={each: count for each, count in counts.items() if count},
    )
