"""Stopped at any moment by any signal, and started again, a run ends as if it was not.

The moments of kill that matter most are hit on purpose by tests/training/test_program
and tests/evaluation/test_program; here they are random.
"""

import functools
import os
import random
import signal

import pytest
from torture import effort
from torture.programs import (
    SIGNALS,
    evaluation_content,
    pretraining_content,
    scratch_files,
)

from rdc_jax.evaluation import exhibit_file, exhibits, results
from rdc_jax.evaluation.evaluate import evaluate

NAMES = ("pretrain", "rdc", "rdc_ft")
_STOPS_A_RUN = 4


@pytest.fixture(scope="module")
def whole(programs, tmp_path_factory):
    """By program: the content after an uninterrupted run, which compiles for others."""

    @functools.cache
    def run(name):
        workdir = tmp_path_factory.mktemp("whole") / "run"
        programs[name].working_time(workdir)
        return content_of(name, workdir)

    return run


def content_of(name, workdir):
    """What must not depend on stops; and nothing else is left behind."""
    assert not scratch_files(workdir)
    if name == "pretrain":
        return pretraining_content(workdir)
    return evaluation_content(workdir)


def assert_ends_as_if_never_stopped(program, name, workdir, expected):
    code, errors = program.finish(workdir)
    assert code == 0, errors
    got = content_of(name, workdir)
    assert got.keys() == expected.keys()
    assert not [key for key in got if got[key] != expected[key]]


def interrupt(function, call):
    """Let a function be interrupted by Ctrl-C in its n-th call, when it has begun."""
    calls = iter(range(1, call + 1))

    def interrupted(*args, **kwargs):
        if next(calls, None) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return function(*args, **kwargs)

    return interrupted


def test_ctrl_c_while_fine_tuning_costs_nothing(config, tmp_path, monkeypatch):
    """In this process, at moments that a kill from outside seldom meets."""
    config.update(methods="rdc_ft", episodes=4)
    config.finetune.update(steps=1, record="")
    evaluate(config.to_dict(), tmp_path / "whole" / "run")
    workdir = tmp_path / "stopped" / "run"
    moments = [
        (exhibits, "add_after", 1),  # Between the first episodes and their record.
        (exhibit_file.np, "savez_compressed", 1),
        (results, "write_text", 2),
    ]
    for module, name, call in moments:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupt(getattr(module, name), call))
            with pytest.raises(KeyboardInterrupt):
                evaluate(config.to_dict(), workdir)
        effort.tally["stops of rdc_ft survived, in process"] += 1
    evaluate(config.to_dict(), workdir)
    assert content_of("rdc_ft", workdir) == content_of(
        "rdc_ft", tmp_path / "whole" / "run"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_stops_at_random_moments_cost_nothing(programs, whole, tmp_path, name):
    program, expected = programs[name], whole(name)
    seconds = program.working_time(tmp_path / "timed" / "run")
    rng = random.Random(f"{effort.SEED} {name}")
    rounds = hits = 0
    while hits < effort.KILLS / len(NAMES):
        workdir, before = tmp_path / f"{rounds}" / "run", hits
        for _ in range(_STOPS_A_RUN):
            delay = rng.uniform(0, seconds)
            errors = program.stopped(workdir, rng.choice(SIGNALS), delay=delay)
            if errors is None:  # It was finished before.
                break
            assert "Traceback" not in errors
            hits += 1
        assert_ends_as_if_never_stopped(program, name, workdir, expected)
        effort.tally[f"stops of {name} survived"] += hits - before
        rounds += 1
        assert rounds < effort.KILLS, "most runs end before they can be stopped"
