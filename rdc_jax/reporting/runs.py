"""What a report is made from: ``results.json`` of a run."""

import dataclasses
import json
import pathlib
from typing import Any, Literal

from rdc_jax.core import statistics
from rdc_jax.runtime import checksums
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError

RESULTS = "results.json"

Row = dict[str, Any]
Verdict = Literal["helps", "unclear", "hurts"]

_FORMAT = 1
_AGAIN = "run the same run_eval.py command again"
_NOTHING_PUBLISHED: Row = {"label": "", "datasets": 0, "notes": [], "lines": []}


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """The results of one run.

    Attributes:
      results: Content of ``results.json``; older ones may be without some parts.
    """

    results: dict[str, Any]

    @property
    def title(self) -> str:
        """What the run is called, with the size of its images."""
        return f"{self.results['title']} ({self.config['image_size']} px)"

    @property
    def provenance(self) -> dict[str, Any]:
        """What the results are a function of."""
        return self.results["provenance"]

    @property
    def config(self) -> dict[str, Any]:
        """The settings; of private places only the last part is there."""
        return self.provenance["config"]

    @property
    def rows(self) -> list[Row]:
        """One for each data set, shot and method."""
        return self.results["rows"]

    @property
    def shots(self) -> list[Shot]:
        """In the order of the run, as the data sets and the methods are."""
        return list(dict.fromkeys(row["shot"] for row in self.rows))

    @property
    def datasets(self) -> list[str]:
        """Their names."""
        return list(dict.fromkeys(row["dataset"] for row in self.rows))

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by their names."""
        return {row["method"]: row["title"] for row in self.rows}

    @property
    def baseline(self) -> str | None:
        """Name of the method that others were compared with, if that was run."""
        return next((row["baseline"] for row in self.rows if "gain" in row), None)

    @property
    def adapting(self) -> set[str]:
        """Names of the methods that train on each task."""
        return {row["method"] for row in self.rows if row.get("adapts")}

    @property
    def published(self) -> Row:
        """The paper's numbers for tasks like these: label, notes and lines."""
        return self.results.get("published", _NOTHING_PUBLISHED)

    def accuracies(self, shot: Shot, method: str) -> dict[str, Row]:
        """Rows of a method by data set."""
        return {
            row["dataset"]: row
            for row in self.rows
            if (row["shot"], row["method"]) == (shot, method)
        }

    def average(self, shot: Shot, method: str) -> Row | None:
        """Means of a method over the data sets, with its gain if it has one."""
        for row in self.results["averages"]:
            if (row["shot"], row["method"]) == (shot, method):
                return row
        return None

    def compared(self, shot: Shot) -> dict[str, list[Row]]:
        """Rows with a gain over the baseline, by method."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            if row["shot"] == shot and "gain" in row:
                found.setdefault(row["method"], []).append(row)
        return found

    def part(self, name: str, shot: Shot) -> list[Row]:
        """Rows of another part of the results."""
        return [row for row in self.results.get(name, ()) if row["shot"] == shot]

    def paper(self, shot: Shot, method: str | None) -> list[Row]:
        """The paper's lines of a method; None: of other authors' systems."""
        lines = self.published["lines"]
        return [r for r in lines if (r["shot"], r["method"]) == (shot, method)]


def verdict(gain: float, ci95: float | None) -> Verdict:
    """Tell help from harm, and both from chance, by the whole 95% interval.

    >>> verdict(1.2, 0.4), verdict(-0.3, 0.4), verdict(5.0, None)
    ('helps', 'unclear', 'unclear')
    """
    if not statistics.beyond_chance(gain, ci95):
        return "unclear"
    return "helps" if gain > 0 else "hurts"


def signed(value: float, digits: int = 2) -> str:
    """Write a gain with its sign; a typographic minus, and no minus zero.

    >>> signed(1.234), signed(-0.5, 1), signed(-0.001)
    ('+1.23', '−0.5', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def read(workdir: pathlib.Path) -> Run:
    """Read the results of a run.

    Raises:
      UserError: There are none, or they are not readable.
    """
    path = workdir / RESULTS
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"{path} is not there: give the work directory of a finished "
        raise UserError(f"{message}run_eval.py") from None
    except (OSError, ValueError) as error:
        message = f"cannot read {path}: {error}; {_AGAIN} to write it anew"
        raise UserError(message) from error
    if not isinstance(results, dict) or results.get("format") != _FORMAT:
        raise UserError(f"{path} is not of this version: {_AGAIN}")
    try:
        results = checksums.verify(results)
    except (ValueError, TypeError, KeyError) as error:
        message = f"{path} is damaged or was edited: {_AGAIN} to write it anew"
        raise UserError(message) from error
    if not results["rows"]:
        raise UserError(f"{path} has no results: evaluate at least one method")
    return Run(results)
