"""Whole evaluations in this process, on two fake devices."""

import json
import logging
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from evaluation import worlds

from rdc_jax import methods
from rdc_jax.evaluation import run
from rdc_jax.evaluation.run import evaluate
from rdc_jax.reporting.example_tasks import read_task
from rdc_jax.runtime.errors import UserError

FILES = ("ledger.jsonl", "results.json", "table.md")


def content(folder, *files):
    return {name: (folder / name).read_bytes() for name in files or FILES}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_evaluation_leaves_its_results(config, tmp_path):
    found = evaluate(config.to_dict(), tmp_path / "run")
    rows = {(r["shot"], r["method"]): r for r in found["rows"]}
    assert set(rows) == {(s, m) for s in (1, 2) for m in ("npc_l2", "rdc_one_space")}
    assert all(25 < row["accuracy"] < 100 for row in rows.values())
    assert rows[2, "npc_l2"]["accuracy"] > rows[1, "npc_l2"]["accuracy"]
    saved = json.loads((tmp_path / "run/results.json").read_text())
    assert saved == found
    provenance = saved["provenance"]
    assert provenance["config"]["query"] == 4
    assert provenance["checkpoint"]["arch"] == "resnet10"
    assert len(provenance["data"]["photos"]) >= 32
    assert provenance["backend"]["platform"] == "cpu"


@pytest.mark.usefixtures("finished")
def test_a_finished_run_is_only_summed_up(config, tmp_path, caplog):
    before = content(tmp_path / "run")
    (tmp_path / "run/results.json").unlink()
    with caplog.at_level(logging.INFO, "rdc_jax"):
        evaluate(config.to_dict(), tmp_path / "run")
    assert "40 of 40 tasks are on record" in caplog.text
    assert "compiled" not in caplog.text and "features of" not in caplog.text
    assert content(tmp_path / "run") == before


@pytest.mark.usefixtures("finished")
def test_a_torn_run_goes_on_to_the_same_bytes(config, tmp_path):
    whole = content(tmp_path / "run")
    ledger = tmp_path / "run/ledger.jsonl"
    lines = whole["ledger.jsonl"].splitlines(keepends=True)
    for kept in (1, 10, 27):  # none, inside the first stage, inside the second
        ledger.write_bytes(b"".join(lines[:kept]) + lines[kept][:9])
        config.chunk = {27: 16}.get(kept, 4)  # may change: results do not
        evaluate(config.to_dict(), tmp_path / "run")
        assert content(tmp_path / "run") == whole


@pytest.mark.usefixtures("finished")
def test_lost_answers_are_computed_again(config, tmp_path, caplog):
    folder = tmp_path / "run/answers"
    whole = content(tmp_path / "run") | content(folder, *names(folder))
    assert len(names(folder)) == 2
    first, second = (folder / name for name in names(folder))
    first.unlink()
    second.write_bytes(second.read_bytes()[:200])
    with caplog.at_level(logging.INFO, "rdc_jax"):
        evaluate(config.to_dict(), tmp_path / "run")
    assert "of 40 tasks are on record" in caplog.text
    assert whole == content(tmp_path / "run") | content(folder, *names(folder))


@pytest.mark.usefixtures("finished")
def test_another_machine_s_tasks_are_not_mixed_in(config, tmp_path, monkeypatch):
    shutil.rmtree(tmp_path / "run/answers")
    monkeypatch.setattr("rdc_jax.evaluation.scoring.predictions", _all_wrong)
    with pytest.raises(UserError, match="come out differently from those in"):
        evaluate(config.to_dict(), tmp_path / "run")


def _all_wrong(dist_qc):
    return jnp.full(len(dist_qc), -1)


