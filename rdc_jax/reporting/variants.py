"""Methods with parameters of their own, as the config names them: ``rdc(lam=0.3)``."""

from rdc_jax.reporting.runs import Run

_LEAST = 3  # Values that make a curve.

# Variants of a method that differ in one number: what they have in common, and their
# names by that number, from small to large.
Sweep = tuple[str, dict[float, str]]


def parse(name: str) -> tuple[str, dict[str, str]]:
    """Take a name apart.

    >>> parse("rdc(lam=0.3;k=6)")
    ('rdc', {'lam': '0.3', 'k': '6'})
    """
    base, _, rest = name.partition("(")
    pairs = (part.partition("=") for part in rest.removesuffix(")").split(";") if part)
    return base, {field.strip(): value.strip() for field, _, value in pairs}


def sweeps(run: Run) -> dict[str, list[Sweep]]:
    """Find the parameters that the run varies, each with its series of methods."""
    groups: dict[tuple[str, str, tuple[tuple[str, str], ...]], dict[float, str]] = {}
    for name in run.titles:
        base, fields = parse(name)
        for field, text in fields.items():
            rest = tuple((k, v) for k, v in fields.items() if k != field)
            if (value := _number(text)) is not None:
                groups.setdefault((field, base, rest), {})[value] = name
    found: dict[str, list[Sweep]] = {}
    for (field, _, rest), names in groups.items():
        if len(names) >= _LEAST:
            title = run.titles[next(iter(names.values()))].split(" (")[0]
            whole = ", ".join([title, *(f"{k}={v}" for k, v in rest)])
            found.setdefault(field, []).append((whole, dict(sorted(names.items()))))
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
