"""Names of runs: in one line, short, and told apart."""

from __future__ import annotations

from collections.abc import Collection

from engine.service.profiles import MAX_NAME


def clean_name(name: str) -> str:
    """Returns a name in one line, not longer than names may be.

    >>> clean_name("  two\\nlines ")
    'two lines'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in name).split())[:MAX_NAME]


def free_name(name: str, taken: Collection[str]) -> str:
    """Returns the name, or with a number where it is taken: a list of names tells the runs apart.

    >>> free_name("fast", {"fast", "fast (2)"})
    'fast (3)'
    """
    if not name or name not in taken:
        return name
    numbered = (f"{name[: MAX_NAME - 6]} ({i})" for i in range(2, len(taken) + 3))
    return next(other for other in numbered if other not in taken)
