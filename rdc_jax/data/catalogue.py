"""What data can be asked for by name: the paper's, folders, built-in ones, your own."""

import os
import textwrap

from rdc_jax.data.datasets import DATASETS
from rdc_jax.data.open import OPENERS, names_under
from rdc_jax.data.synthetic import DOMAINS
from rdc_jax.runtime.text import paragraph, table, two_columns

_TITLE = 38  # characters of a data set's title in one line of the list
_OTHERS = (
    "Everything else is given by its path: a folder of class folders, a .json file "
    "list; or as tfds:NAME[/CONFIG][:SPLIT], a data set that TFDS has prepared. "
    "docs/datasets.md says where to get each, and its layout."
)


def catalogue(data_dir: str | os.PathLike[str] | None = None) -> str:
    """List all data sets that have a name, in lines of at most 80 characters.

    Raises:
      UserError: ``data_dir`` is no folder.
    """
    here = names_under(data_dir)
    present = {name.lower() for name in here}
    rows = [["name", "here", "classes", "test", "TFDS", "what it is"]]
    for name, dataset in DATASETS.items():
        marks = ["yes" if it else "no" for it in (name in present, dataset.tfds)]
        counts = [str(dataset.classes), str(dataset.size("test"))]
        first, *more = textwrap.wrap(dataset.title, _TITLE)
        rows.append([name, marks[0], *counts, marks[1], first])
        rows += [[*[""] * 5, line] for line in more]
    others = [name for name in here if name.lower() not in DATASETS]
    folders = f"other folders in {data_dir or '.'}: {', '.join(others) or 'none'}"
    built_in = [
        (f"synthetic:{name}", f"{domain.about}; {len(domain.class_names)} classes")
        for name, domain in DOMAINS.items()
    ]
    own = [
        (name, (opener.__doc__ or "").strip().partition("\n")[0])
        for name, opener in OPENERS.items()
    ]
    return "\n\n".join(
        [
            table(rows, right=frozenset({2, 3})),
            paragraph(folders, indent=0),
            "built in, without any files:\n" + two_columns(built_in),
            *(["your own:\n" + two_columns(own)] if own else []),
            paragraph(_OTHERS, indent=0),
        ]
    )
