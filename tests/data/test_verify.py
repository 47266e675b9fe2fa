"""The check of a data set: every fault is one line, and nothing stops it half-way."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from data.fakes import FakeSource
from data.pictures import encode, make_folder, pixels, write
from PIL import Image

from rdc_jax.data import __main__ as program
from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.folder import open_folder
from rdc_jax.data.open import open_source
from rdc_jax.data.verify import render, verify

_NAMES = ["ant", "bee", "cat", "größe 中文", "with  spaces"]


@pytest.fixture
def good(tmp_path):
    return make_folder(tmp_path / "good", _NAMES, images=4)


@pytest.fixture
def broken(good, tmp_path):
    """A copy of a good folder with one fault of every kind."""
    root = tmp_path / "broken"
    shutil.copytree(good, root)
    jpeg = encode(pixels(50, (64, 64)), "JPEG")
    (root / "ant" / "cut.jpg").write_bytes(jpeg[:-300])
    (root / "ant" / "text.jpg").write_text("not an image\n")
    (root / "ant" / "zero.png").write_bytes(b"")
    (root / "empty class").mkdir()
    shutil.copy(root / "bee" / "000.png", root / "bee" / "copy.png")
    (root / "cat" / "stolen.bmp").write_bytes(encode(pixels(0), "BMP"))
    (root / "loop").symlink_to(root)
    outside = write(tmp_path / "outside.png", seed=70)
    (root / "cat" / "escape.png").symlink_to(outside)
    # All of these are fine:
    rgba = np.dstack([pixels(60), pixels(61)[..., :1]])
    odd = root / "with  spaces"
    (odd / "grey é.png").write_bytes(encode(pixels(62)[..., 0]))
    (odd / "rgba.png").write_bytes(encode(rgba))
    (odd / "ink.jpg").write_bytes(
        encode(Image.new("CMYK", (8, 8), (0, 9, 9, 0)), "JPEG")
    )
    deep = Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000)
    (odd / "deep.png").write_bytes(encode(deep))
    (odd / "notes.txt").write_text("hello")
    return root


def _verify(root, **options):
    return verify(open_folder(root, name=root.name), shot=1, query=3, **options)


def _run(*arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main([str(argument) for argument in arguments])
    return caught.value.code, capsys.readouterr().out


def test_a_good_folder_has_no_findings(good):
    report = _verify(good)
    assert report.findings == ()
    assert report.images == 20
    assert [row.name for row in report.classes] == sorted(_NAMES)
    assert all(row.readable == row.images == 4 for row in report.classes)


def test_every_fault_of_a_broken_copy_is_one_line(broken):
    report = _verify(broken)
    lines = sorted(f"{note.kind}: {note.text}" for note in report.findings)
    known = "not an image of a known format (JPEG, PNG, GIF, BMP, TIFF, WEBP, PPM)"
    assert lines == sorted(
        [
            f"truncated: {broken}/ant/cut.jpg: truncated",
            f"unreadable: {broken}/ant/text.jpg: {known}",
            f"unreadable: {broken}/ant/zero.png: empty file",
            "empty class: class 'empty class' has no images",
            f"duplicate: {broken}/bee/copy.png: same pixels as {broken}/bee/000.png",
            f"duplicate: {broken}/cat/stolen.bmp: same pixels as {broken}/ant/000.png, "
            "in another class",
            f"skipped: {broken}/loop: link loops back to a folder above it",
            f"skipped: {broken}/cat/escape.png: link leads outside {broken}",
        ]
    )
    assert [note.text for note in report.remarks] == ["not images: 1 .txt"]
    ant = next(row for row in report.classes if row.name == "ant")
    assert (ant.images, ant.readable) == (7, 4)
    odd = next(row for row in report.classes if row.name == "with  spaces")
    assert odd.readable == 8
    assert report.largest == (12, 10)
    assert report.smallest == (8, 8)


def test_small_classes_are_measured_by_their_readable_images(good):
    (good / "ant" / "000.png").write_bytes(b"x")
    small = [note for note in _verify(good).findings if note.kind == "small class"]
    assert [note.text for note in small] == [
        "ant: 3 readable images, a task needs 4",
        "4 classes are large enough, a task needs 5",
    ]


def test_any_source_can_be_verified():
    report = verify(FakeSource(length=100, broken=(3, 7)), shot=1, query=1)
    assert [finding.kind for finding in report.findings] == ["truncated", "truncated"]


def test_progress_sees_every_image(good):
    seen = []

    _verify(good, tick=lambda: seen.append(1))
    assert len(seen) == 20


def test_counts_are_held_against_the_complete_data_set(tmp_path):
    make_folder(tmp_path / "eurosat", [f"class {n}" for n in range(10)], images=20)
    report = verify(open_source("eurosat", tmp_path))
    assert [f"{note.kind}: {note.text}" for note in report.findings] == [
        "count: 200 images, the complete data set has 27,000; fine for trials, not "
        "beside published results"
    ]
    assert "class 7      20           0           0\n" in render(report)
    by_path = verify(open_source(str(tmp_path / "eurosat")))
    assert by_path.findings == ()


def test_the_program_prints_a_table_and_an_exit_code(good, broken, capsys):
    code, text = _run("verify", good, "--shot", 1, "--query", 3, capsys=capsys)
    assert code == 0
    assert (
        text.splitlines()[0] == "good, all: 5 classes, 20 images of 12x10 to 12x10 px"
    )
    assert "größe 中文         4           0           0\n" in text  # aligned
    assert text.endswith("good, all: no findings\n\n")
    code, text = _run("verify", broken, "--shot", 1, "--query", 3, capsys=capsys)
    assert code == 1
    assert f"truncated: {broken}/ant/cut.jpg: truncated\n" in text
    assert "1 truncated, 2 unreadable, 2 duplicate" in text


def test_json_holds_everything(broken, capsys):
    code, text = _run("verify", broken, "--json", "--query", 3, capsys=capsys)
    content = json.loads(text)
    assert code == 1
    assert content["ok"] is False
    (part,) = content["parts"]
    assert part["images"] == 29  # 20 good ones, 5 faulty files, 4 odd ones
    assert {"kind", "text"} == set(part["findings"][0])
    assert part["classes"][0]["name"] == "ant"


def test_every_part_of_a_split_folder_is_checked(tmp_path, capsys):
    make_folder(tmp_path / "set" / "train", _NAMES, images=4)
    make_folder(tmp_path / "set" / "val", ["x"], images=1)
    options = ["--data_dir", tmp_path, "--shot", 1, "--query", 3]
    code, text = _run("verify", "set", *options, capsys=capsys)
    assert code == 1
    assert "set, train: no findings" in text
    assert "set, val: 2 small class" in text
    code, text = _run("verify", "set", "--split", "train", *options, capsys=capsys)
    assert code == 0
    assert "set, val" not in text


def test_a_partial_copy_of_a_known_data_set_is_reported_not_refused(tmp_path, capsys):
    """A run would stop with an error; the check says what there is."""
    make_folder(tmp_path / "cub", [f"{n:03}.Bird" for n in range(1, 8)], images=1)
    code, text = _run("verify", "cub", "--data_dir", tmp_path, capsys=capsys)
    assert code == 1
    assert "count: 7 classes, expected 200: partial download or other data?" in text


def test_long_reports_are_cut_unless_all_is_asked_for(tmp_path, capsys):
    make_folder(tmp_path / "many", [f"c{n:03}" for n in range(70)], images=1)
    _, text = _run("verify", tmp_path / "many", capsys=capsys)
    assert "(70 more classes; --all shows them)" in text
    assert "small class: 51 more (--all shows them)" in text
    _, text = _run("verify", tmp_path / "many", "--all", capsys=capsys)
    assert text.count("a task needs 20") == 70
    assert "more" not in text


def test_list_shows_what_is_known_and_what_is_here(tmp_path, capsys):
    make_folder(tmp_path / "EuroSAT", ["Forest"])
    make_folder(tmp_path / "mine", ["x"])
    program.main(["list", "--data_dir", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["name", "here", "classes"]
    rows = [line.split() for line in lines if " yes " in line or " no " in line]
    assert [row[0] for row in rows] == list(DATASETS)
    assert [row[0] for row in rows if row[1] == "yes"] == ["eurosat"]
    # A path may be too long for one line.
    assert f"other folders in {tmp_path}: mine" in " ".join(lines)
    assert sum(line.startswith("  synthetic:") for line in lines) == 5


def _process(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "rdc_jax.data", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_command_line_from_outside(good, tmp_path):
    done = _process("verify", good, "--query", 3, PYTHONIOENCODING="ascii")
    assert done.returncode == 1  # four images are too few for five shots
    assert "gr\\xf6\\xdfe" in done.stdout  # a name beyond the terminal's alphabet
    assert done.stderr == ""
    done = _process("verify", "nothing", "--data_dir", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown data set 'nothing'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5"])
def test_a_wrong_number_is_named(good, value, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main(["verify", str(good), f"--shot={value}"])
    assert caught.value.code == 2
    assert f"{value!r} is not a positive number" in capsys.readouterr().err


def test_help_tells_the_exit_codes(capsys):
    code, text = _run("verify", "--help", capsys=capsys)
    assert code == 0
    assert "exit code: 0 no findings, 1 findings, 2 the check could not be made" in text
