"""Stretched RoPE: a trained model's frequencies made slower, so that a longer text turns its slow pairs no
further than its training did.

Position interpolation (Chen et al. 2023), the larger base ("NTK-aware", bloc97 2023) and YaRN (Peng et al.
2023), here without the training that follows in both papers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps
from engine.errors import ShapeError
from engine.model import Transformer, build
from engine.parts.positions import PositionHooks, Rope
from studies.positions.rope import frequencies

Stretch = Literal["interpolate", "ntk", "yarn"]
STRETCHES: tuple[Stretch, ...] = get_args(Stretch)
FEWEST_TURNS, MOST_TURNS = 1.0, 32.0  # within the context: YaRN's alpha and beta, as published for LLaMA


@dataclass(frozen=True)
class Stretching:
    """A stretch for texts `times` as long as the context; `most_turns` is YaRN's beta. None is no stretch."""

    kind: Stretch | None = None
    times: int = 1
    most_turns: float = MOST_TURNS


def larger_base(config: ResolvedConfig, times: float) -> float:
    """Returns the NTK-aware base, times^(d_rotary / (d_rotary - 2)) of the trained one: the slowest pair
    turns `times` times slower, the fastest as before.
    """
    d = config.d_rotary
    # A head of one pair has only the fastest frequency, 1, whatever the base.
    return config.rope_theta * (times ** (d / (d - 2)) if d > 2 else 1.0)


def stretched_frequencies(config: ResolvedConfig, by: Stretching) -> Tensor:
    """Returns the radians a position of each rotated pair, (pair,) float64, fastest first.

    `interpolate` divides all by `times`, `ntk` takes the `larger_base`. `yarn` divides those that turn at
    most FEWEST_TURNS times within the context, leaves those that turn `most_turns` times, and goes from one
    to the other in a straight line ("NTK-by-parts").
    """
    base = larger_base(config, by.times) if by.kind == "ntk" else config.rope_theta
    trained = torch.from_numpy(frequencies(config.d_rotary, base))
    if by.kind == "interpolate":
        return trained / by.times
    if by.kind == "yarn":
        share = unslowed_share(trained, config.context, by.most_turns)
        return (1 - share) * trained / by.times + share * trained
    return trained


def unslowed_share(trained: Tensor, context: int, most_turns: float = MOST_TURNS) -> Tensor:
    """Returns the share of each frequency that YaRN leaves as it is, from 0 to 1: (pair,) -> (pair,)."""
    turned = context * trained / (2 * math.pi)
    return ((turned - FEWEST_TURNS) / (most_turns - FEWEST_TURNS)).clamp(0, 1)


def temperature_gain(times: float) -> float:
    """Returns what YaRN multiplies queries and keys by, 0.1 ln(times) + 1: the root of one over the scores'
    temperature.
    """
    return 0.1 * math.log(times) + 1


class StretchedRope(Rope):
    """RoPE with the frequencies of a stretch; YaRN's makes queries and keys longer, too."""

    def __init__(self, config: ResolvedConfig, by: Stretching) -> None:
        super().__init__(config)
        self.frequencies = stretched_frequencies(config, by)
        self.gain = temperature_gain(by.times) if by.kind == "yarn" else 1.0

    def angles(self, start: int, length: int, device: torch.device) -> Tensor:
        position = torch.arange(start, start + length, dtype=torch.float64)
        return torch.outer(position, self.frequencies).to(device)

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        hooks = super().prepare(length, like, start)
        return hooks if self.gain == 1 else _Longer(hooks, self.gain)


def stretched(model: Transformer, by: Stretching) -> Transformer:
    """Returns a trained RoPE model with other frequencies, untrained, sharing weights. Raises ShapeError for
    a model without RoPE.
    """
    if model.config.position != "rope":
        raise ShapeError(f"only RoPE can be stretched; this model's positions are {model.config.position}")
    longer = build(model.config, device="meta", parts=model.parts)
    longer.load_state_dict(dict(model.named_parameters()), assign=True)
    longer.positions = StretchedRope(model.config, by)
    return longer.requires_grad_(False).eval()


def losses_with_each(
    model: Transformer, ids: Sequence[int], length: int, ways: Sequence[Stretching]
) -> Steps[dict[Stretching, np.ndarray]]:
    """Reads windows of `length` of a text's `ids` with each stretch: the loss by position, mean over
    windows, (length,) in nats. A piece of work is one window; what is finished comes along.
    """
    tokens = torch.tensor(ids)
    starts = range(0, len(tokens) - length, length)
    losses: dict[Stretching, np.ndarray] = {}
    for by in ways:
        changed, read = stretched(model, by), []
        for start in starts:
            window = tokens[start : start + length + 1]
            with torch.inference_mode():
                logits = changed(window[None, :-1])[0]
                read.append(F.cross_entropy(logits, window[1:], reduction="none").numpy())
            yield Progress(len(losses) * len(starts) + len(read), len(ways) * len(starts), dict(losses))
        losses[by] = np.mean(read, axis=0)
    return losses


def mean_costs(losses: Mapping[Stretching, np.ndarray]) -> dict[Stretching, float]:
    """Returns what each stretch costs more than none, in nats per token: losses by position, (length,)."""
    plain = losses[Stretching()]
    return {by: float((each - plain).mean()) for by, each in losses.items() if by.kind is not None}


def in_bins(losses: np.ndarray, width: int) -> np.ndarray:
    """Returns the mean loss of each `width` positions: (length,) -> (bin,)."""
    return losses.reshape(-1, width).mean(1)


class _Longer(PositionHooks):
    """Turns as other hooks do, and multiplies by a gain: q.k by its square."""

    def __init__(self, hooks: PositionHooks, gain: float) -> None:
        self.hooks, self.gain = hooks, gain

    def turn(self, x: Tensor) -> Tensor:
        return self.hooks.turn(x) * self.gain

    def at(self, position: int) -> PositionHooks:
        return _Longer(self.hooks.at(position), self.gain)
