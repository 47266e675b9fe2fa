"""Files that keep one task whole, with its images and the answers of two methods."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from rdc_jax.data.pixels import cache_name
from rdc_jax.methods import get_method
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.files import replacing

FOLDER = "exhibits"

# What the answers of an exhibit are called.
TITLES = {"npc": get_method("npc_l2").title, "rdc": get_method("rdc").title}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """What two methods make of the features of one task.

    Attributes:
      features: Of all images, supports first.
      npc: Answers of nearest prototypes on l2-normalised features, one a query.
      rdc: Answers of RDC.
      original: Distances before calibration.
      calibrated: Distances after it, in both spaces combined.
    """

    features: Float32[np.ndarray, "n d"]
    npc: Int32[np.ndarray, " q"]
    rdc: Int32[np.ndarray, " q"]
    original: Float32[np.ndarray, "n n"]
    calibrated: Float32[np.ndarray, "n n"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Exhibit:
    """One task with its images.

    Attributes:
      run: Digest of the run that it belongs to.
      dataset: Name of the data set.
      shot: Labelled images a class.
      episode: Number of the task.
      class_names: By episode label.
      support_size: Labelled images, which come first.
      labels: True classes of all images.
      images: Thumbnails.
      before: With the features of the backbone.
      after: With those of the fine-tuned backbone, where a method made some.
      after_title: What tables call that method.
    """

    run: str
    dataset: str
    shot: int
    episode: int
    class_names: tuple[str, ...]
    support_size: int
    labels: Int32[np.ndarray, " n"]
    images: UInt8[np.ndarray, "n t t 3"]
    before: Answers
    after: Answers | None = None
    after_title: str = ""

    @property
    def query_labels(self) -> Int32[np.ndarray, " q"]:
        """True classes of the queries."""
        return self.labels[self.support_size :]


def path_of(workdir: pathlib.Path, dataset: str, shot: int) -> pathlib.Path:
    """Where the exhibit of a data set and shot is.

    >>> path_of(pathlib.Path("run"), "tfds:eurosat/rgb", 5).name
    'tfds_eurosat_rgb-5.npz'
    """
    return workdir / FOLDER / f"{cache_name(dataset, str(shot))}.npz"


def read(path: pathlib.Path) -> Exhibit:
    """Read one exhibit.

    Raises:
      UserError: The file is damaged, or none of ours.
    """
    try:
        with path.open("rb") as file, np.load(file) as archive:
            found = {name: archive[name] for name in archive.files}
        after = _part(found, "after.")
        return Exhibit(
            run=str(found["run"]),
            dataset=str(found["dataset"]),
            shot=int(found["shot"]),
            episode=int(found["episode"]),
            class_names=tuple(map(str, found["class_names"])),
            support_size=int(found["support_size"]),
            labels=found["labels"],
            images=found["images"],
            before=Answers(**_part(found, "before.")),
            after=Answers(**after) if after else None,
            after_title=str(found["after_title"]),
        )
    except Exception as error:  # Damaged archives raise nearly everything.
        raise UserError(
            f"{path} is damaged or no exhibit: delete it ({type(error).__name__})"
        ) from error


def save(path: pathlib.Path, exhibit: Exhibit) -> None:
    """Write an exhibit by a rename: a kill leaves a whole file or none.

    Raises:
      UserError: The disk is full, or the folder cannot be written.
    """
    values = {
        field.name: getattr(exhibit, field.name)
        for field in dataclasses.fields(exhibit)
        if field.name not in ("before", "after")
    }
    values["class_names"] = np.array(exhibit.class_names)
    for when in ("before", "after"):
        if (answers := getattr(exhibit, when)) is not None:
            fields = dataclasses.asdict(answers)
            values |= {f"{when}.{name}": value for name, value in fields.items()}
    with contextlib.suppress(OSError):  # Then the file cannot be written either.
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "make room, then run the same command") as file:
        np.savez_compressed(file, **values)


def read_text(path: pathlib.Path, name: str) -> str:
    """Read one text of a file; nothing where that cannot be read."""
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return str(archive[name])
    except Exception:
        return ""


def _part(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }
