"""Speculative decoding (Leviathan et al. 2022, Chen et al. 2023): cheap drafts, which a large model
checks in one pass each.

A drafted token x with the probability q(x) is accepted with the probability min(1, p(x) / q(x)), p being
the large model's; the first that is refused is drawn anew from max(0, p - q), normalised. So a text is
distributed as if the large model had written every token, whatever the draft is. At temperature 0 it is the
same text.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

import numpy as np
import torch
from torch import Tensor, nn

from engine.config import SampleConfig
from engine.data.progress import Progress
from engine.data.progress import Steps as Measuring
from engine.errors import ConfigError
from engine.model import Transformer
from engine.sample import draw, likeliest, steps, warp
from engine.sample.decoder import Held
from engine.sample.generate import window
from studies.generation.row_products import COPY_LIMIT, FewRows

Source = Literal["lookup", "small", "layers"]
SOURCES: tuple[Source, ...] = get_args(Source)
FARTHEST = 8  # tokens of a draft, at most
PRIOR = 0.5  # the acceptance that is supposed before a draft was checked
FADES = 0.9  # the weight that what was seen has left after a further pass
FEW_LEFT = 3  # tokens that a draft model reads singly, which is faster than a pass over so few

Probabilities = np.ndarray | None  # (vocab,); None for a token that is drafted with certainty


# The rule ---------------------------------------------------------------------------------------


def acceptance(p: np.ndarray, q: Probabilities, token: int) -> float:
    """Returns the probability with which a drafted token is accepted, min(1, p / q)."""
    drafted = 1.0 if q is None else float(q[token])
    return min(1.0, float(p[token]) / drafted) if drafted else 1.0


def residual(p: np.ndarray, q: Probabilities, token: int) -> np.ndarray:
    """Returns what a token is drawn from once `token` is refused, max(0, p - q) normalised: (vocab,).

    >>> residual(np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.7, 0.2]), 1).tolist()
    [1.0, 0.0, 0.0]
    """
    left = p.astype(np.float64)
    if q is None:
        left[token] = 0.0
    else:
        left = np.maximum(left - q, 0.0)
    total = left.sum()
    return (
        left / total if total > 0 else p.astype(np.float64)
    )  # p equals q: nothing is refused but by rounding


def expected(rate: float, ahead: int) -> float:
    """Returns the tokens per pass that a draft of `ahead` tokens brings if each is accepted with the
    probability `rate`, (1 - a^(k+1)) / (1 - a) (Leviathan et al. 2022, equation 1).

    >>> expected(0.5, 2), expected(1.0, 3), expected(0.0, 5)
    (1.75, 4.0, 1.0)
    """
    return sum(rate**n for n in range(ahead + 1))


# Who drafts -------------------------------------------------------------------------------------


class Drafter(Protocol):
    """Guesses how a text goes on."""

    def draft(
        self, ids: Sequence[int], count: int, random: torch.Generator
    ) -> tuple[list[int], list[Probabilities]]:
        """Returns at most `count` tokens after the ids, and what each was drawn from."""


class Lookup:
    """Copies what followed the last time: the longest ending of the text, of at least `least` tokens, that
    occurred before (prompt lookup, Saxena 2023). It drafts nothing where no ending did.
    """

    def __init__(self, least: int = 2) -> None:
        self.least = least

    def draft(
        self, ids: Sequence[int], count: int, random: torch.Generator
    ) -> tuple[list[int], list[Probabilities]]:
        end = self.find(ids) if count > 0 else None
        if end is None:
            return [], []
        text = list(ids)
        for at in range(end, end + count):  # a draft may go on into itself
            text.append(text[at])
        return text[len(ids) :], [None] * count

    def find(self, ids: Sequence[int]) -> int | None:
        """Returns the position after the earlier occurrence; of equally long ones the latest.

        >>> Lookup(2).find([5, 1, 2, 9, 7, 1, 2]), Lookup(3).find([5, 1, 2, 9, 7, 1, 2])
        (3, None)
        """
        text = "".join(map(chr, ids))  # Python searches letters faster than numbers
        best, longest, end = None, self.least - 1, len(ids)
        while (start := text.rfind(text[-self.least :], 0, end - 1)) >= 0:
            end = start + self.least
            length = self.least
            while length < end and text[end - 1 - length] == text[-1 - length]:
                length += 1
            if length > longest:
                best, longest = end, length
        return best


class ModelDraft:
    """A small model's guesses: greedy at temperature 0, else drawn as the large model's are."""

    def __init__(self, model: Transformer, prompt: int, sampling: SampleConfig) -> None:
        self.held, self.prompt, self.sampling = Held(model), prompt, sampling

    def draft(
        self, ids: Sequence[int], count: int, random: torch.Generator
    ) -> tuple[list[int], list[Probabilities]]:
        context = self.held.decoder.model.config.context
        count = min(count, context // 2)
        if count < 1:
            return [], []
        text, begin = list(ids), window(self.prompt, len(ids) + count - 1, context)
        decoder = self.held.begin(text[begin:])
        drafted: list[int] = []
        chances: list[Probabilities] = []
        for _ in range(count):
            new = text[begin + decoder.length :]
            parts = [[token] for token in new] if len(new) <= FEW_LEFT else [new]
            for part in parts:
                logits = decoder.read(part).float().cpu()
            self.held.ids = text[begin:]
            if self.sampling.temperature == 0:
                token, chance = likeliest(logits), None
            else:
                chance = warp(logits, self.sampling).softmax(-1).numpy()
                token = draw(chance, _uniform(random))
            drafted.append(token)
            chances.append(chance)
            text.append(token)
        return drafted, chances


def first_blocks(model: Transformer, depth: int) -> Transformer:
    """Returns a model of the first `depth` blocks, the last norm and the output head, with the same weights
    (self-speculative decoding by leaving layers out, Zhang et al. 2023). Raises ConfigError.
    """
    if not 1 <= depth < len(model.blocks):
        raise ConfigError("depth", depth, f"must be from 1 to {len(model.blocks) - 1}: blocks of the draft")
    early = copy.copy(model)
    early._modules = dict(model._modules)
    early.blocks = nn.ModuleList(list(model.blocks)[:depth])
    early.config = replace(model.config, n_layers=depth)
    return early.train(model.training)


@dataclass(frozen=True)
class Plan:
    """How drafts are made: `ahead` tokens, at most; `depth` blocks for "layers"; for "lookup" an ending of at
    least `least` tokens. With `pays` a draft is as long as pays, by the acceptance so far and the measured
    time of a pass.
    """

    source: Source = "lookup"
    ahead: int = 6
    depth: int = 1
    least: int = 2
    pays: bool = False

    def validate(self) -> Plan:
        """Raises ConfigError for a value out of range."""
        if self.source not in SOURCES:
            raise ConfigError("source", self.source, f"must be one of {', '.join(SOURCES)}")
        if not 1 <= self.ahead <= FARTHEST:
            raise ConfigError("ahead", self.ahead, f"must be from 1 to {FARTHEST}: tokens of a draft")
        if self.least < 1:
            raise ConfigError("least", self.least, "must be at least 1: tokens that have to match")
        return self


def drafter_of(
    plan: Plan, model: Transformer, small: Transformer | None, prompt: int, sampling: SampleConfig
) -> Drafter:
    """Returns what drafts by a plan. Raises ConfigError, also for a small model of another vocabulary."""
    if plan.validate().source == "lookup":
        return Lookup(plan.least)
    chosen = first_blocks(model, plan.depth) if plan.source == "layers" else small
    if chosen is None or chosen.config.vocab_size != model.config.vocab_size:
        raise ConfigError("source", plan.source, "needs a second model with the same vocabulary")
    return ModelDraft(chosen, prompt, sampling)


# Writing ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pass:
    """One pass of the large model: the first `accepted` of the `drafted` tokens stay, and then `token`, which
    is the large model's. `chances` are the drafted tokens' probabilities of being accepted; one that was not
    reached has none.
    """

    drafted: tuple[int, ...]
    accepted: int
    token: int
    chances: tuple[float, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        """Returns the tokens that the text has gained."""
        return (*self.drafted[: self.accepted], self.token)

    @property
    def checked(self) -> int:
        """Number of drafted tokens that were checked: those accepted, and the first that was not."""
        return min(self.accepted + 1, len(self.drafted))


@dataclass(frozen=True)
class Times:
    """Seconds of a pass by the number of tokens that it reads (from 1 on), and of a drafted token."""

    passes: tuple[float, ...]
    drafted: float

    def best(self, rate: float, ahead: int) -> int:
        """Returns the draft's length, 0 to `ahead`, with the most tokens a second at an acceptance."""
        best, most, tokens = 0, 0.0, 0.0
        for k, seconds in enumerate(self.passes[: ahead + 1]):
            tokens += rate**k  # expected(rate, k)
            if tokens / (seconds + k * self.drafted) > most:
                best, most = k, tokens / (seconds + k * self.drafted)
        return best


