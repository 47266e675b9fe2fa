"""The command line as one meets it: help, lists, how much is said, exit codes."""

import ast
import io
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from rdc_jax import methods
from rdc_jax.cli import listing
from rdc_jax.data.__main__ import main as data_main
from rdc_jax.data.datasets import DATASETS
from rdc_jax.evaluation import progress as evaluation_progress
from rdc_jax.models import weights
from rdc_jax.predict.__main__ import main as predict_main
from rdc_jax.pretrain.loop import TrainingProgress
from rdc_jax.pretrain.objectives import OBJECTIVES
from rdc_jax.programs import evaluate, pretrain
from rdc_jax.runtime.errors import UserError, guard

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "rdc_jax/configs"
PROGRAMS = {"run_eval.py": "eval", "run_pretrain.py": "pretrain"}
ABOUT = {"run_eval.py": evaluate.__doc__, "run_pretrain.py": pretrain.__doc__}


def run(program, *flags):
    """Run a program where no backend can start: touching a device would fail."""
    return subprocess.run(
        [sys.executable, str(ROOT / program), *flags],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "none_such"},
    )


def too_wide(text):
    """Lines beyond 80 letters that could have been broken."""
    lines = (line.strip() for line in text.splitlines() if len(line) > 80)
    return [line for line in lines if " " in line]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_complete_and_no_error(program):
    done = run(program, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(ABOUT[program].strip())
    for flag in (
        "config",
        "workdir",
        "list",
        "quiet",
        "verbose",
        "debug",
        "process_id",
    ):
        assert f"  --{flag}" in done.stdout
    for field in ("seed=0", "data_dir=''", f"configs/{PROGRAMS[program]}.py"):
        assert field in done.stdout
    assert too_wide(done.stdout) == []


def test_help_shows_the_values_of_the_config_that_is_given():
    flags = ("--config=configs/eval.py:paper", "--config.rdc.k=7", "-h")
    done = run("run_eval.py", *flags)
    assert done.returncode == 0
    assert "episodes=2000" in done.stdout and " k=7 " in done.stdout


def test_configs_are_found_from_any_folder(tmp_path):
    def shown():
        flags = ["-h", "--config", "configs/eval.py:paper"]
        command = [sys.executable, str(ROOT / "run_eval.py"), *flags]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "episodes=2000" in shown()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/eval.py").write_text(
        "from rdc_jax.configs.eval import variation\n"
        "def get_config(arg):\n"
        "    return variation(arg, {'episodes': 77})\n"
    )
    assert "episodes=77" in shown()  # Their own goes first.


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="a matter of POSIX")
@pytest.mark.parametrize("flag", ["--help", "--list"])
def test_a_reader_may_leave_before_the_end(flag):
    command = [sys.executable, str(ROOT / "run_pretrain.py"), flag]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        process.stdout.close()  # as `| head -0` does
        assert process.stderr.read() == ""


def test_an_evaluation_lists_everything_and_methods_of_ones_own(tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from rdc_jax.methods import FeatureMethod, register\n"
        "@register('guess')\n"
        "class Guess(FeatureMethod):\n"
        "    '''Takes no look at the images.'''\n"
        "    title, transductive = 'Guess', False\n"
        "    def class_distances(self, task):\n"
        "        return task.query[:, :1] * 0\n"
    )
    (tmp_path / "EuroSAT" / "Forest").mkdir(parents=True)
    flags = (f"--config.plugins={plugin}", f"--config.data_dir={tmp_path}")
    done = run("run_eval.py", "--list", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    words = set(re.findall(r"[\w:./]+", done.stdout))
    built_in = {"npc", "npc_l2", "rdc", "rdc_one_space", "rdc_ft", "finetune"}
    assert built_in | set(DATASETS) | {"synthetic:glyphs"} <= words
    assert {f"configs/paper/table{n}.py" for n in range(1, 6)} <= words
    assert "guess" in words and "Guess. Takes no look at the images." in done.stdout
    assert re.search(r"^eurosat +yes", done.stdout, re.MULTILINE)
    assert weights.PACKAGED.name in done.stdout
    assert too_wide(done.stdout) == []


def test_pretraining_lists_its_own_configs():
    text = listing.for_pretraining(CONFIGS, OBJECTIVES)
    assert re.search(r"^ +:protonet +--config.method='protonet'", text, re.MULTILINE)
    assert ":reduced" in text and "configs/eval.py" not in text
    assert re.search(r"^  cross_entropy +\w+", text, re.MULTILINE)
    assert set(DATASETS) <= set(text.split())
    assert too_wide(text) == []


def test_every_config_says_what_it_is_and_which_variants_it_has():
    for path in CONFIGS.rglob("[a-z]*.py"):
        text = ast.get_docstring(ast.parse(path.read_text()))
        name = path.relative_to(CONFIGS.parent).as_posix()
        (variants,) = re.findall(rf"--config={name}\[:(.*)\]", text)
        module = {}
        exec(compile(path.read_text(), name, "exec"), module)
        for variant in variants.split("|:"):
            assert module["get_config"](variant)


def test_a_method_is_marked_as_transductive_where_it_is():
    text = listing.for_evaluation(CONFIGS)
    for name in methods.names():
        method = methods.get_method(name)
        together = method.transductive or method.answering.transductive
        mark = "*" if together else ""
        assert re.search(rf"^  {name}{re.escape(mark)}( |$)", text, re.MULTILINE)


def test_prediction_lists_checkpoints_without_any_folder(capsys):
    with pytest.raises(SystemExit) as left:
        predict_main(["--list"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert weights.PACKAGED.name in text and "399.tar" in text
    assert too_wide(text) == []


def test_the_package_lists_its_commands():
    command = [sys.executable, "-m", "rdc_jax"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "rdc-predict" in done.stdout, done.stderr
    assert too_wide(done.stdout) == []


def test_data_sets_are_listed_by_a_flag_too(tmp_path, capsys):
    data_main(["list", f"--data_dir={tmp_path}"])
    data_main(["--list", f"--data_dir={tmp_path}"])
    text = capsys.readouterr().out
    assert text[: len(text) // 2] == text[len(text) // 2 :]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--quiet"], 2, r"error: --workdir is missing[^\n]*\n"),
        (["--verbose"], 2, r"(\S+ config\.\S+=.*\n)+error: --workdir is missing.*\n"),
        (["--quiet", "--verbose"], 2, r"error: --quiet and --verbose: choose.*\n"),
        (["--colour"], 2, r"error: Unknown command line flag 'colour'.*\n"),
        (["eval"], 2, r"error: unexpected argument 'eval': write flags as.*\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_as_much_is_said_as_was_asked_for(flags, code, said):
    done = run("run_pretrain.py", *flags)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(said, done.stderr), done.stderr


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (
            UserError("no such\n  thing: make one"),
            2,
            "error: no such thing: make one\n",
        ),
    ],
    ids=["ctrl-c", "mistake"],
)
def test_faults_become_exit_codes(fault, code, said, capsys):
    def main():
        raise fault

    with pytest.raises(SystemExit) as left:
        guard(main)
    assert (left.value.code, capsys.readouterr().err) == (code, said)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
def test_bars_are_drawn_on_a_terminal_unless_quiet(level, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    monkeypatch.setattr(logging.getLogger("rdc_jax"), "level", level)
    with TrainingProgress([32] * 4, 0, 8) as bar:
        bar.advance()
    with evaluation_progress.Progress(4, {"features": 4}):
        pass
    assert bool(screen.getvalue()) == (level == logging.INFO)
