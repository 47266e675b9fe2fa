"""The installed package, away from any clone: `make test-wheel`."""

import importlib.metadata
import pathlib
import subprocess
import sys

import pytest

import rdc_jax

PACKAGE = pathlib.Path(rdc_jax.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(
    (ROOT / "rdc_jax").exists(), reason="of an installed package: make test-wheel"
)


def run(folder, program, *flags):
    """Run a command of the environment in an empty folder."""
    command = pathlib.Path(sys.executable).parent / program
    return subprocess.run(
        [str(command), *flags], capture_output=True, text=True, cwd=folder
    )


def test_the_version_is_that_of_the_metadata():
    assert rdc_jax.__version__ == importlib.metadata.version("rdc-jax")


@pytest.mark.parametrize(
    ("program", "flags", "shown"),
    [
        ("rdc-eval", ["--list"], "configs/paper/table1.py"),
        ("rdc-eval", ["--config=configs/paper/table1.py:reduced", "--help"], "84"),
        ("rdc-pretrain", ["--list"], "configs/pretrain.py"),
        ("rdc-predict", ["--list"], "packaged"),
        ("rdc-data", ["list"], "cropdisease"),
    ],
)
def test_programs_know_their_names_in_any_folder(program, flags, shown, tmp_path):
    done = run(tmp_path, program, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout


def test_pictures_are_classified_by_the_packaged_weights(tmp_path):
    from evaluation import worlds

    worlds.write_images(tmp_path, classes=2, per_class=3)
    done = run(tmp_path, "rdc-predict", "--support=photos", "--query=photos")
    assert done.returncode == 0 and "class1" in done.stdout, done.stderr


def test_an_evaluation_ends_with_a_report(tmp_path):
    flags = ["--config.episodes=2", "--config.methods=npc_l2", "--workdir=run"]
    done = run(tmp_path, "rdc-eval", "--config=configs/eval.py:test", *flags)
    assert done.returncode == 0, done.stderr
    assert "Accuracy" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
