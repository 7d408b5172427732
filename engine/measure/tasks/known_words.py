"""How much of a text is made of words: what a low loss does not tell."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
SHORTEST = 2  # letters: one alone is a word too often by chance


@lru_cache(maxsize=4)
def words_of(text: str) -> frozenset[str]:
    """The words of a text, in small letters.

    >>> sorted(words_of("O, be quick! Be 'quick'."))
    ['be', 'quick']
    """
    return frozenset(word.lower() for word in WORD.findall(text) if len(word) >= SHORTEST)


def known_share(written: str, words: Collection[str]) -> float:
    """The share of what is written, blanks aside, that lies in words out of `words` (of `words_of`); 0 for
    nothing.

    >>> known_share("be qick::", {"be", "quick"})
    0.25
    """
    visible = sum(not letter.isspace() for letter in written)
    known = sum(len(word) for word in WORD.findall(written) if word.lower() in words)
    return known / visible if visible else 0.0
