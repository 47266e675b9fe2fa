"""What a query finds nearest, before and after calibration, with the images."""

import base64
import io
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8
from PIL import Image

from rdc_jax.evaluation.exhibit_file import TITLES, Exhibit

LENGTH = 10

Kind = Literal["most improved", "typical", "most harmed"]


class Item(NamedTuple):
    """One image of a list.

    Attributes:
      image: A data URI.
      class_name: Its true class.
      right: Whether that is the query's class.
      labelled: Whether it is a support.
    """

    image: str
    class_name: str
    right: bool
    labelled: bool


class Ranking(NamedTuple):
    """The lists of one query.

    Attributes:
      kind: Why this query is shown.
      image: Of the query, a data URI.
      class_name: Its true class.
      answers: By method: the class name it gives, and whether it is right.
      before: Nearest images by the original distances.
      after: By the calibrated ones.
      first: Places of the nearest labelled image of the true class, before and after.
    """

    kind: Kind
    image: str
    class_name: str
    answers: dict[str, tuple[str, bool]]
    before: list[Item]
    after: list[Item]
    first: tuple[int, int]

    @property
    def right(self) -> tuple[int, int]:
        """How many of the listed images are of the query's class."""
        before, after = (
            sum(i.right for i in part) for part in (self.before, self.after)
        )
        return before, after


def rankings(exhibit: Exhibit) -> list[Ranking]:
    """Choose queries of a task by what calibration does to their lists.

    Args:
      exhibit: The task.

    Returns:
      The query whose list gains most images of its class, if any does; the median
      one; the one that loses most, if any does. Of equals, the first.
    """
    change_q = _right(exhibit, exhibit.before.calibrated) - _right(
        exhibit, exhibit.before.original
    )
    median = int(np.argsort(change_q, kind="stable")[len(change_q) // 2])
    best, worst = int(change_q.argmax()), int(change_q.argmin())
    chosen: dict[Kind, int] = {}
    if change_q[best] > 0:
        chosen["most improved"] = best
    chosen["typical"] = median
    if change_q[worst] < 0:
        chosen["most harmed"] = worst
    return [_ranking(exhibit, query, kind) for kind, query in chosen.items()]


def order_of(dist_nn: Float[np.ndarray, "n n"], row: int) -> Int[np.ndarray, " others"]:
    """All other images from near to far; of equals, the first.

    >>> order_of(np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]]), 0)
    array([2, 1])
    """
    order_n = np.argsort(dist_nn[row], kind="stable")
    return order_n[order_n != row]


def _right(
    exhibit: Exhibit, dist_nn: Float[np.ndarray, "n n"]
) -> Int[np.ndarray, " q"]:
    """Images of the query's class among the nearest, for each query."""
    rows = range(exhibit.support_size, len(exhibit.labels))
    near_qm = np.stack([order_of(dist_nn, row)[:LENGTH] for row in rows])
    same_qm = exhibit.labels[near_qm] == exhibit.query_labels[:, None]
    return same_qm.sum(axis=1)


def _ranking(exhibit: Exhibit, query: int, kind: Kind) -> Ranking:
    row = exhibit.support_size + query
    label = int(exhibit.labels[row])
    orders = [
        order_of(dist_nn, row)
        for dist_nn in (exhibit.before.original, exhibit.before.calibrated)
    ]
    own_n = exhibit.labels == label
    own_n[exhibit.support_size :] = False
    before, after = (
        [_item(exhibit, int(other), label) for other in order[:LENGTH]]
        for order in orders
    )
    first_before, first_after = (int(np.argmax(own_n[order])) + 1 for order in orders)
    given = {
        TITLES["npc"]: int(exhibit.before.npc[query]),
        TITLES["rdc"]: int(exhibit.before.rdc[query]),
    }
    return Ranking(
        kind=kind,
        image=data_uri(exhibit.images[row]),
        class_name=exhibit.class_names[label],
        answers={
            method: (exhibit.class_names[answer], answer == label)
            for method, answer in given.items()
        },
        before=before,
        after=after,
        first=(first_before, first_after),
    )


def _item(exhibit: Exhibit, row: int, label: int) -> Item:
    own = int(exhibit.labels[row])
    return Item(
        image=data_uri(exhibit.images[row]),
        class_name=exhibit.class_names[own],
        right=own == label,
        labelled=row < exhibit.support_size,
    )


def data_uri(image: UInt8[np.ndarray, "h w 3"]) -> str:
    """Write an image into the page itself.

    >>> data_uri(np.zeros((8, 8, 3), np.uint8))[:23]
    'data:image/jpeg;base64,'
    """
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=82, optimize=True)
    text = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f"data:image/jpeg;base64,{text}"
