"""Results as Markdown, beside the published numbers where there are any."""

from collections.abc import Iterable, Iterator
from typing import Any

from rdc_jax.core.statistics import plus_minus
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.text import table

Row = dict[str, Any]
# A cell: a name of its line and what the line begins with; its column; its text.
Cell = tuple[tuple[str, ...], str, str]

_AVERAGE = "average"
_NEIGHBOURS = {
    "purity_before": ("purity before", "{:.1f}%"),
    "purity_after": ("purity after", "{:.1f}%"),
    "neighbours_before": ("neighbours before", "{:.1f}"),
    "neighbours_after": ("neighbours after", "{:.1f}"),
    "jaccard_one": ("Jaccard = 1", "{:.1f}%"),
    "hub_skewness": ("skewness", "{:.2f}"),
    "hubs": ("hubs", "{:.1f}%"),
    "anti_hubs": ("anti-hubs", "{:.1f}%"),
}
_UNKNOWN = {
    "auroc": "Queries of none of the classes, AUROC in percent (chance is 50):",
    "fpr95": "The share of them that pass for known where 95% of the known do, FPR@95:",
}


def markdown(results: dict[str, Any]) -> str:
    """Write the content of ``results.json`` as a document."""
    parts = [_heading(results), *_chosen(results.get("choice"))]
    for shot in dict.fromkeys(row["shot"] for row in results["rows"]):
        parts += [f"## {shot}-shot", *_tables(results, shot)]
    if results["warnings"]:
        parts.append("## Warnings")
        parts.append("\n".join(f"- {text}" for text in results["warnings"]))
    parts.append(_provenance(results["provenance"]))
    return "\n\n".join(parts) + "\n"


def _heading(results: dict[str, Any]) -> str:
    config = results["provenance"]["config"]
    uneven = f", Dirichlet {config['dirichlet']:g}" if config["dirichlet"] else ""
    count = config.get("distractor_queries", 0)
    foreign = f" and {count} of no class" if count else ""
    return (
        f"# {results['title']} ({config['image_size']} px)\n\n"
        f"Accuracy in percent ± 95% interval; {config['episodes']:,} tasks a data set, "
        f"{config.get('ways') or config['way']}-way, "
        f"{config.get('queries') or config['query']} queries a class{uneven}{foreign}, "
        f"seed {config['seed']}."
    )


def _chosen(choice: dict[str, Any] | None) -> Iterator[str]:
    """What was chosen on other classes, in a list."""
    if choice:
        place = f"{choice['dataset']} {choice['split']}"
        yield f"Chosen by {choice['tasks']:,} tasks of {place}:"
        yield "\n".join(
            f"- `{row['chosen']}` of `{row['asked']}` ("
            + ", ".join(f"{value:.2f}" for value in row["accuracies"].values())
            + ")"
            for row in choice["methods"]
        )


def _tables(results: dict[str, Any], shot: Shot) -> Iterator[str]:
    """The tables of one shot, each below a sentence; those without lines left out."""

    def of(part: str) -> list[Row]:
        return [row for row in results[part] if row["shot"] == shot]

    rows, averages = of("rows"), of("averages")
    lines = [row for row in results["published"]["lines"] if row["shot"] == shot]
    yield _grid(_accuracies(rows, averages, lines, results["published"]), "method")
    gains = [row for row in [*rows, *averages] if "gain" in row]
    if gains:
        yield f"Gains over {gains[0]['baseline']} on the same tasks:"
        yield _grid(map(_gain_cell, gains), "method")
    for name, title in _UNKNOWN.items():
        if found := [row for row in [*rows, *averages] if name in row]:
            yield title
            yield _grid((_unknown_cell(row, name) for row in found), "method")
    if curves := of("curves"):
        yield "Accuracy along fine-tuning:"
        yield _grid(map(_curve_cell, curves), "data set", "method")
    if neighbours := of("neighbours"):
        yield (
            "Neighbours of queries before and after expansion (purity: of the query's "
            "class), and query-support pairs that share none; skewness of how often "
            "images are neighbours, hubs (twice the mean) and anti-hubs (never):"
        )
        yield _grid(_neighbour_cells(neighbours), "data set")
    if purity := of("purity"):
        yield "The same gains by the purity of a task's neighbours after expansion:"
        yield _grid(map(_purity_cell, purity), "purity", "tasks")


def _grid(cells: Iterable[Cell], *heads: str) -> str:
    """Lay out cells by line and column, both in the order in which they come."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    columns: dict[str, None] = {}
    for line, column, text in cells:
        lines.setdefault(line, {})[column] = text
        columns[column] = None
    rows = [
        [*line[1:], *(found.get(column, "") for column in columns)]
        for line, found in lines.items()
    ]
    return table([[*heads, *columns], *rows], markdown=True)


def _accuracies(
    rows: list[Row], averages: list[Row], published: list[Row], paper: Row
) -> Iterator[Cell]:
    """A line each method, followed by the published one; then other systems."""
    for average in averages:
        method = average["method"]
        for row in rows:
            if row["method"] == method:
                yield (method, row["title"]), row["dataset"], _accuracy(row)
        line = (method, average["title"])
        yield line, _AVERAGE, f"{average['accuracy']:.2f}"
        for row in published:
            if row["method"] == method:
                yield from _published(row, paper)
    for row in published:
        if row["method"] is None:
            yield from _published(row, paper)


def _published(row: Row, paper: Row) -> Iterator[Cell]:
    """A line of the paper, in italics."""
    name = f"{row['title']} ({paper['label']})"
    line = (f"{name} {row['method']}", f"*{name}*")
    for dataset, cell in row["rows"].items():
        yield line, dataset, f"*{_accuracy(cell)}*"
    if row["average"] is not None:
        own = "" if row["same"] else f" (its own {paper['datasets']})"
        yield line, _AVERAGE, f"*{row['average']:.2f}{own}*"


def _gain_cell(row: Row) -> Cell:
    return (row["method"], row["title"]), row.get("dataset", _AVERAGE), _gain(row)


def _unknown_cell(row: Row, name: str) -> Cell:
    text = f"{row[name]:.2f}{plus_minus(row.get(f'{name}_ci95'))}"
    return (row["method"], row["title"]), row.get("dataset", _AVERAGE), text


def _curve_cell(row: Row) -> Cell:
    line = (f"{row['dataset']} {row['method']}", row["dataset"], row["title"])
    return line, f"step {row['step']}", _accuracy(row)


def _neighbour_cells(rows: list[Row]) -> Iterator[Cell]:
    for row in rows:
        for name, (title, form) in _NEIGHBOURS.items():
            text = "" if row[name] is None else form.format(row[name])
            yield (row["dataset"], row["dataset"]), title, text


def _purity_cell(row: Row) -> Cell:
    where = f"{row['from']} to {row['to']}%"
    return (where, where, f"{row['episodes']:,}"), row["title"], _gain(row)


def _accuracy(row: Row) -> str:
    return f"{row['accuracy']:.2f}{plus_minus(row['ci95'])}"


def _gain(row: Row) -> str:
    return f"{row['gain']:+.2f}{plus_minus(row['gain_ci95'])}"


def _provenance(header: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in header["versions"].items())
    return (
        f"Checkpoint {header['checkpoint']['arch']} "
        f"{header['checkpoint']['fingerprint'][:12]}; {header['backend']['platform']} "
        f"({header['backend']['device']}); {versions}."
    )
