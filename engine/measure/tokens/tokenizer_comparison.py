"""Tokenizers side by side: which is dearest, line by line, and a passage under vocabularies of many sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.data.tokenizers.bpe import BpeTokenizer
from engine.data.tokenizers.published import PublishedTokenizer
from engine.errors import TokenizerError
from engine.measure.tokens.vocabulary import (
    Cost,
    Cut,
    Encoder,
    cut_tokens,
    lengths,
    passage,
    training_lengths,
)


@dataclass(frozen=True)
class Spread:
    """The tokenizer that needs the most tokens for a text, and the one that needs the least."""

    most: str
    least: str
    most_tokens: int
    least_tokens: int

    @property
    def times(self) -> float:
        """As many tokens."""
        return self.most_tokens / self.least_tokens

    @property
    def work(self) -> float:
        """As much attention: T² scores in each head."""
        return self.times**2


def spread(cuts: Mapping[str, Cut], without: Collection[str] = ()) -> Spread | None:
    """Among the cuts that hold the whole text (no token unknown), but for those named in `without`. None
    where fewer than two do.
    """
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
        """(line,)"""
        return np.array([len(line) for line in self.lines])

    @property
    def per_character(self) -> np.ndarray:
        """Tokens that a character costs: (line, tokenizer)."""
        return self.counts / self.characters[:, None]


# What the size of a vocabulary changes ----------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """From one tokenizer to another: how many times fewer tokens and scores, and how many times the
    embedding.
    """

    tokens: float
    scores: float
    embedding: float


def gain(first: Cost, last: Cost) -> Gain | None:
    """None where one of the two makes no tokens of the text, or both are one."""
    if not first.tokens or not last.tokens or first is last:
        return None
    return Gain(first.tokens / last.tokens, first.scores / last.scores, last.embedding / first.embedding)


@dataclass(frozen=True, eq=False)
class Passage:
    """The beginning of a text in tokens. `curve` is our BPE's, size by size; `rows` are the tokenizers that
    are named: name -> (V, T).
    """

    words: int
    characters: int
    curve: dict[int, int]
    rows: dict[str, tuple[int, int]]

    def per_word(self, name: str) -> float:
        """Tokens of a tokenizer for each word, with the blanks around it."""
        return self.rows[name][1] / max(self.words, 1)


def measure_passage(
    text: str,
    words: int,
    learned: BpeTokenizer,
    sizes: Sequence[int],
    named: Collection[int],
    published: Mapping[str, PublishedTokenizer],
) -> Passage:
    """The first `words` words of a text, or all of it for 0, as characters, bytes, our BPE and the published
    encodings cut it.

    `learned` was trained on this text; it is stopped at each of `sizes`, and those in `named` (and the
    largest that was reached) become rows. An encoding that cannot cut the text has no row.
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
    """A line by itself, with an empty line after it, and the same characters at the beginning of a text that
    goes on (`running` begins with the line and a line break).
    """
    inside = cut_tokens(running, encoder, len(line) + 1).ids.tolist()
    return (
        LineCount("the line with its line break", len(line), tuple(encoder.encode(line))),
        LineCount("with an empty line after it", len(line) + 1, tuple(encoder.encode(line + "\n"))),
        LineCount("the same characters inside the running text", len(line) + 1, tuple(inside)),
    )
