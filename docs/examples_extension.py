"""For the API reference: show the ``Example:`` of a docstring as code."""

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Griffe's section is called ``Examples:``; ours have one example."""

    def on_object(self, *, obj: griffe.Object, **unused: Any) -> None:
        """Rename the section before it is parsed."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.M)