def test_episodes_can_be_added_and_left_out(config, tmp_path):
    config.shots = "1"
    found, ledgers = {}, []
    for episodes in (6, 10, 6):
        config.episodes = episodes
        found[episodes] = evaluate(config.to_dict(), tmp_path / "run")
        assert found[episodes]["provenance"]["config"]["episodes"] == episodes
        assert found[episodes]["rows"][0]["episodes"] == episodes
        ledgers.append((tmp_path / "run/ledger.jsonl").read_bytes())
    assert ledgers[1].startswith(ledgers[0]) and ledgers[2] == ledgers[1]
    config.episodes = 10
    fresh = evaluate(config.to_dict(), tmp_path / "fresh")
    assert fresh["rows"] == found[10]["rows"]


@pytest.mark.usefixtures("finished")
def test_another_config_is_refused_by_its_field(config, tmp_path):
    config.rdc.k = 5
    with pytest.raises(UserError, match=r"config\.rdc\.k=4, this one has 5"):
        evaluate(config.to_dict(), tmp_path / "run")


def test_other_images_are_refused(config, tmp_path, data_dir):
    config.data_dir = str(tmp_path / "data")
    shutil.copytree(data_dir, config.data_dir)
    evaluate(config.to_dict(), tmp_path / "run")
    (tmp_path / "data/photos/class0/0.png").unlink()
    with pytest.raises(UserError, match=r"data\.photos="):
        evaluate(config.to_dict(), tmp_path / "run")


def test_a_method_of_one_s_own_takes_ten_lines(config, tmp_path):
    @methods.register("nearest_support")
    class NearestSupport(methods.FeatureMethod):
        title, transductive = "Nearest support", False

        def class_distances(self, task):
            dist_qs = jnp.linalg.norm(task.query[:, None] - task.support, axis=-1)
            own_sc = task.support_labels[:, None] == jnp.arange(task.num_classes)
            return jnp.where(own_sc, dist_qs[:, :, None], jnp.inf).min(axis=1)

    config.update(methods="npc,nearest_support", shots="1")
    found = evaluate(config.to_dict(), tmp_path / "run")
    npc, mine = found["rows"]
    assert mine["title"] == "Nearest support"
    assert mine["accuracy"] == npc["accuracy"]  # one support is its own prototype
    assert not found["neighbours"]


@pytest.mark.usefixtures("finished")
def test_a_method_is_added_to_a_finished_run(config, tmp_path, caplog):
    before = content(tmp_path / "run")["ledger.jsonl"]
    config.methods = "npc,rdc_one_space,npc_l2"
    with caplog.at_level(logging.INFO, "rdc_jax"):
        found = evaluate(config.to_dict(), tmp_path / "run")
    assert "40 of 80 tasks are on record" in caplog.text
    assert content(tmp_path / "run")["ledger.jsonl"].startswith(before)
    assert found["provenance"]["config"]["methods"] == config.methods
    rows = [(row["method"], row["episodes"]) for row in found["rows"][:3]]
    assert rows == [(name, 20) for name in config.methods.split(",")]
    config.methods = "npc"
    evaluate(config.to_dict(), tmp_path / "run")  # What is left out stays on record.
    config.methods = "npc,npc_l2"
    with pytest.raises(UserError, match=r"groups\.features\.columns="):
        evaluate(config.to_dict(), tmp_path / "run")


def test_methods_answer_with_several_models(config, tmp_path):
    worlds.write_checkpoint(tmp_path / "other", seed=1)
    config.update(methods="npc,npc@other,rdc_ft@other", shots="1", episodes=4)
    config.checkpoints = f"other={tmp_path}/other"
    config.finetune.update(steps=1, learning_rate=1e-2)
    found = evaluate(config.to_dict(), tmp_path / "run")
    titles = [row["title"] for row in found["rows"]]
    assert titles == ["NPC", "NPC (other)", "RDC-FT (other)"]
    accuracies = [row["accuracy"] for row in found["rows"]]
    assert accuracies[0] != accuracies[1]
    config.methods = "npc@third"
    with pytest.raises(UserError, match=r"there is no config\.checkpoints\.third"):
        evaluate(config.to_dict(), tmp_path / "third")


