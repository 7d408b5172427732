"""Steering: the difference of two prompts, added to the stream while a model writes something else.

Turner et al. 2023, "Activation addition: steering language models without optimization". Two forward passes
give the vectors, and an addition at one block uses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import SampleConfig
from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError, ShapeError, TokenizerError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.probe import Patcher, Recorder
from engine.sample.stages import draw, likeliest, uniform, warp
from engine.training.numerics import perplexity

Where = Literal["front", "every"]
STARTS = ("<|endoftext|>", "<s>", "<bos>", "<|begin_of_text|>")  # what texts begin with in training
LIFTED = 6  # tokens that are told
Mood = Literal["came", "went", "stayed"]
CAME = 2.0  # times as probable


def beginning(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Returns the ids that every text here begins with: the token before each text in the model's training,
    or a line break; nothing where the vocabulary has neither. Much of attention rests on the first token, so
    it is the same everywhere, and nothing is added to it.
    """
    special = getattr(tokenizer, "special", {})
    for name in STARTS:
        if name in special:
            return (special[name],)
    return () if tokenizer.unknown("\n") else tuple(tokenizer.encode("\n"))


def read(tokenizer: Tokenizer, text: str, what: str = "text") -> tuple[int, ...]:
    """Returns `beginning` and the text, as ids. Raises TokenizerError naming the text as `what`."""
    if unknown := tokenizer.unknown(text):
        raise TokenizerError(f"this model does not know {' '.join(unknown[:8])}, used in the {what}")
    if not text:
        raise TokenizerError(f"the {what} is empty: one letter is enough")
    return (*beginning(tokenizer), *tokenizer.encode(text))


def aligned(tokenizer: Tokenizer, plus: str, minus: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns both prompts as ids, the shorter padded with blanks on its right. Raises TokenizerError."""
    first, other = read(tokenizer, plus, "first prompt"), read(tokenizer, minus, "second prompt")
    length = max(len(first), len(other))
    if len(first) == len(other):
        return first, other
    if tokenizer.unknown(" "):
        raise TokenizerError(
            "the two prompts have different lengths, and this model has no blank to fill the shorter one with"
        )
    blank = tokenizer.encode(" ")[0]
    return first + (blank,) * (length - len(first)), other + (blank,) * (length - len(other))


@dataclass(frozen=True, eq=False)
class Direction:
    """The addition at a block for a coefficient of 1. `vectors` are (position, d_model): for the first
    positions of a text, or, for `every`, a single vector.

    The first `spared` positions get nothing: those of `beginning`. `length` is the mean Euclidean length of
    the vectors, `stream` that of the stream they are added to.
    """

    layer: int
    where: Where
    vectors: Tensor = field(repr=False)
    spared: int
    length: float
    stream: float

    @property
    def reach(self) -> int:
        """The number of positions at the front that are changed, spared ones included, or without end."""
        return self.spared + (len(self.vectors) if self.where == "front" else 0)

    def strength(self, coefficient: float) -> float:
        """Returns the length of the addition as a multiple of the stream's."""
        return abs(coefficient) * self.length / self.stream if self.stream else 0.0

    def added(self, coefficient: float, start: int, stop: int) -> Tensor:
        """Returns the addition to positions start .. stop - 1 of a text: (position, d_model)."""
        result = self.vectors.new_zeros(stop - start, self.vectors.shape[1])
        if self.where == "every":
            result[max(0, self.spared - start) :] = self.vectors[0]
            return coefficient * result
        first, last = max(start, self.spared), min(stop, self.reach)
        if first < last:
            result[first - start : last - start] = self.vectors[first - self.spared : last - self.spared]
        return coefficient * result

    def edits(self, coefficient: float) -> dict[str, Callable[[Tensor], Tensor]]:
        """Returns the edit of a forward pass of whole texts (see `engine.probe.Patcher`)."""
        return {f"blocks.{self.layer}.resid_pre": lambda x: x + self.added(coefficient, 0, x.shape[1]).to(x)}


@torch.inference_mode()
def direction(
    model: Transformer, tokenizer: Tokenizer, plus: str, minus: str, layer: int, where: Where
) -> Direction:
    """Returns resid_pre of block `layer` for the prompt `plus` less that for `minus`.

    `front`: position by position (`aligned`), to be added to the first positions, as in the paper. `every`:
    the difference of the means over tokens, to be added everywhere. Raises TokenizerError for prompts that
    cannot be read, ShapeError where they do not fit, ConfigError for a block that is not there.
    """
    if not 0 <= layer < model.config.n_layers:
        raise ConfigError("layer", layer, f"must be between 0 and {model.config.n_layers - 1}")
    spared = len(beginning(tokenizer))
    if where == "front":
        streams = [_stream(model, ids, layer)[spared:] for ids in aligned(tokenizer, plus, minus)]
    else:
        named = ((plus, "first prompt"), (minus, "second prompt"))
        read_in = [_stream(model, read(tokenizer, text, what), layer)[spared:] for text, what in named]
        streams = [x.mean(0, keepdim=True) for x in read_in]
    vectors = streams[0] - streams[1]
    usual = torch.cat(streams if where == "front" else read_in)
    return Direction(
        layer, where, vectors, spared, float(vectors.norm(dim=1).mean()), float(usual.norm(dim=1).mean())
    )


def _stream(model: Transformer, ids: Sequence[int], layer: int) -> Tensor:
    """Returns resid_pre of a block, (query, d_model) float32."""
    if len(ids) > model.config.context:
        raise ShapeError(
            f"a prompt has {len(ids)} tokens, and this model reads {model.config.context}: shorten it"
        )
    name = f"blocks.{layer}.resid_pre"
    recorder = Recorder({name})
    model(torch.tensor([list(ids)], device=model.embedding.device), recorder)
    return recorder[name][0].float()


@dataclass(frozen=True)
class Lift:
    """The probability of a token as the next one, without and with the addition."""

    token: int
    before: float
    after: float


@dataclass(frozen=True)
class SteeredContinuation:
    """A text that went on twice, with the same random numbers: ids without the prompt. `lifted` are the next
    tokens that gained the most probability, `same` how many tokens both begin with alike. `mood` is the mean
    probability of the wanted words per step, without the addition and with it.
    """

    plain: tuple[int, ...]
    steered: tuple[int, ...]
    lifted: tuple[Lift, ...]
    mood: tuple[float, float] = (0.0, 0.0)

    @property
    def times(self) -> float:
        """The factor by which the wanted words became more probable; inf where they had nothing before."""
        plain, steered = self.mood
        return steered / plain if plain else math.inf if steered else 1.0

    @property
    def draws_needed(self) -> tuple[float, float]:
        """The mean number of draws until a wanted word comes up, without the addition and with it."""
        plain, steered = (1 / share if share else math.inf for share in self.mood)
        return plain, steered

    @property
    def came(self) -> Mood:
        """The verdict on the wanted words: at least CAME times as probable, or as much less, or neither."""
        return "came" if self.times >= CAME else "went" if self.times <= 1 / CAME else "stayed"

    @property
    def same(self) -> int:
        pairs = zip(self.plain, self.steered, strict=True)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), len(self.plain))


