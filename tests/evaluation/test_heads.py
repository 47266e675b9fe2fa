"""Heads of several checkpoints beside methods on features, on the same tasks."""

import jax
import numpy as np
import pytest
import tiny

from rdc_jax.evaluation.run import evaluate
from rdc_jax.models import BACKBONES
from rdc_jax.models.checkpoints import Checkpoints
from rdc_jax.models.model import Spec
from rdc_jax.pretrain.objectives.episodic import Episodic
from rdc_jax.runtime.errors import UserError

WAY = 4
SMALL = {"way": WAY, "width": 6, "growth": 4, "edge_width": 8}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Of heads that have not been trained, by name."""
    paths = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BACKBONES, "resnet10", tiny.TinyNet)
        patch.setitem(BACKBONES, "tiny_maps", tiny.TinyResNet)
        for name, arch, options in (
            ("gnn", "resnet10", SMALL),
            ("tpn", "tiny_maps", {"k": 5}),
        ):
            paths[name] = tmp_path_factory.mktemp(name)
            spec = Spec(arch, head=name, head_options=tuple(sorted(options.items())))
            objective = Episodic(spec, WAY, 1, name)
            init = jax.jit(objective.init, static_argnums=1)
            with Checkpoints(paths[name] / "checkpoints") as saved:
                saved.save(
                    1,
                    variables=init(jax.random.key(0), tiny.SIZE),
                    training={"step": np.asarray(1, np.int32)},
                    metadata={
                        "arch": arch,
                        "head": name,
                        "head_options": options,
                        "method": name,
                        "image_size": tiny.SIZE,
                    },
                )
        yield paths


def test_each_answers_by_its_own_model(config, checkpoints, tmp_path):
    methods = (
        *("npc_l2", "rdc@a", "gnn@a", "gnn(layout=shuffled)@a", "gnn_balanced@a"),
        *("tpn@b", "npc_l2@b", "tpn_by_batch@b"),
    )
    config.update(
        methods=",".join(methods),
        checkpoints=f"a={checkpoints['gnn']},b={checkpoints['tpn']}",
        way=WAY,
        shots="1",
        episodes=3,
    )
    rows = evaluate(config.to_dict(), tmp_path / "run")["rows"]
    assert {row["method"] for row in rows} == set(methods)
    assert all(row["episodes"] == 3 for row in rows)
    by_name = {row["method"]: row for row in rows}
    assert by_name["gnn@a"]["transductive"] and by_name["tpn@b"]["transductive"]
    assert "query labels" in by_name["gnn_balanced@a"]["title"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": "gnn"}, "method gnn: it needs a model with a gnn head"),
        ({"methods": "gnn@b"}, "with a gnn head, this checkpoint has tpn"),
        ({"methods": "gnn@a", "way": 3}, "for 4 classes, the tasks have 3: set"),
        ({"methods": "tpn@b", "image_size": 32}, "must have the size it was trained"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(
    config, checkpoints, tmp_path, change, message
):
    config.update(way=WAY, shots="1", episodes=3)
    config.update(checkpoints=f"a={checkpoints['gnn']},b={checkpoints['tpn']}")
    config.update(change)
    config.baseline = change["methods"]
    with pytest.raises(UserError, match=message):
        evaluate(config.to_dict(), tmp_path / "run")
