"""Draws the figures of docs/method.md: ``python docs/figures.py`` (needs matplotlib).

The first is a made-up task in the plane. The others are task 0 of a built-in domain,
as the weights that come with the package see it.
"""

import pathlib
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score

import rdc_jax
from rdc_jax.core import neighbours
from rdc_jax.core.calibration import original_distances
from rdc_jax.data import TaskSampler, TaskSpec
from rdc_jax.data.synthetic import open_synthetic
from rdc_jax.data.transforms import test_batch
from rdc_jax.models import load_backbone, weights

IMAGES = pathlib.Path(__file__).parent / "images"
BLUE, ORANGE, GREEN, INK = "#0063a3", "#c24e00", "#00785a", "#1c2127"
COLOURS, MARKERS = (BLUE, ORANGE, GREEN), ("o", "s", "^")
TOY = rdc_jax.RDCParams(k=10, k2=4, subspace="none")
DOMAIN, WAY, QUERY, SIZE = "textures", 5, 15, 84


class Plane(NamedTuple):
    """A task of points in the plane; the first three are the labelled ones."""

    point_n2: np.ndarray
    label_n: np.ndarray

    @property
    def features(self) -> np.ndarray:
        """A small patch of the sphere, since RDC looks at directions."""
        return np.insert(0.1 * self.point_n2, 2, 1.0, axis=1).astype(np.float32)


def make_plane() -> Plane:
    """Three clouds whose labelled points lie at their rims."""
    rng = np.random.default_rng(3)
    centre_c2 = np.array([[-1.3, 0.0], [1.25, 0.0], [0.0, 1.7]])
    spread_c2 = np.array([[0.95, 0.6], [0.8, 0.65], [0.9, 0.5]])
    noise_cm2 = rng.uniform(-1, 1, size=(3, 13, 2))
    cloud = centre_c2[:, None] + spread_c2[:, None] * noise_cm2
    support = np.array([[-2.3, 0.2], [0.35, -0.4], [-0.8, 1.85]])
    points = np.concatenate([support, cloud.reshape(-1, 2)])
    return Plane(points, np.concatenate([np.arange(3), np.repeat(np.arange(3), 13)]))


