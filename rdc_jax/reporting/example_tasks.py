"""Example tasks on a plane by t-SNE, with true classes and answers (Figure 4)."""

import pathlib
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from jaxtyping import Float, Float32, Int, Int32
from sklearn.manifold import TSNE

from rdc_jax.core.advice import advise
from rdc_jax.reporting import drawing
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Run
from rdc_jax.runtime.config_values import Shot, shot
from rdc_jax.runtime.errors import UserError

FOLDER = "examples"

_SIDE = 2.9  # Inches.
_PERPLEXITY = 12.0  # About the images of a class.


class ExampleTask(NamedTuple):
    """One task that an evaluation kept, with the features of one network.

    Attributes:
      run: Digest of the run that it belongs to.
      dataset: Name of the data set.
      shot: Labelled images a class.
      trained_by: Title of the method that trained the network on the task; empty: none.
      class_names: By class of the task.
      labels_s: Classes of the labelled images.
      labels_q: True classes of the queries.
      features: Of all images, labelled ones first.
      npc: Answers of nearest prototypes on l2-normalised features, one a query.
      rdc: Answers of RDC.
    """

    run: str
    dataset: str
    shot: Shot
    trained_by: str
    class_names: tuple[str, ...]
    labels_s: Int32[np.ndarray, " s"]
    labels_q: Int32[np.ndarray, " q"]
    features: Float32[np.ndarray, "n d"]
    npc: Int32[np.ndarray, " q"]
    rdc: Int32[np.ndarray, " q"]

    def right(self, given_q: Int[np.ndarray, " q"]) -> int:
        """Count right answers."""
        return int((given_q == self.labels_q).sum())


class Example(NamedTuple):
    """The pictures of one task.

    Attributes:
      title: Data set, shot and outcome.
      open: Whether it is unfolded at first.
      rows: Pictures by the features they are made from.
      legend: Of all of them.
      advice: What ``rdc_jax.advise`` says of the task, without labels of queries.
    """

    title: str
    open: bool
    rows: dict[str, list[Drawing]]
    legend: tuple[Key, ...]
    advice: str


def read(run: Run, workdir: pathlib.Path) -> list[list[ExampleTask]]:
    """Read the example tasks of a run, in the order of its tables.

    Returns:
      For each task what was kept of it: with the features of the network as it was, and
      then with those after training on the task.

    Raises:
      UserError: A file is damaged.
    """
    files = [read_task(path) for path in sorted((workdir / FOLDER).glob("*.npz"))]
    titles = ["", *run.titles.values()]
    tasks = [
        [
            one
            for title in titles
            for one in files
            if (one.dataset, one.shot, one.trained_by) == (dataset, shot, title)
            and one.run == run.results.get("examples")
        ]
        for dataset in run.datasets
        for shot in run.shots
    ]
    return [task for task in tasks if task]


def read_task(path: pathlib.Path) -> ExampleTask:
    """Read one file.

    Raises:
      UserError: It is damaged, or something else.
    """
    try:
        with path.open("rb") as file, np.load(file) as archive:
            found = {name: archive[name] for name in ExampleTask._fields}
        found["class_names"] = tuple(map(str, found["class_names"]))
        for name, scalar in (("run", str), ("dataset", str), ("shot", _shot)):
            found[name] = scalar(found[name])
        return ExampleTask(**found | {"trained_by": str(found["trained_by"])})
    except Exception as error:  # Damaged archives raise nearly everything.
        reason = type(error).__name__
        message = f"{path} is damaged or no example task: delete it ({reason})"
        raise UserError(message) from error


def _shot(stored: np.ndarray) -> Shot:
    return shot(str(stored))


