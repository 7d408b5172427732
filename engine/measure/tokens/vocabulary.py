"""How tokenizers cut a text, byte by byte, and what the size of a vocabulary costs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.config import ModelConfig
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.words import UNKNOWN, WordTokenizer, places
from engine.ledger import component_parameters


class Encoder(Protocol):
    """What is asked of a tokenizer whose tokens, put end to end, are the text."""

    def encode(self, text: str) -> list[int]: ...
    def decode_bytes(self, ids: Iterable[int]) -> bytes: ...


@dataclass(frozen=True, eq=False)
class Cut:
    """A text in tokens. The arrays (shown,) int32 hold its first tokens; the numbers are of the whole
    text.
    """

    ids: np.ndarray  # UNKNOWN: this vocabulary has no token for it
    starts: np.ndarray  # first byte of each token in the text's UTF-8
    lengths: np.ndarray  # in bytes
    tokens: int
    unknown: int
    characters: int
    bytes: int

    @property
    def characters_per_token(self) -> float:
        return self.characters / self.tokens if self.tokens else 0.0

    @property
    def bytes_per_token(self) -> float:
        return self.bytes / self.tokens if self.tokens else 0.0


def _cut(
    text: str,
    ids: np.ndarray,
    lengths: np.ndarray,
    size: int,
    starts: np.ndarray | None = None,
    shown: int | None = None,
) -> Cut:
    starts = np.cumsum(lengths) - lengths if starts is None else starts
    end = len(ids) if shown is None else int(np.searchsorted(starts, len(text[:shown].encode("utf-8"))))
    first, begin, widths = (array[:end].astype(np.int32) for array in (ids, starts, lengths))
    return Cut(
        first,
        begin,
        widths,
        tokens=len(ids),
        unknown=int((ids == UNKNOWN).sum()),
        characters=len(text),
        bytes=size,
    )


def cut_characters(text: str, alphabet: str, shown: int | None = None) -> Cut:
    """One token a character; a character that is not in the alphabet is unknown. `shown`: characters whose
    tokens are kept, as below.
    """
    widths = _widths(text)
    table = {c: i for i, c in enumerate(alphabet)}
    ids = np.fromiter((table.get(c, UNKNOWN) for c in text), np.int64, len(text))
    return _cut(text, ids, widths, int(widths.sum()), shown=shown)


def cut_bytes(text: str, shown: int | None = None) -> Cut:
    """One token a byte of the text's UTF-8; its id is its value. Nothing is ever unknown."""
    ids = np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64)
    return _cut(text, ids, np.ones_like(ids), len(ids), shown=shown)


def cut_words(text: str, tokenizer: WordTokenizer, shown: int | None = None) -> Cut:
    """Words and signs; between them, blanks that belong to no token."""
    spans = np.array(list(places(text)), np.int64).reshape(-1, 2)
    at = np.concatenate([[0], np.cumsum(_widths(text))])  # first byte of each character, and the end
    starts, ends = at[spans[:, 0]], at[spans[:, 1]]
    return _cut(text, np.array(tokenizer.encode(text), np.int64), ends - starts, int(at[-1]), starts, shown)


def cut_tokens(text: str, tokenizer: Encoder, shown: int | None = None) -> Cut:
    """Tokens that follow each other without a gap: BPE's, ours or published. A token may begin or end inside
    a character.
    """
    ids = np.array(tokenizer.encode(text), np.int64)
    distinct, place = np.unique(ids, return_inverse=True)
    lengths = np.array([len(tokenizer.decode_bytes([int(i)])) for i in distinct], np.int64)[place.reshape(-1)]
    return _cut(text, ids, lengths, int(lengths.sum()), shown=shown)


def _widths(text: str) -> np.ndarray:
    """Bytes of each character in UTF-8: (characters,) int64."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return (1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)).astype(np.int64)


# Costs ------------------------------------------------------------------------------------------


def prefix(tokenizer: BpeTokenizer, vocab_size: int) -> BpeTokenizer:
    """The same training, stopped at `vocab_size` tokens: merges are learned one by one, so a smaller
    vocabulary is a beginning of a larger.
    """
    size, known = len(tokenizer.base), 0
    for merge in tokenizer.merges:
        if size >= vocab_size:
            break
        size += merge.token == size
        known += 1
    return BpeTokenizer(tokenizer.level, tokenizer.split, tokenizer.base, tokenizer.merges[:known])


def lengths(tokenizer: BpeTokenizer, text: str, sizes: Sequence[int]) -> dict[int, int]:
    """Vocabulary -> tokens of a text, for every size that the training reached. A size is named by what it
    really holds.
    """
    return {part.vocab_size: len(part.encode(text)) for part in _prefixes(tokenizer, sizes)}


def training_lengths(tokenizer: BpeTokenizer, sizes: Sequence[int], start: int) -> dict[int, int]:
    """The same for the text that the tokenizer was trained on, without encoding it: each merge says how long
    the text was after it.

    `start` is its length before the first merge, in bytes or characters, as the tokenizer's level is.
    """
    return {
        part.vocab_size: part.merges[-1].length if part.merges else start
        for part in _prefixes(tokenizer, sizes)
    }


def _prefixes(tokenizer: BpeTokenizer, sizes: Sequence[int]) -> list[BpeTokenizer]:
    """One for each size that can be had; those beyond what was learned are all the whole."""
    reached = sorted({min(size, tokenizer.vocab_size) for size in sizes if size >= len(tokenizer.base)})
    return [prefix(tokenizer, size) for size in reached]


def passage(text: str, words: int) -> tuple[str, int]:
    """(the text up to the end of its `words`-th word, how many words that is). Words are what blanks
    separate.

    >>> passage("to be, or not", 3)
    ('to be, or', 3)
    """
    end = count = 0
    for match in re.finditer(r"\S+", text):
        end, count = match.end(), count + 1
        if count >= words:
            break
    return text[:end], count


@dataclass(frozen=True)
class Cost:
    """What a vocabulary of V tokens costs a model of width d that reads a passage of T tokens."""

    name: str
    vocab_size: int  # V
    tokens: int  # T
    embedding: int  # V d parameters
    tied: int  # parameters of the whole model when the unembedding is the embedding's matrix
    untied: int  # ... when it is a matrix of its own: V d more
    scores: int  # T² attention scores, for one head of one layer

    @property
    def share(self) -> float:
        """Of the tied model's parameters that are its embedding."""
        return self.embedding / self.tied


def costs(measured: Mapping[str, tuple[int, int]], d_model: int, n_layers: int) -> list[Cost]:
    """name -> (V, T) measured, as costs. The blocks between are GPT-2's in their shape (heads of 64, d_ff = 4
    d), with RoPE and no biases.

    Raises ConfigError for a width or a number of layers that cannot be built.
    """
    rows = []
    for name, (vocab_size, tokens) in measured.items():
        config = ModelConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            n_layers=n_layers,
            n_heads=max(1, d_model // 64),
            position="rope",
        )
        parts = component_parameters(config)
        tied = sum(parts.values())
        rows.append(
            Cost(name, vocab_size, tokens, parts["embedding"], tied, tied + parts["embedding"], tokens**2)
        )
    return rows
