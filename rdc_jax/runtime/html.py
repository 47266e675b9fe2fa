"""Pages that are one file of HTML, by templates of Jinja2."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


def template(package: str, name: str) -> jinja2.Template:
    """Load a template from the folder ``templates`` of a package.

    What is put into it is escaped, and a name that it is not given is an error.
    """
    import jinja2  # Only here: most starts need no page.

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)
