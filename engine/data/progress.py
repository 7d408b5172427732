"""Slow measurements as generators that report their progress and can be left at every step.

Such a measurement is a generator: it yields `Progress` and returns its result. A notebook calls `finish`; the
app draws a bar, and closes the generator when somebody cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
Y = TypeVar("Y")


@dataclass(frozen=True)
class Progress:
    """`done` of `total` pieces of work, whatever a piece is; perhaps with what there is `so_far`. Work
    that is `preparing` comes before the first piece, and its time says nothing about theirs.
    """

    done: int
    total: int
    so_far: Any = field(default=None, compare=False, repr=False)
    preparing: bool = False

    @property
    def share(self) -> float:
        """The share of the work that is done, between 0 and 1.

        >>> Progress(1, 4).share, Progress(0, 0).share
        (0.25, 1.0)
        """
        return min(1.0, self.done / self.total) if self.total else 1.0


Steps = Generator[Progress, None, T]


def single_piece(function: Callable[..., T], *arguments: Any) -> Steps[T]:
    """Runs a function as a measurement of one piece of work.

    >>> finish(single_piece(max, 2, 3))
    3
    """
    yield Progress(0, 1)
    return function(*arguments)


def finish(steps: Generator[Y, None, T], each: Callable[[Y], object] | None = None) -> T:
    """Runs a measurement to its end and returns its result; `each` gets what it yields on the way.

    >>> def two() -> Steps[str]:
    ...     yield Progress(1, 2)
    ...     yield Progress(2, 2)
    ...     return "done"
    >>> finish(two())
    'done'
    """
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        if each is not None:
            each(step)
