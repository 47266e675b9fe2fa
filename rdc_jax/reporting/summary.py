"""The outcome of a run in plain words, every one of them derived from numbers."""

import collections
from collections.abc import Sequence
from typing import NamedTuple

from rdc_jax.evaluation.statistics import plus_minus
from rdc_jax.reporting import gains, published, variants
from rdc_jax.reporting.gains import AverageGain
from rdc_jax.reporting.runs import Run

# Below this many tasks it matters that Student's interval takes accuracies as normal.
_FEW_TASKS = 30
_MINUS = "\N{MINUS SIGN}"
# Methods that get a sentence of their own; tables have them all.
_SENTENCES = 3
# Methods that are named one by one.
_TITLES = 8


class Outcome(NamedTuple):
    """What one method does in one shot.

    Attributes:
      shot: Labelled images a class.
      method: Its title.
      baseline: Title of what it is compared with.
      before: Mean accuracy of the baseline on the same data sets.
      after: Of the method.
      gain: Over the baseline.
    """

    shot: int
    method: str
    baseline: str
    before: float
    after: float
    gain: AverageGain


def listing(names: Sequence[object]) -> str:
    """Join names as people do.

    >>> listing(["cub", "cars", "isic"])
    'cub, cars and isic'
    """
    words = [str(name) for name in names]
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def plural(count: int, noun: str) -> str:
    """Count things.

    >>> plural(1, "task"), plural(2000, "task")
    ('1 task', '2,000 tasks')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def signed(value: float, digits: int = 2) -> str:
    """Write a gain with its sign; a typographic minus, and no minus zero.

    >>> signed(1.234), signed(-0.5, 1), signed(-0.001)
    ('+1.23', '−0.5', '0.00')
    """
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", _MINUS)


def setting(run: Run) -> str:
    """Say what was run on what."""
    config = run.config
    shots = listing(run.shots).replace(" and ", " or ")
    images = "image" if run.shots == [1] else "images"
    uneven = " on average" if config["dirichlet"] else ""
    return (
        f"{_tasks(run)} from {_datasets(run)}. In a task, {config['way']} classes have "
        f"{shots} labelled {images} each, and the methods name {config['query']} more "
        f"images a class{uneven}; guessing would be right in "
        f"{100 / config['way']:.0f}% of them. All methods met the same tasks: "
        f"{_methods(run)}. Images of {config['image_size']} pixels were turned into "
        f"features by a {_backbone(run)}."
    )


def outcomes(run: Run, shot: int) -> list[Outcome]:
    """Outcomes of the methods that were compared with a baseline."""
    found = []
    for method, rows in run.compared(shot).items():
        assert run.baseline is not None
        base = run.of(shot, run.baseline)
        before = [base[row["dataset"]]["accuracy"] for row in rows]
        after = [row["accuracy"] for row in rows]
        found.append(
            Outcome(
                shot=shot,
                method=run.titles[method],
                baseline=run.titles[run.baseline],
                before=sum(before) / len(rows),
                after=sum(after) / len(rows),
                gain=gains.average(rows),
            )
        )
    return found


def mains(run: Run) -> list[str]:
    """Name the methods that the run is about, one without and one with fine-tuning.

    Of each kind that is the last transductive one, for configs name methods from plain
    to full. Variants with parameters of their own, ``rdc(k=6)``, come after all others,
    and first those whose parameters are the config's.
    """
    names = [name for name in run.titles if name != run.baseline]
    transductive = {row["method"] for row in run.rows if row["transductive"]}
    kinds = (
        [name for name in names if name not in run.trained],
        [name for name in names if name in run.trained],
    )

    def rank(name: str) -> tuple[bool, bool, bool]:
        usual = variants.is_usual(name, run.config)
        return name in transductive, "(" not in name, usual

    found = [max(reversed(kind), key=rank) for kind in kinds if kind]
    # A fine-tuning method stands alone if there is nothing transductive beside it.
    return [n for n in found if n in transductive] or found[-1:]


def headlines(run: Run) -> dict[str, list[Outcome]]:
    """Outcomes of the main methods by their names, one a shot."""
    every = [outcome for shot in run.shots for outcome in outcomes(run, shot)]
    found = {n: [o for o in every if o.method == run.titles[n]] for n in mains(run)}
    return {name: part for name, part in found.items() if part}


def answers(run: Run) -> list[str]:
    """Answer in a line each whether the main methods helped."""
    found = headlines(run)
    if not found:
        return ["No method was compared with a baseline: there is no gain to tell of."]
    return [*(_answer(part) for part in found.values()), *_doubts(run)]


def _answer(found: Sequence[Outcome]) -> str:
    said = {
        "helps": "yes in {shot}-shot tasks, by {points} points on average",
        "hurts": "no in {shot}-shot tasks, where it loses {points} points on average",
        "unclear": "not clearly in {shot}-shot tasks",
    }
    parts = [
        said[o.gain.verdict].format(shot=o.shot, points=f"{abs(o.gain.mean):.1f}")
        for o in found
    ]
    text = "; ".join(parts)
    return f"Did {found[0].method} help? {text[0].upper()}{text[1:]}."


def sentences(run: Run, shot: int) -> list[str]:
    """Tell of the main methods and a few more transductive ones of a shot."""
    first = [run.titles[name] for name in mains(run)]
    transductive = {row["title"] for row in run.rows if row["transductive"]}
    found = {outcome.method: outcome for outcome in outcomes(run, shot)}
    others = [title for title in reversed(found) if title in transductive]
    chosen = [title for title in dict.fromkeys(first + others) if title in found]
    return [sentence(found[title]) for title in chosen[:_SENTENCES]]


def sentence(outcome: Outcome) -> str:
    """Tell of one method: the mean gain, and where it helps and hurts."""
    gain = outcome.gain
    interval = plus_minus(gain.ci95)
    amount = f"{signed(gain.mean)}{interval} points"
    does = {
        "helps": f"gains {amount} over {outcome.baseline}",
        "hurts": f"loses {-gain.mean:.2f}{interval} points to {outcome.baseline}",
        "unclear": f"makes no clear difference to {outcome.baseline}: {amount}",
    }[gain.verdict]
    where = "on average over " + plural(gain.datasets, "data set")
    if gain.datasets == 1:
        where = "on " + next(names[0] for names in gain.by_verdict.values() if names)
    change = f"{outcome.before:.1f}% to {outcome.after:.1f}%"
    text = f"{outcome.method} {does} {where} in {outcome.shot}-shot ({change})."
    return f"{text} {_where(gain)}" if gain.datasets > 1 else text


def _doubts(run: Run) -> list[str]:
    """Say beside the answer if it rests on little."""
    fewest = min(row["episodes"] for row in run.rows)
    if fewest >= _FEW_TASKS:
        return []
    return [f"Only {plural(fewest, 'task')} a data set: too few to conclude from."]


def remarks(run: Run) -> list[str]:
    """Compare the main methods' gains with the published ones, if there are any."""
    found = []
    for name, outcome in ((n, o) for n, part in headlines(run).items() for o in part):
        if both := published.mean_gains(run, outcome.shot, name):
            own, paper, count = both
            found.append(
                f"{outcome.method} in {outcome.shot}-shot, mean gain on the "
                f"{plural(count, 'data set')} that this run and the paper have in "
                f"common: {signed(own)} points here, {signed(paper)} in the paper, "
                "whose images, tasks and backbone were others."
            )
    return found


