"""Image folders: layouts, order, odd names, links, and what is reported."""

import os

import pytest
from data.pictures import make_folder, write

from rdc_jax.data.folder import open_folder, split_folders
from rdc_jax.runtime.errors import UserError


def _notes(source):
    return [f"{note.kind}: {note.text}" for note in source.notes]


def test_order_is_sorted_whatever_the_file_system_says(tmp_path, monkeypatch):
    make_folder(tmp_path, ["b", "a", "c"], images=4)
    first = open_folder(tmp_path, name="x").ids
    scandir = os.scandir

    class Reversed:
        def __init__(self, path):
            with scandir(path) as entries:
                self.entries = sorted(entries, key=lambda e: e.name, reverse=True)

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    assert open_folder(tmp_path, name="x").ids == first
    assert list(first) == sorted(first)


def test_odd_names_are_fine(tmp_path):
    names = ["Größe μ 中文", "a class with spaces", "quote's & 100%", "émoji 🐜"]
    make_folder(tmp_path / "köln data", names)
    source = open_folder(tmp_path / "köln data", name="x")
    assert sorted(source.class_names) == sorted(names)
    assert all(source.image(i).shape == (12, 10, 3) for i in range(len(source)))
    assert source.fingerprint()


def test_a_name_that_is_no_utf8_is_read_and_printable(tmp_path):
    make_folder(tmp_path, ["a"])
    odd = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    try:
        os.rename(os.path.join(os.fsencode(tmp_path), b"a"), odd)
    except OSError:
        pytest.skip("the file system refuses such names")
    source = open_folder(tmp_path, name="x")
    assert source.image(0).shape == (12, 10, 3)
    source.locate(0).encode("utf-8")
    source.class_names[0].encode("utf-8")
    assert source.fingerprint()


def test_extensions_are_matched_in_any_case(tmp_path):
    for number, name in enumerate(["a.JPG", "b.jpeg", "c.Png", "d.txt", "e"]):
        write(tmp_path / "ant" / name, seed=number)
    source = open_folder(tmp_path, name="x")
    assert [os.path.basename(path) for path in source.ids] == [
        "a.JPG",
        "b.jpeg",
        "c.Png",
    ]
    assert "ignored: not images: 1 .txt, 1 bare" in _notes(source)


def test_hidden_and_loose_files_are_reported(tmp_path):
    make_folder(tmp_path, ["ant"])
    write(tmp_path / "loose.jpg")
    write(tmp_path / "lost.jpg")
    (tmp_path / "ant" / ".DS_Store").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / "__MACOSX").mkdir()
    notes = _notes(open_folder(tmp_path, name="x"))
    loose = f"{tmp_path}/loose.jpg: beside the class folders, like 1 more"
    assert f"skipped: {loose}" in notes
    assert "ignored: not images: 3 hidden" in notes


def test_empty_classes_and_nested_folders_are_reported(tmp_path):
    make_folder(tmp_path, ["ant"])
    (tmp_path / "bee").mkdir()
    make_folder(tmp_path / "ant", ["deeper"])
    source = open_folder(tmp_path, name="x")
    assert source.class_names == ("ant",)
    assert len(source) == 2
    assert "empty class: class 'bee' has no images" in _notes(source)
    nested = tmp_path / "ant" / "deeper"
    assert f"skipped: {nested}: a folder inside a class is not read" in _notes(source)


def test_pipes_are_not_waited_for(tmp_path):
    make_folder(tmp_path, ["ant"])
    os.mkfifo(tmp_path / "ant" / "pipe.png")
    source = open_folder(tmp_path, name="x")
    assert len(source) == 2
    pipe = f"{tmp_path}/ant/pipe.png: a pipe, socket or device is not read"
    assert f"skipped: {pipe}" in _notes(source)


def test_links_that_loop_escape_or_dangle_are_skipped(tmp_path):
    root = make_folder(tmp_path / "root", ["ant", "bee"])
    outside = make_folder(tmp_path / "outside", ["secret"])
    (root / "loop").symlink_to(root)
    (root / "ant" / "up").symlink_to(root / "ant")
    (root / "away").symlink_to(outside / "secret")
    (root / "bee" / "away.png").symlink_to(outside / "secret" / "000.png")
    (root / "bee" / "relative.png").symlink_to("../../outside/secret/001.png")
    (root / "bee" / "gone.png").symlink_to(root / "nowhere.png")
    (root / "circle").symlink_to(root / "circle")
    source = open_folder(root, name="x")
    assert source.class_names == ("ant", "bee")
    assert len(source) == 4
    notes = _notes(source)
    assert f"skipped: {root}/loop: link loops back to a folder above it" in notes
    assert f"skipped: {root}/ant/up: link loops back to a folder above it" in notes
    assert f"skipped: {root}/away: link leads outside {root}" in notes
    assert f"skipped: {root}/bee/away.png: link leads outside {root}" in notes
    assert f"skipped: {root}/bee/relative.png: link leads outside {root}" in notes
    assert f"skipped: {root}/bee/gone.png: broken or circular link" in notes
    assert f"skipped: {root}/circle: broken or circular link" in notes
    assert len(notes) == 7


def test_links_inside_the_folder_are_followed(tmp_path):
    root = make_folder(tmp_path / "root", ["ant"])
    (root / "alias").symlink_to("ant")
    (root / "ant" / "twin.png").symlink_to("000.png")
    source = open_folder(root, name="x")
    assert source.class_names == ("alias", "ant")
    assert len(source) == 6
    assert not source.notes


def test_a_link_to_the_whole_data_set_is_the_data_set(tmp_path):
    make_folder(tmp_path / "disk", ["ant", "bee"])
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    source = open_folder(tmp_path / "link", name="x")
    assert len(source) == 4
    assert not source.notes


def test_split_folders_are_told_from_classes(tmp_path):
    make_folder(tmp_path / "split" / "train", ["ant"])
    make_folder(tmp_path / "split" / "validation", ["bee"])
    make_folder(tmp_path / "vehicles", ["car", "train", "tram"])
    make_folder(tmp_path / "lineage" / "novel", ["ant"])
    assert list(split_folders(tmp_path / "split")) == ["train", "val"]
    assert split_folders(tmp_path / "vehicles") == {}
    assert list(split_folders(tmp_path / "lineage")) == ["test"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: None, "is not a folder"),
        (lambda root: root.mkdir(), "no images in the class folders"),
        (lambda root: write(root / "a.jpg"), "holds images but no class folders"),
        (lambda root: (root / "ant").mkdir(parents=True), "class 'ant' has no images"),
    ],
)
def test_nothing_to_open_says_what_was_expected(tmp_path, make, message):
    make(tmp_path / "root")
    with pytest.raises(UserError, match=message) as caught:
        open_folder(tmp_path / "root", name="x")
    assert "<folder>/<class>/<image>" in str(caught.value)
