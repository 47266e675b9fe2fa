"""The two programs as processes of their own, to be stopped at any moment."""

import contextlib
import dataclasses
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import compiling
import jax
import numpy as np
from torture import effort

from rdc_jax.models.checkpoints import load_variables
from rdc_jax.pretrain.logs import read_metrics

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_LONGEST = 900  # seconds of any run, on the busiest machine; more is a hang
# How to start a program that permissions hold for, also as root; None: there is no way.
_SETPRIV = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
UNPRIVILEGED: list[str] | None = []
if os.geteuid() == 0:
    UNPRIVILEGED = _SETPRIV if shutil.which("setpriv") else None
# Names of files that are not meant to outlive the process that writes them.
_SCRATCH = ("*.part", "*.tmp", "*tmp-*", "*orbax-checkpoint-tmp*", "*.damaged")


@dataclasses.dataclass(frozen=True)
class Program:
    """A command: the same at every start but for the work directory.

    Attributes:
      script: Stands in for run_*.py, with the tiny network.
      flags: Of the command line.
      compiled_dir: Where compiled programs are kept between processes.
    """

    script: pathlib.Path
    flags: dict[str, object]
    compiled_dir: str

    def having(self, flags):
        """The same with other flags."""
        return dataclasses.replace(self, flags=self.flags | flags)

    def command(self, workdir):
        """The script with its flags."""
        flags = {"workdir": workdir, **self.flags}
        return [str(self.script), *(f"--{name}={x}" for name, x in flags.items())]

    def finish(self, workdir, *, prefix=(), env=None):
        """Run to the end; gives the exit code and what was written to stderr.

        Args:
          workdir: Of the run.
          prefix: A command that starts it.
          env: Further variables.
        """
        process = subprocess.Popen(
            [*prefix, sys.executable, *self.command(workdir)],
            env=environment(self.compiled_dir) | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with _killed_at_last(process):
            _, errors = process.communicate(timeout=_LONGEST)
        assert not session_members(process.pid), "processes outlive the program"
        return process.returncode, errors

    def stop(self, nursery, workdir, number=None, seconds=math.inf):
        """Start it in the nursery, and send a signal after some time.

        Time is that of the processor, and counts from when the run has its lock.
        Gives whether the run was stopped before its end, and the time it took.
        """
        process, began, used = nursery.start(self.command(workdir)), None, 0.0
        latest = time.monotonic() + _LONGEST
        with _killed_at_last(process):
            while not process.wait(0.01):
                assert time.monotonic() < latest, "it hangs"
                if began is None and process.holds(workdir / ".lock"):
                    began = process.seconds()
                used = max(used, process.seconds())
                if began is not None and used - began >= seconds:
                    process.send_signal(number)
                    seconds = math.inf
        effort.programs_peak = max(effort.programs_peak, process.kilobytes)
        errors = process.errors()
        assert began is not None, errors
        assert not session_members(process.pid), "processes outlive the program"
        if process.returncode == 0:
            return False, used - began
        assert number in (-process.returncode, process.returncode - 128), errors
        assert "Traceback" not in errors
        return True, used - began


def environment(compiled_dir):
    """Variables of the programs: one device, and what is compiled is kept."""
    return compiling.environment() | compiling.kept_in(compiled_dir)


@contextlib.contextmanager
def _killed_at_last(process):
    """Whatever stops the test, Ctrl-C included, leaves no program behind."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def session_members(session):
    """Ids of the running processes of a session; Linux only, none elsewhere."""
    members = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(path.parent.name))
    return members


def scratch_files(workdir):
    """Files that a stopped run left and the last one did not remove."""
    return sorted(str(p) for pattern in _SCRATCH for p in workdir.rglob(pattern))


def evaluation_content(workdir):
    """Every file of an evaluation but locks: all are compared by their bytes."""
    return {
        str(path.relative_to(workdir)): path.read_bytes()
        for path in sorted(workdir.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name != ".lock"
    }


def pretraining_content(workdir):
    """The weights, latest and best, and the lines of the log without its speeds."""
    content = {}
    for which in ("latest", "best"):
        variables, metadata = load_variables(workdir / which)
        leaves = jax.tree_util.tree_leaves_with_path(variables)
        content[which, "metadata"] = metadata
        for path, leaf in leaves:
            content[which, jax.tree_util.keystr(path)] = np.asarray(leaf).tobytes()
    for number, line in enumerate(read_metrics(workdir)):
        del line["images_per_second" if "loss" in line else "epoch"]
        content["line", number] = line
    return content
