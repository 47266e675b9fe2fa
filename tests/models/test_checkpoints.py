import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdc_jax.models.checkpoints import Checkpoints, find_step, load_variables
from rdc_jax.runtime.errors import UserError


def _variables(step):
    return {"params": {"w": jnp.arange(6.0).reshape(2, 3) + step}}


def _save(checkpoints, step, score=None):
    checkpoints.save(
        step,
        variables=_variables(step),
        training={"momentum": (jnp.full(3, step), {})},
        metadata={"arch": "resnet10"},
        score=score,
    )


def _abstract(tree):
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree
    )


def _restore(checkpoints):
    return checkpoints.restore_latest(
        _abstract(_variables(0)), _abstract({"momentum": (jnp.full(3, 0), {})})
    )


@pytest.fixture
def workdir(tmp_path):
    """Steps 1 to 4, the best of which is 2; 3 has no score."""
    with Checkpoints(tmp_path / "checkpoints") as checkpoints:
        for step, score in ((1, 0.1), (2, 0.9), (3, None), (4, 0.5)):
            _save(checkpoints, step, score)
    return tmp_path


def _damage(step_dir):
    for path in (step_dir / "variables").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")


def test_the_two_latest_and_the_best_are_kept(workdir):
    with Checkpoints(workdir / "checkpoints") as checkpoints:
        assert checkpoints.steps == [2, 3, 4]
        assert checkpoints.best_step == 2


def test_restored_is_what_was_saved(workdir):
    with Checkpoints(workdir / "checkpoints") as checkpoints:
        got = _restore(checkpoints)
    assert got.step == 4
    np.testing.assert_array_equal(
        got.variables["params"]["w"], jnp.arange(6.0).reshape(2, 3) + 4
    )
    assert isinstance(got.training["momentum"], tuple)
    np.testing.assert_array_equal(got.training["momentum"][0], [4, 4, 4])
    assert got.metadata == {"arch": "resnet10", "step": 4, "score": 0.5}


def test_nothing_to_restore_is_none(tmp_path):
    with Checkpoints(tmp_path / "new") as checkpoints:
        assert _restore(checkpoints) is None


@pytest.mark.parametrize(
    ("suffix", "step"),
    [
        ("", 2),
        ("checkpoints", 2),
        ("best", 2),
        ("latest", 4),
        ("checkpoints/best", 2),
        ("checkpoints/latest", 4),
        ("checkpoints/3", 3),
    ],
)
def test_a_path_may_name_a_run_or_one_of_its_steps(workdir, suffix, step):
    variables, metadata = load_variables(workdir / suffix)
    assert metadata["step"] == step
    assert isinstance(variables["params"]["w"], np.ndarray)
    np.testing.assert_array_equal(
        variables["params"]["w"], _variables(step)["params"]["w"]
    )


def test_a_step_directory_may_be_renamed(workdir):
    (workdir / "checkpoints/3").rename(workdir / "backbone")
    assert load_variables(workdir / "backbone")[1]["step"] == 3


def test_resume_falls_back_to_the_previous_good_step(workdir, caplog):
    _damage(workdir / "checkpoints/4")
    with Checkpoints(workdir / "checkpoints") as checkpoints:
        assert _restore(checkpoints).step == 3
        assert "step 4 is unreadable" in caplog.text
        _save(checkpoints, 4, 0.95)  # The number is free again.
        assert checkpoints.best_step == 4
    assert (workdir / "checkpoints/4.damaged").is_dir()
    assert load_variables(workdir)[1]["step"] == 4


def test_no_readable_step_is_one_clear_line(workdir):
    for step in (2, 3, 4):
        _damage(workdir / f"checkpoints/{step}")
    with (
        Checkpoints(workdir / "checkpoints") as checkpoints,
        pytest.raises(UserError, match=r"no checkpoint in .* can be read"),
    ):
        _restore(checkpoints)


def test_damaged_weights_are_one_clear_line(workdir):
    _damage(workdir / "checkpoints/3")
    with pytest.raises(UserError, match=r"3 is damaged: .*use another step") as caught:
        load_variables(workdir / "checkpoints/3")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["missing", "empty", "foreign"])
def test_a_foreign_directory_is_one_clear_line(tmp_path, kind):
    path = tmp_path / kind
    if kind != "missing":
        path.mkdir()
    if kind == "foreign":
        (path / "7").mkdir()
        (path / "7/model.bin").write_bytes(b"x")
    with pytest.raises(UserError, match=str(path)):
        find_step(path)


def test_an_interrupted_save_leaves_no_step(workdir):
    unfinished = workdir / "checkpoints/5.orbax-checkpoint-tmp"
    shutil.copytree(workdir / "checkpoints/4", unfinished)
    with Checkpoints(workdir / "checkpoints") as checkpoints:
        assert checkpoints.steps == [2, 3, 4]
        _save(checkpoints, 5)
        assert checkpoints.steps == [2, 4, 5]
    assert not unfinished.exists()


def test_a_full_disk_is_found_before_it_is_written_to(workdir, monkeypatch):
    usage = shutil.disk_usage(workdir)._replace(free=2**20)
    with Checkpoints(workdir / "checkpoints") as checkpoints:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        with pytest.raises(
            UserError, match=r"1\.0 MB free, a checkpoint needs 8\.0 MB"
        ):
            _save(checkpoints, 9)
        assert checkpoints.steps == [2, 3, 4]


def test_a_failed_write_is_one_clear_line(workdir, monkeypatch):
    with Checkpoints(workdir / "checkpoints") as checkpoints:

        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoints._manager, "save", full)
        with pytest.raises(UserError, match=r"step 9 .*MB free.*No space left"):
            _save(checkpoints, 9)
        assert checkpoints.steps == [2, 3, 4]
