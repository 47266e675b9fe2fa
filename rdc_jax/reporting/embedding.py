"""A task on a plane by t-SNE, with true classes and answers (the paper's Figure 4)."""

from typing import Any, NamedTuple

import numpy as np
import threadpoolctl
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from sklearn.manifold import TSNE

from rdc_jax.evaluation.exhibit_file import TITLES, Answers, Exhibit
from rdc_jax.reporting import drawing, palette
from rdc_jax.reporting.drawing import Drawing, Key

_SIDE = 2.9  # Inches.
_PERPLEXITY = 12.0  # About the images of a class.


class Panels(NamedTuple):
    """The pictures of one task.

    Attributes:
      title: Data set, shot and outcome.
      rows: Pictures by the features they are made from.
      legend: Of all of them.
    """

    title: str
    rows: dict[str, list[Drawing]]
    legend: tuple[Key, ...]


def panels(exhibit: Exhibit, name: str) -> Panels:
    """Draw true classes, NPC's and RDC's answers, before and after fine-tuning.

    Args:
      exhibit: The task.
      name: Of the figures, unique in the page.
    """
    rows = {"Features of the backbone": _row(exhibit, exhibit.before, f"{name}-before")}
    if exhibit.after is not None:
        title = f"Features after {exhibit.after_title} on this task"
        rows[title] = _row(exhibit, exhibit.after, f"{name}-after")
    marks = [palette.mark(c) for c in range(len(exhibit.class_names))]
    keys = [
        Key(mark.glyph, mark.variable, class_name)
        for mark, class_name in zip(marks, exhibit.class_names, strict=True)
    ]
    keys.append(Key("◯", "var(--hurts)", "ring: a wrong answer"))
    keys.append(Key("⬤", "var(--ink)", "large, with an edge: labelled image"))
    return Panels(title_of(exhibit), rows, tuple(keys))


def title_of(exhibit: Exhibit) -> str:
    """Name a task and tell how the methods did in it."""
    npc, rdc = TITLES["npc"], TITLES["rdc"]
    before, after = exhibit.before, exhibit.after
    text = (
        f"{exhibit.dataset}, {exhibit.shot}-shot: {npc} has "
        f"{_right(exhibit, before.npc)} of {len(exhibit.query_labels)} right, {rdc} "
        f"{_right(exhibit, before.rdc)}"
    )
    if after is None:
        return text
    return f"{text}; after {exhibit.after_title}, {npc} {_right(exhibit, after.npc)}"


def _right(exhibit: Exhibit, given_q: Int[np.ndarray, " q"]) -> int:
    return int((given_q == exhibit.query_labels).sum())


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


def _row(exhibit: Exhibit, answers: Answers, name: str) -> list[Drawing]:
    """True classes, then the answers of both methods, at the same places."""
    place_n2 = place(answers.features)
    true_q = exhibit.query_labels
    titles = {
        "True classes": true_q,
        TITLES["npc"]: answers.npc,
        TITLES["rdc"]: answers.rdc,
    }
    return [
        _panel(exhibit, place_n2, given_q, title, f"{name}-{i}")
        for i, (title, given_q) in enumerate(titles.items())
    ]


def _panel(
    exhibit: Exhibit,
    place_n2: Float[np.ndarray, "n 2"],
    given_q: Int[np.ndarray, " q"],
    title: str,
    name: str,
) -> Drawing:
    s = exhibit.support_size
    given_n = np.concatenate([exhibit.labels[:s], given_q])
    support_n = np.arange(len(given_n)) < s
    with drawing.canvas(_SIDE, _SIDE) as (figure, axes):
        for c in range(len(exhibit.class_names)):
            look = palette.mark(c)
            style = {"marker": look.marker, "color": look.colour}
            _points(axes, place_n2[(given_n == c) & ~support_n], s=22, lw=0, **style)
            edge = {"edgecolors": palette.INK, "lw": 1.6}
            own_m2 = place_n2[(given_n == c) & support_n]
            _points(axes, own_m2, s=85, **style, **edge)
        ring = {"facecolors": "none", "edgecolors": palette.HURTS}
        _points(axes, place_n2[given_n != exhibit.labels], s=70, lw=1.1, **ring)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(visible=True, color=palette.GRID)
        text = _told(exhibit, given_q, title)
        svg = drawing.export(figure, name, f"t-SNE of {exhibit.dataset}. {text}")
    return Drawing(svg, text)


def _points(axes: Axes, place_m2: Float[np.ndarray, "m 2"], **style: Any) -> None:
    axes.scatter(place_m2[:, 0], place_m2[:, 1], clip_on=False, **style)


def _told(exhibit: Exhibit, given_q: Int[np.ndarray, " q"], title: str) -> str:
    if title == "True classes":
        return "True classes."
    return f"{title}: {_right(exhibit, given_q)} of {len(given_q)} right."
