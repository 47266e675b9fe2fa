"""The ledger keeps what was written, finds out what was not, and refuses strangers."""

import json
import logging
import os

import numpy as np
import pytest

from rdc_jax.evaluation.ledger import Ledger, Stage
from rdc_jax.runtime.errors import UserError

ONE = Stage("cub", 1, "features")
FIVE = Stage("cub", 5, "features")
HEADER = {
    "config": {"seed": 0, "chunk": 0, "data_dir": "/a", "rdc": {"k": 10}},
    "checkpoint": {"fingerprint": "ab12"},
    "data": {"cub": "cd34"},
    "versions": {"jax": "1.0"},
}
COUNTS = np.arange(12).reshape(6, 2)


@pytest.fixture
def path(tmp_path):
    """A ledger with six episodes of one stage and two of another."""
    path = tmp_path / "ledger.jsonl"
    with Ledger(path, HEADER) as ledger:
        ledger.append(ONE, COUNTS[:4])
        ledger.append(ONE, COUNTS[4:])
        ledger.append(FIVE, COUNTS[:2])
    return path


def go_on(path):
    """What an interrupted run does: add all that is not on record."""
    with Ledger(path, HEADER) as ledger:
        for stage, counts in ((ONE, COUNTS), (FIVE, COUNTS[:2])):
            if len(rest := counts[ledger.done(stage) :]):
                ledger.append(stage, rest)


def test_what_is_appended_is_there_again(path):
    with Ledger(path, HEADER) as ledger:
        assert ledger.done(ONE) == 6 and ledger.done(FIVE) == 2
        assert ledger.done(Stage("isic", 1, "features")) == 0
        np.testing.assert_array_equal(ledger.counts(ONE), COUNTS)
        np.testing.assert_array_equal(ledger.counts(FIVE), COUNTS[:2])


def test_the_header_is_kept_as_it_was_first_written(path):
    changes = {"data_dir": "/b", "chunk": 7, "baseline": "rdc"}
    moved = {**HEADER, "config": {**HEADER["config"], **changes}}
    with Ledger(path, moved) as ledger:
        assert ledger.header == {"format": 3, **HEADER}


def test_groups_of_methods_are_kept_and_may_be_added(path):
    record = {"columns": ["npc", "rdc"], "model": "ab"}
    with Ledger(path, HEADER) as ledger:
        ledger.begin("features", record)
    with Ledger(path, HEADER) as ledger:
        ledger.begin("rdc_ft", {"columns": ["rdc_ft"]})
        ledger.begin("features", record)
        with pytest.raises(UserError, match=r"groups\.features\.model='ab'.*'cd'"):
            ledger.begin("features", {**record, "model": "cd"})
        ledger.append(Stage("cub", 1, "rdc_ft"), COUNTS[:1, :1])
    with Ledger(path, {**HEADER, "config": {**HEADER["config"]}}) as ledger:
        assert [*ledger.groups] == ["features", "rdc_ft"]
        assert ledger.groups["features"] == record
        assert ledger.done(ONE) == 6 and ledger.done(Stage("cub", 1, "rdc_ft")) == 1


def test_a_ledger_is_readable_by_people(path):
    texts = [line.split(" ", 1)[1] for line in path.read_text().splitlines()]
    assert json.loads(texts[0])["config"]["rdc"] == {"k": 10}
    assert json.loads(texts[6]) == ["cub", 1, "features", 5, [10, 11]]


def test_cut_at_any_byte_it_goes_on_to_the_same_bytes(path, caplog):
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    for cut in range(header, len(whole)):
        path.write_bytes(whole[:cut])
        go_on(path)
        assert path.read_bytes() == whole
    assert "their episodes computed again" in caplog.text


def test_a_whole_ledger_goes_on_in_silence(path, caplog):
    before = path.read_bytes()
    with caplog.at_level(logging.INFO, "rdc_jax"):
        go_on(path)
    assert not caplog.text
    assert path.read_bytes() == before


@pytest.mark.parametrize("line", [1, 3, 8])
def test_from_a_damaged_line_on_all_is_computed_again(path, caplog, line):
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    lines[line] = lines[line].replace(b"cub", b"cab")
    path.write_bytes(b"".join(lines))
    go_on(path)
    assert path.read_bytes() == whole
    assert f"damaged after {line - 1} episodes" in caplog.text


def test_lines_that_were_left_out_or_moved_are_found_out(path):
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for order in ([0, 2, 3, 4], [0, 1, 3, 2], [0, 1, 1]):
        path.write_bytes(b"".join(lines[i] for i in order))
        go_on(path)
        assert path.read_bytes() == whole


def test_lines_of_another_ledger_are_found_out(path, tmp_path):
    other = tmp_path / "other.jsonl"
    with Ledger(other, {**HEADER, "data": {"cub": "ee"}}) as ledger:
        ledger.append(ONE, COUNTS + 100)
    whole = path.read_bytes()
    header = whole.splitlines(keepends=True)[0]
    path.write_bytes(header + other.read_bytes().partition(b"\n")[2])
    go_on(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": {**HEADER["config"], "seed": 1}}, r"config\.seed=0.*has 1"),
        ({"config": {**HEADER["config"], "rdc": {"k": 9}}}, r"config\.rdc\.k=10.* 9"),
        ({"checkpoint": {"fingerprint": "ff"}}, r"checkpoint\.fingerprint='ab12'"),
        ({"data": {"cub": "ee"}}, r"data\.cub='cd34'"),
        ({"data": {"cub": "cd34", "isic": "f"}}, r"data\.isic=None.*has 'f'"),
        ({"versions": {"jax": "2.0"}}, r"versions\.jax='1\.0'"),
    ],
)
def test_another_run_is_refused_by_the_field_that_differs(path, change, message):
    before = path.read_bytes()
    with pytest.raises(UserError, match=message):
        Ledger(path, {**HEADER, **change})
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"dataset,shot\ncub,1\n", b"00000000 {}\n"])
def test_a_file_that_is_no_ledger_is_left_alone(tmp_path, content):
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a ledger"):
        Ledger(path, HEADER)
    assert path.read_bytes() == content


def test_a_full_disk_is_told_and_mended(path, monkeypatch):
    whole = path.read_bytes()
    with Ledger(path, HEADER) as ledger:
        monkeypatch.setattr(os, "fsync", _no_space)
        with pytest.raises(UserError, match="No space left on device; make room"):
            ledger.append(ONE, COUNTS)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[: len(whole) + 7])  # what got onto the disk
    go_on(path)
    assert path.read_bytes() == whole


def _no_space(_):
    raise OSError(28, "No space left on device")
