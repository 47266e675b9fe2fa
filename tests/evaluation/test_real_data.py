"""On real images, with a real network."""

import pytest

from rdc_jax.configs import eval as eval_config
from rdc_jax.evaluation.run import evaluate


@pytest.mark.slow
def test_calibration_helps_on_eurosat(shared_dir, tmp_path):
    config = eval_config.get_config("reduced")
    config.update(
        data_dir=str(shared_dir / "data"),
        checkpoint=str(shared_dir / "weights/resnet10_miniimagenet84.tar"),
        datasets="eurosat",
        shots="1",
        episodes=64,
    )
    found = evaluate(config.to_dict(), tmp_path)
    rows = {row["method"]: row for row in found["rows"]}
    assert 50 < rows["npc_l2"]["accuracy"] < 66
    assert rows["rdc"]["gain"] - rows["rdc"]["gain_ci95"] > 0
    assert rows["rdc"]["accuracy"] > rows["rdc_one_space"]["accuracy"]
