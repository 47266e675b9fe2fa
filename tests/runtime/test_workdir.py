import pytest

from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.workdir import claim, record_run


def test_a_work_directory_has_one_run_at_a_time(tmp_path):
    with (
        claim(tmp_path / "run"),
        pytest.raises(UserError, match="another run is using"),
        claim(tmp_path / "run"),
    ):
        pass
    with claim(tmp_path / "run"):
        pass


def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match="cannot write to the workdir"),
        claim(tmp_path / "file/run"),
    ):
        pass


def test_the_field_that_differs_is_named(tmp_path):
    record = {"config": {"seed": 0, "optimiser": {"name": "adam"}, "data_dir": "/a"}}
    record_run(tmp_path, record)
    record_run(tmp_path, record)
    record["config"]["data_dir"] = "/b"
    record_run(tmp_path, record)
    record["config"]["optimiser"]["name"] = "sgd"
    with pytest.raises(UserError, match=r"config.optimiser.name='adam', .* 'sgd'"):
        record_run(tmp_path, record)


def test_a_damaged_record_is_one_clear_line(tmp_path):
    (tmp_path / "run.json").write_text('{"config": ')
    with pytest.raises(UserError, match=r"run\.json is damaged"):
        record_run(tmp_path, {"config": {}})
