"""Slow, plain versions of algorithms, to hold the quick ones against: in tests and in benchmarks."""

from __future__ import annotations


def merge_everywhere(word: list[int], pair: tuple[int, int], token: int) -> list[int]:
    """The symbols of a word with each `pair` of neighbours, from left to right, replaced by `token`.

    >>> merge_everywhere([1, 1, 1, 2], (1, 1), 9)
    [9, 1, 2]
    """
    out: list[int] = []
    for symbol in word:
        out.append(symbol)
        if len(out) > 1 and (out[-2], out[-1]) == pair:
            out[-2:] = [token]
    return out
