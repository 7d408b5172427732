"""Subwords: one text cut in three ways, new words, merges that shrink it, and losses per token."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from engine.data.tokenizers.words import WordTokenizer, words_of
from engine.errors import TokenizerError
from studies.tokens.bpe_watch import Watched
from studies.tokens.vocabulary import cut_words

LOOKED_AT = 20_000  # characters in which words are found that a new one is made of
READ = 0.9  # of a text from which the words are listed; the rest is new


@dataclass(frozen=True)
class Way:
    """A text cut in one way: `vocab_size`, `tokens`, and those `spelled` in a new word (0: none)."""

    vocab_size: int
    tokens: int
    spelled: int = 0

    @property
    def pairs(self) -> int:
        """Pairs of tokens that attention compares in each head: T²."""
        return self.tokens**2


@dataclass(frozen=True)
class ThreeWays:
    """One text cut into characters, subwords and words (None: has no words). `new`: a word not in the text,
    made from two that are.
    """

    characters: Way
    pieces: Way
    words: Way | None
    new: str = ""

    @property
    def shorter(self) -> float:
        """Characters for each piece."""
        return self.characters.tokens / self.pieces.tokens

    @property
    def less_work(self) -> float:
        """The factor by which pieces save pairs to compare."""
        return self.characters.pairs / self.pieces.pairs


def three_ways(text: str, seen: Watched) -> ThreeWays:
    """Cuts the text of `seen`: into characters, its pieces after the last merge, words."""
    own, new = seen.tokenizer, new_word(text)
    running = f" {new}" if new and " " in text else new  # as it would stand there
    pieces = Way(own.vocab_size, int(seen.lengths[-1]), len(own.encode(running)))
    return ThreeWays(Way(len(set(text)), len(text), len(running)), pieces, _words(text, new), new)


def new_word(text: str) -> str:
    """Joins the two most frequent words of at least three letters, where the text has no such word.

    >>> new_word("the sea, the sea shells"), new_word("one"), new_word("ab ab")
    ('thesea', '', '')
    """
    runs = re.findall(r"[^\W\d_]{3,}", text[:LOOKED_AT])
    common = [word for word, _ in Counter(runs).most_common(6)]
    joined = (first + two for first, two in itertools.combinations(common, 2))
    return next((word for word in joined if word not in text), "")


@lru_cache(maxsize=8)  # a reader changes the merges, not the text: a tenth of a second for a megabyte
def _words(text: str, new: str) -> Way | None:
    words = words_of(text)
    known = set(words)
    return Way(len(known), len(words), sum(word in known for word in words_of(new))) if words else None


@dataclass(frozen=True)
class NewWords:
    """A list of all words of the first 90% of a text, tried on the rest."""

    listed: int
    unknown: int
    read: int  # words of the rest

    @property
    def share(self) -> float:
        """The share of the rest's words that the list does not have."""
        return self.unknown / self.read


def new_words(text: str) -> NewWords | None:
    """Returns None where one of the two parts has no word."""
    end = int(READ * len(text))
    try:
        known = WordTokenizer.train(text[:end])
    except TokenizerError:
        return None
    cut = cut_words(text[end:], known)
    return NewWords(known.vocab_size, cut.unknown, cut.tokens) if cut.tokens else None


@dataclass(frozen=True)
class PerToken:
    """One quality of a model under one tokenizer."""

    characters_per_token: float
    bits_per_token: float
    perplexity: float  # effective number of choices for each token


def per_token(bits_per_character: float, rows: Mapping[str, tuple[int, int]]) -> dict[str, PerToken]:
    """Converts bits per character to perplexity per token; `rows`: name -> (characters, tokens)."""
    result = {}
    for name, (characters, tokens) in rows.items():
        if tokens:
            each = characters / tokens
            bits = bits_per_character * each
            result[name] = PerToken(each, bits, 2.0**bits)
    return result


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
        """The share of tokens that are left."""
        return self.left / self.start

    @property
    def half(self) -> int:
        """Merges after which half of the tokens that they save were saved."""
        return int(np.argmax(self.shrinking.tokens <= (self.start + self.left) / 2))

    @property
    def early(self) -> bool:
        """True if less than half of the merges did half of the work."""
        return self.half < self.merges / 2


def achieved(seen: Watched) -> Achieved:
    """Summarises a watched training."""
    own = seen.tokenizer
    once = next((number for number, merge in enumerate(own.merges, 1) if merge.count == 1), None)
    shrinking = Shrinking(seen.lengths, seen.characters, seen.bytes)
    return Achieved(shrinking, len(own.merges), own.vocab_size, once, own.vocab_size - len(own.base))


@dataclass(frozen=True)
class Agreement:
    """Token counts of two encodings of one text, and the index where they first differ (None: equal)."""

    ours: int
    theirs: int
    first: int | None


def agreement(ours: Sequence[int], theirs: Sequence[int]) -> Agreement:
    """Finds where two encodings of a text part.

    >>> agreement([1, 2, 3], [1, 2, 3]).first, agreement([1, 2], [1, 5]).first, agreement([1], [1, 2]).first
    (None, 1, 1)
    """
    pairs = zip(ours, theirs, strict=False)
    shorter = min(len(ours), len(theirs))
    apart = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    same = apart == shorter and len(ours) == len(theirs)
    return Agreement(len(ours), len(theirs), None if same else apart)
