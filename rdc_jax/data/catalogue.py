"""What data can be asked for by name: the paper's, folders, built-in ones."""

import os
import textwrap
from typing import NamedTuple

from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.open import names_under
from rdc_jax.data.synthetic import DOMAINS
from rdc_jax.runtime.text import paragraph, table, two_columns

_TITLE = 38  # letters of a data set's title in one line of the list
_OTHERS = (
    "Everything else is given by its path: a folder of class folders, a .json file "
    "list; or as tfds:NAME[/CONFIG][:SPLIT], a data set that TFDS has prepared. "
    "docs/datasets.md says where to get each, and its layout."
)


class Known(NamedTuple):
    """One of the paper's data sets, and whether its folder is there."""

    name: str
    present: bool
    classes: int
    test_classes: int
    in_tfds: bool
    title: str


def known(data_dir: str | os.PathLike[str] | None = None) -> list[Known]:
    """The paper's data sets; a ``data_dir`` that is no folder is a ``UserError``."""
    here = {name.lower() for name in names_under(data_dir)}
    return [
        Known(d.name, d.name in here, d.classes, d.size("test"), bool(d.tfds), d.title)
        for d in DATASETS.values()
    ]


def catalogue(data_dir: str | os.PathLike[str] | None = None) -> str:
    """All that has a name, in lines of at most 80 letters as far as names allow."""
    rows = [["name", "here", "classes", "test", "TFDS", "what it is"]]
    for name, present, classes, test, in_tfds, title in known(data_dir):
        first, *more = textwrap.wrap(title, _TITLE)
        marks = ["yes" if it else "no" for it in (present, in_tfds)]
        rows.append([name, marks[0], str(classes), str(test), marks[1], first])
        rows += [[*[""] * 5, line] for line in more]
    others = [name for name in names_under(data_dir) if name.lower() not in DATASETS]
    folders = f"other folders in {data_dir or '.'}: {', '.join(others) or 'none'}"
    built_in = [
        (f"synthetic:{name}", f"{domain.about}; {len(domain.class_names)} classes")
        for name, domain in DOMAINS.items()
    ]
    parts = [
        table(rows, right=frozenset({2, 3})),
        paragraph(folders, indent=0),
        "built in, without any files:\n" + two_columns(built_in),
        paragraph(_OTHERS, indent=0),
    ]
    return "\n\n".join(parts)