def test_features_of_several_views_are_kept_beside_the_plain_ones(config, tmp_path):
    config.update(methods="npc_l2", shots="1", cache_dir=str(tmp_path / "cache"))
    rows = []
    for views in (1, 2, 1):
        config.features.views = views
        found = evaluate(config.to_dict(), tmp_path / f"run{len(rows)}")
        rows.append(found["rows"][0]["accuracy"])
    assert rows[0] == rows[2] != rows[1]
    assert len(list((tmp_path / "cache").glob("photos-*px-*.npy"))) == 2


def test_methods_on_other_features_meet_the_same_tasks(config, tmp_path):
    config.update(methods="npc_l2,npc_l2(views=2)", shots="1")
    rows = evaluate(config.to_dict(), tmp_path / "run")["rows"]
    apart = []
    for views in (1, 2):
        config.update(methods="npc_l2", features={"views": views})
        found = evaluate(config.to_dict(), tmp_path / f"run{views}")
        apart.append(found["rows"][0]["accuracy"])
    assert [row["accuracy"] for row in rows] == apart
    assert apart[0] != apart[1]
    assert rows[1]["title"] == "NPC + l2 norm (views=2)"


def test_methods_may_be_left_out_before_they_began(config, tmp_path, monkeypatch):
    config.update(methods="npc,npc(views=2)", shots="1")
    compute = run._Run.compute

    def killed(self, missing):
        if missing.stage.group != "features":
            raise KeyboardInterrupt
        return compute(self, missing)

    with monkeypatch.context() as patch:
        patch.setattr(run._Run, "compute", killed)
        with pytest.raises(KeyboardInterrupt):
            evaluate(config.to_dict(), tmp_path / "run")
    config.methods = "npc"
    rows = evaluate(config.to_dict(), tmp_path / "run")["rows"]
    assert [row["method"] for row in rows] == ["npc"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("views=3", "views must be one of"),
        ("layers=block3:0", "positive weights"),
        ("layers=block9", "no layer 'block9'"),
    ],
)
def test_features_that_there_are_not_are_told_at_once(asked, message, config, tmp_path):
    config.methods = f"npc_l2({asked})"
    with pytest.raises(UserError, match=message):
        evaluate(config.to_dict(), tmp_path / "run")
    assert not (tmp_path / "run/ledger.jsonl").exists()


def test_methods_on_images_alone_embed_no_data_set(config, tmp_path, caplog):
    config.update(methods="rdc_ft", baseline="rdc_ft", shots="1", episodes=1)
    config.update(cache_dir=str(tmp_path / "cache"))
    config.finetune.update(steps=1)
    with caplog.at_level(logging.INFO, "rdc_jax"):
        evaluate(config.to_dict(), tmp_path / "run")
    assert "features of" not in caplog.text
    example = read_task(tmp_path / "run/examples/photos-1.npz")
    assert np.isfinite(example.features).all()


def test_unreadable_images_are_told_or_left_out(config, tmp_path, data_dir, caplog):
    config.update(data_dir=str(tmp_path / "data"), methods="npc", shots="1")
    shutil.copytree(data_dir, config.data_dir)
    (tmp_path / "data/photos/class0/0.png").write_bytes(b"not an image")
    with pytest.raises(UserError, match=r"1 of 45 images of photos cannot be read"):
        evaluate(config.to_dict(), tmp_path / "run")
    config.skip_unreadable = True
    found = evaluate(config.to_dict(), tmp_path / "run")
    assert "are left out" in caplog.text
    assert found["rows"][0]["accuracy"] > 25


def test_a_broken_image_is_found_before_anything_is_computed(config, tmp_path):
    root = worlds.write_images(tmp_path / "data")
    worlds.write_images(root, name="broken")
    (root / "broken/class4/8.png").write_bytes(b"not an image")
    config.update(data_dir=str(root), datasets="photos,broken", methods="npc")
    with pytest.raises(UserError, match=r"1 of 45 images of broken cannot be read"):
        evaluate(config.to_dict(), tmp_path / "run")
    assert not (tmp_path / "run/ledger.jsonl").exists()


