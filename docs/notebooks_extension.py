"""For the site: the notebooks as pages, and as files to download."""

import json
import pathlib

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

NOTEBOOKS = pathlib.Path(__file__).parents[1] / "notebooks"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add two files for each notebook, under ``notebooks/`` of the site."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        source = path.read_text(encoding="utf-8")
        made = {path.name: source, f"{path.stem}.md": _page(source, path.name)}
        for name, content in made.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def _page(source: str, name: str) -> str:
    """The cells of a notebook as Markdown; they are stored without outputs."""
    title, *parts = map(_cell, json.loads(source)["cells"])
    head, _, rest = title.partition("\n")
    return "\n\n".join([head, f"[Download this notebook]({name})", rest, *parts])


def _cell(cell: dict) -> str:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return text.replace("](../docs/", "](../").replace(".ipynb)", ".md)")
    return f"```python\n{text}\n```"
