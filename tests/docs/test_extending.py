"""Each file of docs/extending runs from outside the package, as its docstring says."""

import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "extending"


def test_a_data_source(tmp_path):
    plugin = f"--plugins={EXAMPLES / 'source.py'}"
    command = [sys.executable, "-m", "rdc_jax.data", "verify", "stripes:20", plugin]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("stripes, test: no findings\n\n")
