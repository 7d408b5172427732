"""Cross-attention at work: a target is written symbol by symbol, and what each looked at in the source is
kept; with the memory cut, the source shuffled or the masks swapped, too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from engine.data.pairs import source_ids
from engine.data.tasks.paired import PAIR_TASKS, Aligned
from engine.data.tokenizers.pairs import Symbols
from engine.errors import TaskError
from engine.lab.faults import parts_of
from engine.measure.families.cross_alignment import hits
from engine.parts.masks import causal_mask, padding_mask
from engine.probe import Recorder
from engine.seq2seq import Memory, Seq2Seq

Change = Literal["none", "cut", "shuffled", "swapped"]


@dataclass(frozen=True, eq=False)
class Crossing:
    """What a model wrote, and how. `patterns` (layer, head, query, key): query i wrote symbol i, the last one
    usually the end, and the row is what it looked at then: with the masks swapped, what is written later
    would change it. Keys are the source's symbols and its end, as the model got them.
    """

    source: tuple[str, ...]
    written: tuple[str, ...]
    text: str
    patterns: np.ndarray = field(repr=False)
    ended: bool = True  # by the model itself, not because no more was asked for

    def pattern(self, head: tuple[int, int] | None) -> np.ndarray:
        """(query, key) of one (layer, head), or the mean of all."""
        return self.patterns.mean((0, 1)) if head is None else self.patterns[head]


@torch.inference_mode()
def crossing(
    model: Seq2Seq,
    tokenizer: Symbols,
    text: str,
    change: Change = "none",
    seed: int = 0,
    longest: int | None = None,
) -> Crossing:
    """Reads `text` and writes the likeliest target, of at most `longest` symbols (the decoder's context if
    None).

    cut: the memory is all zeros, so the source says nothing. shuffled: the source's symbols change places, by
    `seed`; its end stays last. swapped: the trained weights run with `engine.lab.faults.masks.swapped_masks`.
    Raises CorpusError for an empty text, TokenizerError for unknown symbols, ShapeError for too many.
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
    return Crossing(source, written, tokenizer.decode(seen[1:]), patterns, seen[-1] == model.config.end)


@dataclass(frozen=True)
class Look:
    """The sharpest look of a text: the place in it, the place in the source, and the weight there."""

    query: int
    key: int
    weight: float


def sharpest(pattern: np.ndarray) -> Look | None:
    """The largest weight of a pattern (query, key), but for the source's last key, its end: much of a gaze
    rests there that looks at nothing. None for a source that has only an end.
    """
    own = pattern[:, :-1]
    if not own.size:
        return None
    query, key = np.unravel_index(int(own.argmax()), own.shape)
    return Look(int(query), int(key), float(own[query, key]))


def shuffled(ids: Sequence[int], seed: int) -> list[int]:
    """The same symbols in another order, if they have one."""
    rest = list(ids)
    draws = random.Random(seed)
    for _ in range(20):
        draws.shuffle(rest)
        if rest != list(ids):
            break
    return rest


def with_parts(model: Seq2Seq, parts: str) -> Seq2Seq:
    """The same weights, run by other parts."""
    with torch.device("meta"):
        made = Seq2Seq(model.config, parts_of(parts))
    made.load_state_dict(model.state_dict(), assign=True)
    return made.eval().requires_grad_(False)


def truth(task: str, text: str) -> Aligned | None:
    """The right target of a text, and where each of its symbols comes from; None where it is no source of
    this task.
    """
    try:
        return PAIR_TASKS[task].answer(text)
    except TaskError:
        return None


@dataclass(frozen=True)
class Looked:
    """How often the place that is looked at most is a true one: `right` of `counted` symbols, and how many of
    them a look at any place would hit (`chance`, a mean).
    """

    right: int
    counted: int
    chance: float


def looked(pattern: np.ndarray, right: Aligned, written: str) -> Looked | None:
    """pattern (query, key) beside where the symbols come from. None where the model wrote another target: its
    symbols come from nowhere.
    """
    if written != right.target:
        return None
    found = hits(pattern, right.sources)
    chance = sum(len(places) / pattern.shape[-1] for places in right.sources)
    return Looked(int(found.sum()), len(found), chance)


def at_the_end(pattern: np.ndarray, written: Sequence[str]) -> tuple[str, ...]:
    """The written symbols for which the place that is looked at most in `pattern` (query, key) is the last
    one, the source's end, where no symbol is. The last of `written`, the end that the model writes, is left
    out.
    """
    most = pattern[: len(written) - 1].argmax(1)
    return tuple(symbol for symbol, key in zip(written, most, strict=False) if key == pattern.shape[1] - 1)


def differing(first: Sequence[str], second: Sequence[str]) -> int:
    """At how many places two writings differ; what only the longer one has counts.

    >>> differing("2026", "2126x")
    2
    """
    same = sum(a == b for a, b in zip(first, second, strict=False))
    return max(len(first), len(second)) - same


@dataclass(frozen=True, eq=False)
class Masks:
    """What a decoder's two attentions let through: `own` (query, key), `across` (query, source), True where
    it may be looked. `shapes` are those of the masks as they are added to the scores.
    """

    own: np.ndarray
    across: np.ndarray
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    length: int  # symbols of the source, without padding

    @property
    def ahead(self) -> int:
        """Pairs of its own text at which it sees what is not written yet."""
        return int(np.triu(self.own, 1).sum())

    @property
    def hidden(self) -> int:
        """Pairs at which a symbol of the source is hidden from it."""
        return int((~self.across[:, : self.length]).sum())


def masks_of(parts: str, lengths: Sequence[int], row: int, target: int) -> Masks:
    """Of the source `row` in a batch of sources with these lengths, filled up to the longest, and a target of
    `target` symbols.
    """
    made, pad, like = parts_of(parts), 0, torch.zeros(())
    tokens = torch.tensor([[1] * length + [pad] * (max(lengths) - length) for length in lengths])
    both = made.decoder_masks(causal_mask(target, like), padding_mask(tokens, pad, like))
    scores = [torch.zeros(len(lengths), 1, target, keys) for keys in (target, max(lengths))]
    shown = [scores[i] if mask is None else scores[i] + mask for i, mask in enumerate(both)]
    own, across = (torch.isfinite(one[row, 0]).numpy() for one in shown)
    first, second = (() if mask is None else tuple(mask.shape) for mask in both)
    return Masks(own, across, (first, second), lengths[row])
