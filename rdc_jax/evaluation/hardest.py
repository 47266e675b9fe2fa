"""The images that are named wrongly most often, with thumbnails for the report."""

import io
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from rdc_jax.evaluation.confusion import Answered
from rdc_jax.runtime import checksums
from rdc_jax.runtime.files import replacing

THUMBNAILS = "hardest.npz"

Row = dict[str, Any]

_IMAGES = 12  # That are listed of a data set and shot.
_DOUBT = 2.0  # Tasks of average outcome that are added to an image's own.
_QUALITY = 80


def hardest(answered: Answered) -> list[Row]:
    """Find the images that most methods in most tasks name wrongly.

    An image that was met once, and wrongly, is not the hardest: its share is taken
    together with two tasks of average outcome.

    Returns:
      For each ``row``, its number in the data set, ``image`` and ``class``; ``tasks``
      that asked for it; ``wrong``, in how many of them by method; and the wrong
      ``answer`` that was given most often.
    """
    asked_eq = answered.labels >= 0
    image_a, n = answered.images[asked_eq], len(answered.image_names)
    wrong = {
        method: np.bincount(
            image_a[(answer_eq != answered.labels)[asked_eq]], minlength=n
        )
        for method, answer_eq in answered.answers.items()
    }
    tasks_n = np.bincount(image_a, minlength=n)
    wrong_n = np.mean([*wrong.values()], axis=0)
    usual = wrong_n.sum() / tasks_n.sum()
    share_n = (wrong_n + _DOUBT * usual) / (tasks_n + _DOUBT)
    order = np.argsort(np.where(wrong_n > 0, -share_n, 1), kind="stable")[:_IMAGES]
    return [
        {
            "row": i,
            "image": answered.image_names[i],
            "class": answered.class_names[answered.image_classes[i]],
            "tasks": int(tasks_n[i]),
            "wrong": {method: int(count_n[i]) for method, count_n in wrong.items()},
            "answer": _most_given(answered, i),
        }
        for i in order.tolist()
        if wrong_n[i] > 0
    ]


def save(path: pathlib.Path, pictures: Sequence[UInt8[np.ndarray, "h w 3"]]) -> str:
    """Write thumbnails, numbered, and give the digest of the file.

    Raises:
      UserError: It cannot be written.
    """
    jpegs: dict[str, Any] = {
        str(i): _jpeg(picture) for i, picture in enumerate(pictures)
    }
    with replacing(path, "make room, then run the same command") as file:
        np.savez(file, **jpegs)
    return checksums.of_file(path)


def _most_given(answered: Answered, image: int) -> str | None:
    """The wrong class that an image was given most often; None if there was none."""
    place = (answered.images == image) & (answered.labels >= 0)
    task_a, _ = np.nonzero(place)
    given: list[int] = []
    for answer_eq in answered.answers.values():
        answer_a = answer_eq[place]
        wrong_a = (answer_a != answered.labels[place]) & (answer_a >= 0)
        given += answered.classes[task_a, answer_a][wrong_a].tolist()
    if not given:
        return None
    return answered.class_names[np.bincount(given).argmax()]


def _jpeg(picture: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, " b"]:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=_QUALITY)
    return np.frombuffer(buffer.getvalue(), np.uint8)
