"""Cross-attention held against the true alignment of source and target, and the masks of a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.errors import ShapeError
from engine.parts.attention import causal_mask, padding_mask
from engine.parts.registry import parts_of
from engine.probe import Recorder
from studies.attention.heads import HeadValue, ranked_heads
from studies.pairs.dataset import Pair, rows_of
from studies.pairs.paired import Aligned
from studies.pairs.seq2seq import Seq2Seq
from studies.pairs.tokenizer import PairTokenizer
from studies.tasks.task import Sources


@dataclass(frozen=True, eq=False)
class AlignmentScore:
    """The share of a target's symbols whose most-attended source position is one that they come from: `heads`
    (layer, head), 0 to 1. `together` is that of the mean of all heads, `chance` that of a random position,
    `symbols` the number of symbols that come from somewhere.
    """

    heads: np.ndarray = field(repr=False)
    together: float
    chance: float
    symbols: int

    @property
    def best(self) -> HeadValue:
        """The head that is right most often."""
        return ranked_heads(self.heads)[0]


def hits(pattern: np.ndarray, alignment: Sources) -> np.ndarray:
    """Returns where the most-attended position is a true one: pattern (..., query, key), whose query i writes
    symbol i -> bool (..., symbol). Only symbols that come from somewhere count. Raises ShapeError for a
    pattern of fewer queries than symbols, and for an alignment beyond the last key.
    """
    queries, keys = pattern.shape[-2:]
    if queries < len(alignment) or any(place >= keys for places in alignment for place in places):
        raise ShapeError(
            f"a pattern of {queries} queries and {keys} keys is not of this alignment of {len(alignment)}"
            " symbols"
        )
    counted = [i for i, places in enumerate(alignment) if places]
    most = pattern[..., counted, :].argmax(-1)  # (..., symbol)
    true = np.zeros((len(counted), keys), dtype=bool)
    for row, i in enumerate(counted):
        true[row, list(alignment[i])] = True
    return true[np.arange(len(counted)), most]


def alignment_score(patterns: Sequence[np.ndarray], alignments: Sequence[Sources]) -> AlignmentScore | None:
    """Scores pairs by their patterns (layer, head, query, key), unpadded. None without a source."""
    each = [hits(pattern, of) for pattern, of in zip(patterns, alignments, strict=True)]
    mean = [hits(pattern.mean((0, 1)), of) for pattern, of in zip(patterns, alignments, strict=True)]
    result = np.concatenate(each, axis=-1)  # (layer, head, symbol)
    if not result.shape[-1]:
        return None
    even = [
        len(places) / pattern.shape[-1]
        for pattern, of in zip(patterns, alignments, strict=True)
        for places in of
        if places
    ]
    return AlignmentScore(
        result.mean(-1), float(np.concatenate(mean).mean()), float(np.mean(even)), result.shape[-1]
    )


@torch.inference_mode()
def cross_patterns(model: Seq2Seq, tokenizer: PairTokenizer, pairs: Sequence[Aligned]) -> list[np.ndarray]:
    """Returns the cross-attention of each pair at its right target: (layer, head, query, key)."""
    rows = rows_of([Pair(pair.source, pair.target) for pair in pairs], tokenizer)
    recorder = Recorder({"cross_pattern"})
    device = model.embedding.device
    model(rows.sources.to(device), rows.targets[:, :-1].to(device), recorder)
    layers = torch.stack([*recorder.tensors.values()], dim=1).float().cpu().numpy()
    # (batch, layer, head, query, key)
    sizes = [
        (len(tokenizer.encode(pair.target)) + 1, len(tokenizer.encode(pair.source)) + 1) for pair in pairs
    ]
    return [layers[i, :, :, :queries, :keys] for i, (queries, keys) in enumerate(sizes)]


def model_alignment(
    model: Seq2Seq, tokenizer: PairTokenizer, pairs: Sequence[Aligned]
) -> AlignmentScore | None:
    """Scores a model that reads these pairs."""
    return alignment_score(cross_patterns(model, tokenizer, pairs), [each.sources for each in pairs])


@dataclass(frozen=True)
class SharpestWeight:
    """The sharpest look of a text: target position, source position, weight."""

    query: int
    key: int
    weight: float


def sharpest(pattern: np.ndarray) -> SharpestWeight | None:
    """Returns the largest weight of a pattern (query, key), but for the source's end; or None."""
    own = pattern[:, :-1]
    if not own.size:
        return None
    query, key = np.unravel_index(int(own.argmax()), own.shape)
    return SharpestWeight(int(query), int(key), float(own[query, key]))


@dataclass(frozen=True)
class AlignmentHits:
    """The symbols whose most-attended position is a true one, `right` of `counted`, and by chance."""

    right: int
    counted: int
    chance: float


def looked(pattern: np.ndarray, right: Aligned, written: str) -> AlignmentHits | None:
    """Counts hits of a pattern (query, key). None where the model wrote another target."""
    if written != right.target:
        return None
    result = hits(pattern, right.sources)
    chance = sum(len(places) / pattern.shape[-1] for places in right.sources)
    return AlignmentHits(int(result.sum()), len(result), chance)


def at_the_end(pattern: np.ndarray, written: Sequence[str]) -> tuple[str, ...]:
    """Returns the symbols that look most at the source's end in `pattern` (query, key)."""
    most = pattern[: len(written) - 1].argmax(1)
    return tuple(symbol for symbol, key in zip(written, most, strict=False) if key == pattern.shape[1] - 1)


def differing(first: Sequence[str], second: Sequence[str]) -> int:
    """Counts the positions at which two texts differ; those that only the longer one has count.

    >>> differing("2026", "2126x")
    2
    """
    same = sum(a == b for a, b in zip(first, second, strict=False))
    return max(len(first), len(second)) - same


@dataclass(frozen=True, eq=False)
class DecoderMasks:
    """The visible positions of a decoder's attentions, (query, key); `shapes` of the added masks."""

    self_visible: np.ndarray
    cross_visible: np.ndarray
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    length: int  # symbols of the source, without padding

    @property
    def ahead(self) -> int:
        """Pairs of its own text at which it sees what is not written yet."""
        return int(np.triu(self.self_visible, 1).sum())

    @property
    def hidden(self) -> int:
        """Pairs at which a symbol of the source is hidden from it."""
        return int((~self.cross_visible[:, : self.length]).sum())


def masks_of(parts: str, lengths: Sequence[int], row: int, target: int) -> DecoderMasks:
    """Returns the masks of source `row` among sources of `lengths`, and of `target` symbols."""
    made, pad, like = parts_of(parts), 0, torch.zeros(())
    tokens = torch.tensor([[1] * length + [pad] * (max(lengths) - length) for length in lengths])
    both = made.decoder_masks(causal_mask(target, like), padding_mask(tokens, pad, like))
    scores = [torch.zeros(len(lengths), 1, target, keys) for keys in (target, max(lengths))]
    shown = [scores[i] if mask is None else scores[i] + mask for i, mask in enumerate(both)]
    own, across = (torch.isfinite(each[row, 0]).numpy() for each in shown)
    first, second = (() if mask is None else tuple(mask.shape) for mask in both)
    return DecoderMasks(own, across, (first, second), lengths[row])
