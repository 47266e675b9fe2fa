"""Where results come from: settings, fingerprints and versions."""

from typing import Any

from rdc_jax.reporting.runs import Run
from rdc_jax.runtime.config_values import flat


def settings(run: Run) -> dict[str, str]:
    """List all settings by the names they have on the command line."""
    values = flat(run.config)
    return {f"config.{name}": _text(value) for name, value in values.items()}


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


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
