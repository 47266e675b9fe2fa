"""Which pictures may be of none of the classes? How well that is told, on real images.

    python benchmarks/unknown.py --data_dir=DATA [--checkpoint=PATH] [--tasks=300]

Draws few-shot tasks from each data set under --data_dir, with pictures of other classes
among those to classify, and scores them as ``python -m rdc_jax.predict`` does. Prints
AUROC, and the shares of pictures of the classes and of others that are flagged.
"""

import argparse
import tempfile

import numpy as np
from reliability import DATASETS, QUERY, WAY, features_of

from rdc_jax.core.statistics import mean
from rdc_jax.data.distractor_queries import NO_CLASS, DistractorQueries
from rdc_jax.data.tasks import TaskSampler, TaskSpec
from rdc_jax.predict.classify import Options
from rdc_jax.predict.embedding import Embedder
from rdc_jax.predict.task import Support, plain_distances
from rdc_jax.predict.unknown import unknown_shares
from rdc_jax.runtime.errors import guard

SHOTS = (1, 2, 5)
SEED, FOREIGN = 7102, 15


def measure(feat_nd, labels_n, name: str, shot: int, tasks: int) -> list[float]:
    """AUROC of a data set, flagged pictures of the classes and of others; percent."""
    spec, numbers = TaskSpec(way=WAY, shot=shot, query=QUERY), np.arange(tasks)
    drawn = TaskSampler(labels_n, spec, seed=SEED, dataset=name)(numbers)
    others = DistractorQueries(labels_n, FOREIGN, way=WAY, seed=SEED, dataset=name)
    drawn, s = others(drawn, numbers, supports=spec.support_size), spec.support_size
    names = tuple(map(str, range(WAY)))
    found = []
    for rows, labels in zip(drawn.indices, drawn.labels, strict=True):
        support = Support(feat_nd[rows[:s]], labels[:s], names)
        dist_qc = plain_distances(support, feat_nd[rows[s:]])
        share_q, foreign_q = unknown_shares(support, dist_qc), labels[s:] == NO_CLASS
        above = share_q[foreign_q][:, None] > share_q[~foreign_q]
        flagged_q = share_q > Options().unknown_above
        flagged = [flagged_q[chosen].mean() for chosen in (~foreign_q, foreign_q)]
        found.append([above.mean(), *flagged])
    return [100 * mean(np.array(column)).mean for column in zip(*found, strict=True)]


def main() -> None:
    """Measure all data sets and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--checkpoint", default="packaged")
    parser.add_argument("--cache_dir", default=tempfile.gettempdir())
    parser.add_argument("--tasks", type=int, default=300)
    flags = parser.parse_args()
    embedder = Embedder(flags.checkpoint)
    found: dict[int, list[list[float]]] = {shot: [] for shot in SHOTS}
    for name in DATASETS.split(","):
        places = flags.data_dir, embedder, flags.cache_dir
        feat_nd, labels_n = features_of(name, *places)
        for shot in SHOTS:
            row = measure(feat_nd, labels_n, name, shot, flags.tasks)
            found[shot].append(row)
            print(f"{name:12} {shot}-shot", *(f"{value:6.1f}" for value in row))
    for shot, rows in found.items():
        print(f"{'mean':12} {shot}-shot", *(f"{x:6.1f}" for x in np.mean(rows, axis=0)))


if __name__ == "__main__":
    guard(main)
