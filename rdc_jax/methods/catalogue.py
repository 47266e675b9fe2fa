"""The methods that can be asked for, as text for a terminal."""

from rdc_jax.methods.registry import FeatureMethod, ImageMethod, Method, find, names
from rdc_jax.runtime.text import paragraph, two_columns

_KINDS = {
    "features": "on features, thousands of tasks in a minute:",
    "images": "on images, a network fitted to each task (on a CPU, seconds a task):",
}
_MORE = (
    "Methods marked with * are transductive: they classify all queries of a task "
    "together. Parameters of a method's own follow it: rdc(k=6;lam=0.3)."
)


def methods() -> str:
    """List the methods that are registered, with what each needs.

    >>> "rdc_ft" in methods()
    True
    """
    known = [find(name) for name in names()]
    lines = []
    for needs, title in _KINDS.items():
        found = [method for method in known if method.needs == needs]
        pairs = [(_marked(method), _about(method)) for method in found]
        lines += [title, two_columns(pairs), ""]
    return "\n".join([*lines, paragraph(_MORE, indent=0)])


def _marked(method: Method) -> str:
    return method.name + ("*" if method.transductive else "")


def _about(method: Method) -> str:
    """Its title, and the first line of its docstring if it has one."""
    function: object = None
    if isinstance(method, FeatureMethod):
        function = method.classify
    elif isinstance(method, ImageMethod):
        function = method.make
    first, *_ = (getattr(function, "__doc__", None) or "").strip().splitlines() or [""]
    return f"{method.title}. {first}" if first else method.title
