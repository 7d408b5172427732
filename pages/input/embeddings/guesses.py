"""Guesses before the views of Embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.lab.guesses import tokens
from ui.guess import Choice, Guess

SAID = {
    "nearest": "Rows of tokens that stand among the same others come to lie in one direction.",
    "back": "That one's list began near here, but being near is not the same from both sides: each"
    " token has its own"
    " order.",
    "beside": "It is the next in the list of tokens, but an id is a number on a tag: nearness is learned.",
    "farthest": "Of all tokens this one points away most.",
}


def nearest(
    matrix: np.ndarray, token: int, met: np.ndarray, words: Sequence[str], listed: bool
) -> Guess | None:
    """Makes a guess about the second neighbour of `token`: who is nearest to that? `listed`: the token is
    chosen from a list, else it is typed, in quotes.
    """
    found = tokens.nearest_row(matrix, token, met)
    if found is None:
        return None
    word = words[found.token]
    choices = tuple(
        Choice(f"“{words[i]}”", SAID[name]) for i, name in zip(found.offered, found.names, strict=True)
    )
    cosines = ", ".join(f"“{words[i]}” {c:.2f}" for i, c in zip(found.offered, found.cosine, strict=True))
    return Guess(
        f"Which of these lies nearest to “{word}”?",
        choices,
        found.right,
        f"Cosines with “{word}”: {cosines}. “{word}” is marked now.",
        {"embed_token": word if listed else f'"{word}"'},
    )
