"""The tokenizer of an encoder that reads the sources of pairs: a complete text ends with END."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.data.tokenizers.pairs import END, SIGNS, PairTokenizer


@dataclass(frozen=True)
class SourceTokenizer:
    """
    >>> t = SourceTokenizer(PairTokenizer.train(["one", "two"], by="words"))
    >>> t.encode("two"), t.whole("two one"), t.decode([4, 3, 2]), t.without("two or one", ["or"])
    ([4], [4, 3, 2], 'two one', 'two one')
    """

    inner: PairTokenizer

    @property
    def vocab_size(self) -> int:
        return self.inner.vocab_size

    @property
    def unit(self) -> str:
        """The unit of a token: `letters` or `words`."""
        return self.inner.by

    def unknown(self, text: str) -> list[str]:
        return self.inner.unknown(text)

    def without(self, text: str, symbols: Iterable[str]) -> str:
        """Returns a text without some of its letters or words."""
        gone = set(symbols)
        if self.unit == "letters":
            return "".join(letter for letter in text if letter not in gone)
        return " ".join(word for word in text.split() if word not in gone)

    def encode(self, text: str) -> list[int]:
        """Encodes a text. Raises TokenizerError naming what is unknown."""
        return self.inner.encode(text)

    def whole(self, text: str, limit: int | None = None) -> list[int]:
        """Encodes a text and END, together at most `limit` tokens. Raises as `encode`."""
        return [*self.encode(text)[: None if limit is None else limit - 1], END]

    def decode(self, ids: Sequence[int]) -> str:
        return self.inner.decode(ids)

    @property
    def tokens(self) -> Sequence[bytes]:
        """Every token in UTF-8: words with the blank before them, special tokens as nothing."""
        blank = "" if self.unit == "letters" else " "
        return [b"" for _ in SIGNS] + [f"{blank}{symbol}".encode() for symbol in self.inner.symbols]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return self.decode(list(ids)).encode()

    def to_dict(self) -> dict[str, Any]:
        return self.inner.to_dict()