def _where(gain: AverageGain) -> str:
    names = gain.by_verdict
    parts = [
        f"{verb} on {listing(names[verb])}"
        if names[verb]
        else f"{verb} clearly on none"
        for verb in ("helps", "hurts")
    ]
    text = f"It {parts[0]}, and {parts[1]}"
    if names["unclear"]:
        text += f"; on {listing(names['unclear'])} the difference is within chance"
    return text + "."


def _tasks(run: Run) -> str:
    counts = sorted({row["episodes"] for row in run.rows})
    if len(counts) == 1:
        return plural(counts[0], "task")
    return f"{counts[0]:,} to {plural(counts[-1], 'task')}"


def _datasets(run: Run) -> str:
    if len(run.datasets) == 1:
        return run.datasets[0]
    return f"each of {len(run.datasets)} data sets ({listing(run.datasets)})"


def _methods(run: Run) -> str:
    """All titles; of many, those of one method that differ in settings count as one."""
    titles = list(run.titles.values())
    if len(titles) <= _TITLES:
        return listing(titles)
    counts = collections.Counter(title.split(" (")[0] for title in titles)
    return listing(
        [t if n == 1 else f"{t} ({plural(n, 'setting')})" for t, n in counts.items()]
    )


def _backbone(run: Run) -> str:
    """The network, with what its checkpoint says of its training."""
    checkpoint = run.results["provenance"]["checkpoint"]
    training = checkpoint.get("training")
    trained = f" (training: {training.removeprefix('on ')})" if training else ""
    return f"{checkpoint['arch']} backbone{trained}"
