"""Tasks kept for pictures: the first ones of the run, and of no other run."""

import dataclasses
import json

import numpy as np
import pytest
from evaluation import worlds
from PIL import Image

import rdc_jax
from rdc_jax.evaluation import exhibit_file, exhibits
from rdc_jax.evaluation.run import evaluate
from rdc_jax.runtime.errors import UserError


@pytest.fixture(scope="module")
def made():
    """An exhibit that needs no evaluation."""
    feat_nd, labels = worlds.make_features(classes=4, per_class=7)
    order = np.argsort(np.arange(28) % 7, kind="stable")  # one of each class first
    feat_nd, labels = feat_nd[order], labels[order]
    answers = exhibit_file.Answers(
        features=feat_nd,
        npc=np.zeros(20, np.int32),
        rdc=np.ones(20, np.int32),
        original=np.zeros((28, 28), np.float32),
        calibrated=np.ones((28, 28), np.float32),
    )
    return exhibit_file.Exhibit(
        run="this run",
        dataset="tfds:eurosat/rgb",
        shot=2,
        episode=0,
        class_names=("a", "b,c", "ü", ""),
        support_size=8,
        labels=labels,
        images=np.zeros((28, 8, 8, 3), np.uint8),
        before=answers,
    )


def assert_same(one, other):
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, exhibit_file.Answers):
            assert_same(a, b)
        else:
            np.testing.assert_array_equal(a, b)


def test_the_first_task_is_answered_as_in_the_ledger(config, tmp_path, data_dir):
    config.update(methods="npc_l2,rdc", episodes=2)
    found = evaluate(config.to_dict(), tmp_path)
    # After the header and the line of the group of methods.
    lines = (tmp_path / "ledger.jsonl").read_text().splitlines()[2:]
    records = [json.loads(line.split(" ", 1)[1]) for line in lines]
    first = {shot: counts for _, shot, _, i, counts in records if i == 0}
    for shot in (1, 2):
        made = exhibit_file.read(exhibit_file.path_of(tmp_path, "photos", shot))
        assert made.run == exhibits.digest(found["provenance"])
        assert (made.shot, made.support_size) == (shot, 5 * shot)
        for place, answers_q in enumerate((made.before.npc, made.before.rdc)):
            assert (answers_q == made.query_labels).sum() == first[shot][place]
    names = sorted(path.name for path in (tmp_path / "exhibits").iterdir())
    assert names == ["photos-1.npz", "photos-2.npz"]
    assert_images_are_of_their_classes(made, data_dir / "photos")


def assert_images_are_of_their_classes(made, folder):
    for image, label in zip(made.images, made.labels, strict=True):
        files = sorted((folder / made.class_names[label]).iterdir())
        colours = [np.asarray(Image.open(file)).mean(axis=(0, 1)) for file in files]
        # Thumbnails are resized, which hardly moves the mean colour.
        gap = np.abs(np.array(colours) - image.mean(axis=(0, 1))).max(axis=1)
        assert gap.min() < 2


def test_exhibits_are_kept_by_a_resumed_run_and_replaced_by_another(config, tmp_path):
    config.update(shots="1", episodes=4)
    evaluate(config.to_dict(), tmp_path)
    path = exhibit_file.path_of(tmp_path, "photos", 1)
    kept = exhibit_file.read(path)
    exhibits.add_after(path, kept.before.features, worlds.PARAMS, "RDC-FT")
    config.episodes = 6
    evaluate(config.to_dict(), tmp_path)
    assert exhibit_file.read(path).after_title == "RDC-FT"
    (tmp_path / "ledger.jsonl").unlink()
    config.seed = 1
    evaluate(config.to_dict(), tmp_path)
    other = exhibit_file.read(path)
    assert other.after is None and other.run != kept.run
    assert not np.array_equal(other.before.features, kept.before.features)


def test_without_calibration_there_is_nothing_to_show(config, tmp_path):
    config.update(methods="npc,npc_l2", shots="1", episodes=2)
    evaluate(config.to_dict(), tmp_path)
    assert not (tmp_path / "exhibits").exists()


def test_what_is_saved_is_read(made, tmp_path):
    path = exhibit_file.path_of(tmp_path, made.dataset, made.shot)
    exhibit_file.save(path, made)
    assert path == tmp_path / "exhibits/tfds_eurosat_rgb-2.npz"
    assert_same(made, exhibit_file.read(path))
    before = path.read_bytes()
    exhibit_file.save(path, made)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_fine_tuned_features_are_answered_by_the_public_functions(made, tmp_path):
    path = tmp_path / "one.npz"
    exhibit_file.save(path, made)
    feat_nd = made.before.features[:, ::-1] + 1
    exhibits.add_after(path, feat_nd, worlds.PARAMS, "RDC-FT")
    found = exhibit_file.read(path)
    s = made.support_size
    task = (feat_nd[:s], made.labels[:s], feat_nd[s:])
    out = rdc_jax.rdc(*task, num_classes=4, params=worlds.PARAMS)
    np.testing.assert_array_equal(found.after.features, feat_nd)
    np.testing.assert_array_equal(found.after.rdc, out.class_distances.argmin(axis=1))
    npc = rdc_jax.npc(*task, num_classes=4).argmin(axis=1)
    np.testing.assert_array_equal(found.after.npc, npc)
    np.testing.assert_allclose(found.after.calibrated, out.distances, atol=1e-6)
    np.testing.assert_allclose(found.after.original, out.original, atol=1e-6)
    assert found.after_title == "RDC-FT"
    assert_same(made.before, found.before)


def test_a_run_goes_by_what_decides_on_its_tasks():
    header = {"config": {"seed": 0, "episodes": 5}, "data": {"cub": "d1"}}
    more = {**header, "config": {"seed": 0, "episodes": 9, "data_dir": "/elsewhere"}}
    other = {**header, "config": {"seed": 1, "episodes": 5}}
    assert exhibits.digest(header) == exhibits.digest(more)
    assert exhibits.digest(header) != exhibits.digest(other)
    assert exhibits.digest(header) != exhibits.digest({**header, "data": {}})


@pytest.mark.parametrize("content", [b"", b"torn", b"PK\x05\x06" + bytes(18)])
def test_damage_is_told(tmp_path, content):
    path = tmp_path / "cub-1.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"cub-1\.npz is damaged or no exhibit: delete"):
        exhibit_file.read(path)


def test_damage_inside_is_told(made, tmp_path):
    path = tmp_path / "cub-1.npz"
    exhibit_file.save(path, made)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :: 7] = b"x" * len(content[len(content) // 2 :: 7])
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged or no exhibit"):
        exhibit_file.read(path)


def test_a_place_that_cannot_be_written_is_told(made, tmp_path):
    (tmp_path / "exhibits").write_text("a file")
    with pytest.raises(UserError, match=r"cannot write .*make room"):
        exhibit_file.save(exhibit_file.path_of(tmp_path, "cub", 1), made)
