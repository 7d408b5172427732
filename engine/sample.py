"""Text from a model."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.model import Transformer
from engine.parts.attention import KVCache
from engine.tokenizers import Tokenizer


@torch.inference_mode()
def generate(model: Transformer, tokens: list[int], length: int, temperature: float = 0.8, seed: int = 0, cached: bool = True) -> Iterator[int]:
    """Yields `length` ids after `tokens`, drawn one at a time from softmax(logits / temperature); 0 takes the likeliest.

    The model sees at most `context` ids. When they are full, it goes on from the last half of them: positions then start anew,
    so the keys and values kept so far are of no more use. `cached` computes each position once instead of all of them for
    every id; the ids are the same, but for rounding. The generator is this call's own: the same seed gives the same ids.
    """
    config, device = model.config, next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    seen, begin, cache = list(tokens), max(0, len(tokens) - config.context), None
    for _ in range(length):
        if len(seen) - begin > config.context:
            begin, cache = len(seen) - max(1, config.context // 2), None
        if cached and config.causal:
            new = seen[-1:] if cache else seen[begin:]
            cache = cache or KVCache(config, config.context, model.embedding)
            logits = model(torch.tensor([new], device=device), cache=cache)
        else:
            logits = model(torch.tensor([seen[begin:]], device=device))
        seen.append(_draw(logits[0, -1].float().cpu(), temperature, generator))
        yield seen[-1]


@torch.inference_mode()
def fill(model: Transformer, tokens: list[int], hidden: list[int]) -> list[int]:
    """`tokens` with the positions in `hidden` replaced by a masked model's likeliest guess; at most `context` tokens."""
    device = next(model.parameters()).device
    window = torch.tensor([tokens], device=device)
    window[0, hidden] = model.config.vocab_size - 1  # the mask is the last id
    best = model(window)[0, :, :-1].argmax(dim=-1).tolist()
    gaps = set(hidden)
    return [best[i] if i in gaps else t for i, t in enumerate(tokens)]


def complete(model: Transformer, tokenizer: Tokenizer, prompt: str, length: int, temperature: float, seed: int) -> str:
    """The model's own text after a prompt; for an encoder, the prompt with every fourth token guessed from the others.

    Characters that the tokenizer lacks are left out of the prompt; an empty prompt starts from token 0.
    """
    training = model.training
    model.eval()
    unknown = set(tokenizer.unknown(prompt))
    tokens = tokenizer.encode("".join(c for c in prompt if c not in unknown)) or [0]
    if model.config.causal:
        ids = list(generate(model, tokens, length, temperature, seed))
    else:
        tokens = tokens[: model.config.context]
        ids = fill(model, tokens, list(range(0, len(tokens), 4)))
    model.train(training)
    return tokenizer.decode(ids)


def _draw(logits: Tensor, temperature: float, generator: torch.Generator) -> int:
    if temperature <= 0 or not torch.isfinite(logits).all():
        return int(torch.nan_to_num(logits).argmax())
    return int(torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1, generator=generator))
