"""Where eight devices are the point: tests in a process that has as many."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_eight_devices_do_as_one(tmp_path):
    """All tests marked ``devices8``; others of their files run elsewhere."""
    marked = {
        str(path if path.name.startswith("test_") else path.parent)
        for path in (ROOT / "tests").rglob("*.py")
        if path.name != "test_devices.py"
        and "mark.devices8" in path.read_text(encoding="utf-8")
    }
    options = ["-m", "devices8", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
    options += [f"--basetemp={tmp_path}", *sorted(marked)]
    environment = {**os.environ, "RDC_JAX_TEST_DEVICES": "8"}
    for name in [x for x in environment if x.startswith("PYTEST_")]:
        del environment[name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 12 and "skipped" not in done.stdout
