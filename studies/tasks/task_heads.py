"""The heads that do a synthetic task by looking at the answer's sources, and answers without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from engine.probe import Patcher, identity
from engine.recording import record
from studies.attention.ablation import Switches, edits_for
from studies.attention.heads import HeadValue, ranked_heads
from studies.tasks.problems import answered, share_right
from studies.tasks.task import Task

HALF = 0.5  # of its weight: from here on a head is said to look there


@dataclass(frozen=True, eq=False)
class SourceAttention:
    """The mean weight of heads on the sources of an answer's letters, (layer, head), and if `even`."""

    scores: np.ndarray = field(repr=False)
    even: float
    problems: int

    @property
    def strong(self) -> tuple[HeadValue, ...]:
        """The heads with at least half of their weight there, the best first."""
        return tuple(each for each in self.best if each.value >= HALF)

    @property
    def best(self) -> tuple[HeadValue, ...]:
        """All heads, the best first."""
        return tuple(ranked_heads(self.scores))


def targets(task: Task, line: str) -> list[tuple[int, tuple[int, ...]]]:
    """Returns (query, keys) of each letter of an answer that comes from somewhere, in a window that begins
    with the line break before the problem. A letter is chosen at the position before it: beside others, a
    source that stands there, as the last partial result does, needs no head and is left out.
    """
    assert task.sources is not None
    result = []
    for place, sources in enumerate(task.sources(line), task.given):
        keys = tuple(1 + source for source in sources)
        if keys:
            result.append((place, tuple(key for key in keys if key != place) or keys))
    return result


def looking(model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor) -> SourceAttention | None:
    """Measures the problems of `lines` (batch, period + 1). None without patterns or sources."""
    if task.sources is None or not model.parts.mixer(model.config).present:
        return None
    weights = [(weight, even) for _, weight, even in _source_weights(model, tokenizer, task, lines)]
    if not weights:
        return None
    scores, even = (np.mean(column, axis=0) for column in zip(*weights, strict=True))
    return SourceAttention(scores, float(even), len(lines))


def by_last_result(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor
) -> dict[str, np.ndarray]:
    """Measures heads' weights on the sources as `looking`, by the token at the query."""
    weights: dict[str, list[np.ndarray]] = {}
    for token, weight, _ in _source_weights(model, tokenizer, task, lines):
        weights.setdefault(tokenizer.decode([token]), []).append(weight)
    return {token: np.mean(each, axis=0) for token, each in sorted(weights.items())}


def _source_weights(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor
) -> Iterator[tuple[int, np.ndarray, float]]:
    """Yields each query of `targets`: its token, the weight on its keys (layer, head), and the even one."""
    for row in lines[:, :-1].tolist():  # the line break at the end is not read
        patterns = record(model, row, only={"pattern"}).stacked("pattern")  # (layer, head, query, key)
        for query, keys in targets(task, tokenizer.decode(row[1:])):
            yield row[query], patterns[:, :, query, list(keys)].sum(-1), len(keys) / (query + 1)


def solved_without(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor, heads: Sequence[tuple[int, int]] = ()
) -> float:
    """Returns the share of problems solved while these heads, (layer, head), write nothing."""
    off = Patcher(edits_for(model, Switches(heads_off=tuple(heads)))) if heads else identity
    return share_right(answered(model, tokenizer, task, lines, off))


@dataclass(frozen=True, eq=False)
class ProblemReading:
    """One problem read by a model: `letters`, patterns (layer, head, query, key), and targets."""

    letters: tuple[str, ...]
    patterns: np.ndarray = field(repr=False)
    targets: tuple[tuple[int, tuple[int, ...]], ...]


def seen(model: Transformer, tokenizer: Tokenizer, task: Task, line: str) -> ProblemReading:
    """Reads a problem with its answer. Raises TokenizerError for letters that the model does not know."""
    text = "\n" + line
    ids = tokenizer.encode(text)
    patterns = record(model, ids, only={"pattern"}).stacked("pattern")
    return ProblemReading(tuple(text), patterns, tuple(targets(task, line)))
