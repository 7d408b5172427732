"""Tokenizers compared: how they cut a text, whether it comes back, what a vocabulary's size costs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from engine.config import ModelConfig
from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.char import CharTokenizer
from engine.data.tokenizers.words import UNKNOWN, WordTokenizer, word_spans
from engine.errors import TokenizerError
from studies.costs.ledger import component_parameters
from studies.tokens.published import PublishedTokenizer


class Encoder(Protocol):
    """A tokenizer whose tokens, put end to end, are the text."""

    def encode(self, text: str) -> list[int]: ...
    def decode_bytes(self, ids: Iterable[int]) -> bytes: ...


@dataclass(frozen=True, eq=False)
class Cut:
    """A text in tokens: the arrays (shown,) int32 hold its first ones, the numbers are of the whole."""

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
    """Cuts one token a character, unknown outside the alphabet; `shown` characters are listed."""
    widths = _widths(text)
    table = {c: i for i, c in enumerate(alphabet)}
    ids = np.fromiter((table.get(c, UNKNOWN) for c in text), np.int64, len(text))
    return _cut(text, ids, widths, int(widths.sum()), shown=shown)


def cut_bytes(text: str, shown: int | None = None) -> Cut:
    """Cuts one token a byte of the text's UTF-8; its id is its value."""
    ids = np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64)
    return _cut(text, ids, np.ones_like(ids), len(ids), shown=shown)


def cut_words(text: str, tokenizer: WordTokenizer, shown: int | None = None) -> Cut:
    """Cuts words and signs; blanks between them belong to no token."""
    spans = np.array(list(word_spans(text)), np.int64).reshape(-1, 2)
    at = np.concatenate([[0], np.cumsum(_widths(text))])  # first byte of each character, and the end
    starts, ends = at[spans[:, 0]], at[spans[:, 1]]
    return _cut(text, np.array(tokenizer.encode(text), np.int64), ends - starts, int(at[-1]), starts, shown)


def cut_tokens(text: str, tokenizer: Encoder, shown: int | None = None) -> Cut:
    """Cuts tokens that follow each other without a gap, BPE's or published, maybe inside a character."""
    ids = np.array(tokenizer.encode(text), np.int64)
    distinct, place = np.unique(ids, return_inverse=True)
    lengths = np.array([len(tokenizer.decode_bytes([int(i)])) for i in distinct], np.int64)[place.reshape(-1)]
    return _cut(text, ids, lengths, int(lengths.sum()), shown=shown)


def _widths(text: str) -> np.ndarray:
    """Returns the bytes of each character in UTF-8: (characters,) int64."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return (1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000)).astype(np.int64)


# Costs ------------------------------------------------------------------------------------------


def prefix(tokenizer: BpeTokenizer, vocab_size: int) -> BpeTokenizer:
    """Returns the same training, stopped at `vocab_size` tokens: the beginning of the larger one."""
    size, known = len(tokenizer.base), 0
    for merge in tokenizer.merges:
        if size >= vocab_size:
            break
        size += merge.token == size
        known += 1
    return BpeTokenizer(tokenizer.level, tokenizer.split, tokenizer.base, tokenizer.merges[:known])


def lengths(tokenizer: BpeTokenizer, text: str, sizes: Sequence[int]) -> dict[int, int]:
    """Returns vocabulary -> tokens of a text, for every size that the training reached."""
    return {part.vocab_size: len(part.encode(text)) for part in _prefixes(tokenizer, sizes)}


def training_lengths(tokenizer: BpeTokenizer, sizes: Sequence[int], start: int) -> dict[int, int]:
    """Returns the same for the training text, without encoding it: each merge says how long the text was
    after it. `start` is its length before the first merge, in bytes or characters.
    """
    return {
        part.vocab_size: part.merges[-1].length if part.merges else start
        for part in _prefixes(tokenizer, sizes)
    }


def _prefixes(tokenizer: BpeTokenizer, sizes: Sequence[int]) -> list[BpeTokenizer]:
    """Returns one for each size that was reached."""
    reached = sorted({min(size, tokenizer.vocab_size) for size in sizes if size >= len(tokenizer.base)})
    return [prefix(tokenizer, size) for size in reached]


def passage(text: str, words: int) -> tuple[str, int]:
    """Returns the text up to the end of its `words`-th word, and how many words that is.

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
    """The cost of a vocabulary of V tokens in a model of width d that reads a passage of T tokens."""

    name: str
    vocab_size: int  # V
    tokens: int  # T
    embedding: int  # V d parameters
    tied: int  # parameters of the whole model when the unembedding is the embedding's matrix
    untied: int  # ... when it is a matrix of its own: V d more
    scores: int  # T² attention scores, for one head of one layer

    @property
    def share(self) -> float:
        """The embedding's share of the tied model's parameters."""
        return self.embedding / self.tied


