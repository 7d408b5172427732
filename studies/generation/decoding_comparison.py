"""Beam search beside greedy decoding and a sample after the same prompt."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.config import SampleConfig
from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from engine.sample.decoder import Held
from engine.sample.generate import steps
from studies.generation.beam import Beam, fitting, sampled

Verdict = Literal["same", "shorter", "likelier", "better score"]


@dataclass(frozen=True)
class Continuation:
    """A text after the prompt: its ids, and the sum of their natural log-probabilities."""

    tokens: tuple[int, ...]
    total: float

    @property
    def per_token(self) -> float:
        return self.total / len(self.tokens)

    @property
    def probability(self) -> float:
        return math.exp(self.total)

    def times(self, other: Continuation) -> float:
        """Returns how many times as probable as another; never endless."""
        return math.exp(min(self.total - other.total, 700.0))


@dataclass(frozen=True)
class Rivals:
    """The beam's winner, the greedy text and a sample at temperature 1; each ends at its first stop token."""

    winner: Continuation
    greedy: Continuation
    sample: Continuation

    @property
    def verdict(self) -> Verdict:
        """The winner beside the greedy text: the same, or what it has more of."""
        if self.winner.tokens == self.greedy.tokens:
            return "same"
        if self.winner.total <= self.greedy.total:
            return "better score"
        return "shorter" if len(self.winner.tokens) < len(self.greedy.tokens) else "likelier"


def rivals(
    model: Transformer, ids: Sequence[int], beam: Beam, depth: int, ends: Collection[int], seed: int
) -> Rivals:
    """Decodes greedily and by sampling from the same prompt as `beam`, with its depth and `ends`."""
    prompt = fitting(ids, depth, model.config.context)
    best, free = SampleConfig(temperature=0.0), SampleConfig(temperature=1.0, seed=seed)
    held = Held(model) if model.can_cache else None  # both go on from the same text
    return Rivals(
        Continuation(beam.path(beam.winner), beam.nodes[beam.winner].total),
        Continuation(*sampled(model, prompt, depth, best, ends, held)),
        Continuation(*sampled(model, prompt, depth, free, ends, held)),
    )


def ending_with(tokenizer: Tokenizer, sign: str, below: int) -> frozenset[int]:
    """Returns the ids, less than `below`, whose text ends with a sign; none for no sign."""
    size = min(tokenizer.vocab_size, below)
    return frozenset(i for i in range(size) if tokenizer.decode([i]).endswith(sign)) if sign else frozenset()


def dropped(prompt: int, depth: int, context: int) -> int:
    """Returns the tokens of a prompt that `fitting` leaves out.

    >>> dropped(5, 3, 4), dropped(2, 3, 4)
    (3, 0)
    """
    return max(0, prompt + depth - 1 - context)


def write_each(
    model: Transformer,
    tokenizer: Tokenizer,
    tokens: Sequence[int],
    characters: int,
    samplings: Sequence[SampleConfig],
    stop: Collection[int] = (),
) -> Steps[tuple[str, ...]]:
    """Continues `tokens` by up to so many characters, once with each of `samplings`, as a slow measurement:
    a step for each token. A token of `stop` ends a text, and is left out.
    """
    texts: list[str] = []
    held = Held(model) if model.can_cache else None  # all go on from the same text
    for sampling in samplings:
        ids: list[int] = []
        text = ""
        for record in steps(model, tokens, characters, sampling, stop=stop, held=held):
            if record.token in stop:
                break
            ids.append(record.token)
            text = tokenizer.decode(ids)[:characters]
            yield Progress(len(texts) * characters + len(text), len(samplings) * characters)
            if len(text) == characters:
                break
        texts.append(text)
    return tuple(texts)
