"""Checkpoints on disk: weights, the rest of the training state, JSON metadata.

A step directory holds three items: ``variables`` (what a reader of the weights wants),
``training`` (what only a resumed run wants) and ``metadata``. Steps appear by an atomic
rename, so a directory whose name is a number is complete. The metadata have checksums
of all three, for orbax does not notice a flipped bit in a large array. This is the only
module that knows orbax.
"""

import logging
import pathlib
import shutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp
from etils import epath

from rdc_jax.runtime import checksums
from rdc_jax.runtime.errors import UserError, first_line

PyTree = Any

_log = logging.getLogger(__name__)
_LATEST = 2  # Steps that are kept beside the best one.
_NO_SCORE = float("-inf")
_MARGIN = 8 * 2**20  # Of disk space, for what is written beside the arrays.


class Restored(NamedTuple):
    """What a step holds; trees in the structure they were saved in."""

    step: int
    variables: PyTree
    training: PyTree
    metadata: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run: the two latest steps, and the best one.

    Saving is synchronous: these networks take a fraction of a second, and a full
    disk is then reported by the step that met it. With several processes every one
    of them calls every method, and the directory, made if it is missing, is on a file
    system they share.
    """

    def __init__(self, directory: str | pathlib.Path) -> None:
        self._scores: dict[int, float] = {}
        self._directory = pathlib.Path(directory).absolute()
        self._manager = ocp.CheckpointManager(
            self._directory,
            options=ocp.CheckpointManagerOptions(
                preservation_policy=_LatestAndBest(self._score),
                enable_async_checkpointing=False,
                cleanup_tmp_directories=True,
            ),
        )

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *unused: object) -> None:
        self._manager.close()

    @property
    def steps(self) -> list[int]:
        """The steps on disk, in order."""
        return sorted(self._manager.all_steps())

    @property
    def best_step(self) -> int | None:
        """The step of the highest score, the later of equals; None without steps."""
        return _best_of(self.steps, self._score) if self.steps else None

    def _score(self, step: int) -> float:
        if step not in self._scores:
            self._scores[step] = _saved_score(epath.Path(self._directory / str(step)))
        return self._scores[step]

    def save(
        self,
        step: int,
        *,
        variables: PyTree,
        training: PyTree,
        metadata: dict[str, Any],
        score: float | None = None,
    ) -> None:
        """Write a step; nothing happens when it is on disk already.

        Args:
          step: Number of the step.
          variables: The weights that a reader of this checkpoint wants.
          training: All else that a resumed run needs.
          metadata: Anything JSON can hold.
          score: Higher is better. A step without one is never the best of several.

        Raises:
          UserError: The step could not be written; earlier ones are untouched.
        """
        if step in self._manager.all_steps():
            return
        self.check_room(variables, training)
        noted = {**metadata, "step": step, "score": score}
        noted = checksums.add(noted, variables=variables, training=training)
        args = ocp.args.Composite(
            variables=ocp.args.StandardSave(variables),
            training=ocp.args.StandardSave(training),
            metadata=ocp.args.JsonSave(noted),
        )
        self._scores[step] = _NO_SCORE if score is None else float(score)
        try:
            self._manager.save(step, args=args, force=True)
        except Exception as error:
            raise UserError(
                f"cannot write the checkpoint of step {step} to {self._directory} "
                f"({self._free_bytes() / 2**20:.0f} MB free): {first_line(error)}; "
                "earlier checkpoints are kept: make room or mend the permissions, "
                "then run the same command"
            ) from error

    def check_room(self, *trees: PyTree) -> None:
        """Raise an error if the disk has no room for a step of these trees.

        Raises:
          UserError: Says how much is free and how much is needed.
        """
        leaves = jax.tree.leaves(trees)
        needed = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) + _MARGIN
        free = self._free_bytes()
        if free < needed:
            raise UserError(
                f"{self._directory} has {free / 2**20:.1f} MB free, a checkpoint needs "
                f"{needed / 2**20:.1f} MB: make room, then run the same command"
            )

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self._directory).free

    def restore_latest(self, variables: PyTree, training: PyTree) -> Restored | None:
        """Read the newest readable step; None when there is none.

        An unreadable step is set aside as ``<step>.damaged`` with a warning, and
        the one before it is read. The trees are abstract: ``jax.ShapeDtypeStruct`` with
        shardings.

        Raises:
          UserError: There are steps, and none can be read.
        """
        args = ocp.args.Composite(
            variables=ocp.args.StandardRestore(variables),
            training=ocp.args.StandardRestore(training),
            metadata=ocp.args.JsonRestore(),
        )
        damaged = []
        for step in reversed(self.steps):
            try:
                got = self._manager.restore(step, args=args)
                trees = {"variables": got.variables, "training": got.training}
                metadata = checksums.verify(got.metadata, **trees)
            except Exception as error:
                _log.warning("step %d is unreadable: %s", step, first_line(error))
                damaged.append(step)
                continue
            if damaged:
                self._set_aside(damaged)
            return Restored(step, metadata=metadata, **trees)
        if damaged:
            raise UserError(
                f"no checkpoint in {self._directory} can be read (steps {damaged}): "
                "restore the directory from a copy, or start in another workdir"
            )
        return None

    def _set_aside(self, steps: list[int]) -> None:
        self._scores.clear()  # The numbers are free again.
        if jax.process_index() == 0:
            for step in steps:
                path = self._directory / str(step)
                target = path.with_name(f"{step}.damaged")
                shutil.rmtree(target, ignore_errors=True)
                path.rename(target)
                _log.warning("set %s aside as %s", path, target.name)
        ocp.multihost.sync_global_processes(f"set_aside_{steps}")
        self._manager.reload()


class _LatestAndBest:
    """Which steps stay on disk, as a policy of orbax.

    Orbax's own policy keeps scores in files that nothing protects from damage, and
    would delete the wrong step by them.
    """

    def __init__(self, score: Callable[[int], float]) -> None:
        self._score = score

    def should_preserve(
        self, checkpoints: Sequence[Any], *, context: object
    ) -> list[bool]:
        steps = sorted(checkpoint.step for checkpoint in checkpoints)
        kept = {*steps[-_LATEST:], *(steps and [_best_of(steps, self._score)])}
        return [checkpoint.step in kept for checkpoint in checkpoints]


def load_variables(path: str | pathlib.Path) -> tuple[PyTree, dict[str, Any]]:
    """Read the weights of a checkpoint as NumPy arrays, and its metadata.

    Args:
      path: A work directory or its ``checkpoints`` (the best step is read), either
        followed by ``best`` or ``latest``, or a step directory.

    Raises:
      UserError: There is no checkpoint, or it cannot be read.
    """
    step_dir = find_step(path)
    try:
        # As NumPy arrays: restored as they were saved, they would ask for as many
        # devices as the training had.
        tree = ocp.StandardCheckpointHandler().metadata(step_dir / "variables").tree
        as_numpy = ocp.RestoreArgs(restore_type=np.ndarray)
        item = ocp.args.PyTreeRestore(
            restore_args=jax.tree.map(lambda _: as_numpy, tree)
        )
        variables = _read(step_dir, variables=item).variables
        return variables, _metadata(step_dir, variables=variables)
    except Exception as error:
        raise UserError(
            f"the checkpoint {step_dir} is damaged: {first_line(error)}; "
            "use another step, or copy it again"
        ) from error


def find_step(path: str | pathlib.Path) -> epath.Path:
    """Find the step directory that a path stands for, see ``load_variables``.

    Raises:
      UserError: There is none.
    """
    root, which = epath.Path(path).absolute(), "best"
    if root.name in ("best", "latest"):
        root, which = root.parent, root.name
    if (root / "checkpoints").is_dir():
        root = root / "checkpoints"
    if _is_step(root):
        return root
    entries = root.iterdir() if root.is_dir() else ()
    steps = {int(p.name): p for p in entries if p.name.isdigit() and _is_step(p)}
    if not steps:
        problem = "no checkpoint in" if root.exists() else "there is no"
        raise UserError(
            f"{problem} {path}: give a work directory of run_pretrain.py, its "
            "checkpoints directory, one step of it, a file such as 399.tar, or "
            "'packaged' for the weights that come with rdc_jax"
        )
    if which == "latest":
        return steps[max(steps)]
    return steps[_best_of([*steps], lambda step: _saved_score(steps[step]))]


def _best_of(steps: Sequence[int], score: Callable[[int], float]) -> int:
    """The step of the highest score, the later of equals."""
    return max(steps, key=lambda step: (score(step), step))


def _is_step(path: epath.Path) -> bool:
    return (path / "variables").is_dir() and (path / "metadata").is_dir()


def _saved_score(step_dir: epath.Path) -> float:
    """The score of a step; an unreadable one is never the best of several."""
    try:
        score = _metadata(step_dir)["score"]
    except Exception:
        return _NO_SCORE
    return _NO_SCORE if score is None else float(score)


def _metadata(step_dir: epath.Path, **trees: PyTree) -> dict[str, Any]:
    noted = _read(step_dir, metadata=ocp.args.JsonRestore()).metadata
    return checksums.verify(noted, **trees)


def _read(step_dir: epath.Path, **items: Any) -> ocp.args.Composite:
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as reader:
        return reader.restore(step_dir, args=ocp.args.Composite(**items))