@torch.inference_mode()
def passes(
    model: Transformer,
    ids: Sequence[int],
    length: int,
    sampling: SampleConfig,
    drafter: Drafter,
    ahead: int,
    *,
    held: Held | None = None,
    times: Times | None = None,
) -> Iterator[Pass]:
    """Yields a record for each pass, until `length` tokens after `ids` (at least one) are written. Windows
    move as in `engine.sample.steps`. With `times` a draft is as long as pays. Raises ConfigError for a
    repetition penalty, by which a token's probability would depend on the draft.
    """
    if sampling.validate().repetition_penalty != 1:
        raise ConfigError("repetition_penalty", sampling.repetition_penalty, "must be 1 with drafts")
    held = held or Held(model)
    random = torch.Generator().manual_seed(sampling.seed)
    text, context, large = list(ids), model.config.context, _is_large(model)
    begin = window(len(ids), len(ids), context)
    decoder = held.begin(text[begin:])
    accepted = checked = 0.0  # those of late count most
    while len(text) < len(ids) + length:
        if len(text) - begin > context:
            begin = window(len(ids), len(text), context)
            decoder.reset()
        room = min(ahead, len(ids) + length - len(text) - 1, context - (len(text) - begin))
        if times is not None:
            room = times.best((accepted + PRIOR) / (checked + 1), room)
        drafted, chances = drafter.draft(text, room, random) if room > 0 else ([], [])
        new = [*text[begin + decoder.length :], *drafted]
        with FewRows() if large and len(new) > 1 else nullcontext():
            logits = decoder.read_each(new)[-len(drafted) - 1 :].float().cpu()  # (drafted + 1, vocab)
        record = check(logits, drafted, chances, sampling, random)
        text += record.tokens
        decoder.cache.length = len(text) - 1 - begin  # keys and values of refused tokens are written over
        held.ids = text[begin:-1]
        accepted, checked = FADES * accepted + record.accepted, FADES * checked + record.checked
        yield record


