"""Guesses before the views of Embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.lab.guesses import tokens
from ui.guess import Choice, Guess

SAID = {
    "nearest": "Tokens that occur in similar contexts get similar directions.",
    "back": "It is near, but nearest neighbours are not symmetric: each token has its own ranking.",
    "beside": "Its id is the next one, but an id is only a label: similarity is learned.",
    "farthest": "Of all tokens this one has the lowest cosine.",
}


def nearest(
    matrix: np.ndarray, token: int, met: np.ndarray, words: Sequence[str], listed: bool
) -> Guess | None:
    """Makes a guess about the second neighbour of `token`: who is nearest to that? `listed`: the token is
    chosen from a list, else it is typed, in quotes.
    """
    nearest_row = tokens.nearest_row(matrix, token, met)
    if nearest_row is None:
        return None
    word = words[nearest_row.token]
    choices = tuple(
        Choice(f"“{words[i]}”", SAID[name])
        for i, name in zip(nearest_row.offered, nearest_row.names, strict=True)
    )
    cosines = ", ".join(
        f"“{words[i]}” {c:.2f}" for i, c in zip(nearest_row.offered, nearest_row.cosine, strict=True)
    )
    return Guess(
        f"Which of these is nearest to “{word}”?",
        choices,
        nearest_row.right,
        f"Cosines with “{word}”: {cosines}. “{word}” is marked now.",
        {"embed_token": word if listed else f'"{word}"'},
    )
