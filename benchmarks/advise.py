"""Is what ``rdc_jax.advise`` recommends best at all sizes of a task?

    python benchmarks/advise.py --features DIR --seed 2303

``DIR`` has a file ``NAME.npz`` for each data set: features ``x`` ``[n, d]`` of all its
images and their classes ``y`` ``[n]``. Tasks have 2 to 6 classes, 1 to 20 queries a
class, and 1, 2, 3, 5, 7 or 10 labelled images a class, with even and with uneven
queries (Dirichlet, 2). Also prints how far the estimate of the purity holds.
"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import rdc_jax
from rdc_jax.core.prototypes import predictions
from rdc_jax.core.statistics import gain, mean, plus_minus
from rdc_jax.data.task_spec import TaskSpec
from rdc_jax.data.tasks import TaskSampler
from rdc_jax.methods import Task, get_method
from rdc_jax.runtime.threads import one_lapack_thread

SHOTS, WAYS, QUERIES = (1, 2, 3, 5, 7, 10), 6, 20
METHODS = ("npc_l2", "npc_prepared", "logistic", "rdc_plus")


def main() -> None:
    """Draw tasks, answer them by every method, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=2303)
    parser.add_argument("--tasks", type=int, default=8, help="of each kind")
    arguments = parser.parse_args()
    rows = []
    with one_lapack_thread():
        for path in sorted(arguments.features.glob("*.npz")):
            rows += list(evaluate(path, arguments.seed, arguments.tasks))
            print(path.stem, len(rows), flush=True)
    report(rows)


def evaluate(path, seed, tasks):
    """Give a line for each task of a data set: accuracies, advice and purity."""
    with np.load(path) as archive:
        feat_nd, labels_n = archive["x"], archive["y"]
    for shot in SHOTS:
        for dirichlet in (None, 2):
            spec = TaskSpec(
                way=(2, WAYS), shot=shot, query=(1, QUERIES), dirichlet=dirichlet
            )
            sampler = TaskSampler(labels_n, spec, seed=seed, dataset=path.stem)
            made = sampler(range(tasks))
            for indices, labels in zip(made.indices, made.labels, strict=True):
                yield one(feat_nd[indices], labels, spec) | {"shot": shot}


def one(feat_md, labels_m, spec):
    """One task: what each method gets right of it, and what is advised."""
    s, real_m = spec.support_size, labels_m >= 0
    given = np.where(np.arange(len(labels_m)) < s, labels_m, -1)[real_m]
    advice = rdc_jax.advise(feat_md[real_m], given)
    answers = _answer(
        *_filled(feat_md[:s], labels_m[:s], max(SHOTS) * WAYS),
        *_filled(feat_md[s:], labels_m[s:], QUERIES * WAYS),
    )
    return {
        "right": dict(zip(METHODS, 100 * np.asarray(answers), strict=True)),
        "advice": advice,
        "purity": purity(feat_md[real_m], labels_m[real_m]),
    }


def _filled(feat_nd, labels_n, size):
    """Rows and labels, filled up to one size, so that one program serves all tasks."""
    more = size - len(labels_n)
    labels_n = np.pad(labels_n, (0, more), constant_values=-2)
    return np.pad(feat_nd, ((0, more), (0, 0))), labels_n


@jax.jit
def _answer(support, labels_s, query, labels_q):
    """Accuracy of each method."""
    task = Task(
        support,
        labels_s,
        query,
        num_classes=WAYS,
        support_mask=labels_s >= 0,
        query_mask=labels_q >= 0,
    )
    answers = [predictions(get_method(m)(task)) for m in METHODS]
    return jnp.stack([(a == labels_q).sum() for a in answers]) / (labels_q >= 0).sum()


def purity(feat_nd, labels_n):
    """Share of the 10 nearest neighbours that are of a row's class."""
    x = np.asarray(rdc_jax.prepare(feat_nd))
    cosine_nn = x @ x.T
    np.fill_diagonal(cosine_nn, -np.inf)
    near = np.argsort(-cosine_nn, axis=1)[:, :10][:, : len(x) - 1]
    return (labels_n[near] == labels_n[:, None]).mean()


def report(rows):
    """Print accuracies by shots, gains of the advised method, and the purity."""
    right = {name: np.array([row["right"][name] for row in rows]) for name in METHODS}
    shots = np.array([row["shot"] for row in rows])
    print("| shots | tasks | " + " | ".join(METHODS) + " |")
    for shot in (*SHOTS, None):
        own = shots > 0 if shot is None else shots == shot
        cells = " | ".join(f"{right[name][own].mean():.2f}" for name in METHODS)
        print(f"| {shot or 'all'} | {own.sum()} | {cells} |")
    (advised,) = {row["advice"].method for row in rows}
    for name in sorted(set(METHODS) - {advised}):
        found = gain(right[advised], right[name])
        print(f"{advised} over {name}: {found.mean:+.2f}{plus_minus(found.ci95)}")
    best = np.max([right[name] for name in METHODS], axis=0)
    print(f"the best of these for each task, in hindsight: {best.mean():.2f}")
    estimate = np.array([row["advice"].purity for row in rows])
    true = np.array([row["purity"] for row in rows])
    error = mean(100 * (estimate - true))
    print(
        f"purity: true {100 * true.mean():.1f}, estimate "
        f"{error.mean:+.1f}{plus_minus(error.ci95)}, root mean square error "
        f"{100 * np.sqrt(np.square(estimate - true).mean()):.1f}, correlation "
        f"{np.corrcoef(estimate, true)[0, 1]:.2f}"
    )


if __name__ == "__main__":
    main()
