"""Guesses before a figure is seen: the right one, computed from the very model or setting that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Truth:
    """The right guess `right` among the distinct ones `offered`; `numbers` are the measurements, by name."""

    right: str
    offered: tuple[str, ...]
    numbers: Mapping[str, float]


def closest(value: float, guesses: Mapping[str, float], within: float = 0.02) -> Truth | None:
    """Returns the guessed number that is nearest to the measured one. A guess that cannot be told from the
    right one (a relative difference below `within`) is not offered; None where fewer than two are left, or
    where even the nearest is further off than that.

    >>> closest(0.25, {"quarter": 0.25, "half": 0.5, "also": 0.251}).offered
    ('quarter', 'half')
    """
    right = min(guesses, key=lambda name: abs(guesses[name] - value))
    if not _alike(guesses[right], value, within):
        return None
    offered = tuple(
        name for name, guess in guesses.items() if name == right or not _alike(guess, guesses[right], within)
    )
    return Truth(right, offered, dict(guesses) | {"found": value}) if len(offered) > 1 else None


def _alike(a: float, b: float, within: float) -> bool:
    return abs(a - b) <= within * max(abs(a), abs(b))
