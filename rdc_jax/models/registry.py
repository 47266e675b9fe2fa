"""Networks by name, open to files of your own."""

import difflib
from collections.abc import Callable
from typing import Any, TypeVar

from flax import linen as nn

from rdc_jax.runtime.errors import UserError

Maker = Callable[..., nn.Module]
MakerT = TypeVar("MakerT", bound=Maker)


class Registry(dict[str, Maker]):
    """Modules, or functions that make them, by name.

    >>> heads = Registry("head", linear=nn.Dense)
    >>> @heads.register("conv")
    ... class Conv(nn.Module):
    ...     features: int
    >>> heads.make("conv", features=3).features
    3

    Args:
      kind: What they are, for messages.
      **makers: Those known from the start.
    """

    def __init__(self, kind: str, **makers: Maker) -> None:
        super().__init__(makers)
        self.kind = kind

    def register(self, name: str) -> Callable[[MakerT], MakerT]:
        """Make a module known by a name; to be used as a decorator.

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

    def make(self, name: str, **options: Any) -> nn.Module:
        """Make the module of that name, with options of its own.

        Raises:
          UserError: There is none.
        """
        if name not in self:
            close = difflib.get_close_matches(name, self, n=1)
            meant = f"did you mean {close[0]}? " if close else ""
            raise UserError(
                f"unknown {self.kind} {name!r}: {meant}known are {', '.join(self)} "
                "(and those of a plugin, once it is loaded)"
            )
        return self[name](**options)
