"""Data that comes in two: sources with their targets, and texts with their labels; as padded rows of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from engine.config import ModelConfig, Pooling
from engine.errors import CorpusError
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.tokenizer import BEGIN, END, PAD, PairTokenizer, Symbols

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class Pair:
    """A source and its one right target."""

    source: str
    target: str


@dataclass(frozen=True)
class Labelled:
    """A text and its one right label."""

    text: str
    label: str


@dataclass(frozen=True, eq=False)
class Rows:
    """Pairs as ids, filled up with PAD. sources (row, source): a text and END. targets (row, 1 + query):
    BEGIN, a text and END; the model reads all but the last of them and predicts all but the first.
    """

    sources: Tensor = field(repr=False)
    targets: Tensor = field(repr=False)

    def __len__(self) -> int:
        return len(self.sources)

    def of(self, rows: Tensor) -> Rows:
        """Returns some of the rows (row,), only as long as the longest of these."""
        return Rows(_trimmed(self.sources[rows]), _trimmed(self.targets[rows]))


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Texts as ids (row, position): BEGIN, a text, END, and PAD; labels (row,) are places in their list."""

    texts: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def of(self, rows: Tensor) -> LabelledRows:
        """Returns some of the rows (row,), only as long as the longest of these."""
        return LabelledRows(_trimmed(self.texts[rows]), self.labels[rows])


@dataclass(frozen=True)
class PairedText:
    """The pairs that an encoder-decoder learns from, and the held-out ones, in one vocabulary.

    Raises CorpusError for a text without pairs, an empty source, and a source that is both learned from and
    held out; TokenizerError for an unknown symbol, at the first use of the rows.
    """

    name: str
    title: str
    tokenizer: PairTokenizer
    train: tuple[Pair, ...] = field(repr=False)
    validation: tuple[Pair, ...] = field(repr=False)

    def __post_init__(self) -> None:
        _check_splits(self.title, [p.source for p in self.train], [p.source for p in self.validation])

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @cached_property
    def rows(self) -> dict[Split, Rows]:
        """Both splits as ids."""
        return {
            "train": rows_of(self.train, self.tokenizer),
            "validation": rows_of(self.validation, self.tokenizer),
        }

    @cached_property
    def mean_tokens(self) -> float:
        """The tokens of a source and its target, on average over what is learned from."""
        return mean_tokens(self.rows["train"].sources, self.rows["train"].targets[:, 1:])

    @property
    def longest(self) -> tuple[int, int]:
        """The tokens of the longest source and of the longest target, each with its END."""
        each = self.rows.values()
        return max(r.sources.shape[1] for r in each), max(r.targets.shape[1] for r in each) - 1

    def fitted(self, both: ModelConfig) -> Seq2SeqConfig:
        """Returns an encoder-decoder of those sizes with the vocabulary and the contexts of this text."""
        source, target = self.longest
        config = Seq2SeqConfig.of(replace(both, vocab_size=self.vocab_size), PAD, BEGIN, END)
        return replace(
            config,
            encoder=replace(config.encoder, context=source),
            decoder=replace(config.decoder, context=target),
        )


@dataclass(frozen=True)
class LabelledText:
    """The labelled texts that a classifier learns from, and the held-out ones; `pooling` says which vectors
    the label is read from. Raises as PairedText does, and CorpusError for a label that is not among `labels`.
    """

    name: str
    title: str
    tokenizer: PairTokenizer
    labels: tuple[str, ...]
    train: tuple[Labelled, ...] = field(repr=False)
    validation: tuple[Labelled, ...] = field(repr=False)
    pooling: Pooling = "first"

    def __post_init__(self) -> None:
        _check_splits(self.title, [e.text for e in self.train], [e.text for e in self.validation])
        for each in (*self.train, *self.validation):
            if each.label not in self.labels:
                raise CorpusError(f"{each.label!r} is none of the labels {', '.join(self.labels)}")

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @cached_property
    def rows(self) -> dict[Split, LabelledRows]:
        """Both splits as ids."""
        return {"train": self._rows(self.train), "validation": self._rows(self.validation)}

    @cached_property
    def mean_tokens(self) -> float:
        """The tokens of a text, on average over what is learned from."""
        return mean_tokens(self.rows["train"].texts)

    def _rows(self, examples: Sequence[Labelled]) -> LabelledRows:
        texts = padded([label_ids(each.text, self.tokenizer) for each in examples])
        return LabelledRows(texts, torch.tensor([self.labels.index(each.label) for each in examples]))

    def fitted(self, model: ModelConfig) -> ModelConfig:
        """Returns an encoder of that size with the vocabulary and the context of this text."""
        longest = max(rows.texts.shape[1] for rows in self.rows.values())
        fixed = replace(model, causal=False, output_head="none", pooler=True, pooling=self.pooling)
        return replace(fixed, vocab_size=self.vocab_size, context=longest)


def source_ids(text: str, tokenizer: Symbols, end: int = END) -> list[int]:
    """Returns a source as the encoder reads it. Raises CorpusError if empty, TokenizerError if unknown."""
    ids = tokenizer.encode(text)
    if not ids:
        raise CorpusError("a source needs at least one symbol: there is nothing to read")
    return [*ids, end]


def label_ids(text: str, tokenizer: PairTokenizer) -> list[int]:
    """Returns a text as a classifier reads it: BEGIN, then as a source. Raises as `source_ids`."""
    return [BEGIN, *source_ids(text, tokenizer)]


def rows_of(pairs: Iterable[Pair], tokenizer: PairTokenizer) -> Rows:
    """Returns pairs as ids."""
    ids = [(source_ids(p.source, tokenizer), [BEGIN, *tokenizer.encode(p.target), END]) for p in pairs]
    return Rows(padded([source for source, _ in ids]), padded([target for _, target in ids]))


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Returns rows of ids (row, longest) int64, the shorter ones filled up with PAD.

    >>> padded([[5], [3, 4]]).tolist()
    [[5, 0], [3, 4]]
    """
    longest = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], dtype=torch.int64)


def mean_tokens(*parts: Tensor) -> float:
    """Returns the tokens of a row, all its parts (row, position) together, on average over the rows."""
    return sum(float((part != PAD).sum()) / len(part) for part in parts)


def _trimmed(rows: Tensor) -> Tensor:
    """Without the columns at the end that hold nothing but padding."""
    return rows[:, : int((rows != PAD).sum(dim=1).max())]


def _check_splits(title: str, train: Sequence[str], validation: Sequence[str]) -> None:
    if not train or not validation:
        raise CorpusError(f"{title} needs something to learn from, and something that is held out")
    both = set(train) & set(validation)
    if both:
        raise CorpusError(f"{title} holds out {min(both)!r}, which it learns from too")
