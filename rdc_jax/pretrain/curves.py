"""Curves of a run: ``python -m rdc_jax.pretrain.curves WORKDIR --out curves.png``."""

import pathlib
from typing import Any

from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.runtime.arguments import Parser
from rdc_jax.runtime.errors import UserError, guard

Line = dict[str, Any]


def plot(lines: list[Line], out: str | pathlib.Path) -> None:
    """Draw loss, training accuracy and few-shot accuracy of ``metrics.jsonl``'s lines.

    Raises:
      UserError: There is nothing to draw, matplotlib is missing, or the file cannot
        be written.
    """
    if not lines:
        raise UserError("the run has logged nothing yet: wait for its first lines")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("plots need matplotlib: pip install 'rdc-jax[plots]'") from None
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    loss, accuracy, few_shot = figure.subplots(1, 3)
    _curve(loss, lines, "loss", "training loss")
    _curve(accuracy, lines, "accuracy", "training accuracy, %")
    for name in sorted({name for line in lines for name in line if "val_" in name}):
        _curve(few_shot, lines, name, name[4:].replace("_", " "), marker=".")
    few_shot.set_title("few-shot accuracy on held-out classes, %", fontsize=9)
    few_shot.legend()
    try:
        figure.savefig(out, dpi=150)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot write {out}: {error}; give another --out") from error


def _curve(axes: Any, lines: list[Line], name: str, title: str, **style: Any) -> None:
    points = [(line["epoch"], line[name]) for line in lines if name in line]
    axes.plot(*zip(*points, strict=True), label=title, **style)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("epoch")
    axes.grid(alpha=0.3)


def main() -> None:
    """Read the command line and plot."""
    parser = Parser(
        prog="python -m rdc_jax.pretrain.curves",
        description="Draw loss and accuracies of a pre-training run.",
    )
    parser.add_argument("workdir", help="work directory of a run")
    parser.add_argument("--out", default="curves.png", help="image file to write")
    args = parser.parse()
    plot(read_metrics(args.workdir), args.out)
    print(args.out)


if __name__ == "__main__":
    guard(main)
