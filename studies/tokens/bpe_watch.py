"""BPE for those who watch: the pairs that lost, the borders in any text, and four ways to start."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from engine.data.progress import Progress, Steps, finish
from engine.data.tokenizers.bpe import BYTE, BpeTokenizer, Level, Split, Trainer, pieces
from engine.errors import TokenizerError

STAYS, WORD_BORDER, UNKNOWN = -1, -2, -1
MAX_SYMBOLS = 400_000  # that a training keeps in memory, about 250 bytes each: about a second
RUNNERS_UP = 5

Pair = tuple[int, int]


@dataclass(frozen=True)
class Watched:
    """A training with the runners-up of each merge. `length`: starting symbols before the first merge."""

    tokenizer: BpeTokenizer
    # for each merge, best first: (pair, count) at that moment
    runners_up: tuple[tuple[tuple[Pair, int], ...], ...] = field(repr=False)
    characters: int
    bytes: int
    length: int

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of the training text after 0, 1, 2 ... merges: int64 (merges + 1,)."""
        return np.array([self.length, *(merge.length for merge in self.tokenizer.merges)], dtype=np.int64)

    def first(self, merges: int) -> Watched:
        """Returns the training that stops after so many merges: longer ones begin like it."""
        tokenizer = replace(self.tokenizer, merges=self.tokenizer.merges[:merges])
        return replace(self, tokenizer=tokenizer, runners_up=self.runners_up[:merges])


def watch(
    text: str, new_tokens: int, *, level: Level = "byte", split: Split = "words", keep: int = RUNNERS_UP
) -> Watched:
    """Runs `learning` to its end and returns the tokenizer with its history."""
    return finish(learning(text, new_tokens, level=level, split=split, keep=keep))


def learning(
    text: str, new_tokens: int, *, level: Level = "byte", split: Split = "words", keep: int = RUNNERS_UP
) -> Steps[Watched]:
    """Trains as `engine.data.tokenizers.bpe.train`, with `new_tokens` more and `keep` runners-up.

    Raises TokenizerError for a text without characters, a negative number, and an unknown level or split.
    """
    if new_tokens < 0:
        raise TokenizerError(f"the number of tokens to learn must not be negative, not {new_tokens}")
    yield Progress(0, new_tokens)
    trainer = Trainer(text, level, split)
    length = trainer.length
    tokenizer = yield from trainer.learning(new_tokens, keep)
    size = len(text.encode("utf-8", "surrogatepass"))
    return Watched(tokenizer, tuple(trainer.runners_up), len(text), size, length)


def affordable(text: str, level: Level, split: Split, limit: int = MAX_SYMBOLS) -> int:
    """Returns how many of a text's characters can be learned from within `limit` stored symbols.

    A word that comes again costs nothing, so prose is not cut; a text without blanks may be.
    """
    if len(text) * 4 <= limit:
        return len(text)
    seen: set[str] = set()
    symbols = characters = 0
    for piece in pieces(text, split):
        if piece not in seen:
            seen.add(piece)
            size = len(piece) if level == "char" else len(piece.encode("utf-8", "surrogatepass"))
            if symbols + size > limit:
                return characters + (limit - symbols) // max(1, -(-size // len(piece)))
            symbols += size
        characters += len(piece)
    return characters


@dataclass(frozen=True)
class Replay:
    """A text under a tokenizer's merges: border i stands between symbols i and i + 1.

    `fallen[i]` is the rank of the merge that takes it away, STAYS, or WORD_BORDER where no merge may. So
    after k merges the tokens are the runs between borders whose rank is not in 0 ... k - 1.
    """

    # int32 (n,): ids of the starting symbols, UNKNOWN where the alphabet lacks the character
    symbols: np.ndarray
    fallen: np.ndarray  # int32 (max(n - 1, 0),)

    def lengths(self, merges: int) -> np.ndarray:
        """Counts the tokens after 0, 1, ... `merges` merges: int64 (merges + 1,)."""
        by_rank = np.bincount(self.fallen[self.fallen >= 0], minlength=merges)[:merges]
        return len(self.symbols) - np.concatenate([[0], np.cumsum(by_rank)]).astype(np.int64)


def replay(tokenizer: BpeTokenizer, text: str) -> Replay:
    """Applies each merge in its turn, from left to right, to a text, and returns the history."""
    return _Borders(tokenizer).of(text)


