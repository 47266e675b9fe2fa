"""Nothing is fetched, nothing is sent, and what is published names no private place."""

import json
import subprocess
import sys

import pytest
from torture.programs import ROOT

# Tells of every connection and name lookup, and of whatever is run, before it happens.
_WATCH = """
import sys
EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "urllib.Request")

def watch(event, args):
    if event in EVENTS and not str(args[-1]).startswith("/"):
        print("NETWORK", event, args, file=sys.stderr, flush=True)

sys.addaudithook(watch)
"""


def test_the_watch_sees_a_connection():
    code = _WATCH + "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)"
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "NETWORK socket.connect" in got.stderr


def test_import_opens_no_connection():
    code = _WATCH + "import rdc_jax, rdc_jax.data, rdc_jax.models, rdc_jax.predict"
    got = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert got.returncode == 0 and "NETWORK" not in got.stderr, got.stderr


@pytest.fixture(scope="module")
def evaluated(programs, tmp_path_factory):
    """The work directory and the messages of a run under watch."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "sitecustomize.py").write_text(_WATCH)
    program = programs["rdc"].having({"config.shots": "1", "config.episodes": 4})
    code, errors = program.finish(folder / "run", env={"PYTHONPATH": str(folder)})
    assert code == 0, errors
    return folder / "run", errors


@pytest.mark.slow
def test_an_evaluation_opens_no_connection(evaluated):
    assert "NETWORK" not in evaluated[1]


@pytest.fixture(scope="module")
def places(programs):
    """Where the package, the images and the weights are."""
    flags = programs["rdc"].flags
    return str(ROOT), flags["config.data_dir"], flags["config.checkpoint"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["results.json", "tasks.csv", "report.html", "table.md"]
)
def test_what_is_published_names_no_private_place(evaluated, places, name):
    workdir, _ = evaluated
    text = (workdir / name).read_text()
    assert not [place for place in (str(workdir), *places) if place in text]
    if name == "results.json":
        assert json.loads(text)["rows"]


@pytest.mark.slow
def test_messages_name_no_place_but_the_work_directory(evaluated, places):
    assert "tasks" in evaluated[1]
    assert not [place for place in places if place in evaluated[1]]
