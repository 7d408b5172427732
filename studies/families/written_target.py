"""The target that an encoder-decoder writes for a source: each symbol, its probability, what was attended to.

Also with the memory cut, the source shuffled or the masks swapped.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.parts.registry import parts_of
from engine.probe import Recorder
from studies.pairs.dataset import source_ids
from studies.pairs.generate import pair_steps
from studies.pairs.seq2seq import Memory, Seq2Seq
from studies.pairs.tokenizer import Symbols

T = TypeVar("T")
Change = Literal["none", "cut", "shuffled", "swapped"]


@dataclass(frozen=True, eq=False)
class WrittenTarget:
    """A target that a model wrote: row i of every array belongs to symbol i, the last one usually the end.

    Keys of `cross_patterns` are the source's symbols and its end, as the model got them; those of
    `self_patterns` are `read`, 0 where a symbol was not written yet. Sizes are root mean squares of the
    residual stream at each depth: before the first block, then after each.
    """

    source: tuple[str, ...]
    read: tuple[str, ...]  # by the decoder: begin, and all that was written but the last
    written: tuple[str, ...]
    text: str
    ended: bool  # by the model itself, not because no more was asked for
    width: int  # d_model, of each vector of the memory
    probabilities: np.ndarray = field(repr=False)  # (query, vocab), at temperature 1
    cross_patterns: np.ndarray = field(repr=False)  # (layer, head, query, source)
    self_patterns: np.ndarray = field(repr=False)  # (layer, head, query, query)
    source_sizes: np.ndarray = field(repr=False)  # (depth,), a mean over the source
    sizes: np.ndarray = field(repr=False)  # (depth, query)

    def pattern(self, head: tuple[int, int] | None) -> np.ndarray:
        """Returns cross-attention (query, source) of one (layer, head), or the mean of all."""
        return self.cross_patterns.mean((0, 1)) if head is None else self.cross_patterns[head]

    def most_attended(self, step: int) -> tuple[int, float]:
        """Returns the source position with the most mean weight at a step, and that weight."""
        mean = self.pattern(None)[step]
        return int(mean.argmax()), float(mean.max())

    def certainty(self, step: int) -> float:
        """Returns the largest probability at a step."""
        return float(self.probabilities[step].max())

    def likeliest(self, step: int, count: int) -> list[tuple[int, float]]:
        """Returns (token, probability) of the `count` likeliest tokens of a step."""
        row = self.probabilities[step]
        return [(int(token), float(row[token])) for token in np.argsort(-row, kind="stable")[:count]]


@torch.inference_mode()
def write_target(
    model: Seq2Seq,
    tokenizer: Symbols,
    text: str,
    change: Change = "none",
    seed: int = 0,
    longest: int | None = None,
) -> WrittenTarget:
    """Reads `text` and writes the likeliest target, of `longest` symbols or the decoder's context.

    cut: the memory is all zeros. shuffled: the source's symbols change positions, by `seed`; its end stays
    last. swapped: the trained weights run with `studies.lab.faults.masks.swapped_masks`. Raises CorpusError
    for an empty text, TokenizerError for unknown symbols, ShapeError for too many.
    """
    ids = source_ids(text, tokenizer, model.config.end)
    if change == "shuffled":
        ids = [*shuffled(ids[:-1], seed), ids[-1]]
    writer = with_parts(model, "swapped_masks") if change == "swapped" else model
    reading, rows = Recorder({"resid_pre", "resid_post"}), _LastQueries()
    memory = writer.encode(torch.tensor([ids]), reading)
    if change == "cut":
        memory = Memory(torch.zeros_like(memory.vectors), memory.padding)
    context = model.config.decoder.context
    drawn = list(pair_steps(writer, memory, min(longest or context, context), probe=rows))
    written = [each.token for each in drawn]
    return WrittenTarget(
        tokenizer.shown(ids),
        tokenizer.shown([model.config.begin, *written[:-1]]),
        tokenizer.shown(written),
        tokenizer.decode(written),
        written[-1] == model.config.end,
        model.config.encoder.d_model,
        torch.stack([each.logits.softmax(-1) for each in drawn]).numpy(),
        rows.stacked("cross_pattern"),
        rows.stacked("pattern"),
        np.array([float(_size(x[0]).mean()) for x in _depths(reading.tensors)], dtype=np.float32),
        np.stack([_size(torch.stack(each)).float().numpy() for each in _depths(rows.rows)]),
    )


class _LastQueries:
    """A probe that keeps the last query of some activations, of each pass: name -> rows."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Tensor]] = {}

    def __call__(self, name: str, x: Tensor) -> Tensor:
        if name.rpartition(".")[2] in ("pattern", "cross_pattern", "resid_pre", "resid_post"):
            self.rows.setdefault(name, []).append(x[0, ..., -1, :].clone())
        return x

    def stacked(self, name: str) -> np.ndarray:
        """Returns the patterns of that name, (layer, head, query, key); 0 for keys that were not there."""
        layers = [rows for scoped, rows in self.rows.items() if scoped.rpartition(".")[2] == name]
        keys = layers[0][-1].shape[-1]
        padded = [torch.stack([F.pad(row, (0, keys - row.shape[-1])) for row in rows], 1) for rows in layers]
        return torch.stack(padded).float().numpy()


def _depths(named: dict[str, T]) -> list[T]:
    """Returns the residual stream before the first block and after each."""
    return [x for name, x in named.items() if name.endswith((".0.resid_pre", ".resid_post"))]


def _size(x: Tensor) -> Tensor:
    """Returns the root mean square, (..., n) -> (...)."""
    return x.double().square().mean(-1).sqrt()


def shuffled(ids: Sequence[int], seed: int) -> list[int]:
    """Returns the same symbols in another order, if they have one."""
    rest = list(ids)
    draws = random.Random(seed)
    for _ in range(20):
        draws.shuffle(rest)
        if rest != list(ids):
            break
    return rest


def with_parts(model: Seq2Seq, parts: str) -> Seq2Seq:
    """Returns the same weights with other parts."""
    with torch.device("meta"):
        made = Seq2Seq(model.config, parts_of(parts))
    made.load_state_dict(model.state_dict(), assign=True)
    return made.eval().requires_grad_(False)
