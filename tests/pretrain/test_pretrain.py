"""Real runs of a few steps, in this process, on two fake devices."""

import itertools
import json
import logging
import time

import jax
import numpy as np
import pytest

from rdc_jax.data import MissingSplit
from rdc_jax.models.checkpoints import load_variables
from rdc_jax.pretrain.logs import read_metrics
from rdc_jax.pretrain.run import pretrain
from rdc_jax.runtime.errors import UserError


def _run(config, workdir):
    pretrain(config.to_dict(), workdir)
    return load_variables(workdir / "latest")


def _equal(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def _differ(a, b):
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return any(np.any(x != y) for x, y in leaves)


@pytest.fixture(scope="module")
def repeated(run_once):
    """The same run once more, under a clock that goes backwards."""
    past = itertools.count(time.time(), -3600.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: next(past))
        patch.setattr(time, "time_ns", lambda: int(next(past) * 1e9))
        return run_once()


@pytest.fixture(scope="module")
def half(run_once):
    """A run in bfloat16 and without validation."""
    return run_once(**{"dtype": "bfloat16", "validation.episodes": 0})


def test_a_run_leaves_weights_that_describe_themselves(config, trained):
    variables, metadata = load_variables(trained / "latest")
    assert set(variables) == {"params", "batch_stats"}
    assert variables["params"]["head"]["kernel"].shape == (8, 4)
    assert metadata["arch"] == "resnet10"
    assert metadata["num_classes"] == 4
    assert metadata["source"] == "tiny"
    assert metadata["class_names"] == [f"class{c}" for c in range(4)]
    assert metadata["image_size"] == 16
    assert metadata["step"] == 6
    assert metadata["config"] == config.to_dict()
    assert metadata["validated_by"] == "npc_l2"
    assert (metadata["head"], metadata["head_options"]) == (
        "linear",
        {"num_classes": 4},
    )


def test_a_run_logs_each_line_once(trained):
    lines = read_metrics(trained)
    assert [line["step"] for line in lines if "loss" in line] == [2, 4, 6]
    assert [line["step"] for line in lines if "val_3way_1shot" in line] == [3, 6]
    assert lines[0].keys() >= {"accuracy", "grad_norm", "learning_rate", "epoch"}
    assert all(np.isfinite(list(line.values())).all() for line in lines)
    assert list((trained / "tensorboard").iterdir())


def test_training_lowers_the_loss(config, tmp_path):
    config.epochs = 20
    config.optimiser.learning_rate = 3e-2
    _run(config, tmp_path / "run")
    losses = [line["loss"] for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert losses[-1] < 0.7 * losses[0]


def test_the_seed_decides_the_weights(trained, repeated, run_once):
    weights, _ = load_variables(trained / "latest")
    again, _ = load_variables(repeated / "latest")
    other, _ = load_variables(run_once(seed=1) / "latest")
    _equal(weights, again)
    assert _differ(weights, other)


def test_a_clock_that_goes_backwards_changes_nothing(trained, repeated):
    _equal(*(load_variables(path / "latest")[0] for path in (trained, repeated)))
    assert _untimed(read_metrics(repeated)) == _untimed(read_metrics(trained))


def test_a_finished_run_does_nothing(config, finished, caplog):
    before = (finished / "metrics.jsonl").read_bytes()
    steps = sorted((finished / "checkpoints").iterdir())
    with caplog.at_level(logging.INFO, "rdc_jax"):
        pretrain(config.to_dict(), finished)
    assert "is finished" in caplog.text
    assert (finished / "metrics.jsonl").read_bytes() == before
    assert sorted((finished / "checkpoints").iterdir()) == steps


def test_a_changed_config_is_refused_by_name(config, finished):
    config.optimiser.learning_rate = 0.5
    with pytest.raises(UserError, match=r"optimiser.learning_rate=0.001.* 0.5"):
        pretrain(config.to_dict(), finished)


def test_other_images_are_refused(config, finished):
    record = finished / "run.json"
    saved = json.loads(record.read_text())
    saved["data"]["base"] = "of other images"
    record.write_text(json.dumps(saved))
    with pytest.raises(UserError, match=r"data\.base"):
        pretrain(config.to_dict(), finished)


def test_classes_without_a_validation_split_are_trained_on_all_the_same(
    config, images_dir, tmp_path, caplog
):
    config.source = str(images_dir / "tiny" / "train")  # a folder of class folders
    _, metadata = _run(config, tmp_path / "own")
    assert metadata["num_classes"] == 4
    lines = read_metrics(tmp_path / "own")
    assert lines and not any("val_3way_1shot" in line for line in lines)
    assert "training without validation: train has no val split" in caplog.text


def test_a_validation_set_that_was_asked_for_must_be_there(
    config, images_dir, tmp_path
):
    config.validation.source = str(images_dir / "tiny" / "val")
    with pytest.raises(MissingSplit, match=r"val has no val split .*split=all takes"):
        pretrain(config.to_dict(), tmp_path / "run")


def test_the_data_may_move(config, finished, images_dir):
    config.data_dir = str(images_dir) + "/../" + images_dir.name
    pretrain(config.to_dict(), finished)


def test_a_run_from_before_there_were_plugins_goes_on(config, finished):
    record = json.loads((finished / "run.json").read_text())
    del record["config"]["plugins"]
    (finished / "run.json").write_text(json.dumps(record))
    pretrain(config.to_dict(), finished)


def test_averaged_weights_are_published_and_resumed(config, trained, tmp_path):
    plain, _ = load_variables(trained / "latest")
    config.ema = 0.9
    averaged, _ = _run(config, tmp_path / "averaged")
    assert _differ(plain, averaged)
    _damage_last(tmp_path / "averaged")
    again, _ = _run(config, tmp_path / "averaged")
    _equal(averaged, again)


def test_a_damaged_checkpoint_costs_only_its_own_steps(config, finished, caplog):
    whole, _ = load_variables(finished / "latest")
    lines = read_metrics(finished)
    _damage_last(finished)
    again, metadata = _run(config, finished)
    assert "step 6 is unreadable" in caplog.text
    assert metadata["step"] == 6
    _equal(whole, again)
    assert _untimed(read_metrics(finished)) == _untimed(lines)


def test_bfloat16_keeps_float32_weights(trained, half):
    full, half = (load_variables(path / "latest")[0] for path in (trained, half))
    assert {x.dtype for x in jax.tree.leaves(half)} == {np.dtype("float32")}
    assert _differ(full, half)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=0.1), full, half)


