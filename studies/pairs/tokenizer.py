"""Tokens of sources, targets and labelled texts: letters or words, after three signs that no text holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

from engine.data.tokenizers.stored import KINDS
from engine.errors import TokenizerError

PAD, BEGIN, END = 0, 1, 2
SIGNS = ("<pad>", "<begin>", "<end>")  # padding, before a target's first token, after a text's last
By = Literal["letters", "words", "speech"]


class Symbols(Protocol):
    """The interface of an encoder-decoder's tokenizer: PairTokenizer, or a published PairWords."""

    def encode(self, text: str) -> list[int]:
        """Encodes a text without special tokens around it. May raise TokenizerError."""
        ...

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Returns each token as a figure labels it, special ones too."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids up to the first end, without special tokens."""
        ...


@dataclass(frozen=True)
class PairTokenizer:
    """`symbols` are letters, words with a blank between them, or those of speech: words in small letters, and
    signs. The id of the first is 3, after those of SIGNS. `other`: the symbol that is read for all that the
    vocabulary lacks; None: there is none, and such a text is refused.

    >>> t = PairTokenizer.train(["two one", "one"], by="words")
    >>> t.encode("one two"), t.decode([1, 3, 2, 0]), t.shown([1, 3, 2])
    ([3, 4], 'one', ('<begin>', 'one', '<end>'))
    """

    symbols: tuple[str, ...]
    by: By = "letters"
    other: str | None = None

    def __post_init__(self) -> None:
        if self.by not in get_args(By):
            raise TokenizerError(f"a text is cut into letters, words or speech, not into {self.by!r}")
        if not self.symbols or len(set(self.symbols)) != len(self.symbols):
            raise TokenizerError("a vocabulary needs at least one symbol, and each only once")
        fits = (lambda s: len(s) == 1) if self.by == "letters" else (lambda s: s and s.split() == [s])
        if not all(map(fits, self.symbols)) or set(self.symbols) & set(SIGNS):
            raise TokenizerError(f"each symbol must be one of the {self.by}, and none of {', '.join(SIGNS)}")
        if self.other is not None and self.other not in self.symbols:
            raise TokenizerError(f"{self.other!r}, read for what is unknown, must be one of the symbols")

    @classmethod
    def train(
        cls, texts: Iterable[str], by: By = "letters", other: str | None = None, often: int = 1
    ) -> PairTokenizer:
        """Makes a tokenizer of the symbols that occur at least `often` in some texts, sorted, and `other`."""
        counts = Counter(symbol for text in texts for symbol in cut(text, by))
        kept = {symbol for symbol, count in counts.items() if count >= often}
        return cls(tuple(sorted(kept | ({other} if other else set()))), by, other)

    @property
    def vocab_size(self) -> int:
        return len(SIGNS) + len(self.symbols)

    @property
    def stops(self) -> frozenset[int]:
        """The ids by which a model ends its text."""
        return frozenset({END})

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: len(SIGNS) + i for i, symbol in enumerate(self.symbols)}

    def unknown(self, text: str) -> list[str]:
        """Returns the symbols of a text that the vocabulary lacks, each once, in order of appearance."""
        return [symbol for symbol in dict.fromkeys(cut(text, self.by)) if symbol not in self._ids]

    def without(self, text: str, symbols: Iterable[str]) -> str:
        """Returns a text without some of its letters or words.

        >>> PairTokenizer(("a", "b")).without("abba", "a")
        'bb'
        """
        gone = set(symbols)
        if self.by == "letters":
            return "".join(letter for letter in text if letter not in gone)
        return " ".join(word for word in text.split() if word not in gone)

    def encode(self, text: str) -> list[int]:
        """Encodes a text. Raises TokenizerError naming what is unknown, unless there is an `other`."""
        unknown = self.unknown(text)
        if self.other is not None:
            return [self._ids.get(symbol, self._ids[self.other]) for symbol in cut(text, self.by)]
        if unknown:
            named = " ".join(repr(symbol) for symbol in unknown[:8])
            raise TokenizerError(f"this model's vocabulary of {len(self.symbols)} {self.by} lacks {named}")
        return [self._ids[symbol] for symbol in cut(text, self.by)]

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Returns each token as a figure labels it. Raises TokenizerError for an id that does not exist."""
        if any(not 0 <= i < self.vocab_size for i in ids):
            raise TokenizerError(f"ids must lie between 0 and {self.vocab_size - 1}")
        names = SIGNS + self.symbols
        return tuple(names[i] for i in ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Returns the text of ids up to the first END, without special tokens."""
        shown = self.shown(ids)
        over = list(ids).index(END) if END in ids else len(ids)
        symbols = [symbol for i, symbol in zip(ids[:over], shown, strict=False) if i >= len(SIGNS)]
        return ("" if self.by == "letters" else " ").join(symbols)

    def to_dict(self) -> dict[str, Any]:
        values = {"kind": "paired", "symbols": list(self.symbols), "by": self.by}
        return values if self.other is None else values | {"other": self.other}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PairTokenizer:
        symbols, by = values.get("symbols"), values.get("by")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise TokenizerError("a tokenizer of pairs needs its symbols, as a list of texts")
        return cls(tuple(symbols), by, values.get("other"))  # type: ignore[arg-type]


class SourceTokenizer(PairTokenizer):
    """The tokenizer of an encoder that reads the sources of pairs: a complete text ends with END.

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


def cut(text: str, by: By) -> Sequence[str]:
    """Splits a text into symbols, known or not.

    >>> cut("Ay, 'tis he!", "words"), cut("Ay, 'tis he!", "speech")
    (['Ay,', "'tis", 'he!'], ['ay', ',', "'tis", 'he', '!'])
    """
    if by == "speech":
        return re.findall(r"[a-z']+|[^\sa-z']", text.lower())
    return text if by == "letters" else text.split()


KINDS["paired"] = PairTokenizer.from_dict