def draw_plane() -> Figure:
    """What calibration does to one point of a task in the plane."""
    plane = make_plane()
    out = rdc_jax.rdc(
        plane.features[:3], np.arange(3), plane.features[3:], 3, params=TOY
    )
    before = np.asarray(out.original)[:, :3].argmin(axis=1)
    after = np.concatenate([np.arange(3), np.asarray(out.predictions)])
    mended = (before != plane.label_n) & (after == plane.label_n)
    near = _near(np.asarray(out.original))
    # Of the points that calibration mends, one with a neighbour that is not mutual.
    star = int(np.where(mended, (near & ~near.T).sum(axis=1), -1).argmax())
    figure = Figure(figsize=(7.4, 4.8), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    _cloud(axes[0], plane, before, star)
    axes[0].set_title(f"1. nearest label: {_right(before, plane)}")
    _link(axes[0], plane, star, [before[star]], INK)
    _cloud(axes[1], plane, None, star)
    _draw_mutual(axes[1], plane, near, star)
    _cloud(axes[2], plane, None, star)
    _draw_set(axes[2], plane, out, star)
    _cloud(axes[3], plane, after, star)
    axes[3].set_title(f"4. calibrated: {_right(after, plane)}")
    for axis in axes:
        axis.set(xticks=[], yticks=[], aspect="equal")
        axis.title.set_fontsize(9)
    return figure


def _right(answer_n: np.ndarray, plane: Plane) -> str:
    return f"{(answer_n == plane.label_n)[3:].sum()} of {len(answer_n) - 3} right"


def _cloud(axis: Axes, plane: Plane, answer_n: np.ndarray | None, star: int) -> None:
    """Points by class; with answers, filled by the answer and ringed where wrong."""
    for i, (x, y) in enumerate(plane.point_n2):
        own = plane.label_n[i]
        fill = "white" if answer_n is None else COLOURS[answer_n[i]]
        style = {"marker": MARKERS[own], "edgecolor": COLOURS[own], "facecolor": fill}
        if i < 3:
            style |= {"facecolor": COLOURS[own], "edgecolor": INK}
        axis.scatter(x, y, s=90 if i < 3 else 26, linewidth=1.2, zorder=3, **style)
        if answer_n is not None and answer_n[i] != own:
            ring = {"facecolor": "none", "edgecolor": INK, "linewidth": 1.1}
            axis.scatter(x, y, s=130, zorder=2, **ring)
    ends = {"xytext": (24, 14), "textcoords": "offset points", "fontsize": 11}
    arrow = {"arrowstyle": "-", "linewidth": 0.8}
    axis.annotate("?", plane.point_n2[star], **ends, arrowprops=arrow)


def _link(axis: Axes, plane: Plane, i: int, others, colour: str, **style) -> None:
    for j in others:
        ends = plane.point_n2[[i, int(j)]]
        axis.plot(ends[:, 0], ends[:, 1], color=colour, zorder=1, **style)


def _near(dist_nn: np.ndarray) -> np.ndarray:
    """Who is among the k nearest of whom."""
    valid_n = jnp.ones(len(dist_nn), bool)
    place_nn = neighbours.rank_positions(jnp.asarray(dist_nn), valid_n, TOY.k + 1)
    return np.asarray(place_nn < TOY.k + 1) & ~np.eye(len(dist_nn), dtype=bool)


def _draw_mutual(axis: Axes, plane: Plane, near: np.ndarray, star: int) -> None:
    """The nearest points of the star, and those that have it among theirs."""
    mutual = near & near.T
    one_way = {"linestyle": ":", "linewidth": 1.4}
    _link(axis, plane, star, np.flatnonzero(near[star] & ~mutual[star]), INK, **one_way)
    _link(axis, plane, star, np.flatnonzero(mutual[star]), COLOURS[0], linewidth=1.6)
    counts = f"{near[star].sum()} nearest, {mutual[star].sum()} are mutual"
    axis.set_title(f"2. of its {counts}")


def _draw_set(axis: Axes, plane: Plane, out: rdc_jax.RDCOutput, star: int) -> None:
    """The expanded set of the star, and its Jaccard distances to the labels."""
    for i in np.flatnonzero(out.neighbours[star]):
        axis.scatter(*plane.point_n2[i], s=150, color="#ffd75e", zorder=1)
    plain_3, calibrated_3 = out.original[star, :3], out.distances[star, :3]
    jaccard_3 = np.asarray((calibrated_3 - TOY.lam * plain_3) / (1 - TOY.lam))
    signs = zip("●■▲", jaccard_3, strict=True)
    axis.set_title("3. its set: " + ", ".join(f"{s} {value:.2f}" for s, value in signs))


class Seen(NamedTuple):
    """A task as a network sees it."""

    feat_nd: np.ndarray
    label_n: np.ndarray


def see_task() -> Seen:
    """Features of task 0 of the domain, 1-shot."""
    source = open_synthetic(DOMAIN, split="test", size=SIZE, seed=0, per_class=20)
    spec = TaskSpec(way=WAY, shot=1, query=QUERY)
    drawn = TaskSampler(source.labels, spec, seed=0, dataset=DOMAIN)(range(1))
    images = test_batch(jnp.asarray(source.images(drawn.indices[0])), SIZE)
    features = load_backbone(weights.packaged())(images)
    return Seen(np.asarray(features), np.asarray(drawn.labels[0]))


def draw_distances(task: Seen) -> Figure:
    """All distances of a task, before and after, sorted by class."""
    out = rdc_jax.rdc(
        task.feat_nd[:WAY], task.label_n[:WAY], task.feat_nd[WAY:], num_classes=WAY
    )
    plain = rdc_jax.npc(
        task.feat_nd[:WAY], task.label_n[:WAY], task.feat_nd[WAY:], num_classes=WAY
    )
    order = np.argsort(task.label_n, kind="stable")
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for axis, dist_nn, dist_qc, name in zip(
        figure.subplots(1, 2),
        (out.original, out.distances),
        (plain, out.class_distances),
        ("Euclidean, l2-normalised features", "calibrated"),
        strict=True,
    ):
        right = (np.asarray(dist_qc).argmin(1) == task.label_n[WAY:]).mean()
        image = axis.imshow(np.asarray(dist_nn)[np.ix_(order, order)], cmap="viridis")
        figure.colorbar(image, ax=axis, shrink=0.8, label="distance")
        axis.set_title(f"{name}\n{100 * right:.0f}% of the queries right", fontsize=10)
        ticks = (np.arange(WAY) + 0.5) * (QUERY + 1) - 0.5
        names = [f"class {i + 1}" for i in range(WAY)]
        axis.set_xticks(ticks, names, fontsize=8)
        axis.set_yticks(ticks, names, fontsize=8)
    return figure


def draw_subspace(task: Seen) -> Figure:
    """The kernel's spectrum, and what the subspace does to distances."""
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    spectrum, *rest = figure.subplots(1, 3)
    _draw_spectrum(spectrum, task.feat_nd)
    other = rdc_jax.subspace(task.feat_nd)
    for axis, feat_nd, name in zip(
        rest, (task.feat_nd, other), ("original space", "subspace"), strict=True
    ):
        _draw_pairs(axis, np.asarray(original_distances(feat_nd)), task.label_n, name)
    for axis in (spectrum, *rest):
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
    return figure


def _draw_spectrum(axis: Axes, feat_nd: np.ndarray) -> None:
    unit_nd = feat_nd / np.linalg.norm(feat_nd, axis=1, keepdims=True)
    for rows, name, colour, style in (
        (unit_nd, "rows as they are", ORANGE, "--"),
        (unit_nd - unit_nd.mean(axis=0), "minus the task's mean", BLUE, "-"),
    ):
        value = np.linalg.svd(np.tanh(rows.T @ rows), compute_uv=False)
        share = value / value.sum()
        label = f"{name}: first {100 * share[0]:.0f}%"
        axis.semilogy(np.arange(1, 65), share[:64], color=colour, ls=style, label=label)
    axis.set(title="singular values of the tanh kernel", xlabel="number")
    axis.set_ylabel("share of their sum")
    axis.legend(fontsize=8)


def _draw_pairs(
    axis: Axes, dist_nn: np.ndarray, label_n: np.ndarray, name: str
) -> None:
    above = np.triu_indices(len(dist_nn), 1)
    same = (label_n[:, None] == label_n[None])[above]
    value = dist_nn[above]
    auc = roc_auc_score(same, -value)
    bins = np.linspace(value.min(), value.max(), 40)
    for chosen, label, colour, style in (
        (same, "same class", BLUE, "-"),
        (~same, "different classes", ORANGE, "--"),
    ):
        axis.hist(
            value[chosen],
            bins,
            density=True,
            histtype="step",
            color=colour,
            linestyle=style,
            label=label,
        )
    axis.set(title=f"{name}: told apart in {100 * auc:.0f}%", xlabel="distance")
    axis.set_yticks([])
    axis.legend(fontsize=8)


def main() -> None:
    """Draw them all."""
    task = see_task()
    figures = {
        "method_neighbours": draw_plane(),
        "method_distances": draw_distances(task),
        "method_subspace": draw_subspace(task),
    }
    for name, figure in figures.items():
        figure.savefig(IMAGES / f"{name}.png", dpi=130)
        print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
