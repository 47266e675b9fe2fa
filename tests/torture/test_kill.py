"""Stopped at any moment by any signal, and started again, a run ends as if it was not.

The moments of kill that matter most are hit on purpose by tests/pretrain/test_program
and tests/evaluation/test_program; here they are random.
"""

import functools
import os
import random
import signal
import sys

import pytest
from torture import effort
from torture.programs import (
    SIGNALS,
    environment,
    evaluation_content,
    pretraining_content,
    scratch_files,
)
from torture.warm import Nursery

from rdc_jax.evaluation import example_tasks, results
from rdc_jax.evaluation.run import evaluate

NAMES = ("pretrain", "rdc", "rdc_ft")
_STOPS_A_RUN = 5
_LATE = "after their last result"
_LOGS = {"pretrain": "metrics.jsonl", "rdc": "ledger.jsonl", "rdc_ft": "ledger.jsonl"}
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(scope="module")
def nursery(compiled_dir, tmp_path_factory):
    running = Nursery(environment(compiled_dir), tmp_path_factory.mktemp("printed"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def whole(programs, tmp_path_factory):
    """By program: an uninterrupted run as from a command line; it compiles for all."""

    @functools.cache
    def run(name):
        workdir = tmp_path_factory.mktemp("whole") / "run"
        code, errors = programs[name].finish(workdir)
        assert code == 0, errors
        return workdir

    return run


def content_of(name, workdir):
    """What must not depend on stops; and nothing else is left behind."""
    assert not scratch_files(workdir)
    if name == "pretrain":
        return pretraining_content(workdir)
    return evaluation_content(workdir)


def interrupt(function, call):
    """Let a function be interrupted by Ctrl-C in its n-th call, when it has begun."""
    calls = iter(range(1, call + 1))

    def interrupted(*args, **kwargs):
        if next(calls, None) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return function(*args, **kwargs)

    return interrupted


@pytest.fixture
def _ctrl_c():
    """Ctrl-C interrupts, also where shells start what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_fine_tuning_costs_nothing(config, tmp_path, monkeypatch):
    """In this process, at moments that a kill from outside seldom meets."""
    config.update(methods="rdc_ft", episodes=4)
    config.finetune.update(steps=1, record="")
    evaluate(config.to_dict(), tmp_path / "whole" / "run")
    workdir = tmp_path / "stopped" / "run"
    moments = [
        (example_tasks, "write", 2),  # Between the first episodes and their record.
        (example_tasks.np, "savez_compressed", 1),
        (results, "write_text", 2),
    ]
    for module, name, call in moments:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupt(getattr(module, name), call))
            with pytest.raises(KeyboardInterrupt):
                evaluate(config.to_dict(), workdir)
        effort.count("stops of rdc_ft survived, from inside")
    evaluate(config.to_dict(), workdir)
    assert content_of("rdc_ft", workdir) == content_of(
        "rdc_ft", tmp_path / "whole" / "run"
    )


def moment(name, workdir, whole_dir):
    """How far a run had come, for the summary."""
    done, all_ = (
        path.read_bytes().count(b"\n") if path.exists() else 0
        for path in (folder / _LOGS[name] for folder in (workdir, whole_dir))
    )
    header = name != "pretrain"
    if done <= header:
        return "before their first result"
    return "half-way" if done < all_ else _LATE


@pytest.mark.slow
@needs_linux
@pytest.mark.parametrize("name", NAMES)
def test_stops_at_random_moments_cost_nothing(programs, nursery, whole, tmp_path, name):
    """Each run is stopped again and again, until it comes to its end before that."""
    program, expected = programs[name], content_of(name, whole(name))
    _, seconds = program.stop(nursery, tmp_path / "timed" / "run")
    assert content_of(name, tmp_path / "timed" / "run") == expected
    rng = random.Random(f"{effort.SEED} {name}")
    rounds = survived = 0
    while survived < effort.KILLS / len(NAMES):
        workdir, stops = tmp_path / f"{rounds}" / "run", []
        while True:
            number, after = rng.choice(SIGNALS), rng.uniform(0, seconds)
            if not program.stop(nursery, workdir, number, after)[0]:
                break
            stops.append((number.name, moment(name, workdir, whole(name))))
            if stops[-1][1] == _LATE or len(stops) == _STOPS_A_RUN:
                program.stop(nursery, workdir)  # Further stops would be as late.
                break
        got = content_of(name, workdir)
        assert got.keys() == expected.keys()
        assert not [key for key in got if got[key] != expected[key]]
        for number, when in stops:
            effort.count(f"stops of {name} survived")
            effort.tally[f"of them by {number}"] += 1
            effort.tally[f"of them {when}"] += 1
        survived, rounds = survived + len(stops), rounds + 1
        assert rounds < effort.KILLS, "most runs end before they can be stopped"
