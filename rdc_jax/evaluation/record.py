"""What is on record of a run: counts in the ledger, and beside it each answer.

The folder ``answers`` has a file for each data set, shot and group of methods with the
class that each query was given, and one with the class distances, if they are kept.
A task is on record when it is in all of them; the ledger comes last.
"""

import functools
import pathlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from jaxtyping import Shaped

from rdc_jax.data.pixels import cache_name
from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.scoring import Judged
from rdc_jax.evaluation.task_log import TaskLog
from rdc_jax.runtime import checksums
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.errors import UserError

LEDGER, FOLDER = "ledger.jsonl", "answers"

Part = Literal["answers", "distances"]


class Record:
    """The record of one work directory; only one process may have it open.

    ``header`` says what the results are a function of.

    Attributes:
      ledger: Counts of all tasks.

    Raises:
      UserError: It is of another run, or cannot be written.
    """

    def __init__(
        self, workdir: pathlib.Path, header: Mapping[str, Any], options: Options
    ) -> None:
        self.ledger = Ledger(workdir / LEDGER, header)
        self._folder, self._options = workdir / FOLDER, options
        self._logs = functools.cache(self._open_logs)

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *unused: object) -> None:
        self.ledger.close()

    @property
    def home(self) -> tuple[pathlib.Path, dict[str, Any]]:
        """The work directory, and the header that its files belong to."""
        return self.ledger.path.parent, self.ledger.header

    def done(self, stage: Stage) -> int:
        """How many tasks of a stage are on record: the first ones."""
        logs = self._logs(stage).values()
        return min(self.ledger.done(stage), *(log.done for log in logs))

    def append(self, stage: Stage, first: int, judged: Judged) -> None:
        """Add tasks of a stage; they are on disk when this returns.

        ``first`` is the number of the first of them, at most ``done``.

        Raises:
          UserError: The disk is full; or tasks that the ledger has, computed again
            because a file of answers was lost, come out differently.
        """
        for part, log in self._logs(stage).items():
            log.append(first, getattr(judged, part))
        counts = np.asarray(judged.counts)
        known = min(self.ledger.done(stage) - first, len(counts))
        if (
            known
            and (self.ledger.counts(stage)[first:][:known] != counts[:known]).any()
        ):
            raise UserError(
                f"tasks of {stage.dataset} come out differently from those in "
                f"{self.ledger.path}: the machine has changed; take another --workdir"
            )
        self.ledger.append(stage, counts[known:])

    def read(
        self, dataset: str, shot: Shot, part: Part = "answers"
    ) -> dict[str, Shaped[np.ndarray, "e ..."]]:
        """Give answers or distances of all tasks by method, in the order of the run."""
        found: dict[str, np.ndarray] = {}
        for group, noted in self.ledger.groups.items():
            stage = Stage(dataset, shot, group)
            rows = self._logs(stage)[part].read(self._options.episodes)
            found |= {name: rows[:, i] for i, name in enumerate(noted["methods"])}
        return {entry.name: found[entry.name] for entry in self._options.methods}

    def _open_logs(self, stage: Stage) -> dict[Part, TaskLog]:
        noted, spec = self.ledger.groups[stage.group], self._options.spec(stage.shot)
        identity = [self.ledger.header, stage, noted]
        name = f"{cache_name(*map(str, stage))}-{checksums.of_json(stage)[:8]}"
        shape = (len(noted["methods"]), self._options.queries_in(spec))
        logs: dict[Part, TaskLog] = {
            "answers": TaskLog(self._folder / name, identity, shape, np.int16)
        }
        if self._options.predictions:
            path = self._folder / f"{name}.distances"
            logs["distances"] = TaskLog(
                path, identity, (*shape, spec.most_ways), np.float32
            )
        return logs
