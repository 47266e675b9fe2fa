import resource

import jaxtyping
import pytest
import tiny
from evaluation import worlds
from torture import effort
from torture.programs import ROOT, TESTS, Program

from rdc_jax.configs import eval as eval_config
from rdc_jax.models import BACKBONES


@pytest.fixture
def no_type_checks():
    """As outside the tests, where annotations are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    return worlds.write_images(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    return worlds.write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def programs(photos, checkpoint, compiled_dir, tmp_path_factory):
    """The commands that are stopped, by name; caches are in their work directories."""
    images = str(tiny.write_images(tmp_path_factory.mktemp("images")))
    evaluation = {
        "config": f"{ROOT}/configs/eval.py:test",
        "config.datasets": "photos",
        "config.data_dir": str(photos),
        "config.checkpoint": str(checkpoint),
        "config.methods": "npc_l2,rdc",
        "config.shots": "1,2",
        "config.query": 4,
        "config.episodes": 40,
        "config.chunk": 2,
    }
    finetuning = {
        "config.methods": "npc_l2,rdc,rdc_ft",
        "config.shots": "1",
        "config.episodes": 8,
        "config.finetune.steps": 3,
        "config.finetune.record": "1",
    }
    training = {
        "config": f"{ROOT}/configs/pretrain.py:test",
        "config.source": "tiny",
        "config.data_dir": images,
        "config.image_size": tiny.SIZE,
        "config.stored_size": tiny.SIZE,
        "config.epochs": 3,
        "config.steps_per_epoch": 4,
        "config.log_every": 2,
        "config.checkpoint_every": 2,
        "config.ema": 0.9,
        "config.validation.way": 3,
        "config.validation.query": 4,
        "config.validation.episodes": 8,
    }
    eval_script, train_script = (
        TESTS / part / "program.py" for part in ("evaluation", "pretrain")
    )
    return {
        "rdc": Program(eval_script, evaluation, compiled_dir),
        "rdc_ft": Program(eval_script, evaluation | finetuning, compiled_dir),
        "pretrain": Program(train_script, training, compiled_dir),
    }


@pytest.fixture
def config(programs, monkeypatch):
    """The evaluation with RDC-FT, for this process."""
    monkeypatch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
    config = eval_config.get_config("test")
    flags = {k.removeprefix("config."): v for k, v in programs["rdc_ft"].flags.items()}
    del flags["config"]
    config.update_from_flattened_dict(flags)
    return config


def pytest_terminal_summary(terminalreporter):
    """Say what was survived; docs/reliability.md has the figures of a long run."""
    if effort.tally:
        terminalreporter.section("torture")
        for name, number in sorted(effort.tally.items()):
            terminalreporter.write_line(f"{number:,} {name}")
        terminalreporter.write_line(f"the same again: make torture SEED={effort.SEED}")
        # Not RUSAGE_CHILDREN: a process that is started counts this one's memory.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for peak, name in ((own, "tests"), (effort.programs_peak, "programs")):
            terminalreporter.write_line(f"{peak / 1024:,.0f} MB peak memory of {name}")