def check(
    logits: Tensor,
    drafted: Sequence[int],
    chances: Sequence[Probabilities],
    sampling: SampleConfig,
    random: torch.Generator,
) -> Pass:
    """Accepts drafted tokens in turn, and draws the token after them; logits (drafted + 1, vocab)."""
    rates: list[float] = []
    for at, (token, q) in enumerate(zip(drafted, chances, strict=True)):
        if sampling.temperature == 0:
            right = likeliest(logits[at])
            rates.append(float(right == token))
            if right != token:
                return Pass(tuple(drafted), at, right, tuple(rates))
            continue
        p = warp(logits[at], sampling).softmax(-1).numpy()
        rates.append(acceptance(p, q, token))
        if _uniform(random) >= rates[-1]:
            token = draw(residual(p, q, token), _uniform(random))
            return Pass(tuple(drafted), at, token, tuple(rates))
    last = logits[len(drafted)]
    if sampling.temperature == 0:
        return Pass(tuple(drafted), len(drafted), likeliest(last), tuple(rates))
    token = draw(warp(last, sampling).softmax(-1).numpy(), _uniform(random))
    return Pass(tuple(drafted), len(drafted), token, tuple(rates))


def _uniform(random: torch.Generator) -> float:
    return float(torch.rand((), generator=random, dtype=torch.float64))


def _is_large(model: Transformer) -> bool:
    """True if a pass takes as long as reading the weights from memory."""
    return any(weight.numel() > COPY_LIMIT for weight in model.parameters())


# With drafts and without ------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A text written with drafts and without, in turns: seconds of each round, the prompt read before.
    `plain` are the tokens that the large model writes without drafts.
    """

    passes: tuple[Pass, ...]
    plain: tuple[int, ...]
    seconds: tuple[float, ...]
    seconds_plain: tuple[float, ...]
    times: Times | None = None  # where drafts were as long as pays

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for record in self.passes for token in record.tokens)

    @property
    def same(self) -> bool:
        """True if both wrote the same text, as they must at temperature 0."""
        return self.tokens == self.plain

    @property
    def drafted(self) -> int:
        return sum(len(record.drafted) for record in self.passes)

    @property
    def accepted(self) -> int:
        return sum(record.accepted for record in self.passes)

    @property
    def checked(self) -> int:
        return sum(record.checked for record in self.passes)

    @property
    def rate(self) -> float:
        """The acceptance rate a: the share of checked tokens that were accepted; NaN where none were."""
        return self.accepted / self.checked if self.checked else math.nan

    @property
    def foreseen(self) -> float:
        """The passes that the formula gives for the drafts' lengths at this acceptance rate."""
        rate = 0.0 if math.isnan(self.rate) else self.rate
        each = statistics.fmean(expected(rate, len(record.drafted)) for record in self.passes)
        return len(self.tokens) / each

    @property
    def per_pass(self) -> float:
        """Tokens per pass of the large model."""
        return len(self.tokens) / len(self.passes)

    @property
    def medians(self) -> tuple[float, float]:
        """Median seconds with drafts and without."""
        return statistics.median(self.seconds), statistics.median(self.seconds_plain)

    @property
    def ratio(self) -> float:
        """Median seconds without drafts over those with them."""
        return self.medians[1] / self.medians[0]

    @property
    def steady(self) -> bool:
        """True if four of five rounds agree with the medians on which way is faster."""
        rounds = [without > drafts for drafts, without in zip(self.seconds, self.seconds_plain, strict=True)]
        return rounds.count(self.ratio > 1) >= 0.8 * len(rounds)


