"""Text from a model, token by token."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.config import ModelConfig, SampleConfig
from engine.data.tokenizers import Tokenizer, written
from engine.errors import ConfigError
from engine.model import Transformer
from engine.sample.decoder import Decoder, Held
from engine.sample.stages import draw, likeliest, uniform, warp


@dataclass(frozen=True, eq=False)
class Drawn:
    """One token that a model wrote; `logits` (vocab,) float32 are those before any stage."""

    token: int
    position: int  # in the whole text, counted from 0
    begin: int  # first position that the model still saw
    computed: int  # positions whose keys, values and stream were computed for it
    logits: Tensor = field(repr=False)

    @property
    def probability(self) -> float:
        """The model's own, at temperature 1 and with no token removed."""
        return float(self.logits.softmax(-1)[self.token])


@torch.inference_mode()
def steps(
    model: Transformer,
    tokens: Sequence[int],
    length: int,
    sampling: SampleConfig | None = None,
    *,
    cached: bool = True,
    written: int = 0,
    products: object = None,
    stop: Collection[int] = (),
    held: Held | None = None,
) -> Iterator[Drawn]:
    """Yields a record for each of `length` tokens after `tokens` (at least one).

    The model sees at most `context` ids. When they are full, it goes on from the last half of them: positions
    then start anew, so the keys and values kept so far are of no more use. `cached` computes each position
    once instead of all of them for every id; the ids are the same, but for rounding. The generator is this
    call's own: the same seed gives the same ids. To go on with a text, `written` says how many of `tokens`
    came from an earlier call: the draws and the window go on from there. `products`
    are those of a Decoder, perhaps of another arithmetic. A token of `stop` is the last.
    `held`, with products of its own, is what was read before, by this or another call: what both texts begin
    with is not read again. Raises ConfigError for settings out of range.
    """
    sampling = (sampling or SampleConfig()).validate()
    if length < 0:
        raise ConfigError("length", length, "must be at least 0: the tokens to write")
    context, device = model.config.context, next(model.parameters()).device
    numbers = uniform(sampling.seed, written + length).numpy()[written:]
    seen, begin = list(tokens), window(len(tokens) - written, len(tokens) - 1, context)
    decoder: Decoder | None = None
    if cached and model.can_cache:
        held = held or Held(model, products)
        decoder = held.begin(seen[begin:])
    for u in numbers:
        if len(seen) - begin > context:
            begin = _moved(len(seen), context)
            if decoder is not None:
                decoder.reset()
        if decoder is not None:
            new = seen[begin + decoder.length :]
            logits = decoder.read(new)
            assert held is not None
            held.ids = seen[begin:]
        else:
            new = seen[begin:]
            logits = model(torch.tensor([new], device=device))[0, -1]
        logits = logits.float().cpu()
        seen.append(choose(logits, sampling, seen, u))
        yield Drawn(seen[-1], len(seen) - 1, begin, len(new), logits)
        if seen[-1] in stop:
            return


def window(prompt: int, position: int, context: int) -> int:
    """Returns the first position that a model still sees as it draws the one at `position`, after `prompt`
    tokens that it was given.

    >>> [window(3, position, 4) for position in range(2, 9)]
    [0, 0, 0, 3, 3, 3, 6]
    """
    begin = max(0, prompt - context)
    for length in range(prompt, position + 1):
        if length - begin > context:
            begin = _moved(length, context)
    return begin


def _moved(length: int, context: int) -> int:
    return length - max(1, context // 2)


def generate(
    model: Transformer,
    tokens: Sequence[int],
    length: int,
    sampling: SampleConfig | None = None,
    *,
    cached: bool = True,
    products: object = None,
) -> Iterator[int]:
    """Yields the ids alone; as `steps`."""
    return (
        record.token for record in steps(model, tokens, length, sampling, cached=cached, products=products)
    )


@torch.inference_mode()
def fill(model: Transformer, tokens: list[int], hidden: list[int]) -> list[int]:
    """Returns at most `context` tokens, those at `hidden` replaced by a masked model's likeliest guess."""
    device = next(model.parameters()).device
    window = torch.tensor([tokens], device=device)
    window[0, hidden] = model.config.vocab_size - 1  # the mask is the last id
    best = model(window)[0, :, :-1].argmax(dim=-1).tolist()
    gaps = set(hidden)
    return [best[i] if i in gaps else t for i, t in enumerate(tokens)]


def fills_gaps(config: ModelConfig, tokenizer: Tokenizer) -> bool:
    """True if a model was trained to fill gaps: it sees both directions and has a mask token more."""
    return not config.causal and config.vocab_size > tokenizer.vocab_size


def complete(
    model: Transformer, tokenizer: Tokenizer, prompt: str, length: int, temperature: float, seed: int
) -> str:
    """Returns the model's own text after a prompt (from token 0 if empty, without unknown characters); for
    one that fills in masked tokens, the prompt with every fourth token guessed from the others.
    """
    training = model.training
    model.parts.mode(model, False)
    unknown = set(tokenizer.unknown(prompt))
    tokens = tokenizer.encode("".join(c for c in prompt if c not in unknown)) or [0]
    if not fills_gaps(model.config, tokenizer):
        ids = list(generate(model, tokens, length, SampleConfig(temperature=temperature, seed=seed)))
    else:
        tokens = tokens[: model.config.context]
        ids = fill(model, tokens, list(range(0, len(tokens), 4)))
    model.parts.mode(model, training)
    return written(tokenizer, ids)


def choose(logits: Tensor, sampling: SampleConfig, seen: list[int], u: float) -> int:
    """Returns the token that u in [0, 1) draws from logits (vocab,) after `seen`."""
    if sampling.temperature == 0 and sampling.repetition_penalty == 1:
        return likeliest(logits)
    previous = torch.tensor(seen) if sampling.repetition_penalty != 1 else None
    probabilities = warp(logits, sampling, previous).softmax(-1).numpy()
    if math.isfinite(probabilities[0]):  # one logit that is no number makes all of them none
        return draw(probabilities, u)
    return likeliest(logits)  # a model that has diverged: its text is as good as any
