"""Random tokens read twice: does a model copy what it read once, and which of its heads look where that
stands (Olsson et al. 2022, "In-context learning and induction heads")?

Nothing but the first reading can foretell the second: whatever a model gains there, it copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.errors import ShapeError
from engine.measure.attention.habits import STRONG, Named
from engine.measure.attention.heads import previous_score
from engine.measure.attention.repeated_tokens import induction_score
from engine.measure.recording import next_token_losses, record
from engine.model import Transformer

FEWEST = 64  # words that make a pool; a vocabulary with fewer of them gives its letters
LETTERS = 3  # that a word has at least
CHEAPER = 0.25  # of the first reading's loss: what a model saves that copies


def ordinary(tokens: Sequence[bytes]) -> np.ndarray:
    """The ids of ordinary words in a vocabulary (a blank and three or more small letters); of one without
    words, as an alphabet, its letters; of one without letters, all ids.

    >>> ordinary([b"b", b" ", b"a", b"\\n"]).tolist()
    [0, 2]
    """
    words = [
        i
        for i, token in enumerate(tokens)
        if token[:1] == b" " and len(token) > LETTERS and token[1:].isalpha() and token[1:].islower()
    ]
    letters = [i for i, token in enumerate(tokens) if token.isalpha()]
    chosen = words if len(words) >= FEWEST else letters if len(letters) > 1 else range(len(tokens))
    return np.array(chosen, dtype=np.int64)


def drawn(pool: np.ndarray, count: int, seed: int) -> tuple[int, ...]:
    """`count` different ids of `pool`, in the order of a seeded draw. Raises ShapeError for fewer than two,
    or more than there are.
    """
    if not 2 <= count <= len(pool):
        raise ShapeError(f"between 2 and {len(pool)} different tokens can be drawn here, not {count}")
    return tuple(int(i) for i in np.random.default_rng(seed).choice(pool, count, replace=False))


@dataclass(frozen=True, eq=False)
class Repeat:
    """`once` read twice in a row. Losses are in nats, by place in the sequence, (place,): the first token of
    the first reading has none (NaN), since nothing comes before it.

    `scores` (layer, head): mean weight from each place of the second reading to the place after its first
    occurrence. `previous` (layer, head): mean weight on the token just before.
    """

    once: tuple[int, ...]
    first: np.ndarray = field(repr=False)
    second: np.ndarray = field(repr=False)
    scores: np.ndarray = field(repr=False)
    previous: np.ndarray = field(repr=False)

    @property
    def first_loss(self) -> float:
        """Mean over the places after the first, nats per token."""
        return float(self.first[1:].mean())

    @property
    def second_loss(self) -> float:
        """Over the same places: the second reading's first token could not be foretold either."""
        return float(self.second[1:].mean())

    @property
    def copies(self) -> bool:
        """Whether the second reading costs a quarter less than the first, or still less."""
        return self.second_loss <= (1 - CHEAPER) * self.first_loss

    @property
    def best(self) -> tuple[Named, ...]:
        """Every head by its score, the best first; of equal ones the lower."""
        return ordered(self.scores)

    @property
    def strong(self) -> tuple[Named, ...]:
        """The heads that look there with at least STRONG of their weight, the best first."""
        return tuple(head for head in self.best if head.value >= STRONG)

    @property
    def before(self) -> Named:
        """The head that looks most at the token before: what an induction head needs below it, so not in the
        last layer, unless that is the only one.
        """
        return ordered(self.previous[:-1] if len(self.previous) > 1 else self.previous)[0]


def ordered(scores: np.ndarray) -> tuple[Named, ...]:
    """Every head of (layer, head), the largest first; of equal ones the lower.

    >>> [(head.layer, head.head) for head in ordered(np.array([[0.1, 0.3], [0.3, 0.2]]))]
    [(0, 1), (1, 0), (1, 1), (0, 0)]
    """
    flat = np.argsort(-scores, axis=None, kind="stable")
    places = zip(*np.unravel_index(flat, scores.shape), strict=True)
    return tuple(Named(int(layer), int(head), float(scores[layer, head])) for layer, head in places)


def guessing(vocab: int) -> float:
    """ln V: what a guess among all tokens costs, in nats. A model that is sure of something else pays more.

    >>> round(guessing(49152), 1)
    10.8
    """
    return float(np.log(vocab))


def read_twice(model: Transformer, once: Sequence[int]) -> Repeat:
    """The losses of both readings and the score of every head. Raises KeyError for a model whose mixer
    leaves no pattern, ShapeError for fewer than two tokens.
    """
    count = len(once)
    if count < 2:
        raise ShapeError("a sequence that is read twice needs at least two tokens")
    recording = record(model, (*once, *once), only={"pattern", "logits"})
    losses = next_token_losses(recording)  # (2 count - 1,), of the tokens from the second on
    patterns = recording.stacked("pattern")  # (layer, head, query, key)
    return Repeat(
        tuple(once),
        np.concatenate(([np.nan], losses[: count - 1])),
        losses[count - 1 :],
        induction_score(patterns, count),
        previous_score(patterns),
    )
