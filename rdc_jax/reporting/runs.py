"""What a report is made from: the results of a run, and its exhibits."""

import dataclasses
import json
import pathlib
from typing import Any

from rdc_jax.evaluation import exhibit_file
from rdc_jax.evaluation.exhibit_file import Exhibit
from rdc_jax.evaluation.exhibits import digest
from rdc_jax.evaluation.groups import FEATURES
from rdc_jax.evaluation.results import RESULTS, SEAL, seal
from rdc_jax.runtime.errors import UserError

Row = dict[str, Any]

_FORMAT = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One work directory.

    Attributes:
      results: Content of ``results.json``.
      folder: Name of the work directory.
      exhibits: Single tasks of this run, in the order of the tables.
      stale: Exhibits that were left out, because they belong to another run.
    """

    results: dict[str, Any]
    folder: str = ""
    exhibits: tuple[Exhibit, ...] = ()
    stale: int = 0

    @property
    def title(self) -> str:
        """What the run is called, with the size of its images."""
        return f"{self.results['title']} ({self.config['image_size']} px)"

    @property
    def config(self) -> dict[str, Any]:
        """As the run was told."""
        return self.results["provenance"]["config"]

    @property
    def rows(self) -> list[Row]:
        """One for each data set, shot and method."""
        return self.results["rows"]

    @property
    def shots(self) -> list[int]:
        """In the order of the run."""
        return list(dict.fromkeys(row["shot"] for row in self.rows))

    @property
    def datasets(self) -> list[str]:
        """In the order of the run."""
        return list(dict.fromkeys(row["dataset"] for row in self.rows))

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by their names, in the order of the run."""
        return {row["method"]: row["title"] for row in self.rows}

    @property
    def baseline(self) -> str | None:
        """Name of the method that others were compared with, if that was run."""
        return next((row["baseline"] for row in self.rows if "gain" in row), None)

    @property
    def trained(self) -> set[str]:
        """Names of the methods that fine-tune on each task."""
        groups = self.results["provenance"]["columns"]
        return {name for name in groups if name != FEATURES}

    def of(self, shot: int, method: str) -> dict[str, Row]:
        """Rows of one method and shot by data set."""
        return {
            row["dataset"]: row
            for row in self.rows
            if (row["shot"], row["method"]) == (shot, method)
        }

    def average(self, shot: int, method: str) -> float | None:
        """Mean accuracy over the data sets."""
        found = [
            row["accuracy"]
            for row in self.results["averages"]
            if (row["shot"], row["method"]) == (shot, method)
        ]
        return found[0] if found else None

    def compared(self, shot: int) -> dict[str, list[Row]]:
        """Rows with a gain over the baseline by method, in the order of the run."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            if row["shot"] == shot and "gain" in row:
                found.setdefault(row["method"], []).append(row)
        return found


def read(workdir: pathlib.Path) -> Run:
    """Read the results of a run.

    Args:
      workdir: Of the run.

    Raises:
      UserError: There are none, or they are not readable.
    """
    results = _results(workdir / RESULTS)
    own = digest(results["provenance"])
    found = [
        exhibit_file.read(path)
        for path in sorted((workdir / exhibit_file.FOLDER).glob("*.npz"))
    ]
    run = Run(results, workdir.resolve().name)
    places = [(d, s) for d in run.datasets for s in run.shots]
    fitting = [
        one for one in found if one.run == own and (one.dataset, one.shot) in places
    ]
    fitting.sort(key=lambda one: places.index((one.dataset, one.shot)))
    stale = len(found) - len(fitting)
    return dataclasses.replace(run, exhibits=tuple(fitting), stale=stale)


def _results(path: pathlib.Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"{path} is not there: give the work directory of a finished run_eval.py"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read {path}: {error}; run the same run_eval.py command again to "
            "write it anew"
        ) from error
    if not isinstance(results, dict) or results.get("format") != _FORMAT:
        raise UserError(
            f"{path} is not of this version: run the same run_eval.py command again"
        )
    if SEAL in results and results != seal(results):
        raise UserError(
            f"{path} is damaged or was edited: run the same run_eval.py command again "
            "to write it anew"
        )
    if not results["rows"]:
        raise UserError(f"{path} has no results: evaluate at least one method")
    return results
