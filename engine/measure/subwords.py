"""Why pieces of words: one text as characters, as pieces and as whole words, words that no list has, and why
losses per token do not compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import TokenizerError
from engine.measure.vocabulary import cut_words
from engine.tokenizers.bpe_watch import Watched
from engine.tokenizers.words import WordTokenizer

READ = 0.9  # of a text from which the words are listed; the rest is new


@dataclass(frozen=True)
class Way:
    """A text cut in one way: `vocab_size` entries in the list, `tokens` in the text."""

    vocab_size: int
    tokens: int

    @property
    def pairs(self) -> int:
        """Pairs of tokens that attention compares in each head: T²."""
        return self.tokens**2


@dataclass(frozen=True)
class Ways:
    """One text in three ways. `words` is None where it has none."""

    characters: Way
    pieces: Way
    words: Way | None

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
    pieces = Way(seen.tokenizer.vocab_size, int(seen.lengths[-1]))
    return Ways(Way(len(set(text)), len(text)), pieces, _words(text))


def _words(text: str) -> Way | None:
    try:
        known = WordTokenizer.train(text)
    except TokenizerError:
        return None
    return Way(known.vocab_size, len(known.encode(text)))


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
