"""Stored arrays are whole and current, or built again."""

import errno
import io
import json
import logging
import os
import time

import numpy as np
import pytest

from rdc_jax.data import store
from rdc_jax.runtime.errors import UserError

_ROWS = np.random.default_rng(0).integers(0, 256, (40, 6, 3), np.uint8)
_FIELDS = {"weights": "ab12", "size": 84}


class Builder:
    """Gives the rows in uneven pieces and counts how often it is asked to."""

    def __init__(self, rows=_ROWS):
        self.rows, self.calls = rows, 0

    def __call__(self, notes):
        self.calls += 1
        notes["note"] = [1, 2]
        return np.split(self.rows, [1, 7, 8])


def _open(folder, build, fields=_FIELDS):
    return store.cached_array(folder / "name", fields=fields, build=build)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(store, "_BLOCK_BYTES", 100)  # more than one block


@pytest.fixture
def folder(tmp_path, small_blocks):
    """A folder with an intact array."""
    _open(tmp_path, Builder())
    return tmp_path


def _header(folder):
    return json.loads((folder / "name.json").read_text())


def _visible(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_array_is_built_once_and_then_mapped(tmp_path):
    build = Builder()
    for _ in range(3):
        stored = _open(tmp_path, build)
        np.testing.assert_array_equal(stored.array, _ROWS)
        assert isinstance(stored.array, np.memmap)
        assert not stored.array.flags.writeable
        assert stored.notes == {"note": [1, 2]}
    assert build.calls == 1


def test_any_program_can_open_the_array(folder):
    np.testing.assert_array_equal(np.load(folder / "name.npy"), _ROWS)
    assert _FIELDS.items() <= _header(folder)["fields"].items()


@pytest.mark.parametrize("dtype", ["<f4", "<i8", "?"])
def test_dtypes_survive(tmp_path, dtype):
    rows = _ROWS.astype(dtype)
    stored = _open(tmp_path, Builder(rows))
    assert stored.array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(stored.array, rows)


def _truncate(folder):
    path = folder / "name.npy"
    os.truncate(path, path.stat().st_size - 1)


def _extend(folder):
    with (folder / "name.npy").open("ab") as file:
        file.write(b"\0")


def _flip_first(folder):
    _flip(folder / "name.npy", -_ROWS.size)


def _flip_last(folder):
    _flip(folder / "name.npy", -1)


def _flip_shape(folder):
    content = (folder / "name.npy").read_bytes()
    (folder / "name.npy").write_bytes(content.replace(b"(40,", b"(39,"))


def _flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def _edit_note(folder):
    _edit_header(folder, "notes", {"note": []})


def _edit_checksum(folder):
    _edit_header(folder, "crc32", [0] * 8)


def _edit_header(folder, name, value):
    header = _header(folder)
    assert header[name] != value
    header[name] = value
    (folder / "name.json").write_text(json.dumps(header))


def _cut_header(folder):
    os.truncate(folder / "name.json", 50)


def _foreign_header(folder):
    (folder / "name.json").write_text("[1, 2]")


def _empty_array(folder):
    os.truncate(folder / "name.npy", 0)


_DAMAGES = [
    _truncate,
    _extend,
    _flip_first,
    _flip_last,
    _flip_shape,
    _edit_note,
    _edit_checksum,
    _cut_header,
    _foreign_header,
    _empty_array,
]


@pytest.mark.parametrize("damage", _DAMAGES)
def test_damage_is_noticed_mended_and_logged(folder, damage, caplog):
    damage(folder)
    build = Builder()
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(_open(folder, build).array, _ROWS)
    assert build.calls == 1
    (message,) = caplog.messages
    assert "damaged" in message
    _open(folder, build)
    assert build.calls == 1


@pytest.mark.parametrize("name", ["name.npy", "name.json"])
def test_a_missing_file_is_built_again(folder, name):
    (folder / name).unlink()
    build = Builder()
    np.testing.assert_array_equal(_open(folder, build).array, _ROWS)
    assert build.calls == 1


@pytest.mark.parametrize(
    "fields",
    [{"weights": "cd34", "size": 84}, {"weights": "ab12"}, {**_FIELDS, "dtype": "f2"}],
)
def test_other_fields_are_never_used(folder, fields, caplog):
    build = Builder(_ROWS[::-1])
    with caplog.at_level(logging.WARNING):
        stored = _open(folder, build, fields)
    np.testing.assert_array_equal(stored.array, _ROWS[::-1])
    assert "made from another" in caplog.text


def test_a_mapped_array_outlives_its_replacement(folder):
    before = _open(folder, Builder()).array
    _open(folder, Builder(_ROWS[::-1]), {"weights": "cd34"})
    np.testing.assert_array_equal(before, _ROWS)


def test_a_failing_builder_leaves_nothing_behind(tmp_path):
    def build(notes):
        yield _ROWS
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        _open(tmp_path, build)
    assert _visible(tmp_path) == [".name.lock"]


def test_a_failing_rebuild_keeps_the_old_array(folder):
    def build(notes):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _open(folder, build, {"weights": "cd34"})
    build = Builder()
    _open(folder, build)
    assert build.calls == 0


@pytest.mark.parametrize(
    "second", [_ROWS[:, :2], _ROWS.astype(np.int32)], ids=["shape", "dtype"]
)
def test_rows_must_match(tmp_path, second):
    with pytest.raises(ValueError, match="does not continue"):
        _open(tmp_path, lambda notes: [_ROWS, second])


def test_an_intact_array_needs_no_write_access(folder):
    (folder / ".name.lock").unlink()
    _open(folder, Builder())
    assert _visible(folder) == ["name.json", "name.npy"]


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"cannot write .*name\.npy: .*; make room"):
        _open(tmp_path / "file" / "cache", Builder())


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(tmp_path, monkeypatch):
    class FullDisk(io.FileIO):
        def write(self, data):
            if self.tell() > 500:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data[:200])  # short writes, as the system may

    monkeypatch.setattr(
        "pathlib.Path.open",
        lambda path, mode: io.BufferedWriter(FullDisk(path, mode), buffer_size=100),
    )
    with pytest.raises(UserError, match="No space left on device") as caught:
        _open(tmp_path, Builder())
    assert "\n" not in str(caught.value)
    monkeypatch.undo()
    assert _visible(tmp_path) == [".name.lock"]


def test_verification_is_quick(tmp_path):
    """A gigabyte in two seconds or so; here a sixteenth of it, with some slack."""
    path = tmp_path / "large"
    path.write_bytes(np.random.default_rng(0).bytes(2**26))
    start = time.process_time()
    assert len(store._crc32(path)) == 4
    assert time.process_time() - start < 0.4
    path.unlink()
