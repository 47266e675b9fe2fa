"""Dependencies point one way."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent / "rdc_jax"

# What each part may import of the package. A part that is not listed fails the test.
ALLOWED = {
    "bars": set(),
    "errors": set(),
    "columns": set(),
    "fingerprint": set(),
    "threads": set(),
    "writing": {"errors"},
    "core": {"errors"},
    "usage": {"columns"},
    "flags": {"errors", "usage"},
    "data": {"bars", "errors", "fingerprint", "columns", "core"},
    "models": {"errors", "fingerprint", "columns", "core"},
    "training": {"bars", "errors", "fingerprint", "core", "data", "models"},
    "methods": {"errors", "columns", "core", "training"},
    "listing": {"columns", "data", "models", "methods"},
    "evaluation": {
        *("bars", "errors", "fingerprint", "threads", "writing", "core"),
        *("data", "models", "training", "methods"),
    },
    "reporting": {
        *("errors", "fingerprint", "writing"),
        *("core", "methods", "evaluation"),
    },
    "predict": {
        *("errors", "fingerprint", "threads", "writing"),
        *("core", "data", "models"),
    },
}
FILES = [
    *sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT),
    *sorted(path for path in ROOT.glob("*.py") if path.name != "__init__.py"),
]


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "rdc_jax" and len(parts) > 1:
            assert parts[1] in ALLOWED[part] | {part}, f"{part} imports {module}"


def test_only_one_file_knows_orbax():
    users = [
        str(path.relative_to(ROOT))
        for path in FILES
        if any(name.startswith("orbax") for name in imported_modules(path))
    ]
    assert users == ["models/checkpoints.py"]