def room(model: Transformer, prompt: Sequence[int], wanted: int) -> int:
    """Returns how many of `wanted` tokens fit into the context: beyond it the addition would be lost."""
    return max(0, min(wanted, model.config.context - len(prompt)))


def mood_words(tokenizer: Tokenizer, plus: str, minus: str) -> tuple[int, ...]:
    """Returns the first prompt's tokens that the second lacks, as a beginning and after a blank."""

    def tokens(text: str) -> set[int]:
        ways = [way for way in (text, f" {text}") if not tokenizer.unknown(way)]
        return {i for way in ways for i in tokenizer.encode(way)}

    only = tokens(plus) - tokens(minus)
    return tuple(sorted(i for i in only if tokenizer.decode([i]).strip()))


@torch.inference_mode()
def continued(
    model: Transformer,
    added: Direction,
    coefficient: float,
    prompt: Sequence[int],
    length: int,
    sampling: SampleConfig,
    wanted: Sequence[int] = (),
) -> Steps[SteeredContinuation]:
    """Writes `length` tokens after `prompt`, without the addition and with it, by one token of both.

    Both texts are rows of one batch, so that the weights are read once. `wanted` are the tokens whose
    probability is summed up for `mood`. Raises ShapeError for a model that is not causal, and where prompt
    and continuation do not fit into the context.
    """
    if not prompt or length < 1 or room(model, prompt, length) < length:
        raise ShapeError(
            f"the text has {len(prompt)} tokens, and the model reads {model.config.context}: shorten the"
            " text, so that it can go on"
        )
    cache = KVCache(model.config, len(prompt) + length, model.embedding, batch=2)
    texts = [list(prompt), list(prompt)]
    lifted: tuple[Lift, ...] = ()
    shares = torch.zeros(2, dtype=torch.float64)
    for done, u in enumerate(uniform(sampling.seed, length).numpy()):
        logits = _both(model, added, coefficient, cache, texts)
        lifted = lifted or _lifted(logits)
        shares += logits.double().softmax(-1)[:, list(wanted)].sum(-1)
        for text, row in zip(texts, logits, strict=True):
            text.append(_drawn(row, sampling, text, float(u)))
        yield Progress(done + 1, length)
    plain, steered = (tuple(text[len(prompt) :]) for text in texts)
    before, after = (shares / length).tolist()
    return SteeredContinuation(plain, steered, lifted, (before, after))


