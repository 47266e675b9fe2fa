"""Results and tasks made up for tests of the report."""

import dataclasses
import io
import json

import numpy as np
from PIL import Image

from rdc_jax.core import statistics
from rdc_jax.core.params import RDCParams
from rdc_jax.evaluation import published
from rdc_jax.reporting.example_tasks import FOLDER, ExampleTask
from rdc_jax.reporting.runs import Run
from rdc_jax.runtime import checksums

TITLES = {"npc_l2": "NPC + l2 norm", "rdc": "RDC", "rdc_ft": "RDC-FT"}
EPISODES = 100
CLASSES = ("owl", "wren", "jay", "a class of a very long name", "dodo")


def row(dataset, shot, method, accuracy, gain=None, **fields):
    """A row of ``results.json``; ``gain`` is a mean and an interval."""
    made = {
        "dataset": dataset,
        "shot": shot,
        "method": method,
        "title": TITLES.get(method, method),
        "transductive": method.startswith("rdc"),
        "adapts": method.startswith(("rdc_ft", "finetune")),
        "episodes": EPISODES,
        "accuracy": accuracy,
        "ci95": 1.0,
        "macro_f1": accuracy - 2,
        "macro_f1_ci95": 1.5,
        "balanced_accuracy": accuracy - 1,
        "balanced_accuracy_ci95": 1.25,
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


def classes(r, names=CLASSES):
    """Confusions of a row: nobody asked for the last class."""
    k = len(names)
    confusion = 10 * np.eye(k, dtype=int) + np.arange(k) + r["shot"]
    confusion[-1] = 0
    return {
        **{name: r[name] for name in ("dataset", "shot", "method", "title")},
        "confusion": confusion.tolist(),
        "class_accuracy": [90.0 - 10 * c for c in range(k - 1)] + [None],
        "confused": [
            {"class": names[0], "answer": names[1], "queries": 1200, "share": 41.25}
        ],
    }


def hardest(results, *, image="a<b>.jpg"):
    """Two images of every data set and shot, which both methods find hard."""
    found = []
    for shot, dataset in dict.fromkeys(
        (r["shot"], r["dataset"]) for r in results["rows"]
    ):
        for tasks in (4, 2):
            found.append(
                {
                    **{"dataset": dataset, "shot": shot, "image": image},
                    **{"class": CLASSES[0], "answer": CLASSES[1], "tasks": tasks},
                    "wrong": {"npc_l2": tasks, "rdc": tasks // 2},
                }
            )
    return found


def write_hardest(workdir, results):
    """Thumbnails as an evaluation leaves them, beside rows of them in the results."""
    rows, buffer = hardest(results), io.BytesIO()
    Image.new("RGB", (20, 20), "teal").save(buffer, "JPEG")
    jpeg = np.frombuffer(buffer.getvalue(), np.uint8)
    np.savez(workdir / "hardest.npz", **{str(i): jpeg for i in range(len(rows))})
    digest = checksums.of_file(workdir / "hardest.npz")
    return results | {"hardest": rows, "thumbnails": digest}


def foreign(r, auroc=70.0):
    """A row of a run whose tasks have queries of no class."""
    return r | {"auroc": auroc, "auroc_ci95": 0.5, "fpr95": 81.0, "fpr95_ci95": 0.7}


def average(rows):
    """The mean of one method's rows over the data sets."""
    made = {name: rows[0][name] for name in ("shot", "method", "title")}
    made["accuracy"] = float(np.mean([r["accuracy"] for r in rows]))
    if "auroc" in rows[0]:
        made |= {"auroc": rows[0]["auroc"], "fpr95": rows[0]["fpr95"]}
    if "gain" in rows[0]:
        gains = [(r["gain"], r["gain_ci95"]) for r in rows]
        gain = statistics.average(gains, [r["episodes"] for r in rows])
        made |= {"gain": gain.mean, "gain_ci95": gain.ci95}
    return made


def make_results(rows=None, *, curves=(), **config):
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
            average([r for r in rows if (r["shot"], r["method"]) == key])
            for key in dict.fromkeys((r["shot"], r["method"]) for r in rows)
        ],
        "published": published.collect(
            rows, way=config.get("way", 5), systems=config.get("systems", False)
        ),
        "class_names": {dataset: list(CLASSES) for _, dataset in places},
        "classes": [classes(r) for r in rows],
        "curves": list(curves),
        "purity": [],
        "neighbours": [
            {
                "dataset": dataset,
                "shot": shot,
                "purity_before": 50.0,
                "purity_after": 45.5,
                "neighbours_before": 6.0,
                "neighbours_after": 8.0,
                "jaccard_one": 12.0,
                "hub_skewness": 0.75,
                "hubs": 8.5,
                "anti_hubs": 3.0,
            }
            for shot, dataset in places
        ],
        "warnings": ["5-shot: RDC loses to NPC + l2 norm on cub (1.00 ± 0.50 points)"],
        "examples": f"seed {config.get('seed', 7)}",
        "provenance": {
            "config": {
                "way": 5,
                "query": 15,
                "episodes": EPISODES,
                "image_size": 84,
                "seed": 7,
                "dirichlet": 0.0,
                "datasets": "cub,…/my photos",
                "checkpoint": "…/backbone",
                "pretrain": {"init_from": "…/weights.tar"},
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
        },
    }


def make_run(*args, **kwargs):
    return Run(make_results(*args, **kwargs))


def make_task(results, *, dataset="cub", shot=1, names=("owl", "wren", "jay")):
    """A task of three classes with two queries each, one of which NPC gets wrong."""
    rng = np.random.default_rng(shot)
    labels = np.concatenate([np.repeat(np.arange(3), shot), np.repeat(np.arange(3), 2)])
    centres = 4 * np.eye(3, 8)
    feat = (centres[labels] + rng.normal(size=(len(labels), 8))).astype(np.float32)
    right = labels[3 * shot :].astype(np.int32)
    wrong = right.copy()
    wrong[0] = 2
    return ExampleTask(
        run=results["examples"],
        dataset=dataset,
        shot=shot,
        trained_by="",
        class_names=names,
        labels_s=labels[: 3 * shot].astype(np.int32),
        labels_q=right,
        features=feat,
        npc=wrong,
        rdc=right,
    )


def write_task(path, task):
    """A file like those of an evaluation."""
    path.parent.mkdir(exist_ok=True)
    names = np.array(task.class_names)
    np.savez_compressed(path, **task._asdict() | {"class_names": names})


def write_run(workdir, results, *tasks):
    """A work directory with results and example tasks."""
    workdir.mkdir(parents=True, exist_ok=True)
    (workdir / "results.json").write_text(json.dumps(results))
    for number, task in enumerate(tasks):
        write_task(workdir / FOLDER / f"{number}.npz", task)
    return workdir
