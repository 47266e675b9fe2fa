"""The paper's own numbers beside those of a run."""

from rdc_jax.evaluation import published
from rdc_jax.evaluation.published import Line, name_of
from rdc_jax.reporting.runs import Row, Run


def label() -> str:
    """How published numbers are marked."""
    return published.content()["label"]


def notes(run: Run) -> list[str]:
    """Say what the published numbers of a run were measured on, if there are any."""
    lines = {name_of(m) for s in run.shots for m in run.titles if line(run, s, m)}
    if any(systems(run, shot) for shot in run.shots):
        lines.add("systems")
    content = published.content()
    own = [text for name, text in content["notes"].items() if name in lines]
    return [content["note"], *own] if lines else []


def line(run: Run, shot: int, method: str) -> Line | None:
    """What the paper has of a method; None for tasks that the paper has not."""
    return published.line(run.config, run.datasets, shot, method)


def rows(run: Run, shot: int, method: str) -> dict[str, Row]:
    """Published rows by data set, of those that the run has."""
    found = line(run, shot, method)
    return found.rows if found else {}


def average(run: Run, shot: int, method: str) -> float | None:
    """The published mean over the paper's own data sets."""
    found = line(run, shot, method)
    return found.average if found else None


def systems(run: Run, shot: int) -> dict[str, Line]:
    """Published lines of other systems by title, if the run wants them."""
    return published.systems(run.config, run.datasets, shot)


def own_datasets() -> str:
    """Mark of an average that is over other data sets than the run's."""
    return f"its own {len(published.datasets())}"


def mean_gains(run: Run, shot: int, method: str) -> tuple[float, float, int] | None:
    """Gains over the baseline, ours and the paper's, on data sets that both have.

    Returns:
      Our mean, the paper's mean, and the number of data sets; None: nothing in common.
    """
    if run.baseline is None:
        return None
    paper, base = (rows(run, shot, name) for name in (method, run.baseline))
    ours = run.of(shot, method)
    common = [name for name in paper if name in base and name in ours]
    if not common:
        return None
    own = sum(ours[name]["gain"] for name in common) / len(common)
    theirs = sum(paper[n]["accuracy"] - base[n]["accuracy"] for n in common)
    return own, theirs / len(common), len(common)
