"""What a person is told while a run goes on."""

import logging

import numpy as np
import pytest

from rdc_jax.evaluation import progress
from rdc_jax.evaluation.ledger import Stage

STAGE = Stage("cub", 1, "features")
ACCURACIES = np.array([40.0, 40.0, 60.0, 60.0])


def tell(**options):
    with progress.Progress(1000, {"features": 800}, **options) as shown:
        shown.add(STAGE, 100, 2.0, ACCURACIES, "rdc")


def test_a_log_gets_lines_now_and_then(monkeypatch, caplog):
    with caplog.at_level(logging.INFO, "rdc_jax"):
        tell()
        assert not caplog.text
        monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
        tell()
    assert caplog.messages == [
        "task 300 of 1000: cub 1-shot: rdc 50.00 ± 18.37, 50 tasks/s, 14s left"
    ]


def test_other_processes_are_silent(monkeypatch, caplog, capsys):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    with caplog.at_level(logging.INFO, "rdc_jax"):
        tell(shown=False)
    assert not caplog.text and not capsys.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    tell()
    assert "300/1000" in capsys.readouterr().err


@pytest.mark.parametrize("episodes", [1, 100])
def test_time_on_anything_but_episodes_does_not_count(monkeypatch, caplog, episodes):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    left = {"features": 200}
    with (
        caplog.at_level(logging.INFO, "rdc_jax"),
        progress.Progress(200, left) as shown,
    ):
        shown.add(STAGE, episodes, 0.5 * episodes, ACCURACIES, "rdc")
    assert "2 tasks/s" in caplog.text


def test_slow_methods_have_a_pace_of_their_own(monkeypatch, caplog):
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", 0.0)
    left = {"features": 100, "rdc_ft": 100}
    with (
        caplog.at_level(logging.INFO, "rdc_jax"),
        progress.Progress(200, left) as shown,
    ):
        shown.add(STAGE, 50, 5.0, ACCURACIES, "rdc")
        shown.add(STAGE, 50, 5.0, ACCURACIES, "rdc")
        shown.add(STAGE._replace(group="rdc_ft"), 1, 20.0, ACCURACIES, "rdc_ft")
    assert "10 tasks/s, 5s + rdc_ft left" in caplog.messages[0]
    assert "20.0 s a task, 33m00s left" in caplog.messages[-1]
