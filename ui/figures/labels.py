"""Tokens as labels in a figure: escaped for Plotly, shortened, thinned out where they are crowded."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LETTERS, LETTER = 10, 8  # of a token at an axis; pixels of one


def short(name: str, characters: int = 17) -> str:
    """Returns a name that fits beside a chart; the whole one is in the hover.

    >>> short("classic, layers 2, steps 400")
    'classic, layers…'
    """
    return name if len(name) <= characters else name[: characters - 1].rstrip(" ,") + "…"


def crowded(labels: Sequence[str], width: int = 600) -> int:
    """Returns how many letters the longest of some tokens needs, where they do not fit side by side below a
    figure of that many pixels; else 0.

    Tokens of one letter always stay as they are: they are read across.

    >>> crowded("abc"), crowded(["First", "␣Citizen"] * 10)
    (0, 8)
    """
    longest = min(max(map(len, labels), default=0), MOST_LETTERS)
    return longest if longest > 1 and longest * LETTER * len(labels) > width else 0


def plain(text: str) -> str:
    """Returns a name that Plotly draws as it stands: it would take <b> and the like for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