def test_uneven_classes_can_be_asked_for(config, tmp_path):
    config.update(dirichlet=1.0, methods="npc", shots="1")
    found = evaluate(config.to_dict(), tmp_path / "run")
    assert "Dirichlet 1" in (tmp_path / "run/table.md").read_text()
    assert np.isfinite(found["rows"][0]["accuracy"])


def test_a_network_for_other_sizes_is_told(config, tmp_path, caplog):
    config.update(image_size=24, methods="npc", shots="1", episodes=2)
    evaluate(config.to_dict(), tmp_path / "run")
    assert "trained on 16 px, config.image_size is 24" in caplog.text


def test_methods_that_fine_tune_meet_the_same_tasks(config, tmp_path):
    config.update(methods="npc_l2,rdc_ft", shots="1", episodes=9, chunk=0)
    config.finetune.update(steps=4, record="0,2", learning_rate=1e-2)
    found = evaluate(config.to_dict(), tmp_path / "run")
    npc, tuned = found["rows"]
    assert tuned["title"] == "RDC-FT" and tuned["episodes"] == 9
    assert tuned["wins"] + tuned["losses"] > 0
    curve = {c["step"]: c["accuracy"] for c in found["curves"]}
    assert set(curve) == {0, 2, 4} and curve[4] == tuned["accuracy"]
    before, after = (
        read_task(tmp_path / "run/examples" / name)
        for name in ("photos-1.npz", "photos-1-rdc_ft.npz")
    )
    assert (before.trained_by, after.trained_by) == ("", "RDC-FT")
    assert not np.allclose(after.features, before.features, atol=1e-3)
    assert "Accuracy along fine-tuning" in (tmp_path / "run/table.md").read_text()
    # Before the first step, with the checkpoint's statistics, it is the baseline.
    config.finetune.batch_norm = "running"
    frozen = evaluate(config.to_dict(), tmp_path / "running")
    assert frozen["curves"][0]["accuracy"] == pytest.approx(npc["accuracy"], abs=1e-9)


def test_a_method_that_fine_tunes_goes_on_where_it_stopped(config, tmp_path):
    config.update(methods="rdc_ft", shots="1", episodes=5, chunk=2)
    config.finetune.update(steps=2, learning_rate=1e-2, augment=True)
    evaluate(config.to_dict(), tmp_path / "run")
    whole = content(tmp_path / "run")
    lines = whole["ledger.jsonl"].splitlines(keepends=True)
    (tmp_path / "run/ledger.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    evaluate(config.to_dict(), tmp_path / "run")
    assert content(tmp_path / "run") == whole


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("finetune.layers", "block9", "config.finetune.layers has 'block9'"),
        ("datasets", "photo", "unknown data set 'photo': did you mean photos"),
        ("datasets", "photos,{}/photos", "two data sets called 'photos'"),
        ("data_dir", "/nowhere", "data_dir /nowhere is not a folder"),
        ("checkpoint", "/nowhere", "/nowhere"),
        ("shots", "1,6", "photos has 0 classes with the 10 images that shot=6"),
        ("way", 6, "fewer than way=6"),
    ],
)
def test_mistakes_are_told_before_the_work(config, tmp_path, field, value, message):
    if field.startswith("finetune"):
        config.methods = "rdc_ft"
    if isinstance(value, str):
        value = value.format(config.data_dir)
    config.update_from_flattened_dict({field: value, "cache_dir": str(tmp_path / "c")})
    with pytest.raises(UserError, match=message) as caught:
        evaluate(config.to_dict(), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "c").exists()


