"""Folders and files that are in the way, or may not be read or written.

One clear line, nothing lost: when the place is mended, the run ends as it should.
"""

import os
import shutil

import pytest
import tiny
from torture.programs import UNPRIVILEGED, evaluation_content, pretraining_content

from rdc_jax.configs import pretrain as pretrain_config
from rdc_jax.evaluation.run import evaluate
from rdc_jax.models import BACKBONES
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError


def _refusal(run, *args):
    """The line that a run ends with."""
    with pytest.raises(UserError) as caught:
        run(*args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _put_in_the_way(path):
    """A file where a folder should be, a folder where a file should be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if path.suffix or path.name == ".lock" else path.touch()


def _remove(path):
    path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def evaluated(config):
    config.update(methods="npc_l2,rdc_one_space", episodes=4)
    return config.to_dict()


@pytest.mark.slow
def test_what_is_in_the_way_of_an_evaluation_is_named(evaluated, tmp_path):
    evaluate(evaluated, tmp_path / "whole" / "run")
    expected = evaluation_content(tmp_path / "whole" / "run")
    workdir = tmp_path / "blocked" / "run"
    names = {name.split("/")[0] for name in expected} | {"", ".lock"}
    assert names >= {"cache", "examples", "ledger.jsonl", "results.json", "table.md"}
    for name in sorted(names):
        _put_in_the_way(workdir / name)
        shown = workdir if name == ".lock" else workdir / name
        assert str(shown) in _refusal(evaluate, evaluated, workdir)
        _remove(workdir / name)
        shutil.rmtree(workdir, ignore_errors=True)
    _put_in_the_way(workdir / "table.md")  # The last file: all others are there.
    _refusal(evaluate, evaluated, workdir)
    _remove(workdir / "table.md")
    evaluate(evaluated, workdir)
    assert evaluation_content(workdir) == expected


@pytest.fixture
def trained(programs, config, monkeypatch):
    """The config of a pre-training of two steps; compiles as ``config`` does."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    flags = programs["pretrain"].flags
    training = pretrain_config.get_config("test")
    training.update_from_flattened_dict(
        {k.removeprefix("config."): v for k, v in flags.items() if k != "config"}
        | {"epochs": 1, "steps_per_epoch": 2}
    )
    return training.to_dict()


@pytest.mark.slow
def test_what_is_in_the_way_of_a_training_is_named(trained, tmp_path):
    pretrain(trained, tmp_path / "whole")
    expected = pretraining_content(tmp_path / "whole")
    for name in sorted(path.name for path in (tmp_path / "whole").iterdir()):
        workdir = tmp_path / "blocked"
        _put_in_the_way(workdir / name)
        shown = workdir if name == ".lock" else workdir / name
        assert str(shown) in _refusal(pretrain, trained, workdir)
        _remove(workdir / name)
        pretrain(trained, workdir)
        assert pretraining_content(workdir) == expected
        shutil.rmtree(workdir)


def test_a_file_in_the_place_of_the_data_is_named(evaluated, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "photos").touch()
    data = {"data_dir": str(tmp_path / "data")}
    line = _refusal(evaluate, evaluated | data, tmp_path / "run")
    assert str(tmp_path / "data") in line


@pytest.fixture
def folder(photos, tmp_path):
    return shutil.copytree(photos, tmp_path / "data")


def _protect(root, *, files=0o400, folders=0o500):
    for path in [root, *root.rglob("*")]:
        path.chmod(folders if path.is_dir() else files)


@pytest.mark.slow
@pytest.mark.skipif(UNPRIVILEGED is None, reason="needs setpriv, or not to be root")
def test_what_may_not_be_read_or_written_is_named(programs, folder, tmp_path):
    program = programs["rdc"].having(
        {"config.methods": "npc_l2", "config.data_dir": str(folder)}
    )

    def refused(workdir, *, lines=1):
        code, errors = program.finish(workdir, prefix=UNPRIVILEGED)
        assert code == 2 and errors.count("\n") == lines, errors
        return errors

    (tmp_path / "mine").mkdir(0o500)
    assert "cannot write to the workdir" in refused(tmp_path / "mine" / "run")

    image = folder / "photos" / "class1" / "3.png"
    image.chmod(0)
    assert "3.png: Permission denied" in refused(tmp_path / "run")
    image.chmod(0o600)
    image.parent.chmod(0)
    line = f"{image.parent}: Permission denied"  # Then: too few classes are left.
    assert line in refused(tmp_path / "run", lines=3)
    image.parent.chmod(0o700)

    assert program.finish(tmp_path / "run", prefix=UNPRIVILEGED)[0] == 0
    expected = evaluation_content(tmp_path / "run")
    _protect(tmp_path / "run")
    assert "error: cannot" in refused(tmp_path / "run")
    _protect(tmp_path / "run", files=0o600, folders=0o700)
    assert evaluation_content(tmp_path / "run") == expected

    cache = shutil.copytree(tmp_path / "run" / "cache", tmp_path / "cache")
    _protect(cache)
    program = program.having({"config.cache_dir": str(cache)})
    code, errors = program.finish(tmp_path / "other", prefix=UNPRIVILEGED)
    assert code == 0, errors
    assert (tmp_path / "other" / "table.md").read_bytes() == expected["table.md"]
    assert os.listdir(tmp_path / "other").count("cache") == 0
