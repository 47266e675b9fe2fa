"""Where results come from: settings and fingerprints, without private places."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rdc_jax.methods import Settings
from rdc_jax.reporting.runs import Run
from rdc_jax.runtime.redact import hide_places

# What the fields of `config.rdc` and `config.finetune` decide.
_MEANINGS = {
    "k": "neighbours of an image, itself not counted",
    "k2": "ranks that query expansion averages over, the image itself included",
    "lam": "λ: weight of the plain distance against the Jaccard distance",
    "dim": "p: dimensions of the subspace",
    "distance": "distance between features before calibration",
    "base": "what neighbours are: mutual ones (reciprocal), or simply the nearest",
    "overlap": "how much of a neighbour's own set must overlap for it to join: "
    "at least (>=) or more than (>) two thirds",
    "labels": "labelled images drop neighbours of other classes, share those of theirs",
    "normalize": "encoded neighbour sets sum to one",
    "subspace": "the second space whose distances are averaged with the first's",
    "kernel_input": "what the subspace's kernel sees: l2-normalised or raw features",
    "centre": "the task's mean is subtracted first",
    "solver": "how the subspace is computed; changes the speed, hardly the result",
    "linkage": "distance to a class: mean or min over its labelled images",
    "steps": "T: full-batch steps of fine-tuning on each task",
    "optimiser": "rule by which weights move",
    "learning_rate": "how far they move in a step",
    "relative": "steps are scaled by the size of the weights they change",
    "alpha": "\N{GREEK SMALL LETTER ALPHA}: extra weight of neighbours in the loss",
    "tau": "τ: temperature of the soft distributions",
    "sign": "-1: near is likely; 1: as the paper prints it",
    "include_self": "an image's distance to itself counts in its distribution",
    "target": "calibrated distances are computed anew at each step, or once (fixed)",
    "answer": "what classifies by the fine-tuned features: nearest prototypes (npc) or "
    "calibrated distances (rdc)",
    "batch_norm": "statistics that normalise: of the task (batch), of the checkpoint "
    "(running), or the checkpoint's updated by the task",
    "layers": "modules that train; empty: all",
    "augment": "each step sees the images through random transforms",
    "dtype": "number format of the network's computation",
    "record": "steps after which the accuracy was noted too",
    "loop": "how steps are driven; changes the speed only",
}


class Reading(NamedTuple):
    """One open point of the method, as this run read it.

    Attributes:
      field: Of the config's part.
      value: As text.
      meaning: What it decides.
      default: The package's default, where this run differs from it.
    """

    field: str
    value: str
    meaning: str
    default: str


def readings(run: Run) -> dict[str, list[Reading]]:
    """Tell how the run read the method, field by field, by part of the config."""
    usual = Settings(num_classes=run.config["way"])
    parts = {"rdc": usual.rdc, "finetune": usual.finetune}
    if not run.trained:
        del parts["finetune"]
    return {
        f"config.{part}": _readings(run.config.get(part, {}), defaults)
        for part, defaults in parts.items()
    }


def _readings(given: Mapping[str, Any], usual: object) -> list[Reading]:
    order = [*(name for name in _MEANINGS if name in given), *given]
    found = []
    for field in dict.fromkeys(order):
        value, default = _text(given[field]), _text(getattr(usual, field, ""))
        differs = "" if default == value else default
        found.append(Reading(field, value, _MEANINGS.get(field, ""), differs))
    return found


def fields(run: Run) -> list[tuple[str, str]]:
    """List all settings but the readings, as ``config.<name>`` and a text."""
    told = {part.removeprefix("config.") for part in readings(run)}
    config = {name: value for name, value in run.config.items() if name not in told}
    return [(f"config.{name}", text) for name, text in _flat(config)]


def origins(run: Run) -> list[tuple[str, str]]:
    """Name the backbone, the data, the software and the machine."""
    provenance = run.results["provenance"]
    checkpoint, backend = provenance["checkpoint"], provenance["backend"]
    found = [
        ("backbone", checkpoint["arch"]),
        ("its training", checkpoint.get("training") or "the checkpoint does not say"),
        ("checkpoint fingerprint", checkpoint["fingerprint"]),
    ]
    found += [
        (f"fingerprint of {name}", digest)
        for name, digest in provenance.get("data", {}).items()
    ]
    found += [
        (f"fingerprint of plugin {name}", digest)
        for name, digest in provenance.get("plugins", {}).items()
    ]
    found += list(provenance["versions"].items())
    found.append(("computed on", f"{backend['platform']} ({backend['device']})"))
    return found


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, str):
            yield f"{prefix}{name}", hide_places(name, value)
        else:
            yield f"{prefix}{name}", _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):  # The config has such lists as words with commas.
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
