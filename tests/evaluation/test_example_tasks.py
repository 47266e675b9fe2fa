"""Tasks kept for pictures: the first ones of the run, and of no other run."""

import json

import numpy as np
import pytest
from evaluation import worlds

import rdc_jax
from rdc_jax.evaluation import example_tasks
from rdc_jax.evaluation.datasets import DataSet
from rdc_jax.evaluation.options import Entry, Options
from rdc_jax.evaluation.run import evaluate
from rdc_jax.methods import get_method
from rdc_jax.reporting.example_tasks import read_task
from rdc_jax.runtime.errors import UserError

RDC_FT = Entry("rdc_ft", get_method("rdc_ft"))


def test_the_first_task_is_answered_as_in_the_ledger(config, tmp_path):
    config.update(methods="npc_l2,rdc", episodes=2)
    found = evaluate(config.to_dict(), tmp_path)
    lines = (tmp_path / "tasks.csv").read_text().splitlines()[1:]
    first = {line.split(",")[1]: line.split(",")[4:] for line in lines if ",0," in line}
    for shot in ("1", "2"):
        task = read_task(tmp_path / f"examples/photos-{shot}.npz")
        assert task.run == found["examples"]
        assert (task.shot, len(task.labels_s)) == (int(shot), 5 * int(shot))
        assert [str(task.right(x)) for x in (task.npc, task.rdc)] == first[shot]
    names = sorted(path.name for path in (tmp_path / "examples").iterdir())
    assert names == ["photos-1.npz", "photos-2.npz"]


def test_examples_are_kept_by_a_resumed_run_and_replaced_by_another(config, tmp_path):
    config.update(shots="1", episodes=4)
    evaluate(config.to_dict(), tmp_path)
    path = example_tasks.path_of(tmp_path, "photos", 1)
    kept, written = read_task(path), path.stat().st_mtime_ns
    config.episodes = 6
    evaluate(config.to_dict(), tmp_path)
    assert path.stat().st_mtime_ns == written
    (tmp_path / "ledger.jsonl").unlink()
    config.seed = 1
    evaluate(config.to_dict(), tmp_path)
    other = read_task(path)
    assert other.run != kept.run
    assert not np.array_equal(other.features, kept.features)


def test_without_calibration_there_is_nothing_to_show(config, tmp_path):
    config.update(methods="npc,npc_l2", shots="1", episodes=2)
    evaluate(config.to_dict(), tmp_path)
    assert not (tmp_path / "examples").exists()


class World(DataSet):
    """A data set of features with no images."""

    def __init__(self):
        self.feat_nd, labels_n = worlds.make_features()
        self.class_names = tuple(f"class {c}, ü" for c in range(7))
        self.name, self.images = "tfds:eurosat/rgb", self
        self.samplers = {2: worlds.make_sampler(labels_n)}
        self.asked = []

    def features_of(self, rows):
        self.asked.append(rows)
        return self.feat_nd[rows]


@pytest.fixture
def options(config):
    config.update(methods="rdc", rdc={"k": 5, "k2": 3, "dim": 8})
    return Options.from_config(config.to_dict())


def write(workdir, world, options, **kwargs):
    header = {"config": {}}
    example_tasks.write(workdir, header, world, 2, world.features_of, options, **kwargs)


def test_answers_are_those_of_the_public_functions(tmp_path, options):
    world = World()
    write(tmp_path, world, options, trained_by=RDC_FT)
    found = read_task(tmp_path / "examples/tfds_eurosat_rgb-2-rdc_ft.npz")
    s = len(found.labels_s)
    episode = (found.features[:s], found.labels_s, found.features[s:])
    out = rdc_jax.rdc(*episode, num_classes=4, params=options.rdc)
    np.testing.assert_array_equal(found.rdc, out.class_distances.argmin(axis=1))
    npc = rdc_jax.npc(*episode, num_classes=4).argmin(axis=1)
    np.testing.assert_array_equal(found.npc, npc)
    assert found.trained_by == "RDC-FT"
    assert set(found.class_names) < set(world.class_names)


def test_only_the_features_of_one_task_are_asked_for_and_once(tmp_path, options):
    world = World()
    write(tmp_path, world, options)
    before = (tmp_path / "examples/tfds_eurosat_rgb-2.npz").read_bytes()
    write(tmp_path, world, options)
    (rows,) = world.asked
    assert len(rows) == worlds.SPEC.support_size + worlds.SPEC.query_size
    assert (tmp_path / "examples/tfds_eurosat_rgb-2.npz").read_bytes() == before


def test_a_damaged_example_is_written_again(tmp_path, options):
    world = World()
    write(tmp_path, world, options)
    path = example_tasks.path_of(tmp_path, world.name, 2)
    content = path.read_bytes()
    path.write_bytes(content[:100])
    write(tmp_path, world, options)
    assert path.read_bytes() == content


def test_a_run_goes_by_what_decides_on_its_tasks():
    header = {"config": {"seed": 0, "episodes": 5}, "data": {"cub": "d1"}}
    more = {**header, "config": {"seed": 0, "episodes": 9, "data_dir": "/elsewhere"}}
    other = {**header, "config": {"seed": 1, "episodes": 5}}
    assert example_tasks.run_id(header) == example_tasks.run_id(json_copy(more))
    assert example_tasks.run_id(header) != example_tasks.run_id(other)
    assert example_tasks.run_id(header) != example_tasks.run_id({**header, "data": {}})


def json_copy(value):
    return json.loads(json.dumps(value))


def test_a_folder_that_cannot_be_written_is_told(tmp_path, options):
    (tmp_path / "examples").write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*make room"):
        write(tmp_path, World(), options)