def _both(
    model: Transformer, added: Direction, coefficient: float, cache: KVCache, texts: list[list[int]]
) -> Tensor:
    """Returns the logits after both texts, (2, vocab); the second of them is steered."""
    start = cache.length
    tokens = torch.tensor([text[start:] for text in texts], device=model.embedding.device)

    def edit(x: Tensor) -> Tensor:  # (2, query, d_model)
        more = added.added(coefficient, start, start + x.shape[1]).to(x)
        return torch.stack([x[0], x[1] + more])

    probe = Patcher({f"blocks.{added.layer}.resid_pre": edit})
    return model(tokens, probe, cache=cache)[:, -1].float().cpu()


def _lifted(logits: Tensor) -> tuple[Lift, ...]:
    before, after = logits.softmax(-1)
    most = (after - before).topk(min(LIFTED, len(after))).indices.tolist()
    return tuple(Lift(i, float(before[i]), float(after[i])) for i in most if after[i] > before[i])


def _drawn(logits: Tensor, sampling: SampleConfig, text: list[int], u: float) -> int:
    previous = torch.tensor(text) if sampling.repetition_penalty != 1 else None
    warped = warp(logits, sampling, previous)
    if sampling.temperature == 0 or not bool(torch.isfinite(warped.max())):
        return likeliest(logits)
    return draw(warped.softmax(-1).numpy(), u)


@dataclass(frozen=True, eq=False)
class Cost:
    """The cost of steering: `loss` (coefficient,), nats per token of a text, by `coefficients`."""

    coefficients: tuple[float, ...]
    loss: np.ndarray
    tokens: int

    @property
    def perplexity(self) -> np.ndarray:
        """The perplexity at each coefficient, (coefficient,)."""
        return np.array([perplexity(float(nats)) for nats in self.loss])

    def at(self, coefficient: float) -> float:
        """Returns the perplexity at one of the coefficients."""
        return float(self.perplexity[self.coefficients.index(coefficient)])

    def ratio(self, coefficient: float) -> float:
        """Returns the perplexity as a multiple of that without steering, which must have been measured."""
        return self.at(coefficient) / self.at(0.0)


def rows_of(ids: Sequence[int], begin: Sequence[int], width: int, count: int) -> Tensor:
    """Cuts a text into at most `count` pieces, `begin` before each: (row, position) of `width` positions.
    Raises ShapeError where the text does not fill one.

    >>> rows_of([1, 2, 3, 4, 5], [0], 3, 9).tolist()
    [[0, 1, 2], [0, 3, 4]]
    """
    step = width - len(begin)
    if step < 1 or len(ids) < step:
        raise ShapeError(f"a text of {len(ids)} tokens does not fill a row of {width}")
    pieces = [list(ids[i : i + step]) for i in range(0, len(ids) - step + 1, step)][:count]
    return torch.tensor([[*begin, *piece] for piece in pieces])


@torch.inference_mode()
def cost(model: Transformer, added: Direction, coefficients: Sequence[float], rows: Tensor) -> Steps[Cost]:
    """Measures the loss on a neutral text, `rows` (row, position), at each coefficient: a piece of work.
    Only tokens after the steered ones (`reach`) count. Raises ShapeError where none is left.
    """
    first = max(1, added.reach)
    if rows.shape[1] <= first + 1:
        raise ShapeError(
            f"the prompts have {added.reach} tokens: too many to measure on rows of {rows.shape[1]}"
        )
    rows = rows.to(model.embedding.device)
    losses = []
    for done, coefficient in enumerate(coefficients):
        logits = model(rows, Patcher(added.edits(coefficient)))[:, first:-1].float()
        losses.append(float(F.cross_entropy(logits.flatten(0, 1), rows[:, first + 1 :].flatten())))
        yield Progress(done + 1, len(coefficients))
    return Cost(tuple(coefficients), np.array(losses), rows[:, first + 1 :].numel())


def cost_on(
    model: Transformer,
    added: Direction,
    coefficients: Sequence[float],
    ids: Sequence[int],
    begin: Sequence[int],
    width: int,
    count: int,
) -> Steps[Cost]:
    """Measures `cost` on a text that is cut as `rows_of` does. Raises ShapeError as both do."""
    return (yield from cost(model, added, coefficients, rows_of(ids, begin, width, count)))
