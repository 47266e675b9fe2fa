"""Example tasks on a plane by t-SNE, with true classes and answers (Figure 4)."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from jaxtyping import Float, Float32, Int, Int32
from sklearn.manifold import TSNE

from rdc_jax.reporting import drawing
from rdc_jax.reporting.drawing import Drawing, Key
from rdc_jax.reporting.runs import Run
from rdc_jax.runtime.errors import UserError

FOLDER = "exhibits"

_SIDE = 2.9  # Inches.
_PERPLEXITY = 12.0  # About the images of a class.


class Answers(NamedTuple):
    """What two methods make of the features of one task.

    Attributes:
      features: Of all images, supports first.
      npc: Answers of nearest prototypes on l2-normalised features, one a query.
      rdc: Answers of RDC.
    """

    features: Float32[np.ndarray, "n d"]
    npc: Int32[np.ndarray, " q"]
    rdc: Int32[np.ndarray, " q"]


class ExampleTask(NamedTuple):
    """One task that an evaluation kept.

    Attributes:
      run: Digest of the run that it belongs to.
      dataset: Name of the data set.
      shot: Labelled images a class.
      class_names: By class of the task.
      support_size: Labelled images, which come first.
      labels: True classes of all images.
      before: With the features of the backbone.
      after: With those of the fine-tuned backbone, where a method made some.
      after_title: What tables call that method.
    """

    run: str
    dataset: str
    shot: int
    class_names: tuple[str, ...]
    support_size: int
    labels: Int32[np.ndarray, " n"]
    before: Answers
    after: Answers | None = None
    after_title: str = ""

    @property
    def query_labels(self) -> Int32[np.ndarray, " q"]:
        """True classes of the queries."""
        return self.labels[self.support_size :]


class Example(NamedTuple):
    """The pictures of one task.

    Attributes:
      title: Data set, shot and outcome.
      open: Whether it is unfolded at first.
      rows: Pictures by the features they are made from.
      legend: Of all of them.
    """

    title: str
    open: bool
    rows: dict[str, list[Drawing]]
    legend: tuple[Key, ...]


def read(run: Run, workdir: pathlib.Path) -> list[ExampleTask]:
    """Read the example tasks of a run, in the order of its tables.

    Raises:
      UserError: A file is damaged.
    """
    tasks = [read_task(path) for path in sorted((workdir / FOLDER).glob("*.npz"))]
    # Older results do not say which examples are theirs.
    found = {
        (task.dataset, task.shot): task
        for task in tasks
        if task.run == run.results.get("examples", task.run)
    }
    order = [(dataset, shot) for dataset in run.datasets for shot in run.shots]
    return [found[place] for place in order if place in found]


def read_task(path: pathlib.Path) -> ExampleTask:
    """Read one example task.

    Raises:
      UserError: The file is damaged, or something else.
    """
    try:
        with path.open("rb") as file, np.load(file) as archive:
            found = {name: archive[name] for name in archive.files}
        return ExampleTask(
            run=str(found["run"]),
            dataset=str(found["dataset"]),
            shot=int(found["shot"]),
            class_names=tuple(map(str, found["class_names"])),
            support_size=int(found["support_size"]),
            labels=found["labels"],
            before=_answers(found, "before"),
            after=_answers(found, "after") if "after.npc" in found else None,
            after_title=str(found["after_title"]),
        )
    except Exception as error:  # Damaged archives raise nearly everything.
        reason = type(error).__name__
        message = f"{path} is damaged or no example task: delete it ({reason})"
        raise UserError(message) from error


def _answers(found: Mapping[str, Any], when: str) -> Answers:
    return Answers(*(found[f"{when}.{name}"] for name in Answers._fields))


def draw(run: Run, tasks: list[ExampleTask]) -> list[Example]:
    """Draw true classes, NPC's and RDC's answers, before and after fine-tuning.

    Unfolded is the task whose gain of RDC over NPC is the median.
    """
    gains = [_right(t, t.before.rdc) - _right(t, t.before.npc) for t in tasks]
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


def _example(run: Run, task: ExampleTask, *, unfolded: bool) -> Example:
    # Its answers are these methods', whether tables have them or not.
    npc, rdc = run.titles.get("npc_l2", "NPC + l2 norm"), run.titles.get("rdc", "RDC")
    parts = {"Features of the backbone": task.before}
    title = (
        f"{task.dataset}, {task.shot}-shot: {npc} has {_right(task, task.before.npc)} "
        f"of {len(task.query_labels)} right, {rdc} {_right(task, task.before.rdc)}"
    )
    if task.after is not None:
        parts[f"Features after {task.after_title} on this task"] = task.after
        right = _right(task, task.after.npc)
        title += f"; after {task.after_title}, {npc} {right}"
    rows = {of: _row(task, answers, (npc, rdc)) for of, answers in parts.items()}
    looks = [drawing.mark(index) for index in range(len(task.class_names))]
    keys = [
        (look.glyph, look.colour, class_name)
        for look, class_name in zip(looks, task.class_names, strict=True)
    ]
    keys.append(("◯", drawing.HURTS, "ring: a wrong answer"))
    keys.append(("⬤", drawing.INK, "large, with an edge: labelled image"))
    return Example(title, unfolded, rows, tuple(keys))


def _row(
    task: ExampleTask, answers: Answers, methods: tuple[str, str]
) -> list[Drawing]:
    """True classes, then the answers of both methods, at the same places."""
    place_n2 = place(answers.features)
    of = len(task.query_labels)
    given = {"True classes": task.query_labels}
    for method, given_q in zip(methods, (answers.npc, answers.rdc), strict=True):
        given[f"{method}: {_right(task, given_q)} of {of} right"] = given_q
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
    given_n = np.concatenate([task.labels[: task.support_size], given_q])
    support_n = np.arange(len(given_n)) < task.support_size
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
        points(given_n != task.labels, s=70, **ring)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, color=drawing.GRID)
        return drawing.export(figure, f"t-SNE of {task.dataset}. {title}.")


def _right(task: ExampleTask, given_q: Int[np.ndarray, " q"]) -> int:
    return int((given_q == task.query_labels).sum())
