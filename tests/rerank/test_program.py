"""``python -m rdc_jax.rerank`` as people use it."""

import socket
import subprocess
import sys

import compiling
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from core.episodes import make_episode
from data import pictures as drawn
from evaluation import worlds

import rdc_jax
from rdc_jax.models import BACKBONES
from rdc_jax.rerank import Labels, blocks, kept, score, summary
from rdc_jax.rerank.__main__ import main


@pytest.fixture
def files(tmp_path):
    """Features and classes of 20 queries and 30 gallery rows, two cameras."""
    gallery, classes, query = make_episode("relu", shot=6, query=4)
    arrays = {
        "q": query,
        "g": gallery,
        "ql": np.repeat(np.arange(5), 4),
        "gl": classes,
        "qc": np.arange(20) % 2,
        "gc": np.arange(30) % 2,
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


@pytest.fixture
def run(files, capsys):
    """Run the program in the folder of the files; gives what it printed."""

    def run(*flags, query="q.npy", gallery="g.npy", code=0):
        paths = [f"--query={files / query}", f"--gallery={files / gallery}"]
        flags = [
            str(files / flag) if flag.endswith((".npy", ".npz", ".dir")) else flag
            for flag in flags
        ]
        left = 0
        try:
            main([*paths, *flags])
        except SystemExit as stopped:
            left = stopped.code
        out, err = capsys.readouterr()
        assert left == code, err
        return out, err

    return run


def load(files, *names):
    return [np.load(files / f"{name}.npy") for name in names]


def test_nearest_rows_and_all_distances_are_written(run, files):
    run(
        "--k=6",
        "--k2=3",
        "--lam=0.5",
        "--top=7",
        "--out",
        "o.npz",
        "--distances",
        "d.npy",
    )
    want = rdc_jax.rerank(*load(files, "q", "g"), k=6, k2=3, lam=0.5)
    np.testing.assert_array_equal(np.load(files / "d.npy"), want)
    found = np.load(files / "o.npz")
    order = want.argsort(axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(found["ids"], order)
    np.testing.assert_array_equal(found["distances"], np.sort(want, axis=1)[:, :7])


def test_accuracies_before_and_after_are_printed(run, files):
    both = ["--labels", "ql.npy", "gl.npy", "--cameras", "qc.npy", "gc.npy"]
    out, _ = run(*both)
    q, g, ql, gl, qc, gc = load(files, "q", "g", "ql", "gl", "qc", "gc")
    for title, lam in (("before", 1.0), ("after", 0.3)):
        found = score(rdc_jax.rerank(q, g, lam=lam), Labels(ql, qc), Labels(gl, gc))
        mean = summary(found)
        line = next(x for x in out.splitlines() if x.startswith(title))
        assert line.split()[1:3] == [str(mean["queries"]), f"{mean['mAP']:.2f}"]


def test_npz_files_hold_labels_and_bfloat16_is_read(run, files):
    q, g, ql, gl = load(files, "q", "g", "ql", "gl")
    half = [np.asarray(jnp.asarray(x, jnp.bfloat16)) for x in (q, g)]
    np.savez(files / "q.npz", features=half[0], labels=ql)
    np.savez(files / "g.npz", features=half[1], labels=gl)
    out, _ = run("--distances", "d.npy", query="q.npz", gallery="g.npz")
    assert out.split()[:3] == ["queries", "mAP", "rank1"]
    want = rdc_jax.rerank(*half)
    np.testing.assert_array_equal(np.load(files / "d.npy"), want)


def test_a_run_that_was_stopped_goes_on(run, files, monkeypatch):
    run("--distances", "whole.npy")
    monkeypatch.setattr(blocks, "_NUMBERS", 2**11)
    monkeypatch.setattr(kept, "_SECONDS", 0)
    real = kept.write_text

    def stop(path, text, advice):
        real(path, text, advice)
        if "16" in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(kept, "write_text", stop)
    run("--workdir", "kept.dir", code=130)
    monkeypatch.setattr(kept, "write_text", real)
    _, err = run("--workdir", "kept.dir", "--distances", "d.npy")
    assert "16 of 30 gallery rows are ranked already" in err
    np.testing.assert_allclose(*load(files, "d", "whole"), atol=1e-7)
    _, err = run("--workdir", "kept.dir", "--lam=0.9")
    assert "30 of 30 gallery rows are ranked already" in err


def test_ranks_of_another_gallery_are_refused(run, files):
    run("--workdir", "kept.dir")
    _, err = run("--workdir", "kept.dir", gallery="q.npy", code=2)
    assert "kept.dir holds a run with gallery=" in err and err.count("\n") == 1


def test_folders_of_pictures_are_embedded(run, files, monkeypatch):
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    trained = worlds.write_checkpoint(files / "trained")
    for folder in ("old", "new"):
        drawn.make_folder(files / folder, ["ant", "bee", "cow"], images=4)
    flags = [f"--checkpoint={trained}", "--out", "o.npz"]
    out, _ = run(*flags, query="new", gallery="old")
    table = [line.split() for line in out.splitlines()]
    assert [row[0] for row in table] == ["queries", "before", "after"]
    assert table[1][3] == "100.00"  # rank-1: the pictures are the same
    assert np.load(files / "o.npz")["gallery_names"].shape == (12,)


@pytest.mark.parametrize(
    ("flags", "paths", "message"),
    [
        ([], {}, "nothing to write: give --out"),
        (
            ["--labels", "ql.npy", "other.npy"],
            {},
            "no query has a class of the gallery",
        ),
        ([], {"query": "no.npy"}, "cannot read"),
        ([], {"query": "ql.npy"}, "features must be real numbers [n, d]"),
        ([], {"query": "wide.npy"}, "of 25 numbers"),
        ([], {"query": "broken.npy"}, "is no .npy or .npz file"),
        (["--labels", "gl.npy", "gl.npy"], {}, "labels of shape (30,) for 20 rows"),
        (["--k=0"], {}, "--k must be an int >= 1, got 0"),
        (["--lam=2"], {}, "--lam=2.0: use a number from 0 to 1"),
        (["--top=0"], {}, "--top=0: use a number above 0"),
        (["--out=/nowhere/x"], {}, "its folder is not there"),
        (["--lamb=.3"], {}, "did you mean --lam?"),
    ],
)
def test_mistakes_exit_with_one_line(run, files, flags, paths, message):
    np.save(files / "wide.npy", np.zeros((3, 25)))
    np.save(files / "other.npy", np.full(30, 99))
    (files / "broken.npy").write_bytes(b"not an array")
    out, err = run(*flags, **paths, code=2)
    assert err.startswith("error: ") and message in err
    assert err.count("\n") == 1 and not out


@pytest.mark.slow
def test_two_processes_equal_one(run, files):
    run("--distances", "one.npy")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    several = [f"--coordinator=localhost:{port}", "--num_processes=2"]
    both = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "rdc_jax.rerank"),
                *("--query", files / "q.npy", "--gallery", files / "g.npy"),
                *("--workdir", files / "kept.dir", "--distances", files / "two.npy"),
                *(*several, f"--process_id={i}"),
            ],
            env=compiling.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    errors = [process.communicate(timeout=240)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    np.testing.assert_allclose(*load(files, "one", "two"), atol=1e-7)
