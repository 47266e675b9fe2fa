"""Things by name, open to files of the user's own."""

import difflib
from collections.abc import Callable
from typing import Any, TypeVar

from rdc_jax.runtime.errors import UserError

T = TypeVar("T")
MakerT = TypeVar("MakerT", bound=Callable[..., Any])


class Registry(dict[str, Callable[..., T]]):
    """Classes, or functions that make something, by name.

    >>> colours = Registry("colour", black=lambda: (0, 0, 0))
    >>> @colours.register("grey")
    ... def grey(level=128):
    ...     return (level, level, level)
    >>> colours.make("grey", level=7)
    (7, 7, 7)
    """

    def __init__(self, kind: str, **makers: Callable[..., T]) -> None:
        super().__init__(makers)
        self.kind = kind

    def register(self, name: str) -> Callable[[MakerT], MakerT]:
        """Make one known by a name; to be used as a decorator.

        Raises:
          UserError: The name is taken.
        """
        if name in self:
            raise UserError(
                f"there is a {self.kind} {name!r} already: choose another name"
            )

        def decorate(maker: MakerT) -> MakerT:
            self[name] = maker
            return maker

        return decorate

    def find(self, name: str) -> Callable[..., T]:
        """Give the class or function of that name.

        Raises:
          UserError: There is none.
        """
        if name in self:
            return self[name]
        close = difflib.get_close_matches(name, self, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise UserError(
            f"unknown {self.kind} {name!r}: {meant}known are {', '.join(self)} "
            "(and those of a plugin, once it is loaded)"
        )

    def make(self, name: str, **options: Any) -> T:
        """Call the one of that name with options of its own."""
        return self.find(name)(**options)