def draw(run: Run, tasks: list[list[ExampleTask]]) -> list[Example]:
    """Draw true classes, NPC's and RDC's answers, before and after fine-tuning.

    Unfolded is the task whose gain of RDC over NPC is the median.
    """
    gains = [first.right(first.rdc) - first.right(first.npc) for first, *_ in tasks]
    order = np.argsort(gains, kind="stable")
    return [
        _example(run, task, unfolded=index == int(order[(len(order) - 1) // 2]))
        for index, task in enumerate(tasks)
    ]


def place(feat_nd: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n 2"]:
    """Lay l2-normalised features out on a plane; the same input, the same plane."""
    norm_n1 = np.linalg.norm(feat_nd, axis=1, keepdims=True)
    unit_nd = feat_nd / np.maximum(norm_n1, np.finfo(np.float32).tiny)
    perplexity = min(_PERPLEXITY, (len(feat_nd) - 1) / 3)
    model = TSNE(perplexity=perplexity, init="pca", random_state=0, n_jobs=1)
    # A task is small: on a busy machine threads that wait for each other take fifty
    # times as long, and they may sum in another order, for another picture.
    with threadpoolctl.threadpool_limits(1):
        return model.fit_transform(unit_nd)


def _example(run: Run, task: list[ExampleTask], *, unfolded: bool) -> Example:
    # Its answers are these methods', whether tables have them or not.
    npc, rdc = run.titles.get("npc_l2", "NPC + l2 norm"), run.titles.get("rdc", "RDC")
    first, *trained = task
    title = (
        f"{first.dataset}, {first.shot}-shot: {npc} has {first.right(first.npc)} of "
        f"{len(first.labels_q)} right, {rdc} {first.right(first.rdc)}"
    )
    for one in trained:
        title += f"; after {one.trained_by}, {npc} {one.right(one.npc)}"
    rows = {
        f"Features after {one.trained_by} on this task"
        if one.trained_by
        else "Features of the backbone": _row(one, (npc, rdc))
        for one in task
    }
    looks = [drawing.mark(index) for index in range(len(first.class_names))]
    keys = [
        (look.glyph, look.colour, class_name)
        for look, class_name in zip(looks, first.class_names, strict=True)
    ]
    keys.append(("◯", drawing.HURTS, "ring: a wrong answer"))
    keys.append(("⬤", drawing.INK, "large, with an edge: labelled image"))
    none_q = np.full(len(first.labels_q), -1)
    advice = advise(first.features, np.append(first.labels_s, none_q))
    return Example(title, unfolded, rows, tuple(keys), str(advice))


def _row(task: ExampleTask, methods: tuple[str, str]) -> list[Drawing]:
    """True classes, then the answers of both methods, at the same places."""
    place_n2 = place(task.features)
    given = {"True classes": task.labels_q}
    for method, given_q in zip(methods, (task.npc, task.rdc), strict=True):
        title = f"{method}: {task.right(given_q)} of {len(given_q)} right"
        given[title] = given_q
    return [
        Drawing(title, _scatter(task, place_n2, given_q, title))
        for title, given_q in given.items()
    ]


def _scatter(
    task: ExampleTask,
    place_n2: Float[np.ndarray, "n 2"],
    given_q: Int[np.ndarray, " q"],
    title: str,
) -> str:
    given_n = np.concatenate([task.labels_s, given_q])
    support_n = np.arange(len(given_n)) < len(task.labels_s)
    with drawing.canvas(_SIDE, _SIDE) as (figure, axes):

        def points(chosen_n: Any, **style: Any) -> None:
            axes.scatter(*place_n2[chosen_n].T, clip_on=False, **style)

        for c in range(len(task.class_names)):
            look = drawing.mark(c)
            style: dict[str, Any] = {"marker": look.marker, "color": look.colour}
            points((given_n == c) & ~support_n, s=22, lw=0, **style)
            edge = {"edgecolors": drawing.INK, "lw": 1.6}
            points((given_n == c) & support_n, s=85, **style, **edge)
        ring = {"facecolors": "none", "edgecolors": drawing.HURTS, "lw": 1.1}
        points(given_n != np.concatenate([task.labels_s, task.labels_q]), s=70, **ring)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, color=drawing.GRID)
        return drawing.export(figure, f"t-SNE of {task.dataset}. {title}.")