def comparing(
    model: Transformer,
    small: Transformer | None,
    ids: Sequence[int],
    length: int,
    sampling: SampleConfig,
    plan: Plan,
    rounds: int = 5,
) -> Measuring[Comparison]:
    """Writes `length` tokens after `ids` with drafts and without, `rounds` times in turns after a first round
    that is not timed. Raises ConfigError.
    """
    drafter = drafter_of(plan, model, small, len(ids), sampling)
    ours, other = Held(model), Held(model)
    total = 2 * rounds + 2
    yield Progress(0, total, preparing=True)
    times = measured_times(model, drafter, ids, plan.ahead) if plan.pays else None
    records: list[Pass] = []
    tokens: list[int] = []
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(rounds + 1):
        for at, plain in enumerate((turn % 2 > 0, turn % 2 == 0)):
            start = time.perf_counter()
            if plain:
                tokens = [record.token for record in steps(model, ids, length, sampling, held=other)]
            else:
                writing = passes(model, ids, length, sampling, drafter, plan.ahead, held=ours, times=times)
                records = list(writing)
            if turn:
                seconds[plain].append(time.perf_counter() - start)
            yield Progress(2 * turn + at + 1, total)
    return Comparison(tuple(records), tuple(tokens), tuple(seconds[False]), tuple(seconds[True]), times)


@torch.inference_mode()
def measured_times(
    model: Transformer, drafter: Drafter, ids: Sequence[int], ahead: int, repeats: int = 3
) -> Times:
    """Measures passes of 1 to `ahead` + 1 tokens after the end of a text, and a draft: medians."""
    decoder, random = Held(model).decoder, torch.Generator().manual_seed(0)
    text = list(ids)[-max(1, model.config.context - ahead - 1) :]
    decoder.read(text)
    large, before = _is_large(model), decoder.length
    seconds: list[list[float]] = [[] for _ in range(ahead + 2)]
    for _ in range(repeats + 1):
        for count in range(1, ahead + 2):
            decoder.cache.length = before
            start = time.perf_counter()
            with FewRows() if large and count > 1 else nullcontext():
                decoder.read_each([text[-1]] * count)
            seconds[count - 1].append(time.perf_counter() - start)
        start = time.perf_counter()
        drafted, _ = drafter.draft(text, ahead, random)
        seconds[-1].append((time.perf_counter() - start) / max(1, len(drafted)))
    *each, drafting = (statistics.median(times[1:]) for times in seconds)  # the first of a kind is slow
    return Times(tuple(each), drafting)


@dataclass(frozen=True)
class Length:
    """The gain of drafts of up to `ahead` tokens: acceptance rate a, measured tokens per pass, and those that
    the formula gives for a.
    """

    ahead: int
    rate: float
    per_pass: float
    formula: float


def by_length(
    model: Transformer,
    small: Transformer | None,
    ids: Sequence[int],
    length: int,
    sampling: SampleConfig,
    plan: Plan,
    lengths: Sequence[int] = range(1, FARTHEST + 1),
) -> Measuring[tuple[Length, ...]]:
    """Writes `length` tokens with drafts of each of the `lengths`. Raises ConfigError."""
    held, points = Held(model), []
    drafter = drafter_of(plan, model, small, len(ids), sampling)
    for done, ahead in enumerate(lengths):
        yield Progress(done, len(lengths))
        written = Comparison(
            tuple(passes(model, ids, length, sampling, drafter, ahead, held=held)), (), (), ()
        )
        points.append(Length(ahead, written.rate, written.per_pass, length / written.foreseen))
    return tuple(points)
