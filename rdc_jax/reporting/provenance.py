"""Where results come from: settings and fingerprints, without private places."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from rdc_jax.core.params import RDCParams
from rdc_jax.reporting.runs import Run
from rdc_jax.runtime.redact import hide_places


def settings(run: Run) -> dict[str, str]:
    """List all settings; parameters of RDC that were changed with their default."""
    found = {f"config.{name}": text for name, text in _flat(run.config)}
    for name, default in _flat({"rdc": dataclasses.asdict(RDCParams())}):
        if (field := f"config.{name}") in found and found[field] != default:
            found[field] += f" (default: {default})"
    return found


def origins(run: Run) -> dict[str, str]:
    """Name the backbone, the data, the software and the machine."""
    provenance = run.results["provenance"]
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
        elif isinstance(value, str):
            yield f"{prefix}{name}", hide_places(name, value)
        elif isinstance(value, bool):
            yield f"{prefix}{name}", "yes" if value else "no"
        else:
            yield (
                f"{prefix}{name}",
                f"{value:g}" if isinstance(value, float) else str(value),
            )