class _Borders:
    def __init__(self, tokenizer: BpeTokenizer) -> None:
        self.tokenizer = tokenizer
        self.base = {token: i for i, token in enumerate(tokenizer.base)}
        self.made = [merge.token for merge in tokenizer.merges]

    @cached_property
    def turns(self) -> dict[Pair, list[int]]:
        """The ranks at which a pair is merged: one, save where a token was made in two ways."""
        turns: dict[Pair, list[int]] = defaultdict(list)
        for merge in self.tokenizer.merges:
            turns[merge.pair].append(merge.rank)
        return dict(turns)

    def of(self, text: str) -> Replay:
        known: dict[str, tuple[list[int], list[int]]] = {}
        symbols: list[int] = []
        fallen: list[int] = []
        for piece in pieces(text, self.tokenizer.split):
            if piece not in known:
                start = self._symbols(piece)
                known[piece] = start, self._piece(start)
            start, borders = known[piece]
            fallen += ([WORD_BORDER] if symbols else []) + borders
            symbols += start
        return Replay(np.array(symbols, dtype=np.int32), np.array(fallen, dtype=np.int32))

    def _symbols(self, piece: str) -> list[int]:
        if self.tokenizer.level == "byte":
            return [self.base[BYTE[b]] for b in piece.encode("utf-8", "surrogatepass")]
        return [self.base.get(c.encode("utf-8", "surrogatepass"), UNKNOWN) for c in piece]

    def _turn(self, pair: Pair, after: int) -> int | None:
        """The first merge of a pair whose rank lies beyond `after`."""
        ranks = self.turns.get(pair, ())
        place = bisect_right(ranks, after)
        return ranks[place] if place < len(ranks) else None

    def _piece(self, start: list[int]) -> list[int]:
        symbols, count = list(start), len(start)
        following, before, alive = list(range(1, count + 1)), list(range(-1, count - 1)), [True] * count
        fallen = [STAYS] * (count - 1)
        heap = [
            (rank, i)
            for i in range(count - 1)
            if (rank := self._turn((symbols[i], symbols[i + 1]), -1)) is not None
        ]
        heapq.heapify(heap)
        while heap:
            rank, i = heapq.heappop(heap)
            j = following[i]
            if not alive[i] or j >= count or (symbols[i], symbols[j]) != self.tokenizer.merges[rank].pair:
                continue  # one of the two has merged with another meanwhile
            fallen[j - 1] = rank
            symbols[i], alive[j] = self.made[rank], False
            following[i] = k = following[j]
            if k < count:
                before[k] = i
            for a, b in ((before[i], i), (i, k)):
                if a >= 0 and b < count and (turn := self._turn((symbols[a], symbols[b]), rank)) is not None:
                    heapq.heappush(heap, (turn, a))
        return fallen


@dataclass(frozen=True)
class Way:
    """One of the four ways to start, on the same text with as many new tokens. Lengths are in tokens."""

    level: Level
    split: Split
    start: int
    length: int
    vocab_size: int
    characters: int  # of the text
    # learned tokens that run across a border of words, first learned first
    crossing: tuple[bytes, ...] = field(repr=False)

    @property
    def characters_per_token(self) -> float:
        return self.characters / self.length

    @property
    def by_heart(self) -> bool:
        """True if (nearly) the whole text has become a token."""
        return self.length <= 2


def four_ways(text: str, new_tokens: int) -> list[Way]:
    """Trains on bytes or characters, split into words or not. Raises as `watch`."""
    ways = []
    for level, split in (("byte", "words"), ("byte", "none"), ("char", "words"), ("char", "none")):
        seen = watch(text, new_tokens, level=level, split=split, keep=0)  # type: ignore[arg-type]
        own = seen.tokenizer
        ways.append(
            Way(
                own.level,
                own.split,
                seen.length,
                int(seen.lengths[-1]),
                own.vocab_size,
                seen.characters,
                tuple(filter(crosses, own.tokens[len(own.base) :])),
            )
        )
    return ways


def crosses(token: bytes) -> bool:
    """True if a token would have been cut by splitting into words first.

    >>> crosses(b" the"), crosses(b"e t"), crosses(b"e ")
    (False, True, True)
    """
    return len(pieces(token.decode("utf-8", "replace"), "words")) > 1
