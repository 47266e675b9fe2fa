"""The images that are named wrongly most often, with their thumbnails."""

import base64
import pathlib

import numpy as np

from rdc_jax.reporting.runs import Row, Run
from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError

THUMBNAILS = "hardest.npz"


def read(run: Run, workdir: pathlib.Path) -> dict[str, list[Row]]:
    """Read the hardest images of a run that kept its predictions.

    Returns:
      By data set and shot, rows of ``results.json``; ``picture`` is the thumbnail as an
      address, ``share`` the mean over methods of the tasks with a wrong answer, in
      percent.

    Raises:
      UserError: The thumbnails are missing, or not those of the results.
    """
    rows: list[Row] = run.results.get("hardest", [])
    if not rows:
        return {}
    path, again = workdir / THUMBNAILS, "run the same run_eval.py command again"
    try:
        if checksums.of_file(path) != run.results["thumbnails"]:
            raise UserError(f"{path} is not of these results, or damaged: {again}")
        with path.open("rb") as file, np.load(file) as archive:
            pictures = [archive[str(i)].tobytes() for i in range(len(rows))]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error}; {again}") from error
    found: dict[str, list[Row]] = {}
    for row, picture in zip(rows, pictures, strict=True):
        wrong = sum(row["wrong"].values()) / len(row["wrong"])
        address = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
        more = {"picture": address, "share": 100 * wrong / row["tasks"]}
        found.setdefault(f"{row['dataset']}, {row['shot']}-shot", []).append(row | more)
    return found
