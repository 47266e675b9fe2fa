"""A log of tasks keeps what was written, and finds out what was not."""

import os

import numpy as np
import pytest

from rdc_jax.evaluation.task_log import TaskLog
from rdc_jax.runtime.errors import UserError

ROWS = np.arange(7 * 2 * 3).reshape(7, 2, 3)
RUN = {"seed": 0}


def open_log(path, identity=RUN):
    return TaskLog(path, identity, (2, 3), np.int16)


@pytest.fixture
def path(tmp_path):
    """A log of seven tasks, in a folder that it made."""
    path = tmp_path / "answers" / "cub"
    log = open_log(path)
    log.append(0, ROWS[:4])
    log.append(4, ROWS[4:])
    return path


def go_on(path):
    log = open_log(path)
    log.append(log.done, ROWS[log.done :])
    np.testing.assert_array_equal(log.read(7), ROWS)


def test_what_is_appended_is_there_again(path):
    log = open_log(path)
    assert log.done == 7
    assert log.read(5).dtype == np.int16
    np.testing.assert_array_equal(log.read(5), ROWS[:5])


def test_a_file_that_is_not_there_has_no_tasks(tmp_path):
    log = open_log(tmp_path / "none")
    assert log.done == 0 and log.read(3).shape == (0, 2, 3)
    assert not (tmp_path / "none").exists()


def test_tasks_on_record_are_passed_over(path):
    before = path.read_bytes()
    open_log(path).append(2, ROWS[2:6])
    assert path.read_bytes() == before


def test_cut_at_any_byte_it_goes_on_to_the_same_bytes(path):
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        go_on(path)
        assert path.read_bytes() == whole


def test_from_a_damaged_record_on_all_is_written_again(path):
    whole = bytearray(path.read_bytes())
    size = len(whole) // 7
    for number in (0, 3, 6):
        damaged = whole.copy()
        damaged[number * size + size - 1] ^= 1
        path.write_bytes(damaged)
        assert open_log(path).done == number
        go_on(path)
        assert path.read_bytes() == whole


def test_records_that_were_moved_are_found_out(path):
    whole = path.read_bytes()
    size = len(whole) // 7
    path.write_bytes(whole[size:])
    assert open_log(path).done == 0


def test_records_of_another_run_are_none(path):
    log = open_log(path, {"seed": 1})
    assert log.done == 0
    log.append(0, ROWS[:1] + 1)
    assert path.stat().st_size * 7 == 7 * (4 + 12)
    np.testing.assert_array_equal(open_log(path, {"seed": 1}).read(9), ROWS[:1] + 1)


def test_a_full_disk_is_told_and_mended(path, monkeypatch):
    def no_space(_):
        raise OSError(28, "No space left on device")

    whole = path.read_bytes()
    path.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", no_space)
        with pytest.raises(UserError, match="No space left on device; make room"):
            open_log(path).append(0, ROWS)
    go_on(path)
    assert path.read_bytes() == whole