def test_protonet_trains_a_backbone_without_a_head(config, tmp_path):
    config.method = "protonet"
    config.episode.update(way=4, shot=1, query=3)
    variables, metadata = _run(config, tmp_path / "run")
    assert set(variables["params"]) == {"backbone"}
    assert metadata["method"] == metadata["validated_by"] == "protonet"
    assert metadata["step"] == 6


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            2,
            r"12 images .* 8 devices.* way x \(shot \+ query\)",
            marks=pytest.mark.devices8,
        ),
        (15, r"64 images.* 48.* way x \(shot \+ query\)"),
    ],
)
def test_tasks_of_an_impossible_size_name_their_fields(
    config, tmp_path, query, message
):
    config.method = "protonet"
    config.episode.update(way=4, shot=1, query=query)
    with pytest.raises(UserError, match=message):
        pretrain(config.to_dict(), tmp_path / "run")


def test_crops_grow_by_phases(trained, run_once):
    grown, full = run_once(phases="8:0.5"), trained
    assert _differ(*(load_variables(path / "latest")[0] for path in (grown, full)))


def test_a_run_may_start_from_another_backbone(config, trained, tmp_path):
    given, _ = load_variables(trained / "latest")
    config.init_from = str(trained / "latest")
    config.optimiser.learning_rate = 0.0
    started, _ = _run(config, tmp_path / "second")
    _equal(started["params"]["backbone"], given["params"]["backbone"])


def test_the_backbone_of_another_architecture_is_refused(config, trained, tmp_path):
    config.init_from = str(trained)
    config.arch = "resnet18"
    with pytest.raises(UserError, match=r"resnet10.* resnet18"):
        pretrain(config.to_dict(), tmp_path / "second")


def test_a_loss_that_is_not_finite_stops_the_run(config, tmp_path):
    config.log_every = 1
    config.optimiser.update(name="sgd", learning_rate=1e30, momentum=0.0)
    with pytest.raises(UserError, match=r"not finite at step \d .*1e\+30"):
        pretrain(config.to_dict(), tmp_path / "run")
    assert not any(p.name.isdigit() for p in (tmp_path / "run/checkpoints").iterdir())


def test_without_validation_the_last_step_is_the_best(half):
    assert load_variables(half / "best")[1]["step"] == 6


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("source", "nothing_here", "nothing_here"),
        ("batch_size", 13, "13 images .* 2 devices.* --config.batch_size"),
        ("batch_size", 64, "64 images.* --config.batch_size"),
        ("arch", "resnet99", "backbone 'resnet99'"),
        ("method", "magic", "objective .*magic"),
        ("method", "protonet(size=3)", "objective .*size"),
        ("plugins", "/nowhere.py", "/nowhere.py"),
        ("phases", "8:2", "config.phases .*8:2"),
        ("ema", 1.5, "config.ema .*1.5"),
        ("init_from", "/nowhere", "/nowhere"),
        ("validation.way", 9, "way=9"),
        ("validation.shots", "1;5", "config.validation.shots .*1;5"),
    ],
)
def test_mistakes_are_told_in_one_line(config, tmp_path, field, value, named):
    config.update_from_flattened_dict({field: value})
    with pytest.raises(UserError, match=named) as caught:
        pretrain(config.to_dict(), tmp_path / "run")
    assert "\n" not in str(caught.value)


def _damage_last(workdir):
    for path in (workdir / "checkpoints/6/variables").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")


def _untimed(lines):
    return [{k: v for k, v in line.items() if "second" not in k} for line in lines]
