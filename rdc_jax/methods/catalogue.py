"""The methods that can be asked for, as text for a terminal."""

from rdc_jax.methods import Method, get_method, names
from rdc_jax.runtime.text import paragraph, two_columns

_MORE = (
    "Methods marked with * are transductive: they classify all queries of a task "
    "together. Parameters of a method's own follow it: rdc(k=6;lam=0.3)."
)


def methods() -> str:
    """List the methods that are registered, with what each needs.

    >>> "rdc_ft" in methods()
    True
    """
    known = [get_method(name) for name in names()]
    quick = [method for method in known if method.inputs != "images"]
    fitted = [method for method in known if method.inputs == "images"]
    return "\n".join(
        [
            "on features, thousands of tasks in a minute:",
            two_columns([_entry(method) for method in quick]),
            "",
            "on images, a network fitted to each task (on a CPU, seconds a task):",
            two_columns([_entry(method) for method in fitted]),
            "",
            paragraph(_MORE, indent=0),
        ]
    )


def _entry(method: Method) -> tuple[str, str]:
    """Its name, and its title with the first line of its docstring."""
    first, *_ = (type(method).__doc__ or "").strip().splitlines() or [""]
    together = method.transductive or method.answering.transductive
    name = method.name + "*" * together
    return name, f"{method.title}. {first}".rstrip()
