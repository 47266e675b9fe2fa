"""Dependencies point one way."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "rdc_jax"

# What each part may import of the package, imports inside of functions included. "top"
# is the package itself: ``import rdc_jax`` stands above the kernels and below nothing.
KERNELS = {"core", "runtime"}
LOWER = KERNELS | {"models", "data"}
ALLOWED = {
    "core": set(),
    "runtime": set(),
    "models": KERNELS,
    "data": KERNELS,
    "methods": LOWER,
    "pretrain": LOWER | {"methods"},
    "evaluation": LOWER | {"methods", "pretrain"},
    "reporting": KERNELS,
    "predict": LOWER | {"methods"},
    "rerank": LOWER,
    "cli": LOWER | {"methods"},
    "configs": {"top", "methods"},
    "programs": LOWER | {"methods", "pretrain", "evaluation", "reporting", "cli"},
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    part = path.relative_to(PACKAGE).parts[0]
    for module in imported_modules(path):
        package, _, inner = module.partition(".")
        if package == "rdc_jax":
            target = inner.partition(".")[0] or "top"
            assert target in ALLOWED[part] | {part}, f"{part} imports {module}"


def test_nothing_but_the_public_names_is_at_the_top():
    names = {path.name for path in PACKAGE.glob("*.py")}
    assert names == {"__init__.py", "__main__.py"}  # The latter lists the commands.


def test_only_one_file_knows_orbax():
    users = [
        str(path.relative_to(PACKAGE))
        for path in FILES
        if any(name.startswith("orbax") for name in imported_modules(path))
    ]
    assert users == ["models/checkpoints.py"]
