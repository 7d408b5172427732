"""One token for each distinct character."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from engine.errors import TokenizerError


@dataclass(frozen=True)
class CharTokenizer:
    """`alphabet` holds each character once; a character's id is its place in it.

    >>> CharTokenizer.train("hello").encode("hole")
    [1, 3, 2, 0]
    """

    alphabet: str

    def __post_init__(self) -> None:
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise TokenizerError("an alphabet needs at least one character, and each only once")

    @classmethod
    def train(cls, text: str) -> CharTokenizer:
        """Makes a tokenizer of the distinct characters of a text, sorted by code point."""
        return cls("".join(sorted(set(text))))

    @property
    def vocab_size(self) -> int:
        return len(self.alphabet)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {char: i for i, char in enumerate(self.alphabet)}

    def unknown(self, text: str) -> list[str]:
        """Returns the characters of a text that the alphabet lacks, each once, in order of appearance."""
        return [char for char in dict.fromkeys(text) if char not in self._ids]

    def encode(self, text: str) -> list[int]:
        """Encodes a text. Raises TokenizerError naming the characters that are not in the alphabet."""
        try:
            return [self._ids[char] for char in text]
        except KeyError:
            unknown = " ".join(repr(char) for char in self.unknown(text)[:8])
            raise TokenizerError(
                f"this model's alphabet of {self.vocab_size} characters lacks {unknown}"
            ) from None

    def encode_array(self, text: str) -> np.ndarray:
        """Encodes a long text: int64 (len(text),)."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        order = np.frombuffer(self.alphabet.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        table = np.full(int(max(order.max(), codes.max(initial=0))) + 1, -1, dtype=np.int64)
        table[order] = np.arange(len(order))
        ids = table[codes]
        if (ids < 0).any():
            self.encode(text)  # raises, naming the characters
        return ids

    def decode(self, ids: list[int]) -> str:
        """Returns the text of ids. Raises TokenizerError for an id outside the vocabulary."""
        if any(not 0 <= i < self.vocab_size for i in ids):
            raise TokenizerError(f"ids must lie between 0 and {self.vocab_size - 1}")
        return "".join(self.alphabet[i] for i in ids)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "char", "alphabet": self.alphabet}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CharTokenizer:
        alphabet = values.get("alphabet")
        if not isinstance(alphabet, str):
            raise TokenizerError("a char tokenizer needs its alphabet, as text")
        return cls(alphabet)
