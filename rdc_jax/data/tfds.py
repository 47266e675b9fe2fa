"""TFDS data sets read from disk by random access, without TensorFlow."""

import difflib
import os
import pathlib
import re
from typing import Any

import numpy as np

from rdc_jax.data.decode import UnreadableImage, decode_picture
from rdc_jax.data.image_set import ImageSet, Note, content_digest
from rdc_jax.data.names import MissingSplit, split_names
from rdc_jax.data.parallel import threaded_map
from rdc_jax.runtime.errors import UserError

# Features that name an example; they give examples an order and messages a name.
_ID_FEATURES = ("filename", "image/filename", "file_name", "file_id", "id", "image/id")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


def open_tfds(
    dataset: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    tfds_split: str = "",
    split: str = "test",
    name: str | None = None,
    keep: tuple[str, str] | None = None,
) -> ImageSet:
    """Open a prepared TFDS data set.

    Every record is read once, for its label. Classes come in the sorted order of
    their names, or of their numbers where TFDS does not name them; examples in the
    order of their own names.

    Args:
      dataset: TFDS's name, with the config if there are several: ``eurosat/rgb``.
      data_dir: Where it was prepared; TFDS's default folder is looked at as well.
      tfds_split: TFDS's name of a split (``train+test`` and slices work); chosen by
        ``split`` when not given.
      split: What the set calls its split.
      name: The data set's name; TFDS's by default.
      keep: A class feature and the only value of it to keep, as in
        ``("supercategory", "Plantae")``.

    Returns:
      The images; examples without a label are left out with a note.

    Raises:
      UserError: The data set is not there, or has no image or no label.
    """
    folder = _find_prepared(dataset, data_dir)
    again = _prepare_command(dataset, data_dir)
    try:
        records = _open_records(folder, dataset, tfds_split, split, again)
        keys = _image_and_label(records.dataset_info, dataset)
        return _listed(records, *keys, keep, name or dataset.replace("/", "-"), split)
    except UserError:
        raise
    except Exception as error:  # protobuf, json, array_record: each has its own
        reason = " ".join(str(error).split())
        raise UserError(
            f"{folder} cannot be read ({reason}); delete it and prepare it again: "
            f"{again}"
        ) from error


def _find_prepared(
    dataset: str, data_dir: str | os.PathLike[str] | None
) -> pathlib.Path:
    """Find the folder of the newest prepared version of a TFDS data set."""
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    bases = [pathlib.Path(base).expanduser() for base in (data_dir, default) if base]
    for base in bases:
        if versions := _versions(base / dataset):
            return versions[-1]
        configs = [folder for folder in _folders(base / dataset) if _versions(folder)]
        if len(configs) == 1:
            return _versions(configs[0])[-1]
        if names := sorted(folder.name for folder in configs):
            raise UserError(
                f"tfds:{dataset} has the configs {', '.join(names)}; choose one, as in "
                f"tfds:{dataset}/{names[0]}"
            )
    raise UserError(_not_prepared(dataset, data_dir, bases))


def _versions(folder: pathlib.Path) -> list[pathlib.Path]:
    """Prepared versions in ``folder``, oldest first."""
    numbered = [
        (tuple(map(int, match.groups())), path)
        for path in _folders(folder)
        if (match := _VERSION.fullmatch(path.name))
        and (path / "dataset_info.json").is_file()
        and (path / "features.json").is_file()
    ]
    return [path for _, path in sorted(numbered)]


