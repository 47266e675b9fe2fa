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
    where = f", data_dir={str(data_dir)!r}" if data_dir else ""
    prepare = (
        "pip install 'rdc-jax[prepare]' && python -c "
        f'"import tensorflow_datasets as tfds; tfds.builder({dataset!r}{where}, '
        "file_format='array_record').download_and_prepare()\""
    )
    folder = _find_prepared(dataset, data_dir, prepare)
    try:
        records = _open_records(folder, dataset, tfds_split, split, prepare)
        return _listed(records, keep, name or dataset.replace("/", "-"), split)
    except UserError:
        raise
    except Exception as error:  # protobuf, json, array_record: each has its own
        reason = " ".join(str(error).split())
        raise UserError(
            f"{folder} cannot be read ({reason}); delete it and prepare it again: "
            f"{prepare}"
        ) from error


def _find_prepared(
    dataset: str, data_dir: str | os.PathLike[str] | None, prepare: str
) -> pathlib.Path:
    """Find the folder of the newest prepared version of a TFDS data set."""
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    bases = [pathlib.Path(base).expanduser() for base in (data_dir, default) if base]
    for base in bases:
        if versions := _versions(base / dataset):
            return versions[-1]
        configs = {p.name: v for p in (base / dataset).glob("*") if (v := _versions(p))}
        if len(configs) == 1:
            return configs.popitem()[1][-1]
        if configs:
            raise UserError(
                f"tfds:{dataset} has the configs {', '.join(sorted(configs))}; choose "
                f"one, as in tfds:{dataset}/{min(configs)}"
            )
    looked = " or ".join(map(str, bases))
    import tensorflow_datasets as tfds

    known = tfds.list_builders(with_community_datasets=False)
    name = dataset.partition("/")[0]
    if name in known:
        raise UserError(
            f"tfds:{dataset} is not prepared in {looked}; prepare it: {prepare}"
        )
    close = " or ".join(difflib.get_close_matches(name, known, n=3))
    hint = f"did you mean {close}?" if close else "see tfds.list_builders()"
    raise UserError(
        f"tfds:{dataset} is neither in {looked} nor in TFDS's catalogue; {hint}"
    )


def _versions(folder: pathlib.Path) -> list[pathlib.Path]:
    """Prepared versions in ``folder``, oldest first."""
    numbered = [
        (tuple(map(int, match.groups())), info.parent)
        for info in folder.glob("*/dataset_info.json")
        if (match := _VERSION.fullmatch(info.parent.name))
        and info.with_name("features.json").is_file()
    ]
    return [path for _, path in sorted(numbered)]


def _open_records(
    folder: pathlib.Path, dataset: str, tfds_split: str, split: str, prepare: str
) -> Any:
    """TFDS's random-access data source, with images left encoded."""
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    info = builder.info
    asked, known = tfds_split, list(info.splits)
    if not asked and (split == "all" or len(known) == 1):
        asked = "+".join(known)
    elif not asked:
        aliases = [alias for alias in split_names(split) if alias in known]
        if not aliases:
            raise MissingSplit(
                f"tfds:{dataset} has no {split} split; it has {', '.join(known)}: "
                f"choose one, as in tfds:{dataset}:{known[0]}"
            )
        asked = aliases[0]
    images = _keys(info.features, tfds.features.Image)
    decoders = dict.fromkeys(images, tfds.decode.SkipDecoding())
    try:
        return builder.as_data_source(split=asked, decoders=decoders)
    except NotImplementedError as error:
        raise UserError(
            f"{folder} is stored in {info.file_format}, which has no random access; "
            f"prepare it again: {prepare}"
        ) from error
    except (ValueError, KeyError) as error:
        raise UserError(
            f"tfds:{dataset} has no split {asked!r}; it has {', '.join(known)}"
        ) from error


def _listed(
    records: Any, keep: tuple[str, str] | None, name: str, split: str
) -> ImageSet:
    """Read labels and names of all records, and put them in order."""
    import tensorflow_datasets as tfds

    info = records.dataset_info
    image_key = _pick(info, tfds.features.Image, "image", "an image")
    label_key = _pick(info, tfds.features.ClassLabel, "label", "a class label")
    names = info.features[label_key].names
    id_key = next((key for key in _ID_FEATURES if key in info.features), None)
    if keep and keep[0] not in info.features:
        raise UserError(f"tfds:{name} has no feature {keep[0]!r}")
    wanted = info.features[keep[0]].str2int(keep[1]) if keep else None

    def look(row: int) -> tuple[int, str, int] | None:
        example = records[row]
        if keep and example[keep[0]] != wanted:
            return None
        name = example[id_key] if id_key else f"{row:08}"
        name = name.decode("utf-8", "replace") if isinstance(name, bytes) else f"{name}"
        return int(example[label_key]), name, row

    kept = [e for e in threaded_map(look, range(len(records))) if e]
    labelled = [example for example in kept if example[0] >= 0]
    if not labelled:
        raise UserError(f"{records!r} has no labelled examples; try another split")
    # By number where labels have no names, because "10" comes before "9".
    numbered = names == [str(label) for label in range(len(names))]
    labelled.sort(key=lambda e: (e[0] if numbered else names[e[0]], *e[1:]))
    labels, ids, rows = zip(*labelled, strict=True)
    position = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    root = f"tfds:{info.full_name}#"

    def encoded(i: int) -> bytes:
        try:
            return records[rows[i]][image_key]
        except RuntimeError as error:  # array_record's, on damaged files
            reason = " ".join(str(error).split())
            raise UnreadableImage(root + ids[i], f"damaged ({reason})") from error

    unlabelled = len(kept) - len(labelled)
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


def _pick(info: Any, kind: type, usual: str, what: str) -> str:
    """Of the features of a kind the supervised, the usually named or the only one."""
    keys = _keys(info.features, kind)
    for key in (*(info.supervised_keys or ()), usual, *keys[: len(keys) == 1]):
        if key in keys:
            return key
    raise UserError(
        f"tfds:{info.full_name} does not say which feature is {what}; it has "
        f"{', '.join(sorted(info.features))}"
    )


def _keys(features: Any, kind: type) -> list[str]:
    return [key for key, feature in features.items() if isinstance(feature, kind)]
