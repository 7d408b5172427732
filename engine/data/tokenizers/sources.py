"""The tokenizer of an encoder that reads the sources of pairs: a complete text ends with END."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.data.tokenizers.pairs import END, SIGNS, PairTokenizer


class SourceTokenizer(PairTokenizer):
    """
    >>> t = SourceTokenizer.of(PairTokenizer.train(["one", "two"], by="words"))
    >>> t.encode("two"), t.whole("two one"), t.decode([4, 3, 2])
    ([4], [4, 3, 2], 'two one')
    """

    @classmethod
    def of(cls, pairs: PairTokenizer) -> SourceTokenizer:
        """Returns the same symbols."""
        return cls(pairs.symbols, pairs.by, pairs.other)

    def whole(self, text: str, limit: int | None = None) -> list[int]:
        """Encodes a text and END, together at most `limit` tokens. Raises as `encode`."""
        return [*self.encode(text)[: None if limit is None else limit - 1], END]

    @property
    def tokens(self) -> Sequence[bytes]:
        """Every token in UTF-8: words with the blank before them, special tokens as nothing."""
        blank = "" if self.by == "letters" else " "
        return [b"" for _ in SIGNS] + [f"{blank}{symbol}".encode() for symbol in self.symbols]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return self.decode(list(ids)).encode()
