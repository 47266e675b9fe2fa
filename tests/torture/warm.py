"""Starts the programs without their imports, which take longer than what they do here.

A process imports all that they need, starts no backend, and forks for every start.
From there on the child is the program: its script is run as from a command line, in a
session of its own, and ends as any other process. Linux only.
"""

import contextlib
import json
import os
import pathlib
import runpy
import select
import signal
import subprocess
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]


class Nursery:
    """The process that forks; one program at a time.

    Args:
      environment: Of all programs.
      folder: For what they print.
    """

    def __init__(self, environment, folder):
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # A line that was read ahead is not seen by select.
            start_new_session=True,
        )
        assert self.answer(None) == "ready"

    def start(self, command):
        """Start a script with flags."""
        line = json.dumps([str(self.folder), *command]) + "\n"
        self._process.stdin.write(line.encode())
        return Child(self, int(self.answer(None)))

    def answer(self, timeout):
        """The next line of the process; None if there was none in that many seconds."""
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return None
        return self._process.stdout.readline().decode().strip()

    def close(self):
        """End the process; it has no children left."""
        self._process.communicate()


class Child:
    """A running program: as much of ``subprocess.Popen`` as is needed."""

    def __init__(self, nursery, pid):
        self._nursery, self.pid, self.returncode = nursery, pid, None
        self.kilobytes = None  # Peak of its memory, known at its end.

    def wait(self, timeout=None):
        """Wait for the end; gives whether it came."""
        if self.returncode is None and (got := self._nursery.answer(timeout)):
            status, self.kilobytes = map(int, got.split())
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode is not None

    def send_signal(self, number):
        """Send a signal; after the end, nothing."""
        if not self.wait(0):
            with contextlib.suppress(ProcessLookupError):  # It ends right now.
                os.kill(self.pid, number)

    def seconds(self):
        """Processor time that it has used: unlike the clock, the load is no matter."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # clock_getcpuclockid(3)
        except OSError:  # It has ended.
            return 0.0

    def holds(self, path):
        """Whether it has a file open."""
        try:
            files = [
                os.readlink(x) for x in pathlib.Path(f"/proc/{self.pid}/fd").iterdir()
            ]
        except OSError:  # It ends, or closes one of them, while we look.
            return False
        return str(path) in files

    def errors(self):
        """What it wrote to stderr."""
        return (self._nursery.folder / "stderr").read_text()


def _serve():
    import tiny  # noqa: F401

    print("ready", flush=True)
    for line in sys.stdin:
        folder, *command = json.loads(line)
        pid = os.fork()
        if not pid:
            return _become(command, folder)
        print(pid, flush=True)
        _, status, usage = os.wait4(pid, 0)
        print(status, usage.ru_maxrss, flush=True)
    return None


def _become(command, folder):
    """Be a program that was just started."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, name in (
        (0, os.devnull),
        (1, f"{folder}/stdout"),
        (2, f"{folder}/stderr"),
    ):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.argv = command
    runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS.parent), str(TESTS)]
    _serve()
