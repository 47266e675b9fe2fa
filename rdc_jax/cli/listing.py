"""What ``--list`` prints: everything that can be asked for by name."""

import ast
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping

from rdc_jax.data.catalogue import catalogue
from rdc_jax.methods.catalogue import methods
from rdc_jax.models.catalogue import checkpoints
from rdc_jax.runtime.text import paragraph, two_columns

_VARIANTS = re.compile(r"\[:([\w|:]+)\]")


def for_evaluation(
    folder: pathlib.Path, data_dir: str | os.PathLike[str] | None = None
) -> str:
    """What ``run_eval.py --list`` prints."""
    return _sections(
        ("configs", "--config=FILE:VARIANT", configs(folder, leave_out="pretrain")),
        ("methods", "--config.methods=NAME,NAME", methods()),
        (
            "data sets",
            "--config.datasets=NAME,NAME  --config.data_dir=DIR",
            catalogue(data_dir),
        ),
        ("checkpoints", "--config.checkpoint=PATH", checkpoints()),
    )


def for_pretraining(
    folder: pathlib.Path,
    objectives: Mapping[str, Callable[..., object]],
    data_dir: str | os.PathLike[str] | None = None,
) -> str:
    """What ``run_pretrain.py --list`` prints.

    Objectives are described by the first line of their docstrings.
    """
    described = [
        (name, (make.__doc__ or "").strip().partition("\n")[0])
        for name, make in objectives.items()
    ]
    return _sections(
        ("configs", "--config=FILE:VARIANT", _config(folder / "pretrain.py")),
        ("objectives", "--config.method=NAME", two_columns(described)),
        (
            "data sets",
            "--config.source=NAME  --config.data_dir=DIR",
            catalogue(data_dir),
        ),
        ("checkpoints to start from", "--config.init_from=PATH", checkpoints()),
    )


def configs(folder: pathlib.Path, *, leave_out: str = "") -> str:
    """List config files with their variants.

    ``folder`` is searched with what is below it, and shown by its own name. The file
    ``leave_out``, without its suffix, is passed over.
    """
    # Those of the folder itself come first.
    files = sorted(folder.rglob("*.py"), key=lambda path: (len(path.parts), path))
    left_out = {leave_out, "__init__"}
    found = [_config(path, folder) for path in files if path.stem not in left_out]
    return "\n".join(found)


def _config(path: pathlib.Path, folder: pathlib.Path | None = None) -> str:
    """One file, read without running it: its docstring and those of its variants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    text = ast.get_docstring(tree) or ""
    said = _VARIANTS.search(text)
    variants = said.group(1).replace(":", "").split("|") if said else []
    name = path.relative_to((folder or path.parent).parent).as_posix()
    about = paragraph(text.splitlines()[0] if text else "", indent=4)
    described = [*_described(tree, variants), *_systems(tree)]
    if not described:
        suffix = f"  :{', :'.join(variants)}" if variants else ""
        return f"  {name}{suffix}\n{about}"
    return f"  {name}\n{about}\n{two_columns(described, indent=6)}"


def _described(tree: ast.Module, variants: list[str]) -> Iterator[tuple[str, str]]:
    """Variants that a function of their name makes, by its docstring."""
    made = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for variant in variants:
        if function := made.get(f"_{variant}"):
            text = ast.get_docstring(function) or ""
            yield f":{variant}", text.splitlines()[0]


def _systems(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Variants that a file has in a dict of that name, by what they minimise."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name("SYSTEMS")], value=ast.Dict() as value):
                for name, method in ast.literal_eval(value).items():
                    yield f":{name}", f"--config.method='{method}', on few-shot tasks."


def _sections(*parts: tuple[str, str, str]) -> str:
    made = [f"{title.upper()}  {flag}\n\n{text}" for title, flag, text in parts]
    return "\n\n\n".join(made)
