"""Do probabilities mean what they say? A reliability diagram on real images.

    python benchmarks/reliability.py --data_dir=DATA --checkpoint=PATH [--tasks=40]

Draws few-shot tasks from each data set under --data_dir, classifies them as
``python -m rdc_jax.predict`` does, and compares the probabilities of the answers with
how often they are right. Needs matplotlib.
"""

import argparse
import pathlib
import tempfile
from typing import NamedTuple

import numpy as np

from rdc_jax.data import open_source, pixel_cache
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.data.transforms import resize_size
from rdc_jax.predict.classify import Options, classify
from rdc_jax.predict.embedding import Embedder, Pictures
from rdc_jax.predict.task import Support
from rdc_jax.runtime.errors import UserError, guard

DATASETS = "cub,cars,miniplaces,flowers102,cropdisease,eurosat,isic,chestx"
SHOTS = (1, 2, 5)
METHODS = {"RDC+": True, "nearest class mean": False}
BINS = 15
WAY, QUERY, SEED = 5, 15, 1
OUT = pathlib.Path(__file__).parents[1] / "docs/images/reliability.png"


class Judged(NamedTuple):
    """Answers: the probability of each, and whether it is right."""

    probability: np.ndarray
    right: np.ndarray


def features_of(name: str, data_dir: str, embedder: Embedder, cache_dir: str):
    """Features and labels of a data set."""
    source = open_source(name, data_dir=data_dir)
    square = resize_size(embedder.image_size)
    pixels = pixel_cache(source, square, cache_dir, skip_unreadable=True)
    named = ((str(i), image) for i, image in enumerate(pixels.images))
    return embedder(named).features, pixels.labels


def judge(feat_nd, labels_n, name: str, shot: int, tasks: int) -> dict[str, Judged]:
    """Classify tasks of a data set with both methods."""
    spec = TaskSpec(way=WAY, shot=shot, query=QUERY)
    sampler = TaskSampler(labels_n, spec, seed=SEED, dataset=name)
    drawn = sampler(range(tasks))
    names, s = tuple(map(str, range(WAY))), spec.support_size
    found: dict[str, list[Judged]] = {method: [] for method in METHODS}
    for rows, labels in zip(drawn.indices, drawn.labels, strict=True):
        support = Support(feat_nd[rows[:s]], labels[:s], names)
        for method, transductive in METHODS.items():
            options = Options(transductive=transductive)
            answers = classify(support, Pictures(feat_nd[rows[s:]]), options)
            best = answers.probabilities.max(axis=1)
            found[method].append(Judged(best, answers.predicted == labels[s:]))
    return {method: join(parts) for method, parts in found.items()}


def join(parts: list[Judged]) -> Judged:
    """Put answers together."""
    return Judged(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def bins_of(judged: Judged):
    """Mean probability, share of right answers and share of all, by bin."""
    place = np.minimum((judged.probability * BINS).astype(int), BINS - 1)
    used = np.unique(place)
    means = [judged.probability[place == b].mean() for b in used]
    right = [judged.right[place == b].mean() for b in used]
    return np.array(means), np.array(right), np.bincount(place)[used] / len(place)


def ece(judged: Judged) -> float:
    """Expected calibration error in percent: |probability - accuracy|, by bin."""
    means, right, share = bins_of(judged)
    return 100 * float((np.abs(means - right) * share).sum())


def kept(judged: Judged) -> tuple[float, float]:
    """Answers that are not rejected at one half, and how many are right, in percent."""
    keep = judged.probability >= 0.5
    return 100 * keep.mean(), 100 * judged.right[keep].mean()


def report(found: dict[tuple[str, int], dict[str, Judged]], names: list[str]) -> None:
    """Print markdown tables."""
    print(
        "| shots | method | accuracy | ECE, all domains | ECE of one domain, mean ",
        end="",
    )
    print("| kept at 0.5 | right among kept |\n|---|---|---|---|---|---|---|")
    for shot in SHOTS:
        for method in METHODS:
            whole = join([found[name, shot][method] for name in names])
            each = np.mean([ece(found[name, shot][method]) for name in names])
            share, right = kept(whole)
            print(
                f"| {shot} | {method} | {100 * whole.right.mean():.1f} "
                f"| {ece(whole):.1f} | {each:.1f} | {share:.0f}% | {right:.0f}% |"
            )
    print(f"\n| ECE of RDC+ | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for shot in SHOTS:
        cells = [f"{ece(found[name, shot]['RDC+']):.1f}" for name in names]
        print(f"| {shot}-shot | {' | '.join(cells)} |")


def draw(
    found: dict[tuple[str, int], dict[str, Judged]], names: list[str], out
) -> None:
    """Draw one panel a number of shots, all domains together."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        *(2, len(SHOTS)), figsize=(10, 4.6), height_ratios=(3, 1), sharex=True
    )
    for column, shot in enumerate(SHOTS):
        top, bottom = axes[:, column]
        top.plot([0.2, 1], [0.2, 1], color="0.6", linestyle=":", label="perfect")
        for (method, _), style in zip(METHODS.items(), ("o-", "s--"), strict=True):
            whole = join([found[name, shot][method] for name in names])
            means, right, share = bins_of(whole)
            top.plot(means, right, style, markersize=4, label=method)
            bottom.plot(means, 100 * share, style, markersize=3)
        top.set(title=f"{shot}-shot", xlim=(0.15, 1.02), ylim=(0.15, 1.02))
        bottom.set(xlabel="probability of the answer", ylim=(0, None))
    axes[0, 0].set_ylabel("share of right answers")
    axes[1, 0].set_ylabel("% of answers")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--checkpoint", default="packaged")
    parser.add_argument("--image_size", type=int, default=84)
    parser.add_argument("--datasets", default=DATASETS)
    parser.add_argument("--tasks", type=int, default=40, help="of each data set")
    parser.add_argument(
        "--cache_dir", help="of decoded images; by default none is kept"
    )
    parser.add_argument("--out", default=OUT, help="the picture")
    args = parser.parse_args()
    names = args.datasets.split(",")
    if args.tasks < 1:
        raise UserError(f"--tasks={args.tasks}: use at least 1")
    embedder = Embedder(args.checkpoint, args.image_size)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            where = args.cache_dir or scratch
            features, labels = features_of(name, args.data_dir, embedder, where)
            for shot in SHOTS:
                found[name, shot] = judge(features, labels, name, shot, args.tasks)
    report(found, names)
    draw(found, names, args.out)
    print(f"\nwrote {args.out}")


if __name__ == "__main__":
    guard(main)
