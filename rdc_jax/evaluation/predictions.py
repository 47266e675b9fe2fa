"""Every query's answers: ``predictions.parquet``, a row a query and method.

Parquet is columnar and compressed, and all that reads tables reads it; pyarrow comes
with ``tensorflow-datasets`` anyway. Parquet cannot be appended to, so the file is made
from the record of the run when that is complete, a row group a data set, shot and
method: memory is bounded, and the bytes are those of a run that was not interrupted.
"""

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float32, Int

from rdc_jax.core.prototypes import unknown_scores
from rdc_jax.data.tasks import FILLER
from rdc_jax.evaluation.confusion import Answered
from rdc_jax.evaluation.options import Options
from rdc_jax.runtime.config_values import Shot
from rdc_jax.runtime.files import replacing

PREDICTIONS = "predictions.parquet"

# A text is noted once, and its number in each row: pandas makes it a category.
_TEXT = pa.dictionary(pa.int32(), pa.string())


def write(
    path: pathlib.Path,
    options: Options,
    parts: Iterable[
        tuple[str, Shot, Answered, Mapping[str, Float32[np.ndarray, "..."]]]
    ],
) -> None:
    """Write the answers of a run.

    Args:
      path: The file.
      options: The typed config of the run.
      parts: A data set and shot each: their names, the tasks with their answers, and
        class distances ``[e, q, c]`` by method.

    Raises:
      UserError: The file cannot be written.
    """
    with replacing(path, "make room, then run the same command") as file:
        schema = _schema(options)
        numbers = schema.field("shot").type == pa.int32()
        floats = [field.name for field in schema if pa.types.is_floating(field.type)]
        writer = pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in floats],
            # First bytes of floats are alike: side by side they compress.
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
        )
        with writer:
            for dataset, shot, answered, distances in parts:
                for method in distances:
                    named = shot if numbers else str(shot)
                    place = {"dataset": dataset, "shot": named, "method": method}
                    columns = _columns(place, answered, method, distances[method])
                    table = pa.table(columns, writer.schema)
                    if options.varies:
                        real_q = answered.labels.ravel() != FILLER
                        table = table.filter(pa.array(real_q))
                    writer.write_table(table, row_group_size=max(len(table), 1))


def _schema(options: Options) -> pa.Schema:
    way = max(options.spec(shot).most_ways for shot in options.shots)
    numbers = all(isinstance(shot, int) for shot in options.shots)
    fields: dict[str, Any] = {
        "dataset": _TEXT,
        "shot": pa.int32() if numbers else _TEXT,
        "method": _TEXT,
        "task": pa.int32(),
        "query": pa.int32(),
        "image": _TEXT,
        "class": _TEXT,
        "answer": _TEXT,
        "right": pa.bool_(),
        "known": pa.bool_(),
        "unknown_score": pa.float32(),
    }
    fields |= {f"class_{c}": _TEXT for c in range(way)}
    fields |= {f"distance_{c}": pa.float32() for c in range(way)}
    return pa.schema(fields)


def _columns(
    place: Mapping[str, Any],
    answered: Answered,
    method: str,
    dist_eqc: Float32[np.ndarray, "e q c"],
) -> dict[str, Any]:
    """The rows of a method, task by task."""
    labels_eq, answer_eq = answered.labels, answered.answers[method]
    shape = labels_eq.shape
    names, way = answered.class_names, answered.classes.shape[1]
    task_e1 = np.arange(shape[0])[:, None]
    columns: dict[str, Any] = {
        name: _text(np.zeros(shape, int), [value])
        if isinstance(value, str)
        else np.full(shape, value).ravel()
        for name, value in place.items()
    }
    given_eq = np.where(answer_eq < 0, -1, answered.classes[task_e1, answer_eq])
    columns |= {
        "task": np.broadcast_to(task_e1, shape).ravel(),
        "query": np.broadcast_to(np.arange(shape[1]), shape).ravel(),
        "image": _text(answered.images, answered.image_names),
        "class": _text(answered.image_classes[answered.images], names),
        "answer": _text(given_eq, names),
        "right": ((answer_eq == labels_eq) & (labels_eq >= 0)).ravel(),
        "known": (labels_eq >= 0).ravel(),
        "unknown_score": np.asarray(unknown_scores(dist_eqc)).ravel(),
    }
    for c in range(way):
        columns[f"class_{c}"] = _text(
            np.broadcast_to(answered.classes[:, c : c + 1], shape), names
        )
        columns[f"distance_{c}"] = dist_eqc[:, :, c].ravel()
    return columns


def _text(places: Int[np.ndarray, "e q"], names: Iterable[str]) -> pa.DictionaryArray:
    """Texts by their places among the names; -1 is none."""
    places = places.ravel().astype(np.int32)
    indices = pa.array(places, mask=places < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))
