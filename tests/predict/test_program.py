"""``python -m rdc_jax.predict`` as people use it."""

import csv
import html.parser
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from data import pictures as drawn

from rdc_jax.models import weights
from rdc_jax.models.load import read_checkpoint
from rdc_jax.predict.__main__ import main


@pytest.fixture
def run(folders, checkpoint, capsys):
    """Run the program; gives its exit code, stdout and stderr."""

    def run(
        *flags, support=folders.support, query=folders.query, checkpoint=checkpoint
    ):
        argv = [f"--support={support}", f"--query={query}", *flags]
        if checkpoint is not None:
            argv.append(f"--checkpoint={checkpoint}")
        with pytest.raises(SystemExit) as stopped:
            main(argv)
        return stopped.value.code, *capsys.readouterr()

    return run


def test_a_table_names_every_picture(run, folders):
    code, out, err = run()
    assert code == 0
    assert out.splitlines()[0].split() == ["image", "class", "probability"]
    assert [line.split()[0] for line in out.splitlines()[1:]] == sorted(folders.truth)
    unsure, changed = out.count("unsure"), out.count("alone: ")
    said = rf"35 classified by RDC\+; {unsure} unsure \(below 50%: [^;]*\)"
    assert unsure and changed and "accuracy" not in err
    assert re.search(rf"^{said}; {changed} would be of another class", err, re.M)
    assert "\033" not in out


def test_json_holds_all_there_is_to_know(run, folders):
    _, out, _ = run("--format=json", "--reject_below=0.9")
    found = json.loads(out)
    assert found["classes"] == [f"class{i}" for i in range(5)]
    assert found["supports"] == 10 and found["method"] == "RDC+"
    assert found["backbone"] == "resnet10 at 16 px"
    for row in found["predictions"]:
        best = max(row["probabilities"], key=row["probabilities"].get)
        assert row["class"] == best
        assert row["rejected"] == (row["probabilities"][best] < 0.9)
        assert len(row["nearest_supports"]) == 3


