import types

import pytest

from rdc_jax.pretrain.curves import plot
from rdc_jax.pretrain.logs import MetricsLog, read_metrics
from rdc_jax.pretrain.options import crop_sizes, parse_phases
from rdc_jax.runtime.errors import UserError


def test_lines_after_the_resumed_step_are_cut_off(tmp_path):
    with MetricsLog(tmp_path, step=0) as log:
        for step in (2, 4, 6):
            log.write(step, {"epoch": step / 2, "loss": 1.0 / step})
    with MetricsLog(tmp_path, step=4) as log:
        log.write(6, {"epoch": 3.0, "loss": 9.0})
    assert [line["loss"] for line in read_metrics(tmp_path)] == [0.5, 0.25, 9.0]


def test_a_line_cut_short_by_a_kill_is_dropped(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 2, "loss": 1.0}\n{"step": 4, "lo')
    with MetricsLog(tmp_path, step=4) as log:
        log.write(6, {"loss": 0.5})
    assert [line["step"] for line in read_metrics(tmp_path)] == [2, 6]


def test_a_full_disk_is_one_clear_line(tmp_path, monkeypatch):
    def full(text):
        raise OSError(28, "No space left on device")

    with MetricsLog(tmp_path, step=0) as log:
        stand_in = types.SimpleNamespace(
            write=full, name="metrics", close=log._file.close
        )
        monkeypatch.setattr(log, "_file", stand_in)
        with pytest.raises(UserError, match=r"cannot write metrics: No space left"):
            log.write(1, {"loss": 1.0})


def test_the_last_phase_lasts_to_the_end():
    phases = parse_phases("8:0.3,12:0.3", 16)
    assert crop_sizes(phases, 10) == [8] * 3 + [12] * 3 + [16] * 4


@pytest.mark.parametrize("text", ["48", "48:x", "48:-1", "0:0.5", "48:0.7,64:0.7"])
def test_impossible_phases_are_refused(text):
    with pytest.raises(UserError, match=r"config\.phases"):
        parse_phases(text, 84)


def test_curves_are_drawn_from_the_record(tmp_path):
    lines = [
        {"step": 1, "epoch": 0.5, "loss": 2.0, "accuracy": 10.0},
        {"step": 2, "epoch": 1.0, "val_5way_1shot": 30.0, "val_5way_5shot": 40.0},
    ]
    plot(lines, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match="logged nothing"):
        plot([], tmp_path / "none.png")
    with pytest.raises(UserError, match="cannot read"):
        read_metrics(tmp_path)