def _folders(folder: pathlib.Path) -> list[pathlib.Path]:
    return [p for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []


def _not_prepared(
    dataset: str, data_dir: str | os.PathLike[str] | None, bases: list[pathlib.Path]
) -> str:
    import tensorflow_datasets as tfds

    known = tfds.list_builders(with_community_datasets=False)
    name = dataset.split("/")[0]
    looked = " or ".join(map(str, bases))
    if name in known:
        command = _prepare_command(dataset, data_dir)
        return f"tfds:{dataset} is not prepared in {looked}; prepare it: {command}"
    close = " or ".join(difflib.get_close_matches(name, known, n=3))
    hint = f"did you mean {close}?" if close else "see tfds.list_builders()"
    return f"tfds:{dataset} is neither in {looked} nor in TFDS's catalogue; {hint}"


def _prepare_command(dataset: str, data_dir: str | os.PathLike[str] | None) -> str:
    """The command that downloads and prepares a data set in a readable format."""
    where = f", data_dir={str(data_dir)!r}" if data_dir else ""
    return (
        "pip install 'rdc-jax[prepare]' && python -c "
        f'"import tensorflow_datasets as tfds; tfds.builder({dataset!r}{where}, '
        "file_format='array_record').download_and_prepare()\""
    )


def _open_records(
    folder: pathlib.Path, dataset: str, tfds_split: str, split: str, again: str
) -> Any:
    """TFDS's random-access data source, with images left encoded."""
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    info = builder.info
    asked = tfds_split or _choose_split(list(info.splits), split, dataset)
    images = _keys(info.features, tfds.features.Image)
    decoders = dict.fromkeys(images, tfds.decode.SkipDecoding())
    try:
        return builder.as_data_source(split=asked, decoders=decoders)
    except NotImplementedError as error:
        raise UserError(
            f"{folder} is stored in {info.file_format}, which has no random access; "
            f"prepare it again: {again}"
        ) from error
    except (ValueError, KeyError) as error:
        raise UserError(
            f"tfds:{dataset} has no split {asked!r}; it has {', '.join(info.splits)}"
        ) from error


def _choose_split(existing: list[str], split: str, dataset: str) -> str:
    if len(existing) == 1:
        return existing[0]
    if split == "all":
        return "+".join(existing)
    for alias in split_names(split):
        if alias in existing:
            return alias
    raise MissingSplit(
        f"tfds:{dataset} has no {split} split; it has {', '.join(existing)}: choose "
        f"one, as in tfds:{dataset}:{existing[0]}"
    )


def _image_and_label(info: Any, dataset: str) -> tuple[str, str]:
    """Pick the image and class features: the supervised pair, or the only ones."""
    import tensorflow_datasets as tfds

    def pick(kind: type, usual: str, what: str) -> str:
        keys = _keys(info.features, kind)
        for key in (*(info.supervised_keys or ()), usual, *keys[: len(keys) == 1]):
            if key in keys:
                return key
        raise UserError(
            f"tfds:{dataset} does not say which feature is {what}; it has "
            f"{', '.join(sorted(info.features))}"
        )

    return (
        pick(tfds.features.Image, "image", "an image"),
        pick(tfds.features.ClassLabel, "label", "a class label"),
    )


def _keys(features: Any, kind: type) -> list[str]:
    return [key for key, feature in features.items() if isinstance(feature, kind)]


def _listed(
    records: Any,
    image_key: str,
    label_key: str,
    keep: tuple[str, str] | None,
    name: str,
    split: str,
) -> ImageSet:
    """Read labels and names of all records, and put them in order."""
    features = records.dataset_info.features
    names = features[label_key].names
    id_key = next((key for key in _ID_FEATURES if key in features), None)
    if keep and keep[0] not in features:
        raise UserError(f"tfds:{name} has no feature {keep[0]!r}")
    wanted = features[keep[0]].str2int(keep[1]) if keep else None

    def look(row: int) -> tuple[int, str, int] | None:
        example = records[row]
        if keep and example[keep[0]] != wanted:
            return None
        return int(example[label_key]), _id(example, id_key, row), row

    wanted_rows = [
        example for example in threaded_map(look, range(len(records))) if example
    ]
    labelled = [example for example in wanted_rows if example[0] >= 0]
    if not labelled:
        raise UserError(f"{records!r} has no labelled examples; try another split")
    # By number where labels have no names, because "10" comes before "9".
    numbered = names == [str(label) for label in range(len(names))]
    labelled.sort(key=lambda e: (e[0] if numbered else names[e[0]], *e[1:]))
    labels, ids, rows = zip(*labelled, strict=True)
    position = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    root = f"tfds:{records.dataset_info.full_name}#"

    def encoded(i: int) -> bytes:
        try:
            return records[rows[i]][image_key]
        except RuntimeError as error:  # array_record's, on damaged files
            reason = " ".join(str(error).split())
            raise UnreadableImage(root + ids[i], f"damaged ({reason})") from error

    unlabelled = len(wanted_rows) - len(labelled)
    note = Note("ignored", f"{unlabelled} examples have no label", problem=False)
    return ImageSet(
        name=name,
        split=split,
        ids=ids,
        labels=np.array([position[label] for label in labels]),
        class_names=tuple(names[label] for label in position),
        read=lambda i: decode_picture(encoded(i), where=root + ids[i]),
        digest=lambda i: content_digest(encoded(i)),
        root=root,
        notes=(note,) if unlabelled else (),
    )


def _id(example: dict[str, Any], key: str | None, row: int) -> str:
    if key is None:
        return f"{row:08}"
    value = example[key]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else f"{value}"
