"""Evaluations of tasks of random sizes, and of two data sets."""

import csv
import logging
import pathlib

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from evaluation import worlds

from rdc_jax import methods
from rdc_jax.core.prototypes import predictions
from rdc_jax.data.squares import Square
from rdc_jax.evaluation.datasets import open_datasets
from rdc_jax.evaluation.options import Options
from rdc_jax.evaluation.run import evaluate
from rdc_jax.models.load import load_model
from rdc_jax.runtime.errors import UserError

METHODS = "npc_l2,rdc_plus"
VARIED = {
    "ways": "2-4",
    "shots": "1-3,any",
    "max_support": 10,
    "queries": "2-4",
    "episodes": 2,
    "methods": METHODS,
}


def opened(config):
    """Its data sets, with the features that the run has kept."""
    options, cache_dir = Options.from_config(config), pathlib.Path(config["cache_dir"])
    square = load_model(options.checkpoint).preprocessing.square_at(16)
    return open_datasets(options, Square(*square), cache_dir)


def lines(workdir):
    with open(workdir / "tasks.csv", newline="") as file:
        return list(csv.DictReader(file))


def right_answers(config, dataset, shot, number):
    """Of one task as it is, without filling: by method; and its queries."""
    options = Options.from_config(config)
    feat_nd = np.asarray(
        dataset.features(load_model(options.checkpoint), options.features)
    )
    sampler = dataset.samplers[shot]
    tasks = sampler(range(number, number + 1))
    real_n = tasks.mask[0]
    s = int(real_n[: sampler.spec.support_size].sum())
    feat_md, labels_m = feat_nd[tasks.indices[0, real_n]], tasks.labels[0, real_n]
    arrays = map(jnp.asarray, (feat_md[:s], labels_m[:s], feat_md[s:]))
    task = methods.Task(*arrays, num_classes=int((tasks.classes >= 0).sum()))
    right = {
        entry.name: int((predictions(entry.method(task)) == labels_m[s:]).sum())
        for entry in options.methods
    }
    return right, len(labels_m) - s


def test_tasks_of_random_sizes_are_answered_as_without_filling(
    config, tmp_path, caplog
):
    config.update(VARIED)
    config = config.to_dict()
    with caplog.at_level(logging.INFO, "rdc_jax"):
        results = evaluate(config, tmp_path / "run")
    assert sum("compiled" in message for message in caplog.messages) == 2  # One a shot.
    assert [row["shot"] for row in results["rows"][::2]] == ["1-3", "any"]
    (dataset,) = opened(config)
    found = lines(tmp_path / "run")
    for line in found:
        place = dataset, line["shot"], int(line["task"])
        right, queries = right_answers(config, *place)
        assert {name: int(line[name]) for name in right} == right
        assert int(line["queries"]) == queries
    own = [line for line in found if line["shot"] == "any"]
    share = np.mean([int(line["rdc_plus"]) / int(line["queries"]) for line in own])
    assert results["rows"][-1]["accuracy"] == pytest.approx(100 * share)
    assert "## any-shot" in (tmp_path / "run/table.md").read_text()
    again = evaluate(config | {"episodes": 3}, tmp_path / "run")
    assert again["rows"][0]["episodes"] == 3


def test_filling_is_no_query_of_any_kind(config, tmp_path):
    config.update(VARIED)
    config.update(
        ways="2-3",
        shots="1-3",
        methods="npc_l2",
        distractor_queries=2,
        predictions=True,
    )
    results = evaluate(config.to_dict(), tmp_path / "run")
    queries = [int(line["queries"]) for line in lines(tmp_path / "run")]
    table = pq.read_table(tmp_path / "run/predictions.parquet").to_pydict()
    assert len(table["task"]) == sum(queries) + 2 * len(queries)
    of_none = [
        own not in classes
        for own, *classes in zip(
            *(table[name] for name in ("class", "class_0", "class_1", "class_2")),
            strict=True,
        )
    ]
    assert sum(of_none) == 2 * len(queries)
    assert set(table["shot"]) == {"1-3"}
    assert 0 <= results["rows"][0]["auroc"] <= 100


def test_supports_and_queries_of_two_data_sets(config, tmp_path):
    worlds.write_images(tmp_path, name="drawings", classes=4, per_class=6)
    both = f"photos>{tmp_path / 'drawings'}"
    config.update(
        datasets=f"{both},photos", methods="npc_l2", way=4, shots="2", episodes=5
    )
    config = config.to_dict()
    results = evaluate(config, tmp_path / "run")
    assert [row["dataset"] for row in results["rows"]] == ["photos>drawings", "photos"]
    assert set(results["provenance"]["data"]) == {"photos", "drawings"}
    pair, _ = opened(config)
    for number, line in enumerate(lines(tmp_path / "run")[:5]):
        right, _ = right_answers(config, pair, 2, number)
        assert int(line["npc_l2"]) == right["npc_l2"]
        task = pair.samplers[2](range(number, number + 1))
        pictures, pixels = pair.pictures(task.indices[0]), pair.pixels
        rows = np.concatenate([pixels[0].images, pixels[1].images])[task.indices[0]]
        np.testing.assert_array_equal(pictures, rows)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shots": "1-3", "methods": "npc_l2,rdc_ft"}, "rdc_ft: it trains on images"),
        ({"shots": "some"}, "config.shots is 'some': give a whole number, or a range"),
        ({"ways": "5-2"}, "way=5-2: give the smaller number first"),
        ({"queries": "a-b"}, "config.queries is 'a-b'"),
        ({"datasets": "photos>photos"}, "give two data sets, as in 'photos>drawings'"),
    ],
)
def test_what_cannot_be_is_told(config, tmp_path, fields, message):
    config.update(fields)
    with pytest.raises(UserError, match=message):
        evaluate(config.to_dict(), tmp_path / "run")
