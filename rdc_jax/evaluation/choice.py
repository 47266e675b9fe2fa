"""Parameters of methods, chosen on classes held out for it (``config.choose_on``).

A method with alternatives, ``rdc(k=6|10)``, is evaluated with each of them on tasks of
another data set, of whose classes none is tested: an evaluation in the folder
``choice`` of the work directory, recorded and resumed as any other. The alternative
with the best mean over all shots takes the method's place.
"""

import itertools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rdc_jax.data.names import canonical_split
from rdc_jax.methods import parameters
from rdc_jax.runtime.config_values import words
from rdc_jax.runtime.errors import UserError
from rdc_jax.runtime.processes import broadcast_from_first

FOLDER = "choice"

_OR = "|"

Config = Mapping[str, Any]
Evaluate = Callable[[Config, pathlib.Path], Mapping[str, Any] | None]


class Choice(NamedTuple):
    """What was chosen.

    Attributes:
      methods: ``config.methods``, with the best alternative of each.
      record: Where it was chosen, and the accuracies of all alternatives.
    """

    methods: str
    record: dict[str, Any]


def alternatives(method: str) -> tuple[str, ...]:
    """Give the methods that a text with alternatives stands for.

    >>> alternatives("rdc(k=6|10;lam=0.3)@other")
    ('rdc(k=6;lam=0.3)@other', 'rdc(k=10;lam=0.3)@other')
    """
    if _OR not in method:
        return (method,)
    text, at, model = method.partition("@")
    name, pairs = parameters.split(text)
    grid = [
        [f"{parameter}={value.strip()}" for value in values.split(_OR)]
        for parameter, values in pairs.items()
    ]
    picks = itertools.product(*grid)
    return tuple(f"{name}({';'.join(pick)}){at}{model}" for pick in picks)


def expanded(config: Config) -> dict[str, Any]:
    """Give the config with all alternatives in its methods."""
    methods = words("methods", config["methods"])
    every = [one for method in methods for one in alternatives(method)]
    return {**config, "methods": ",".join(dict.fromkeys(every))}


def choose(config: Config, workdir: pathlib.Path, evaluate: Evaluate) -> Choice:
    """Choose among the alternatives of a config's methods.

    ``evaluate`` evaluates a config in a work directory.

    Raises:
      UserError: There is nothing to choose, or the classes would be tested.
    """
    methods = words("methods", config["methods"])
    grids = {method: alternatives(method) for method in methods if _OR in method}
    if not grids:
        raise UserError(
            "config.choose_on: no method has alternatives; write them as in "
            "--config.methods='rdc(k=6|10|14)', or leave config.choose_on empty"
        )
    if not config["checkpoint"]:
        raise UserError(
            "config.choose_on needs config.checkpoint: train a network by "
            "run_pretrain.py first"
        )
    dataset, split = _place(config)
    results = evaluate(
        {
            **expanded(config),
            "title": f"Parameters, on {dataset} {split}",
            "datasets": dataset,
            "split": split,
            "choose_on": "",
            "cache_dir": config["cache_dir"] or str(workdir / "cache"),
            "predictions": False,
        },
        workdir / FOLDER,
    )
    mean = broadcast_from_first(results and _means(results))
    chosen = {method: max(each, key=mean.__getitem__) for method, each in grids.items()}
    record = {
        "dataset": dataset,
        "split": split,
        "tasks": config["episodes"],
        "methods": [
            {
                "asked": method,
                "chosen": chosen[method],
                "accuracies": {one: mean[one] for one in each},
            }
            for method, each in grids.items()
        ],
    }
    return Choice(",".join(chosen.get(method, method) for method in methods), record)


def _place(config: Config) -> tuple[str, str]:
    """The data set and the split to choose on: ``miniimagenet:val``."""
    dataset, colon, split = config["choose_on"].rpartition(":")
    if not colon:
        raise UserError(
            f"config.choose_on is {config['choose_on']!r}: give a data set and a "
            "split, as in miniimagenet:val"
        )
    split = canonical_split(split)
    tested = words("datasets", config["datasets"])
    if dataset in tested and split == canonical_split(config["split"]):
        raise UserError(
            f"config.choose_on is {dataset}:{split}, which config.datasets has too: "
            "choose on classes that are not tested"
        )
    return dataset, split


def _means(results: Mapping[str, Any]) -> dict[str, float]:
    """Accuracy by method, the mean over shots."""
    found: dict[str, list[float]] = {}
    for row in results["averages"]:
        found.setdefault(row["method"], []).append(row["accuracy"])
    return {method: sum(each) / len(each) for method, each in found.items()}