def costs(measured: Mapping[str, tuple[int, int]], d_model: int, n_layers: int) -> list[Cost]:
    """Returns the costs of measured name -> (V, T). The blocks are GPT-2's in their shape (heads of 64, d_ff
    = 4 d), with RoPE and no biases. Raises ConfigError.
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


NO_WORD = "⟨unknown⟩"  # stands for a word that is not in the list


@dataclass(frozen=True, eq=False)
class RoundTrip:
    """The ids of a text, `cut`, and the text `back` from them; `lost` has no id, each once."""

    cut: Cut
    back: str
    lost: tuple[str, ...]
    same: bool  # the text came back letter for letter


def of_characters(text: str, alphabet: str) -> RoundTrip:
    """Encodes one id a character; one outside the alphabet is lost."""
    known = CharTokenizer(alphabet)
    lost = tuple(known.unknown(text))
    back = known.decode(known.encode("".join(c for c in text if c not in lost)))
    return RoundTrip(cut_characters(text, alphabet), back, lost, back == text)


def of_bytes(text: str) -> RoundTrip:
    """Encodes one id a byte: nothing is lost."""
    cut = cut_bytes(text)
    back = bytes(cut.ids.tolist()).decode("utf-8")
    return RoundTrip(cut, back, (), back == text)


def of_words(text: str, known: WordTokenizer) -> RoundTrip:
    """Encodes one id a word. Words come back with one blank between them, an unknown one as NO_WORD."""
    cut = cut_words(text, known)
    data = text.encode("utf-8")
    words = [known.words[i] if i != UNKNOWN else NO_WORD for i in cut.ids.tolist()]
    lost = dict.fromkeys(
        data[start : start + length].decode("utf-8")
        for i, start, length in zip(cut.ids.tolist(), cut.starts.tolist(), cut.lengths.tolist(), strict=True)
        if i == UNKNOWN
    )
    back = " ".join(words)
    return RoundTrip(cut, back, tuple(lost), back == text)


def of_tokens(text: str, encoder: Encoder) -> RoundTrip:
    """Encodes pieces that begin from the 256 bytes: nothing is lost."""
    cut = cut_tokens(text, encoder)
    back = encoder.decode_bytes(encoder.encode(text)).decode("utf-8", "replace")
    return RoundTrip(cut, back, (), back == text)


@dataclass(frozen=True)
class Spread:
    """The tokenizer that needs the most tokens for a text, and the one that needs the least."""

    most: str
    least: str
    most_tokens: int
    least_tokens: int

    @property
    def times(self) -> float:
        """The factor of tokens."""
        return self.most_tokens / self.least_tokens

    @property
    def work(self) -> float:
        """The factor of attention: T² scores in each head."""
        return self.times**2


def spread(cuts: Mapping[str, Cut], without: Collection[str] = ()) -> Spread | None:
    """Compares the cuts without an unknown token, but for `without`; None for fewer than two."""
    tokens = {n: cut.tokens for n, cut in cuts.items() if n not in without and cut.tokens and not cut.unknown}
    if len(tokens) < 2:
        return None
    most, least = max(tokens, key=tokens.__getitem__), min(tokens, key=tokens.__getitem__)
    return Spread(most, least, tokens[most], tokens[least])


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of a text, each cut by itself."""

    lines: tuple[str, ...] = field(repr=False)
    counts: np.ndarray  # (line, tokenizer): tokens

    @property
    def characters(self) -> np.ndarray:
        """Characters of each line, (line,)."""
        return np.array([len(line) for line in self.lines])

    @property
    def per_character(self) -> np.ndarray:
        """Tokens per character: (line, tokenizer)."""
        return self.counts / self.characters[:, None]


# What the size of a vocabulary changes ----------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """The change between two tokenizers: times fewer tokens and scores, times the embedding."""

    tokens: float
    scores: float
    embedding: float


def gain(first: Cost, last: Cost) -> Gain | None:
    """Returns None where one of the two makes no tokens of the text, or both are one."""
    if not first.tokens or not last.tokens or first is last:
        return None
    return Gain(first.tokens / last.tokens, first.scores / last.scores, last.embedding / first.embedding)


@dataclass(frozen=True, eq=False)
class Passage:
    """A text's beginning in tokens. `curve`: our BPE's, by size; `rows`: name -> (V, T)."""

    words: int
    characters: int
    curve: dict[int, int]
    rows: dict[str, tuple[int, int]]

    def per_word(self, name: str) -> float:
        """Returns the tokens of a tokenizer for each word, with the blanks around it."""
        return self.rows[name][1] / max(self.words, 1)


def measure_passage(
    text: str,
    words: int,
    learned: BpeTokenizer,
    sizes: Sequence[int],
    named: Collection[int],
    published: Mapping[str, PublishedTokenizer],
) -> Passage:
    """Cuts the first `words` words of a text, or all of it for 0, as characters, bytes, our BPE and the
    published encodings do. `learned` was trained on this text; it is stopped at each of `sizes`, and those in
    `named` (and the largest that was reached) become rows. An encoding that cannot cut the text has no row.
    """
    part, count = passage(text, words or len(text))
    part = part if words else text
    size = len(part.encode("utf-8"))
    curve = lengths(learned, part, sizes) if words else training_lengths(learned, sizes, size)
    rows = {"characters": (len(set(text)), len(part)), "bytes": (256, size)}
    rows |= {f"BPE {v:,}": (v, tokens) for v, tokens in curve.items() if v in named or v == max(curve) > 256}
    for name, encoding in published.items():
        try:
            rows[name] = (encoding.vocab_size, len(encoding.encode(part)))
        except TokenizerError:  # its pattern gave up on this text
            continue
    return Passage(count, len(part), curve, rows)


@dataclass(frozen=True)
class LineCount:
    """A line of text and its tokens, in one of the ways in which books count it."""

    what: str
    characters: int
    ids: tuple[int, ...]


def line_counts(line: str, running: str, encoder: Encoder) -> tuple[LineCount, LineCount, LineCount]:
    """Counts a line by itself, before an empty line, and at the beginning of a `running` text."""
    inside = cut_tokens(running, encoder, len(line) + 1).ids.tolist()
    return (
        LineCount("the line with its line break", len(line), tuple(encoder.encode(line))),
        LineCount("with an empty line after it", len(line) + 1, tuple(encoder.encode(line + "\n"))),
        LineCount("the same characters inside the running text", len(line) + 1, tuple(inside)),
    )
