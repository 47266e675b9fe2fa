"""Plots of means by data set: accuracies, and gains over the baseline."""

from collections.abc import Mapping

from rdc_jax.evaluation.statistics import Mean, plus_minus
from rdc_jax.reporting import charts, drawing, gains, palette, published
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Row, Run
from rdc_jax.reporting.summary import signed

_AVERAGE = "average"


def accuracy(run: Run, shot: int, name: str) -> Drawing:
    """Draw accuracies by data set; the paper's as hollow marks.

    Args:
      run: To be shown.
      shot: Labelled images a class.
      name: Of the figure, unique in the page.
    """
    marks, labels, told = len(run.titles), run.datasets, []
    everything = [mean for s in run.shots for mean in _all_accuracies(run, s)]
    chance = 100 / run.config["way"]
    with drawing.canvas(drawing.WIDTH, charts.height(len(labels), marks)) as (fig, ax):
        charts.rule_rows(ax, labels)
        for place, (method, title) in enumerate(run.titles.items()):
            paper = _accuracies(published.rows(run, shot, method))
            own = _accuracies(run.of(shot, method))
            for means, filled in ((paper, False), (own, True)):
                spot = charts.Spot(place, place, marks)
                charts.draw_means(ax, means, labels, spot, filled=filled)
            parts = [f"{dataset} {mean:.1f}%" for dataset, (mean, _) in own.items()]
            told.append(f"{title}: {', '.join(parts)}.")
        # One scale for all shots: the figures stand side by side.
        ax.set_xlim(charts.padded(everything, chance))
        charts.chance_line(ax, run.config["way"])
        ax.set_xlabel("accuracy, %")
        text = f"Accuracy by data set, {shot}-shot. {' '.join(told)}"
        svg = drawing.export(fig, name, text)
    legend = charts.keys(run.titles, run.titles)
    if any(published.rows(run, shot, method) for method in run.titles):
        legend += (Key("○", "var(--muted)", f"hollow: {published.label()}"),)
    caption = (
        f"Accuracy with 95% intervals, {shot}-shot. The dotted line is chance, "
        f"{chance:.0f}%."
    )
    return Drawing(svg, caption, legend)


def forest(run: Run, shot: int, name: str) -> Drawing:
    """Draw gains over the baseline on the same tasks, and their average.

    Args:
      run: With a baseline.
      shot: Labelled images a class.
      name: Of the figure, unique in the page.
    """
    assert run.baseline is not None
    base = run.titles[run.baseline]
    found = {method: _gains(rows) for method, rows in run.compared(shot).items()}
    series = list(run.titles)
    labels, told = [*run.datasets, _AVERAGE], []
    size = (drawing.WIDTH, charts.height(len(labels), len(found)))
    with drawing.canvas(*size) as (fig, ax):
        charts.rule_rows(ax, labels)
        ax.axvline(0, color=palette.INK, lw=0.9)
        last = len(labels) - 1
        ax.axhspan(last - 0.5, last + 0.5, fc=palette.GRID, alpha=0.35)
        for place, (method, means) in enumerate(found.items()):
            spot = charts.Spot(series.index(method), place, len(found))
            charts.draw_means(ax, means, labels, spot)
            told.append(f"{run.titles[method]}: {', '.join(_told(means))}.")
        ax.set_xlim(charts.padded(_all_gains(run), 0.0))
        ax.set_xlabel(f"gain over {base}, points")
        text = f"Gains over {base}, {shot}-shot. {' '.join(told)}"
        svg = drawing.export(fig, name, text)
    caption = (
        f"Gains over {base} on the same tasks with 95% intervals, {shot}-shot. Right "
        "of the line is better; an interval that crosses it may be chance."
    )
    return Drawing(svg, caption, charts.keys(run.titles, found))


def ladder(run: Run, shot: int, name: str) -> Drawing:
    """Draw the average gains of many methods, each below its title.

    Args:
      run: With a baseline.
      shot: Labelled images a class.
      name: Of the figure, unique in the page.
    """
    assert run.baseline is not None
    base = run.titles[run.baseline]
    found = {
        run.titles[method]: gains.average(rows)
        for method, rows in run.compared(shot).items()
    }
    titles = list(found)
    means = {title: Mean(gain.mean, gain.ci95) for title, gain in found.items()}
    with drawing.canvas(drawing.WIDTH, charts.height(len(found), marks=2)) as (fig, ax):
        charts.rule_rows(ax, titles)
        ax.set_yticks([])
        ax.axvline(0, color=palette.INK, lw=0.9)
        for place, title in enumerate(titles):
            across = ax.get_yaxis_transform()
            ax.text(0.01, place - 0.16, title, transform=across, va="center", size=8)
        charts.draw_means(ax, means, titles, charts.Spot(0, 1, 2))
        ax.set_xlabel(f"mean gain over {base}, points")
        text = f"Mean gains over {base}, {shot}-shot. {', '.join(_told(means))}."
        svg = drawing.export(fig, name, text)
    caption = (
        f"Gains over {base} on the same tasks, averaged over the data sets, with 95% "
        f"intervals, {shot}-shot. Right of the line is better."
    )
    return Drawing(svg, caption)


def _accuracies(rows: Mapping[str, Row]) -> dict[str, Mean]:
    return {name: Mean(row["accuracy"], row["ci95"]) for name, row in rows.items()}


def _gains(rows: list[Row]) -> dict[str, Mean]:
    means = {row["dataset"]: Mean(row["gain"], row["gain_ci95"]) for row in rows}
    whole = gains.average(rows)
    return means | {_AVERAGE: Mean(whole.mean, whole.ci95)}


def _told(means: Mapping[str, Mean]) -> list[str]:
    """Gains in words, for those who do not see the picture."""
    return [f"{n} {signed(m, 1)}{plus_minus(ci, 1)}" for n, (m, ci) in means.items()]


def _all_accuracies(run: Run, shot: int) -> list[Mean]:
    return [
        mean
        for method in run.titles
        for rows in (run.of(shot, method), published.rows(run, shot, method))
        for mean in _accuracies(rows).values()
    ]


def _all_gains(run: Run) -> list[Mean]:
    return [Mean(r["gain"], r["gain_ci95"]) for r in run.rows if "gain" in r]
