"""Tokens of sources and targets: letters or words, after three signs that no text holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

from engine.errors import TokenizerError

PAD, BEGIN, END = 0, 1, 2
SIGNS = ("<pad>", "<begin>", "<end>")  # padding, before a target's first token, after a text's last
By = Literal["letters", "words"]


class Symbols(Protocol):
    """What cuts the texts of an encoder-decoder: PairTokenizer, or a published vocabulary (PairWords of
    engine.pretrained.pairs).
    """

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without signs around it. May raise TokenizerError."""
        ...

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Each token as it is written below a figure, signs too."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids up to the first end, without signs."""
        ...


@dataclass(frozen=True)
class PairTokenizer:
    """`symbols` are letters, or words with a blank between them; the id of the first is 3, after those of
    SIGNS.

    >>> t = PairTokenizer.train(["two one", "one"], by="words")
    >>> t.encode("one two"), t.decode([1, 3, 2, 0]), t.shown([1, 3, 2])
    ([3, 4], 'one', ('<begin>', 'one', '<end>'))
    """

    symbols: tuple[str, ...]
    by: By = "letters"

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise TokenizerError(f"a text is cut into letters or words, not into {self.by!r}")
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise TokenizerError("a vocabulary needs at least one symbol, and each only once")
        fits = (lambda s: len(s) == 1) if self.by == "letters" else (lambda s: s and s.split() == [s])
        if not all(map(fits, self.symbols)) or set(self.symbols) & set(SIGNS):
            raise TokenizerError(f"each symbol must be one of the {self.by}, and none of {', '.join(SIGNS)}")

    @classmethod
    def train(cls, texts: Iterable[str], by: By = "letters") -> PairTokenizer:
        """The distinct symbols of some texts, sorted."""
        return cls(tuple(sorted({symbol for text in texts for symbol in _cut(text, by)})), by)

    @property
    def vocab_size(self) -> int:
        return len(SIGNS) + len(self.symbols)

    @property
    def stops(self) -> frozenset[int]:
        """The ids by which a model says that its text is at an end."""
        return frozenset({END})

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: len(SIGNS) + i for i, symbol in enumerate(self.symbols)}

    def unknown(self, text: str) -> list[str]:
        """The symbols of a text that the vocabulary lacks, each once, in order of appearance."""
        return [symbol for symbol in dict.fromkeys(_cut(text, self.by)) if symbol not in self._ids]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without signs around it. Raises TokenizerError naming what is unknown."""
        unknown = self.unknown(text)
        if unknown:
            named = " ".join(repr(symbol) for symbol in unknown[:8])
            raise TokenizerError(f"this model's vocabulary of {len(self.symbols)} {self.by} lacks {named}")
        return [self._ids[symbol] for symbol in _cut(text, self.by)]

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Each token as it is written below a figure, signs too. Raises TokenizerError for an id outside the
        vocabulary.
        """
        if any(not 0 <= i < self.vocab_size for i in ids):
            raise TokenizerError(f"ids must lie between 0 and {self.vocab_size - 1}")
        names = SIGNS + self.symbols
        return tuple(names[i] for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids up to the first END, without signs."""
        shown = self.shown(ids)
        over = list(ids).index(END) if END in ids else len(ids)
        said = [symbol for i, symbol in zip(ids[:over], shown, strict=False) if i >= len(SIGNS)]
        return ("" if self.by == "letters" else " ").join(said)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "paired", "symbols": list(self.symbols), "by": self.by}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairTokenizer:
        symbols, by = values.get("symbols"), values.get("by")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise TokenizerError("a tokenizer of pairs needs its symbols, as a list of texts")
        return cls(tuple(symbols), by)  # type: ignore[arg-type]


def _cut(text: str, by: By) -> Sequence[str]:
    return text if by == "letters" else text.split()
