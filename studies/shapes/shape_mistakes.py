"""Shape mistakes, run for real: the errors of the engine and PyTorch, and the harm without one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import build
from engine.parts.attention import causal_mask

MOST_HEADS = 64  # that are suggested


@dataclass(frozen=True)
class Attempt:
    """A mistake that was run. `shapes` went in; then either `made` came out, or `errors` (source, message)
    were raised. `harm` is the largest difference from the right result, where the mistake went unnoticed.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    made: tuple[int, ...] | None
    errors: tuple[tuple[str, str], ...]
    harm: float | None = None  # largest difference from the right result, where the mistake went unnoticed


def split_heads(d_model: int, n_heads: int) -> Attempt:
    """Splits d_model into heads: by the configuration's rule, and by torch."""
    errors = []
    x = torch.zeros(1, 6, d_model)
    made: tuple[int, ...] | None = None
    try:
        ModelConfig(d_model=d_model, n_heads=n_heads).validate()
    except ConfigError as error:
        errors.append(("ConfigError", str(error)))
    try:
        made = tuple(x.unflatten(-1, (n_heads, d_model // n_heads)).shape)
    except RuntimeError as error:
        errors.append(("RuntimeError", _first_line(error)))
    return Attempt((("x", tuple(x.shape)),), made, tuple(errors))


def transposed_unembedding(d_model: int, vocab_size: int) -> Attempt:
    """Multiplies by W_U^T instead of W_U; unnoticed at vocab_size = d_model, with logits off by `harm`."""
    model = build(ModelConfig(vocab_size=vocab_size, context=6, d_model=d_model, n_layers=1, n_heads=1))
    x = torch.empty(1, 6, d_model).normal_(generator=torch.Generator().manual_seed(0))
    wrong = model.output_matrix.detach().T
    shapes = (("x", tuple(x.shape)), ("W", tuple(wrong.shape)))
    try:
        logits = F.linear(x, wrong)
    except RuntimeError as error:
        return Attempt(shapes, None, (("RuntimeError", _first_line(error)),))
    return Attempt(shapes, tuple(logits.shape), (), float((logits - F.linear(x, wrong.T)).abs().max()))


def wrong_mask(length: int, mask_size: int) -> Attempt:
    """Adds a mask made for another length to scores; if it fits, `harm` is the future's weight."""
    scores = torch.zeros(1, 4, length, length)  # four heads
    mask = causal_mask(mask_size, scores)
    shapes = (("scores", tuple(scores.shape)), ("mask", tuple(mask.shape)))
    try:
        pattern = (scores + mask).softmax(dim=-1)
    except RuntimeError as error:
        return Attempt(shapes, None, (("RuntimeError", _first_line(error)),))
    return Attempt(shapes, tuple(pattern.shape), (), float(pattern.triu(1).sum(dim=-1).max()))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


@dataclass(frozen=True)
class Division:
    """The division of d_model among heads: `each`, `rest`, and `near` numbers that leave none."""

    each: int
    rest: int
    near: tuple[int, ...]


def division(d_model: int, n_heads: int) -> Division:
    """Divides d_model among heads.

    >>> division(128, 3)
    Division(each=42, rest=2, near=(1, 2, 4))
    """
    divisors = [n for n in range(1, min(d_model, MOST_HEADS) + 1) if d_model % n == 0]
    near = sorted(divisors, key=lambda n: abs(n - n_heads))[:3]
    return Division(*divmod(d_model, n_heads), tuple(sorted(near)))
