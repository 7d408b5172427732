"""What the merges of byte-pair encoding achieved: how a text shrinks, and whether others get the same ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.data.tokenizers.bpe_watch import Watched


@dataclass(frozen=True, eq=False)
class Shrinking:
    """A text after 0, 1, 2 ... merges: (merges + 1,) each."""

    tokens: np.ndarray = field(repr=False)
    characters: int  # of the text
    bytes: int  # of the text in UTF-8

    @property
    def percent(self) -> np.ndarray:
        """Tokens left, in percent of those at the start."""
        return 100 * self.tokens / self.tokens[0]

    @property
    def characters_per_token(self) -> np.ndarray:
        return self.characters / self.tokens

    @property
    def bytes_per_token(self) -> np.ndarray:
        return self.bytes / self.tokens

    @property
    def saved(self) -> np.ndarray:
        """Tokens that each merge took away: (merges,)."""
        return -np.diff(self.tokens)


@dataclass(frozen=True, eq=False)
class Achieved:
    """A training of merges, summed up."""

    shrinking: Shrinking
    merges: int
    vocab_size: int
    once: int | None  # the first merge, from 1, whose pair stood there only once; None where none did
    learned: int  # tokens beyond the starting symbols

    @property
    def start(self) -> int:
        """Tokens of the text before the first merge."""
        return int(self.shrinking.tokens[0])

    @property
    def left(self) -> int:
        """Tokens of the text after the last merge."""
        return int(self.shrinking.tokens[-1])

    @property
    def share(self) -> float:
        """Of the tokens at the start that are left."""
        return self.left / self.start

    @property
    def half(self) -> int:
        """Merges after which half of what they save together was saved."""
        return int(np.argmax(self.shrinking.tokens <= (self.start + self.left) / 2))

    @property
    def early(self) -> bool:
        """Whether less than half of the merges did half of the work."""
        return self.half < self.merges / 2


def achieved(seen: Watched) -> Achieved:
    """What a training that was watched came to."""
    own = seen.tokenizer
    once = next((number for number, merge in enumerate(own.merges, 1) if merge.count == 1), None)
    shrinking = Shrinking(seen.lengths, seen.characters, seen.bytes)
    return Achieved(shrinking, len(own.merges), own.vocab_size, once, own.vocab_size - len(own.base))


@dataclass(frozen=True)
class Agreement:
    """Two encodings of one text, in tokens. `first` is where they part; None where they are the same."""

    ours: int
    theirs: int
    first: int | None


def agreement(ours: Sequence[int], theirs: Sequence[int]) -> Agreement:
    """Where two encodings of a text part.

    >>> agreement([1, 2, 3], [1, 2, 3]).first, agreement([1, 2], [1, 5]).first, agreement([1], [1, 2]).first
    (None, 1, 1)
    """
    pairs = zip(ours, theirs, strict=False)
    shorter = min(len(ours), len(theirs))
    apart = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    same = apart == shorter and len(ours) == len(theirs)
    return Agreement(len(ours), len(theirs), None if same else apart)
