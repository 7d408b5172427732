"""Why pieces of words: one text as characters, as pieces and as whole words, words that no list has, and why
losses per token do not compare.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from engine.data.tokenizers.bpe_watch import Watched
from engine.data.tokenizers.words import WordTokenizer
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import cut_words

LOOKED_AT = 20_000  # characters in which words are found that a new one is made of
READ = 0.9  # of a text from which the words are listed; the rest is new


@dataclass(frozen=True)
class Way:
    """A text cut in one way: `vocab_size` entries in the list, `tokens` in the text, `spelled` in a word that
    the text does not have, with the blank before it: 0 where that way has no entry for it.
    """

    vocab_size: int
    tokens: int
    spelled: int = 0

    @property
    def pairs(self) -> int:
        """Pairs of tokens that attention compares in each head: T²."""
        return self.tokens**2


@dataclass(frozen=True)
class Ways:
    """One text in three ways. `words` is None where it has none. `new` is a word that it does not have, made
    of two that it has; empty where there are no two.
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
        """As many times fewer pairs to compare."""
        return self.characters.pairs / self.pieces.pairs


def three_ways(text: str, seen: Watched) -> Ways:
    """The text from which `seen` learned its merges: characters, its pieces after the last merge, words."""
    own, new = seen.tokenizer, new_word(text)
    running = f" {new}" if new and " " in text else new  # as it would stand there
    pieces = Way(own.vocab_size, int(seen.lengths[-1]), len(own.encode(running)))
    return Ways(Way(len(set(text)), len(text), len(running)), pieces, _words(text, new), new)


def new_word(text: str) -> str:
    """The two most frequent words of at least three letters as one, where the text has no such word.

    >>> new_word("the sea, the sea shells"), new_word("one"), new_word("ab ab")
    ('thesea', '', '')
    """
    runs = re.findall(r"[^\W\d_]{3,}", text[:LOOKED_AT])
    common = [word for word, _ in Counter(runs).most_common(6)]
    joined = (one + two for one, two in itertools.combinations(common, 2))
    return next((word for word in joined if word not in text), "")


@lru_cache(maxsize=8)  # a reader changes the merges, not the text: half a second for a megabyte
def _words(text: str, new: str) -> Way | None:
    try:
        known = WordTokenizer.train(text)
    except TokenizerError:
        return None
    return Way(known.vocab_size, len(known.encode(text)), sum(i >= 0 for i in known.encode(new)))


@dataclass(frozen=True)
class NewWords:
    """A list of all words of the first 90% of a text, tried on the rest."""

    listed: int
    unknown: int
    read: int  # words of the rest

    @property
    def share(self) -> float:
        """Of the words of the rest that the list does not have."""
        return self.unknown / self.read


def new_words(text: str) -> NewWords | None:
    """None where one of the two parts has no word."""
    end = int(READ * len(text))
    try:
        known = WordTokenizer.train(text[:end])
    except TokenizerError:
        return None
    cut = cut_words(text[end:], known)
    return NewWords(known.vocab_size, cut.unknown, cut.tokens) if cut.tokens else None


@dataclass(frozen=True)
class PerToken:
    """What one quality of a model looks like under one tokenizer."""

    characters_per_token: float
    bits_per_token: float
    perplexity: float  # effective number of choices for each token


def per_token(bits_per_character: float, rows: Mapping[str, tuple[int, int]]) -> dict[str, PerToken]:
    """The same bits per character as perplexity per token: 2^(bits per character x characters per token).

    `rows`: name -> (characters, tokens) of one text. A tokenizer without tokens has no row.
    """
    found = {}
    for name, (characters, tokens) in rows.items():
        if tokens:
            each = characters / tokens
            bits = bits_per_character * each
            found[name] = PerToken(each, bits, 2.0**bits)
    return found
