"""TFDS data sets read from disk by random access, without TensorFlow."""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int, Int32, UInt8
from PIL import Image

from rdc_jax.data.decode import decode_image, decode_picture
from rdc_jax.data.files import content_digest, fingerprint
from rdc_jax.data.parallel import threaded_map
from rdc_jax.data.source import Note, UnreadableImage, as_labels, split_names
from rdc_jax.data.tfds_folder import find_prepared, prepare_command
from rdc_jax.runtime.errors import UserError

# Features that name an example; they give examples an order and messages a name.
_ID_FEATURES = ("filename", "image/filename", "file_name", "file_id", "id", "image/id")


@dataclasses.dataclass(frozen=True, eq=False)
class TfdsSource:
    """Labelled examples of a prepared TFDS data set; see ``Source``.

    Attributes:
      name: The data set's name.
      split: The split these examples belong to.
      records: TFDS's random-access data source, images left encoded.
      image_key: The feature that holds the image.
      rows: The position of each image in ``records``.
      ids: One name an image.
      labels: One class index an image.
      class_names: One name a class.
      notes: What was noticed while the examples were listed.
    """

    name: str
    split: str
    records: Any
    image_key: str
    rows: Int[np.ndarray, " len"]
    ids: tuple[str, ...]
    labels: Int32[np.ndarray, " len"]
    class_names: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def image(self, i: int) -> UInt8[np.ndarray, "h w 3"]:
        """Decode image ``i`` to RGB."""
        return decode_image(self._encoded(i), where=self.locate(i))

    def picture(self, i: int) -> Image.Image:
        """Decode image ``i`` to a picture in RGB."""
        return decode_picture(self._encoded(i), where=self.locate(i))

    def locate(self, i: int) -> str:
        """Data set and name of example ``i``."""
        return f"tfds:{self.records.dataset_info.full_name}#{self.ids[i]}"

    def fingerprint(self) -> str:
        """Identity of content: names, labels, class names and encoded images."""
        digests = threaded_map(
            lambda i: content_digest(self._encoded(i)), range(len(self))
        )
        return fingerprint(self.class_names, self.labels, self.ids, digests)

    def take(
        self,
        rows: Int[np.ndarray, " kept"],
        labels: Int[np.ndarray, " kept"],
        class_names: tuple[str, ...],
        *,
        split: str,
        notes: tuple[Note, ...] = (),
    ) -> "TfdsSource":
        """Keep some images, under new labels, class names and split."""
        return dataclasses.replace(
            self,
            rows=self.rows[rows],
            ids=tuple(self.ids[row] for row in rows),
            labels=as_labels(labels),
            class_names=class_names,
            split=split,
            notes=self.notes + notes,
        )

    def _encoded(self, i: int) -> bytes:
        try:
            return self.records[int(self.rows[i])][self.image_key]
        except RuntimeError as error:  # array_record's, on damaged files
            reason = " ".join(str(error).split())
            raise UnreadableImage(self.locate(i), f"damaged ({reason})") from error


def open_tfds(
    dataset: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    tfds_split: str | None = None,
    split: str = "test",
    name: str | None = None,
    keep: tuple[str, str] | None = None,
) -> TfdsSource:
    """Open a prepared TFDS data set.

    Every record is read once, for its label. Classes come in the sorted order of
    their names, or of their numbers where TFDS does not name them; examples in the
    order of their own names.

    Args:
      dataset: TFDS's name, with the config if there are several: ``eurosat/rgb``.
      data_dir: Where it was prepared; TFDS's default folder is looked at as well.
      tfds_split: TFDS's name of a split (``train+test`` and slices work); chosen by
        ``split`` when not given.
      split: What the source calls its split.
      name: The data set's name; TFDS's by default.
      keep: A class feature and the only value of it to keep, as in
        ``("supercategory", "Plantae")``.

    Returns:
      The source; examples without a label are left out with a note.

    Raises:
      UserError: The data set is not there, or has no image or no label.
    """
    folder = find_prepared(dataset, data_dir)
    again = prepare_command(dataset, data_dir)
    with _damage_explained(folder, again):
        info, records = _open_records(folder, dataset, tfds_split, split, again)
        image_key, label_key = _image_and_label(info, dataset)
        return _listed(
            records,
            label_key,
            keep,
            name=name or dataset.replace("/", "-"),
            split=split,
            image_key=image_key,
        )


