"""Accuracy over the steps of fine-tuning."""

from matplotlib.ticker import MaxNLocator

from rdc_jax.reporting import drawing, palette
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Row, Run


def panels(run: Run, shot: int, name: str) -> list[Drawing]:
    """Draw one small plot a data set, with a line a method and its interval.

    Args:
      run: With curves, or without: then there is nothing to draw.
      shot: Labelled images a class.
      name: Of the figures, unique in the page.
    """
    rows = [row for row in run.results.get("curves", ()) if row["shot"] == shot]
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    return [
        _panel(
            run,
            [row for row in rows if row["dataset"] == dataset],
            f"{dataset}, {shot}-shot",
            f"{name}-{place}",
        )
        for place, dataset in enumerate(datasets)
    ]


def _panel(run: Run, rows: list[Row], title: str, name: str) -> Drawing:
    keys, told = [], []
    with drawing.canvas(3.3, 2.3) as (figure, axes):
        for place, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
            look = palette.mark(place)
            own = sorted(
                (row for row in rows if row["method"] == method),
                key=lambda row: row["step"],
            )
            steps = [row["step"] for row in own]
            mean = [row["accuracy"] for row in own]
            low, high = (
                [row["accuracy"] + sign * (row["ci95"] or 0) for row in own]
                for sign in (-1, 1)
            )
            axes.fill_between(steps, low, high, color=look.colour, alpha=0.18, lw=0)
            axes.plot(steps, mean, color=look.colour, marker=look.marker, ms=3, lw=1.4)
            method_title = run.titles.get(method, method)
            keys.append(Key(look.glyph, look.variable, method_title))
            told.append(
                f"{method_title}: {mean[0]:.1f}% at step {steps[0]}, "
                f"{mean[-1]:.1f}% at step {steps[-1]}."
            )
        axes.grid()
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("step of fine-tuning")
        axes.set_ylabel("accuracy, %")
        text = f"Accuracy over the steps of fine-tuning, {title}. {' '.join(told)}"
        svg = drawing.export(figure, name, text)
    return Drawing(svg, f"{title}.", tuple(keys))
