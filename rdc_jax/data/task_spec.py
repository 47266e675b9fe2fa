"""What a task looks like: its classes, labelled images and queries, fixed or drawn."""

import dataclasses
from typing import Any, Literal

from rdc_jax.runtime.errors import UserError

Range = tuple[int, int]


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """The shape of a task.

    A number that is a range, ``(2, 10)``, is drawn for each task. Tasks then differ in
    size, and are filled up to the largest one.

    Attributes:
      way: Classes in a task. A range ends at the classes there are.
      shot: Labelled images of each class. A range is drawn for each class on its own;
        ``any`` draws them as Meta-Dataset does: how many in all, and then of each class
        about in proportion to its size.
      query: Images to classify, of each class, as many of all. With ``shot="any"`` at
        most half of the smallest class.
      dirichlet: None for the same number of queries in every class. A positive number
        draws the class proportions of a task's ``way * query`` queries from a symmetric
        Dirichlet distribution with this concentration: small values are more uneven,
        and 2 is the usual setting. A class gives no more queries than it has images.
      max_support: Most labelled images of a task whose ``shot`` is ``any``.
    """

    way: int | Range = 5
    shot: int | Range | Literal["any"] = 1
    query: int | Range = 15
    dirichlet: float | int | None = None
    max_support: int = 500

    def __post_init__(self) -> None:
        for name in ("way", "shot", "query"):
            value = getattr(self, name)
            if value == "any" and name == "shot":
                continue
            low, high = span(value)
            if low < 1:
                raise UserError(f"{name}={value}: a task needs {name} of at least 1")
            if high < low:
                raise UserError(f"{name}={low}-{high}: give the smaller number first")
        if self.shot == "any" and self.max_support < self.most_ways:
            raise UserError(
                f"max_support={self.max_support}: {self.most_ways} classes need as "
                "many labelled images"
            )
        if self.dirichlet is None:
            return
        if not self.dirichlet > 0:
            raise UserError(f"dirichlet={self.dirichlet}: use a number above 0 or None")
        # 2 and 2.0 are one specification, and must be one set of tasks.
        object.__setattr__(self, "dirichlet", float(self.dirichlet))

    @property
    def varies(self) -> bool:
        """Whether tasks differ in size."""
        return not all(isinstance(n, int) for n in (self.way, self.shot, self.query))

    @property
    def most_ways(self) -> int:
        """Classes of the largest task."""
        return span(self.way)[1]

    @property
    def most_shots(self) -> int:
        """Labelled images of the class that has most of them."""
        if self.shot == "any":
            return self.max_support
        return span(self.shot)[1]

    @property
    def support_size(self) -> int:
        """Support rows of a task, with those that fill it up."""
        if self.shot == "any":
            return self.max_support
        return self.most_ways * self.most_shots

    @property
    def query_size(self) -> int:
        """Query rows of a task, with those that fill it up."""
        return self.most_ways * span(self.query)[1]

    @property
    def needed(self) -> Range:
        """Images that a class must have to be labelled, and to be queries."""
        if self.shot == "any":
            return 1, 1
        return self.most_shots, span(self.query)[1]

    @property
    def identity(self) -> dict[str, Any]:
        """What its tasks are a function of."""
        fields = dataclasses.asdict(self)
        if self.shot != "any":
            del fields["max_support"]
        return fields


def span(number: int | Range | str) -> Range:
    """The least and the largest value of a number or a range.

    >>> span(5), span((2, 10))
    ((5, 5), (2, 10))
    """
    if isinstance(number, tuple):
        return number
    return int(number), int(number)


def read(name: str, text: str) -> int | Range:
    """Read a number or a range.

    >>> read("shots", "5"), read("shots", "1-10")
    (5, (1, 10))

    Raises:
      UserError: It is neither.
    """
    low, dash, high = text.partition("-")
    try:
        return (int(low), int(high)) if dash else int(low)
    except ValueError:
        raise UserError(
            f"{name} is {text!r}: give a whole number, or a range as in 1-10"
        ) from None
