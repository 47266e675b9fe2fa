"""Things that go wrong around a run: one clear line, and nothing lost.

A second run in the same place, a folder that cannot be written, a file in the way and
a lock are in tests/pretrain/test_program, tests/runtime/test_workdir,
tests/evaluation/test_program and tests/data/test_store.
"""

import dataclasses
import itertools
import resource
import shutil
import sys
import time

import numpy as np
import pytest
from data.pictures import encode, pixels
from evaluation import worlds
from torture import effort
from torture.programs import evaluation_content

from rdc_jax.data import open_source, pixel_cache
from rdc_jax.evaluation.run import evaluate
from rdc_jax.runtime.errors import UserError

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


@pytest.fixture
def evaluated(config):
    """A small evaluation, of methods on features."""
    config.update(methods="npc_l2,rdc_one_space", episodes=8)
    return config.to_dict()


@pytest.mark.slow
@needs_linux
def test_a_disk_that_fills_up_at_any_file_costs_nothing(evaluated, tmp_path):
    """No file may grow beyond a limit, which the system tells as a full disk does."""
    evaluate(evaluated, tmp_path / "whole" / "run")
    expected = evaluation_content(tmp_path / "whole" / "run")
    workdir = tmp_path / "full" / "run"
    refused = []
    for size in sorted({len(data) - 1 for data in expected.values() if data}):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            evaluate(evaluated, workdir)
        except UserError as error:
            refused.append(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(refused) >= 3
    assert all("cannot write" in line and "\n" not in line for line in refused)
    effort.tally["full disks survived"] += len(refused)
    evaluate(evaluated, workdir)
    assert evaluation_content(workdir) == expected


@pytest.mark.slow
def test_a_clock_that_goes_backwards_changes_nothing(evaluated, tmp_path, monkeypatch):
    evaluate(evaluated, tmp_path / "whole" / "run")
    past = itertools.count(time.time(), -3600.0)
    monkeypatch.setattr(time, "time", lambda: next(past))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(past) * 1e9))
    evaluate(evaluated, tmp_path / "back" / "run")
    whole, back = (evaluation_content(tmp_path / x / "run") for x in ("whole", "back"))
    assert whole == back


@pytest.fixture
def folder(tmp_path):
    return worlds.write_images(tmp_path / "data", classes=5, per_class=9) / "photos"


def _decode_while(folder, cache_dir, change):
    """Decode a folder in which something happens after the first image was read."""
    source = open_source(str(folder))
    seen = []

    def read_and_change(i):
        picture = source.read(i)
        if not seen:
            seen.append(i)
            change()
        return picture

    changing = dataclasses.replace(source, read=read_and_change)
    return pixel_cache(changing, 16, cache_dir)


def test_a_folder_that_changes_while_it_is_read_is_told(folder, tmp_path):
    last = folder / "class4" / "8.png"
    whole = last.read_bytes()
    cache = tmp_path / "cache"
    with pytest.raises(UserError, match="changed while they were read"):
        _decode_while(
            folder, cache, lambda: last.write_bytes(encode(pixels(9, (16, 16))))
        )
    with pytest.raises(UserError, match=r"8\.png: No such file.*it was there when"):
        _decode_while(folder, cache, last.unlink)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    last.write_bytes(whole)
    expected = pixel_cache(open_source(str(folder)), 16, tmp_path / "other").images
    got = pixel_cache(open_source(str(folder)), 16, cache).images
    np.testing.assert_array_equal(got, expected)


def test_files_that_appear_while_a_folder_is_read_are_not_part_of_it(folder, tmp_path):
    def copy():
        shutil.copy(folder / "class0" / "0.png", folder / "class0" / "new.png")

    cache = _decode_while(folder, tmp_path / "cache", copy)
    assert len(cache) == 45 and len(open_source(str(folder))) == 46
