"""Where results come from: settings, fingerprints and versions."""

from collections.abc import Iterator, Mapping
from typing import Any

from rdc_jax.reporting.runs import Run


def settings(run: Run) -> dict[str, str]:
    """List all settings by the names they have on the command line."""
    return {f"config.{name}": text for name, text in _flat(run.config)}


def origins(run: Run) -> dict[str, str]:
    """Name the backbone, the data, the software and the machine."""
    provenance = run.provenance
    checkpoint, backend = provenance["checkpoint"], provenance["backend"]
    prints = {**provenance.get("data", {}), **provenance.get("plugins", {})}
    return {
        "backbone": checkpoint["arch"],
        "its training": checkpoint.get("training") or "the checkpoint does not say",
        "its fingerprint": checkpoint["fingerprint"],
        **{f"fingerprint of {name}": digest for name, digest in prints.items()},
        **provenance["versions"],
        "computed on": f"{backend['platform']} ({backend['device']})",
    }


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield f"{prefix}{name}", "yes" if value else "no"
        else:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            yield f"{prefix}{name}", text
