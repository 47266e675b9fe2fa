"""Results and tasks made up for tests of the report."""

import dataclasses
import json

import numpy as np

from rdc_jax.core.params import RDCParams
from rdc_jax.evaluation import exhibit_file
from rdc_jax.evaluation.exhibit_file import Answers, Exhibit
from rdc_jax.reporting.runs import Run

TITLES = {"npc_l2": "NPC + l2 norm", "rdc": "RDC", "rdc_ft": "RDC-FT"}
EPISODES = 100


def row(dataset, shot, method, accuracy, gain=None, **fields):
    """A row of ``results.json``; ``gain`` is a mean and an interval."""
    made = {
        "dataset": dataset,
        "shot": shot,
        "method": method,
        "title": TITLES.get(method, method),
        "transductive": method.startswith("rdc"),
        "episodes": EPISODES,
        "accuracy": accuracy,
        "ci95": 1.0,
    }
    if gain is not None:
        made |= {"baseline": "npc_l2", "gain": gain[0], "gain_ci95": gain[1]}
        made |= {"wins": 60, "losses": 30}
    return made | fields


def pair(dataset, shot, gain, *, method="rdc", base=50.0):
    """The baseline's row and that of a method."""
    return [
        row(dataset, shot, "npc_l2", base),
        row(dataset, shot, method, base + gain[0], gain),
    ]


def make_results(rows=None, *, trained=(), curves=(), **config):
    """Content of a ``results.json``; by default RDC helps on cub in 1-shot only."""
    rows = rows or [
        *pair("cub", 1, (3.0, 0.5), base=40.0),
        *pair("my photos", 1, (0.2, 0.4)),
        *pair("cub", 5, (-0.1, 0.4), base=60.0),
        *pair("my photos", 5, (-2.0, 0.5), base=70.0),
    ]
    places = dict.fromkeys((r["shot"], r["dataset"]) for r in rows)
    return {
        "format": 1,
        "title": "Made up",
        "rows": rows,
        "averages": [
            {
                "shot": shot,
                "method": method,
                "accuracy": float(
                    np.mean(
                        [
                            r["accuracy"]
                            for r in rows
                            if (r["shot"], r["method"]) == (shot, method)
                        ]
                    )
                ),
            }
            for shot, method in dict.fromkeys((r["shot"], r["method"]) for r in rows)
        ],
        "curves": list(curves),
        "neighbours": [
            {
                "dataset": dataset,
                "shot": shot,
                "purity_before": 50.0,
                "purity_after": 45.5,
                "neighbours_before": 6.0,
                "neighbours_after": 8.0,
                "jaccard_one": 12.0,
            }
            for shot, dataset in places
        ],
        "warnings": ["cub 5-shot: rdc loses 1.00 ± 0.50 points to npc_l2"],
        "examples": f"seed {config.get('seed', 7)}",
        "provenance": {
            "config": {
                "way": 5,
                "query": 15,
                "episodes": EPISODES,
                "image_size": 84,
                "seed": 7,
                "dirichlet": 0.0,
                "datasets": "cub,/home/ann/my photos",
                "data_dir": "/home/ann/secret/data",
                "checkpoint": "runs/backbone",
                "pretrain": {"init_from": "/home/ann/weights.tar"},
                "rdc": dataclasses.asdict(RDCParams()),
                "finetune": {"steps": 20, "learning_rate": 1e-3, "layers": ""},
                **config,
            },
            "checkpoint": {
                "arch": "resnet10",
                "fingerprint": "c0ffee" * 8,
                "training": "on glyphs, 84 px",
            },
            "data": {"cub": "d1" * 16, "my photos": "d2" * 16},
            "versions": {"jax": "1.2.3"},
            "backend": {"platform": "cpu", "device": "cpu"},
            "columns": {"features": ["npc_l2", "rdc"]} | {m: [m] for m in trained},
        },
    }


def make_run(*args, **kwargs):
    return Run(make_results(*args, **kwargs))


def make_exhibit(results, *, dataset="cub", shot=1, names=("owl", "wren", "jay")):
    """A task of three classes with two queries each, one of which NPC gets wrong."""
    rng = np.random.default_rng(shot)
    labels = np.concatenate([np.repeat(np.arange(3), shot), np.repeat(np.arange(3), 2)])
    centres = 4 * np.eye(3, 8)
    feat = (centres[labels] + rng.normal(size=(len(labels), 8))).astype(np.float32)
    dist = np.linalg.norm(feat[:, None] - feat, axis=-1).astype(np.float32)
    right = labels[3 * shot :].astype(np.int32)
    wrong = right.copy()
    wrong[0] = 2
    return Exhibit(
        run=results["examples"],
        dataset=dataset,
        shot=shot,
        episode=0,
        class_names=names,
        support_size=3 * shot,
        labels=labels.astype(np.int32),
        images=rng.integers(0, 256, (len(labels), 16, 16, 3)).astype(np.uint8),
        before=Answers(
            features=feat, npc=wrong, rdc=right, original=dist, calibrated=dist**2
        ),
    )


def write_run(workdir, results, *made):
    """A work directory with results and exhibits."""
    workdir.mkdir(parents=True, exist_ok=True)
    (workdir / "results.json").write_text(json.dumps(results))
    for one in made:
        exhibit_file.save(exhibit_file.path_of(workdir, one.dataset, one.shot), one)
    return workdir
