"""The Python examples of the guides run as they stand."""

import doctest
import importlib.util
import pathlib
import re

import numpy as np
import pytest
import tiny
from evaluation import worlds

from rdc_jax.methods import base
from rdc_jax.models import BACKBONES, load, weights

pytestmark = pytest.mark.usefixtures("compiled_quickly")

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
OPTIONAL = ("equinox", "onnx", "onnxruntime", "torch")


def sections(page):
    """Programs of a page: the Python blocks under one heading make up one."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for part in re.split(r"^## ", text, flags=re.MULTILINE):
        blocks = re.findall(r"^```python\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        if blocks:
            yield pytest.param("\n".join(blocks), id=f"{page}: {part.splitlines()[0]}")


def write_onnx(path):
    """Write a network that averages each channel."""
    import onnx
    from onnx import TensorProto, helper

    entry, leave = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3, *size])
        for name, size in (("images", (64, 64)), ("features", ()))
    )
    axes = helper.make_tensor("axes", TensorProto.INT64, [2], [2, 3])
    node = helper.make_node("ReduceMean", ["images", "axes"], ["features"], keepdims=0)
    graph = helper.make_graph([node], "mean", [entry], [leave], [axes])
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with what the examples take for granted."""
    desk = tmp_path_factory.mktemp("desk")
    photos = worlds.write_images(desk, name="all") / "all"
    for path in sorted(photos.rglob("*.png")):
        label, number = path.parent.name, int(path.stem)
        target = desk / "labelled" / label / path.name
        if number >= 2:
            target = desk / "new" / f"{label}_{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    feat_nd, labels_n = worlds.make_features(classes=4, per_class=12, spread=0.5)
    labelled = np.arange(len(labels_n)) % 12 < 2
    np.save(desk / "support.npy", feat_nd[labelled])
    np.save(
        desk / "labels.npy", np.array(["ant", "bee", "cat", "dog"])[labels_n][labelled]
    )
    np.save(desk / "query.npy", feat_nd[~labelled])
    trained = load.read_checkpoint(worlds.write_checkpoint(desk / "workdir"))
    weights.write(desk / "packaged.safetensors", *trained)
    return desk


@pytest.mark.parametrize(
    "program", [*sections("own_model.md"), *sections("predict.md")]
)
def test_example(program, desk, monkeypatch, capsys):
    needed = re.findall(r"^import (\w+)|^from (\w+)", program, re.MULTILINE)
    needed = {"".join(pair) for pair in needed}
    if "onnxruntime" in needed:
        needed.add("onnx")
    for name in sorted(needed & set(OPTIONAL)):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}, which is optional")
    if "onnx" in needed:
        write_onnx(desk / "model.onnx")
    monkeypatch.chdir(desk)
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    monkeypatch.setattr(weights, "PACKAGED", desk / "packaged.safetensors")
    found = {}
    exec(compile(program, "example", "exec"), found)
    assert "names" in found, "an example ends with class names"
    assert len(set(np.asarray(found["names"]).tolist())) > 1


@pytest.mark.parametrize("program", [*sections("retrieval.md")])
def test_example_of_retrieval(program, capsys):
    found = {}
    exec(compile(program, "example", "exec"), found)
    np.testing.assert_allclose(found["after"], found["distances"], atol=1e-6)
    assert "'mAP': 100.0" in capsys.readouterr().out


@pytest.fixture
def no_new_methods(monkeypatch):
    """Methods that an example registers are gone after it."""
    monkeypatch.setattr(base, "_METHODS", {**base._METHODS})


# The front page's is the README's, which is run with it.
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name != "index.md")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_session(path, no_new_methods):
    """What a page shows as a session with Python prints what it shows."""
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=options)
    assert failed == 0


def test_the_front_page_has_the_example_of_the_readme():
    first = re.compile(r"^```pycon\n(.*?)^```", re.MULTILINE | re.DOTALL)
    pages = (DOCS / "index.md", DOCS.parent / "README.md")
    ours, theirs = (first.search(page.read_text(encoding="utf-8")) for page in pages)
    assert ours.group(1) == theirs.group(1)