def _open_records(
    folder: pathlib.Path, dataset: str, tfds_split: str | None, split: str, again: str
) -> tuple[Any, Any]:
    """TFDS's description of the data set, and its records with images left encoded."""
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    info = builder.info
    asked = tfds_split or _choose_split(list(info.splits), split, dataset)
    images = _keys(info.features, tfds.features.Image)
    decoders = dict.fromkeys(images, tfds.decode.SkipDecoding())
    try:
        return info, builder.as_data_source(split=asked, decoders=decoders)
    except NotImplementedError as error:
        raise UserError(
            f"{folder} is stored in {info.file_format}, which has no random access; "
            f"prepare it again: {again}"
        ) from error
    except (ValueError, KeyError) as error:
        raise UserError(
            f"tfds:{dataset} has no split {asked!r}; it has {', '.join(info.splits)}"
        ) from error


@contextlib.contextmanager
def _damage_explained(folder: pathlib.Path, again: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # protobuf, json, array_record: each has its own
        reason = " ".join(str(error).split())
        raise UserError(
            f"{folder} cannot be read ({reason}); delete it and prepare it again: "
            f"{again}"
        ) from error


def _listed(
    records: Any,
    label_key: str,
    keep: tuple[str, str] | None,
    *,
    name: str,
    split: str,
    image_key: str,
) -> TfdsSource:
    """Read labels and names of all records, and put them in order."""
    features = records.dataset_info.features
    names = features[label_key].names
    id_key = next((key for key in _ID_FEATURES if key in features), None)
    if keep and keep[0] not in features:
        raise UserError(f"tfds:{name} has no feature {keep[0]!r}")
    wanted = features[keep[0]].str2int(keep[1]) if keep else None

    def look(row: int) -> tuple[int, str, bool]:
        example = records[row]
        kept = keep is None or example[keep[0]] == wanted
        return int(example[label_key]), _as_id(example, id_key, row), bool(kept)

    found = list(threaded_map(look, range(len(records))))
    rows = [r for r, (label, _, kept) in enumerate(found) if kept and label >= 0]
    if not rows:
        raise UserError(f"{records!r} has no labelled examples; try another split")
    used = _in_order({found[r][0] for r in rows}, names)
    position = {label: index for index, label in enumerate(used)}
    rows.sort(key=lambda r: (position[found[r][0]], found[r][1], r))
    unlabelled = sum(label < 0 for label, _, _ in found)
    note = Note("ignored", f"{unlabelled} examples have no label", problem=False)
    return TfdsSource(
        name=name,
        split=split,
        records=records,
        image_key=image_key,
        rows=np.array(rows),
        ids=tuple(found[r][1] for r in rows),
        labels=as_labels([position[found[r][0]] for r in rows]),
        class_names=tuple(names[label] for label in used),
        notes=(note,) if unlabelled else (),
    )


def _in_order(labels: set[int], names: list[str]) -> list[int]:
    """By name; by number where labels have none, because "10" comes before "9"."""
    if names == [str(label) for label in range(len(names))]:
        return sorted(labels)
    return sorted(labels, key=lambda label: names[label])


def _as_id(example: dict[str, Any], key: str | None, row: int) -> str:
    if key is None:
        return f"{row:08}"
    value = example[key]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else f"{value}"


def _image_and_label(info: Any, dataset: str) -> tuple[str, str]:
    """Pick the image and class features: the supervised pair, or the only ones."""
    import tensorflow_datasets as tfds

    images = _keys(info.features, tfds.features.Image)
    labels = _keys(info.features, tfds.features.ClassLabel)
    pair = info.supervised_keys or ()
    image = next((k for k in (*pair, "image") if k in images), None)
    label = next((k for k in (*pair, "label") if k in labels), None)
    image = image or (images[0] if len(images) == 1 else None)
    label = label or (labels[0] if len(labels) == 1 else None)
    if image is None or label is None:
        lacking = "an image" if image is None else "a class label"
        raise UserError(
            f"tfds:{dataset} does not say which feature is {lacking}; it has "
            f"{', '.join(sorted(info.features))}"
        )
    return image, label


def _keys(features: Any, kind: type) -> list[str]:
    return [key for key, feature in features.items() if isinstance(feature, kind)]


def _choose_split(existing: list[str], split: str, dataset: str) -> str:
    if len(existing) == 1:
        return existing[0]
    if split == "all":
        return "+".join(existing)
    for alias in split_names(split):
        if alias in existing:
            return alias
    raise UserError(
        f"tfds:{dataset} has no {split} split; it has {', '.join(existing)}: choose "
        f"one, as in tfds:{dataset}:{existing[0]}"
    )
