"""Results as Markdown, beside the published numbers where there are any."""

from collections.abc import Callable, Sequence
from typing import Any

from rdc_jax.core.statistics import plus_minus
from rdc_jax.runtime.text import table


def markdown(results: dict[str, Any]) -> str:
    """Write the content of ``results.json`` as a document.

    Args:
      results: See ``rdc_jax.evaluation.results.collect``.
    """
    parts = [_heading(results)]
    for shot in dict.fromkeys(row["shot"] for row in results["rows"]):
        parts += [f"## {shot}-shot", _accuracies(results, shot), _gains(results, shot)]
        parts += [_curves(results, shot), _neighbours(results, shot)]
        parts.append(_purity(results, shot))
    if results["warnings"]:
        parts.append("## Warnings")
        parts.append("\n".join(f"- {text}" for text in results["warnings"]))
    parts.append(_provenance(results["provenance"]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(results: dict[str, Any]) -> str:
    config = results["provenance"]["config"]
    uneven = f", Dirichlet {config['dirichlet']:g}" if config["dirichlet"] else ""
    return (
        f"# {results['title']} ({config['image_size']} px)\n\n"
        f"Accuracy in percent ± 95% interval; {config['episodes']:,} tasks a data set, "
        f"{config['way']}-way, {config['query']} queries a class{uneven}, "
        f"seed {config['seed']}."
    )


def _accuracies(results: dict[str, Any], shot: int) -> str:
    """One line a method, each followed by the published one."""
    rows = [row for row in results["rows"] if row["shot"] == shot]
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    average = {
        row["method"]: row["accuracy"]
        for row in results["averages"]
        if row["shot"] == shot
    }
    published = [row for row in results["published"]["lines"] if row["shot"] == shot]
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = {row["dataset"]: row for row in rows if row["method"] == method}
        cells = [_cell(own[dataset]) for dataset in datasets]
        lines.append([own[datasets[0]]["title"], *cells, f"{average[method]:.2f}"])
        lines += [
            _published(line, results["published"], datasets)
            for line in published
            if line["method"] == method
        ]
    lines += [
        _published(line, results["published"], datasets)
        for line in published
        if line["method"] is None
    ]
    return table([["method", *datasets, "average"], *lines], markdown=True)


def _published(
    line: dict[str, Any], paper: dict[str, Any], datasets: Sequence[str]
) -> list[str]:
    """A line of the paper, in italics."""
    rows, average = line["rows"], line["average"]
    cells = [_cell(rows[dataset]) if dataset in rows else "" for dataset in datasets]
    own = "" if line["same"] else f" (its own {paper['datasets']})"
    cells.append("" if average is None else f"{average:.2f}{own}")
    label = f"{line['title']} ({paper['label']})"
    return [f"*{text}*" if text else "" for text in (label, *cells)]


def _cell(row: dict[str, Any]) -> str:
    return f"{row['accuracy']:.2f}{plus_minus(row['ci95'])}"


def _gain(row: dict[str, Any]) -> str:
    return f"{row['gain']:+.2f}{plus_minus(row['gain_ci95'])}"


def _gains(results: dict[str, Any], shot: int) -> str:
    rows = [r for r in results["rows"] if r["shot"] == shot and "gain" in r]
    if not rows:
        return ""
    lines = [
        [
            row["dataset"],
            row["title"],
            _gain(row),
            str(row["wins"]),
            str(row["losses"]),
        ]
        for row in rows
    ]
    lines += [
        ["average", row["title"], _gain(row), "", ""]
        for row in results["averages"]
        if row["shot"] == shot and "gain" in row
    ]
    text = f"Gains over {rows[0]['baseline']} on the same tasks:\n\n"
    return text + table(
        [["data set", "method", "gain", "wins", "losses"], *lines], markdown=True
    )


def _curves(results: dict[str, Any], shot: int) -> str:
    """Accuracies along fine-tuning, where they were recorded."""
    found = [curve for curve in results["curves"] if curve["shot"] == shot]
    if not found:
        return ""
    steps = sorted({curve["step"] for curve in found})
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for curve in found:
        line = lines.setdefault((curve["dataset"], curve["method"]), {})
        line[curve["step"]] = _cell(curve)
    cells = [[*key, *(line.get(s, "") for s in steps)] for key, line in lines.items()]
    titles = ["data set", "method", *(f"step {step}" for step in steps)]
    return "Accuracy along fine-tuning:\n\n" + table([titles, *cells], markdown=True)


def _neighbours(results: dict[str, Any], shot: int) -> str:
    rows = [row for row in results["neighbours"] if row["shot"] == shot]
    if not rows:
        return ""
    shown: dict[str, Callable[[Any], str]] = {
        "purity_before": _percent,
        "purity_after": _percent,
        "neighbours_before": "{:.1f}".format,
        "neighbours_after": "{:.1f}".format,
        "jaccard_one": _percent,
    }
    lines = [
        [row["dataset"], *(write(row[name]) for name, write in shown.items())]
        for row in rows
    ]
    titles = [
        "data set",
        "purity before",
        "purity after",
        "neighbours before",
        "neighbours after",
        "Jaccard = 1",
    ]
    text = (
        "Neighbours of queries before and after expansion (purity: of the query's "
        "class), and query-support pairs that share none:\n\n"
    )
    return text + table([titles, *lines], markdown=True)


def _purity(results: dict[str, Any], shot: int) -> str:
    """One line a range of purity, one column a method."""
    rows = [row for row in results.get("purity", ()) if row["shot"] == shot]
    if not rows:
        return ""
    titles = list(dict.fromkeys(row["title"] for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        where = f"{row['from']} to {row['to']}%"
        line = lines.setdefault(where, [f"{row['episodes']:,}"])
        line.append(_gain(row))
    text = "The same gains by the purity of a task's neighbours after expansion:\n\n"
    cells = [[where, *line] for where, line in lines.items()]
    return text + table([["purity", "tasks", *titles], *cells], markdown=True)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}%"


def _provenance(header: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in header["versions"].items())
    return (
        f"Checkpoint {header['checkpoint']['arch']} "
        f"{header['checkpoint']['fingerprint'][:12]}; {header['backend']['platform']} "
        f"({header['backend']['device']}); {versions}."
    )
