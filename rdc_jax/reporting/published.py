"""The paper's own numbers, where a run can be held against them."""

from rdc_jax.evaluation import table
from rdc_jax.reporting.runs import Row, Run

_WAY = 5  # Of all tasks in the paper.


def label() -> str:
    """How published numbers are marked."""
    return table.published()["label"]


def note() -> str:
    """What they were measured on."""
    return table.published()["note"]


def rows(run: Run, shot: int, method: str) -> dict[str, Row]:
    """Published rows by data set; empty for tasks that the paper has not.

    Args:
      run: Whose data sets are asked for.
      shot: Labelled images a class.
      method: Its name.
    """
    if run.config["way"] != _WAY:
        return {}
    return {
        row["dataset"]: row
        for row in table.published()["rows"]
        if (row["shot"], row["method"]) == (shot, method)
        and row["dataset"] in run.datasets
    }


def average(run: Run, shot: int, method: str) -> float | None:
    """The published mean, if it is over the data sets of this run."""
    everywhere = {row["dataset"] for row in table.published()["rows"]}
    if not rows(run, shot, method) or everywhere != set(run.datasets):
        return None
    return own_average(shot, method)


def own_average(shot: int, method: str) -> float | None:
    """The published mean over the paper's own data sets."""
    return next(
        (
            row["accuracy"]
            for row in table.published()["averages"]
            if (row["shot"], row["method"]) == (shot, method)
        ),
        None,
    )


def systems(run: Run, shot: int) -> dict[str, dict[str, Row]]:
    """Published rows of other systems by title and data set, if the run wants them."""
    found: dict[str, dict[str, Row]] = {}
    if run.config.get("systems"):
        for row in table.published()["systems"]:
            if row["shot"] == shot and row["dataset"] in run.datasets:
                found.setdefault(row["title"], {})[row["dataset"]] = row
    return found


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