def test_csv_has_a_line_a_picture_unreadable_ones_too(run, folders):
    (folders.query / "zzz.png").write_bytes(b"no picture")
    code, out, err = run("--format=csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 1
    assert len(rows) == 36
    assert rows[-1]["image"] == "zzz.png" and rows[-1]["class"] == ""
    assert rows[-1]["problem"].startswith("unreadable: not an image")
    assert re.search(r"^unreadable: .*zzz.png: not an image", err, re.MULTILINE)


def test_the_format_follows_the_file(run, tmp_path):
    for name in ("found.json", "found.csv", "found.txt"):
        code, out, err = run(f"--out={tmp_path / name}")
        assert (code, out) == (0, "") and f"answers: {tmp_path / name}" in err
    assert json.loads((tmp_path / "found.json").read_text())["predictions"]
    assert (tmp_path / "found.csv").read_text().startswith("image,class,probability")
    assert (tmp_path / "found.txt").read_text().startswith("image ")
    assert not list(tmp_path.glob(".*"))


def test_quiet_says_nothing_and_verbose_more(run):
    assert run("--quiet")[2] == ""
    assert "10 labelled pictures of 5 classes, 35 to classify" in run("--verbose")[2]


def test_few_pictures_are_answered_with_a_note(run, folders):
    picture = next(folders.query.iterdir())
    code, out, err = run(query=picture)
    assert code == 0 and out.splitlines()[1].startswith(picture.name)
    assert "so the nearest class mean was used" in err
    assert "35 classified by nearest class mean" in run("--transductive=never")[2]


def test_an_image_size_that_nobody_noted_is_told(run, tmp_path, checkpoint):
    variables, _ = read_checkpoint(checkpoint)
    path = tmp_path / "silent.safetensors"
    weights.write(path, variables, {"arch": "resnet10"})
    assert "224 pixels are assumed" in run(checkpoint=path)[2]
    assert "assumed" not in run("--image_size=16", checkpoint=path)[2]


def test_unreadable_supports_are_left_out(run, folders):
    (folders.support / "class0" / "000.png").write_bytes(b"")
    (folders.support / "extra").mkdir()
    (folders.support / "extra" / "x.png").write_bytes(b"")
    code, out, err = run("--format=json")
    assert code == 1
    assert "class extra has no readable picture and is left out" in err
    assert json.loads(out)["classes"] == [f"class{i}" for i in range(5)]
    assert json.loads(out)["supports"] == 10


class Page(html.parser.HTMLParser):
    """What a page shows and refers to."""

    def __init__(self, text):
        super().__init__()
        self.images, self.symbols, self.uses, self.percents = [], set(), set(), []
        self.links = re.findall(r"(?:src|href)=\"(?!data:|#)[^\"]*\"", text)
        self.percents = re.findall(r"<p>(?:&gt;)?(\d+)% <span", text)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img":
            self.images.append(attributes["alt"])
        elif tag == "symbol":
            self.symbols.add(attributes["id"])
        elif tag == "use":
            self.uses.add(attributes["href"].removeprefix("#"))


def test_the_page_is_whole_in_itself(run, folders, tmp_path):
    name = "<b>&$x.png"
    drawn.write(folders.query / name)
    run(f"--html={tmp_path / 'page.html'}")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.links == [] and "<script" not in text and "<b>" not in text
    assert sorted(page.images) == sorted(
        f"The picture {image}" for image in [*folders.truth, name]
    )
    assert page.uses and page.uses <= page.symbols
    assert [int(p) for p in page.percents] == sorted(map(int, page.percents))[::-1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--reject_below=2"], "reject_below=2.0: use a number from 0 to 1"),
        (["--temperature=0"], "temperature=0.0: use a number above 0"),
        (["--format=xml"], "invalid choice: 'xml'"),
        (["--out=/nowhere/x.csv"], "its folder is not there"),
        (["--html=/"], "cannot write /: it is a folder"),
        (["--image_size=0"], "image_size=0: use a number above 0"),
        (["--colour"], "unrecognized arguments: --colour"),
        (["--transduction=auto"], "did you mean --transductive?"),
    ],
)
def test_mistakes_are_told_in_one_line(run, flags, message):
    code, out, err = run(*flags)
    assert code == 2 and out == ""
    assert err.startswith("error: ") and err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--suport=x", "--query=y"], "--suport=x; did you mean --support?"),
        (["--query=y"], "--support is missing"),
        (["--support=x"], "--query is missing"),
    ],
)
def test_a_misspelt_flag_is_named_before_a_missing_one(argv, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    err = capsys.readouterr().err
    assert stopped.value.code == 2 and err.count("\n") == 1 and message in err


def test_accuracy_is_told_if_all_pictures_are_in_folders_named_like_classes(
    run, folders, tmp_path
):
    for name, class_name in folders.truth.items():
        target = folders.query / "trip" / class_name / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (folders.query / name).rename(target)
    out, err = run("--format=json", f"--html={tmp_path / 'page.html'}")[1:]
    content = json.loads(out)
    right = [
        row["class"] == row["image"].split("/")[1] for row in content["predictions"]
    ]
    assert content["accuracy"] == pytest.approx(100 * sum(right) / 35, abs=0.01)
    assert f"({sum(right)} of 35)" in err
    assert f"({sum(right)} of 35)" in (tmp_path / "page.html").read_text()
    drawn.write(folders.query / "elsewhere.png")
    out, err = run("--format=json")[1:]
    assert "accuracy" not in json.loads(out) and "accuracy" not in err


def test_missing_folders_are_told_in_one_line(run, tmp_path):
    for paths in ({"support": tmp_path / "no"}, {"query": tmp_path / "no"}):
        code, _, err = run(**paths)
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1


def test_weights_come_with_the_package_or_their_lack_is_told(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(weights, "PACKAGED", tmp_path / "none.safetensors")
    code, _, err = run(checkpoint=None)
    assert code == 2 and err.count("\n") == 1
    assert "has no none.safetensors: give a checkpoint" in err


def test_the_program_runs_on_its_own_without_sklearn(folders, tmp_path):
    blocked = tmp_path / "sklearn.py"
    blocked.write_text("raise ImportError('not installed here')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    root = pathlib.Path(__file__).parents[2]
    command = [sys.executable, "-m", "rdc_jax.predict", "--support=x", "--query=y"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=root, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.endswith(
        "/x is not a folder; expected <folder>/<class>/<image> "
        "or <folder>/{train,val,test}/<class>/...\n"
    )
