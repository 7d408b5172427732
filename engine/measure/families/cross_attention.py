"""Cross-attention at work: what each written symbol looked at in the source, held against the true alignment;
also with the memory cut, the source shuffled or the masks swapped.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from engine.data.pairs import Pair, rows_of, source_ids
from engine.data.tasks.paired import PAIR_TASKS, Aligned
from engine.data.tasks.task import Sources
from engine.data.tokenizers.pairs import PairTokenizer, Symbols
from engine.errors import ShapeError, TaskError
from engine.lab.faults import parts_of
from engine.measure.attention.heads import HeadValue, ranked_heads
from engine.parts.masks import causal_mask, padding_mask
from engine.probe import Recorder
from engine.seq2seq import Memory, Seq2Seq


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
    def mean(self) -> float:
        """The mean over all heads."""
        return float(self.heads.mean())

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
    """Scores some pairs, each with its pattern (layer, head, query, key), without padding. None where no
    symbol comes from anywhere.
    """
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
    """Returns the decoder's cross-attention while it reads the right target: of each pair (layer, head,
    query, key), float32. The last query writes END, the last key is the source's END.
    """
    rows = rows_of([Pair(one.source, one.target) for one in pairs], tokenizer)
    recorder = Recorder({"cross_pattern"})
    device = model.embedding.device
    model(rows.sources.to(device), rows.targets[:, :-1].to(device), recorder)
    layers = torch.stack([*recorder.tensors.values()], dim=1).float().cpu().numpy()
    # (batch, layer, head, query, key)
    sizes = [(len(tokenizer.encode(one.target)) + 1, len(tokenizer.encode(one.source)) + 1) for one in pairs]
    return [layers[i, :, :, :queries, :keys] for i, (queries, keys) in enumerate(sizes)]


def model_alignment(
    model: Seq2Seq, tokenizer: PairTokenizer, pairs: Sequence[Aligned]
) -> AlignmentScore | None:
    """Scores a model that reads these pairs."""
    return alignment_score(cross_patterns(model, tokenizer, pairs), [one.sources for one in pairs])


Change = Literal["none", "cut", "shuffled", "swapped"]


@dataclass(frozen=True, eq=False)
class CrossReading:
    """A target that a model wrote. `patterns` (layer, head, query, key): query i wrote symbol i, the last one
    usually the end. Keys are the source's symbols and its end, as the model got them.
    """

    source: tuple[str, ...]
    written: tuple[str, ...]
    text: str
    patterns: np.ndarray = field(repr=False)
    ended: bool = True  # by the model itself, not because no more was asked for

    def pattern(self, head: tuple[int, int] | None) -> np.ndarray:
        """Returns the pattern (query, key) of one (layer, head), or the mean of all."""
        return self.patterns.mean((0, 1)) if head is None else self.patterns[head]


@torch.inference_mode()
def crossing(
    model: Seq2Seq,
    tokenizer: Symbols,
    text: str,
    change: Change = "none",
    seed: int = 0,
    longest: int | None = None,
) -> CrossReading:
    """Reads `text` and writes the likeliest target, of at most `longest` symbols (the decoder's context if
    None).

    cut: the memory is all zeros. shuffled: the source's symbols change positions, by `seed`; its end stays
    last. swapped: the trained weights run with `engine.lab.faults.masks.swapped_masks`. Raises CorpusError
    for an empty text, TokenizerError for unknown symbols, ShapeError for too many.
    """
    ids = source_ids(text, tokenizer, model.config.end)
    if change == "shuffled":
        ids = [*shuffled(ids[:-1], seed), ids[-1]]
    reader = with_parts(model, "swapped_masks") if change == "swapped" else model
    memory = reader.encode(torch.tensor([ids]))
    if change == "cut":
        memory = Memory(torch.zeros_like(memory.vectors), memory.padding)
    room = min(longest or model.config.decoder.context, model.config.decoder.context)
    cache = reader.cache(memory, room) if reader.can_cache else None
    seen, rows = [model.config.begin], []
    while len(seen) <= room:
        recorder = Recorder({"cross_pattern"})
        new = seen if cache is None else seen[-1:]
        logits = reader.decode(torch.tensor([new]), memory, recorder, cache)[0, -1]
        seen.append(int(logits.argmax()))
        rows.append(torch.stack([*recorder.tensors.values()])[:, 0, :, -1])  # (layer, head, key)
        if seen[-1] == model.config.end:
            break
    patterns = torch.stack(rows, dim=2).float().numpy()  # (layer, head, query, key)
    source, written = (tokenizer.shown(each) for each in (ids, seen[1:]))
    return CrossReading(source, written, tokenizer.decode(seen[1:]), patterns, seen[-1] == model.config.end)


@dataclass(frozen=True)
class Look:
    """The sharpest look of a text: target position, source position, weight."""

    query: int
    key: int
    weight: float


def sharpest(pattern: np.ndarray) -> Look | None:
    """Returns the largest weight of a pattern (query, key), but for the source's end, where heads rest. None
    for a source that has only an end.
    """
    own = pattern[:, :-1]
    if not own.size:
        return None
    query, key = np.unravel_index(int(own.argmax()), own.shape)
    return Look(int(query), int(key), float(own[query, key]))


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


def truth(task: str, text: str) -> Aligned | None:
    """Returns the right target of a text with its alignment; None where it is no source of this task."""
    try:
        return PAIR_TASKS[task].answer(text)
    except TaskError:
        return None


@dataclass(frozen=True)
class AlignmentHits:
    """The number of symbols whose most-attended position is a true one: `right` of `counted`; `chance` is the
    mean for a random position.
    """

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
    """Returns the written symbols whose most-attended position in `pattern` (query, key) is the source's end;
    without the end that the model writes.
    """
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
    """The visible positions of a decoder's two attentions: `self_visible` (query, key), `cross_visible`
    (query, source). `shapes` are those of the masks as added to the scores.
    """

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
    """Returns the masks of source `row` in a batch of sources with these lengths, padded to the longest, and
    a target of `target` symbols.
    """
    made, pad, like = parts_of(parts), 0, torch.zeros(())
    tokens = torch.tensor([[1] * length + [pad] * (max(lengths) - length) for length in lengths])
    both = made.decoder_masks(causal_mask(target, like), padding_mask(tokens, pad, like))
    scores = [torch.zeros(len(lengths), 1, target, keys) for keys in (target, max(lengths))]
    shown = [scores[i] if mask is None else scores[i] + mask for i, mask in enumerate(both)]
    own, across = (torch.isfinite(one[row, 0]).numpy() for one in shown)
    first, second = (() if mask is None else tuple(mask.shape) for mask in both)
    return DecoderMasks(own, across, (first, second), lengths[row])
