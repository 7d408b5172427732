"""Words as tokens, as before subwords: a list of known words, and one answer for all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import regex  # type: ignore[import-untyped]

from engine.errors import TokenizerError

# A run of letters, marks and digits, with apostrophes inside; or one other sign. Blanks separate and are
# dropped.
WORD = r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}]+)*|[^\s\p{L}\p{M}\p{N}]"
UNKNOWN = -1  # the id of a word that is not in the list


@dataclass(frozen=True)
class WordTokenizer:
    """`words` are the known ones; a word's id is its place.

    >>> WordTokenizer.train("to be, or not to be").encode("to be or what")
    [0, 1, 3, -1]
    """

    words: tuple[str, ...]

    @classmethod
    def train(cls, text: str) -> WordTokenizer:
        """Makes a tokenizer of every word of a text, most frequent first. Raises TokenizerError if none."""
        counted = Counter(words_of(text))
        if not counted:
            raise TokenizerError("there is no word to learn in this text")
        return cls(tuple(word for word, _ in counted.most_common()))

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        """Returns one id per word; UNKNOWN for words that are not in the list. Blanks are lost."""
        return [self.ids.get(word, UNKNOWN) for word in words_of(text)]


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields (first character, one past the last) of every word and sign.

    >>> list(word_spans("Don't! 中文"))
    [(0, 5), (5, 6), (7, 9)]
    """
    return (match.span() for match in _pattern().finditer(text))


def words_of(text: str) -> list[str]:
    """Returns every word and sign of a text, in order."""
    return list(_pattern().findall(text))


@cache
def _pattern() -> Any:
    return regex.compile(WORD)
