"""The notebooks run from top to bottom."""

import pathlib

import compiling
import pytest

NOTEBOOKS = sorted(
    pathlib.Path(__file__).resolve().parents[2].glob("notebooks/*.ipynb")
)


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} == {"arrays", "gpu", "own_pictures"}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Jupyter's own machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="needs the extra [dev]")
    nbformat = pytest.importorskip("nbformat", reason="needs the extra [dev]")
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), (
        "stored with outputs"
    )
    for name, value in compiling.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        iopub_timeout=60,  # Outputs may come late on a busy machine.
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            print(output.get("text") or output.get("data", {}).get("text/plain"))