def test_distractors_come_from_the_source_that_the_ledger_knows(config, tmp_path):
    config.update(methods="npc_l2", shots="1", episodes=2)
    evaluate(config.to_dict(), tmp_path / "run")
    conft = "conft(steps=2;distractors=4)"
    config.methods = f"npc_l2,{conft}"
    with pytest.raises(UserError, match=r"config.source is empty: give the data set"):
        evaluate(config.to_dict(), tmp_path / "run")
    config.source = f"{config.data_dir}/photos"
    found = evaluate(config.to_dict(), tmp_path / "run")
    assert [row["method"] for row in found["rows"]] == ["npc_l2", conft]
    assert len(found["provenance"]["data"]["source"]) >= 32
    before = content(tmp_path / "run")
    lines = before["ledger.jsonl"].splitlines(keepends=True)
    torn = b"".join(lines[:-1]) + lines[-1][:9]  # As by a kill in the last task.
    (tmp_path / "run/ledger.jsonl").write_bytes(torn)
    evaluate(config.to_dict(), tmp_path / "run")
    assert content(tmp_path / "run") == before
    # Other images of the source would be another system.
    other = worlds.write_images(tmp_path, name="others", per_class=3) / "others"
    config.source = str(other)
    with pytest.raises(UserError, match=r"holds a run with groups.*source="):
        evaluate(config.to_dict(), tmp_path / "run")
    config.methods = "conft(distractors=16)"
    with pytest.raises(UserError, match="has 15 images, fewer than the 16 distractors"):
        evaluate(config.to_dict(), tmp_path / "run2")


def test_without_a_checkpoint_a_backbone_is_trained_once(config, tmp_path, monkeypatch):
    trained = []

    def train(options, path):
        trained.append(options["source"])
        return worlds.write_checkpoint(path)

    monkeypatch.setattr("rdc_jax.pretrain.run.pretrain", train)
    config.update(checkpoint="", methods="npc", shots="1", episodes=2)
    evaluate(config.to_dict(), tmp_path / "run")
    assert trained == ["synthetic:objects"]
    assert (tmp_path / "run/backbone/checkpoints/1").is_dir()


FUNCTION = """
import numpy as np
from rdc_jax.models import Preprocessing, from_function

def load():
    wants = Preprocessing(size=16, edge=20, keep_aspect=True, mean=(0.5, 0.5, 0.5))
    def colours(images):
        assert type(images) is np.ndarray and images.shape[1:] == (16, 16, 3)
        return images.reshape(len(images), 4, 4, 4, 4, 3).mean((2, 4)).reshape(-1, 48)
    return from_function(colours, preprocessing=wants)
"""


def test_a_function_of_a_file_is_evaluated(config, tmp_path, caplog):
    (tmp_path / "mine.py").write_text(FUNCTION)
    config.checkpoint = f"{tmp_path / 'mine.py'}:load"
    config.shots, config.methods = "1", "npc_l2"
    with caplog.at_level(logging.INFO, "rdc_jax"):
        found = evaluate(config.to_dict(), tmp_path / "run")
    assert found["rows"][0]["accuracy"] > 30
    assert "images of the model: shorter side to 20 px (bilinear)" in caplog.text
    checkpoint = found["provenance"]["checkpoint"]
    assert checkpoint["arch"] == "colours"
    assert "mean 0.5 0.5 0.5" in checkpoint["preprocessing"]
    config.preprocessing.resize = "squeeze:24"
    with pytest.raises(UserError, match=r"preprocessing"):
        evaluate(config.to_dict(), tmp_path / "run")
    config.methods, config.chunk = "rdc_ft", 4
    with pytest.raises(UserError, match="colours is a function"):
        evaluate(config.to_dict(), tmp_path / "other")


def test_models_that_want_other_pixels_are_not_mixed(config, tmp_path):
    (tmp_path / "mine.py").write_text(FUNCTION)
    config.checkpoints = f"mine={tmp_path / 'mine.py'}:load"
    config.methods = "npc_l2,npc_l2@mine"
    with pytest.raises(UserError, match=r"config\.checkpoints\.mine wants its images"):
        evaluate(config.to_dict(), tmp_path / "run")
