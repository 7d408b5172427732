"""The gradient highway: how large gradients and activations are along the depth of fresh models, wired in
different ways.

Xiong et al. 2020 ("On Layer Normalization in the Transformer Architecture") compare post-norm with pre-norm
at initialisation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, Norm, Wiring
from engine.errors import ConfigError
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY

Init = Literal["scaled", "unscaled", "fan_in"]
Quantity = Literal["gradients", "weights", "activations"]
MAX_DEPTH = 128


@dataclass(frozen=True)
class Plan:
    """What is measured: every wiring at every depth with every seed. Hashable, so that a result can be kept
    under it.

    `init`: 'scaled' is the engine's own (std 0.02, writes to the stream scaled by 1/sqrt(2 L)); 'unscaled'
    leaves that scaling out; 'fan_in' draws the blocks' matrices with std 1/sqrt(inputs), which keeps the size
    of what passes through them.
    """

    depths: tuple[int, ...] = (2, 4, 8, 16, 24)
    wirings: tuple[Wiring, ...] = ("pre", "post", "none")
    norm: Norm = "layernorm"
    init: Init = "scaled"
    seeds: int = 3
    d_model: int = 64
    n_heads: int = 4
    context: int = 32
    batch: int = 4

    def validate(self) -> Plan:
        """Returns itself; raises ConfigError for what cannot be measured."""
        if not self.depths or not all(1 <= depth <= MAX_DEPTH for depth in self.depths):
            raise ConfigError("depths", self.depths, f"must lie between 1 and {MAX_DEPTH}")
        if not 1 <= self.seeds <= 32:
            raise ConfigError("seeds", self.seeds, "must be between 1 and 32")
        if self.init not in ("scaled", "unscaled", "fan_in"):
            raise ConfigError("init", self.init, "must be 'scaled', 'unscaled' or 'fan_in'")
        return self

    @property
    def work(self) -> int:
        """Layers to be passed forward and back: what progress is counted in."""
        return sum(self.depths) * len(self.wirings) * self.seeds


@dataclass(frozen=True, eq=False)
class Profile:
    """One model. Place 0 is the stream before the first block, place i + 1 the output of block i.

    `gradients`: Frobenius norm of d loss / d stream over the whole batch, with the loss a mean over tokens,
    nats. `weights`: norm of d loss / d parameters of each block, which is what Xiong et al. plot.
    `activations`: norm of the stream, mean over tokens. None of them need be finite: `finite` says.
    """

    wiring: Wiring
    depth: int
    seed: int
    loss: float
    gradients: np.ndarray = field(repr=False)  # (depth + 1,)
    weights: np.ndarray = field(repr=False)  # (depth,)
    activations: np.ndarray = field(repr=False)  # (depth + 1,)
    done: int  # layers of `Plan.work` so far

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.gradients).all() and np.isfinite(self.activations).all())


class _StreamProbe:
    """A probe that keeps the stream before the first block and after each, and asks autograd to keep its
    gradient too.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.last = "norm2" if HEALTHY.wirings[wiring].ends_normed else "resid_post"
        self.streams: list[Tensor] = []

    def __call__(self, name: str, x: Tensor) -> Tensor:
        if name == "blocks.0.resid_pre" or (name.startswith("blocks.") and name.endswith(f".{self.last}")):
            x.retain_grad()
            self.streams.append(x)
        return x


def measure(plan: Plan, text: Tensor, vocab_size: int) -> Iterator[Profile]:
    """A profile for each model of the plan, small depths first. `text`: (n,) ids, of which the same random
    windows are read by all wirings.

    Raises ConfigError for a plan or a text that cannot be used.
    """
    plan.validate()
    if len(text) < plan.context + 1:
        raise ConfigError("text", len(text), f"must have at least {plan.context + 1} tokens")
    done = 0
    for depth in sorted(set(plan.depths)):
        for seed in range(plan.seeds):
            tokens = _windows(text, plan, seed)
            for wiring in plan.wirings:
                done += depth
                yield replace(_one(plan, wiring, depth, seed, tokens, vocab_size), done=done)


def _windows(text: Tensor, plan: Plan, seed: int) -> Tensor:
    """(batch, context + 1) ids."""
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(text) - plan.context, (plan.batch,), generator=generator)
    return torch.stack([text[i : i + plan.context + 1] for i in starts.tolist()])


def _one(plan: Plan, wiring: Wiring, depth: int, seed: int, tokens: Tensor, vocab_size: int) -> Profile:
    model = fresh(plan, wiring, depth, seed, vocab_size)
    probe = _StreamProbe(wiring)
    with torch.enable_grad():
        logits = model(tokens[:, :-1], probe)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
    gradients = np.array([0.0 if x.grad is None else float(x.grad.double().norm()) for x in probe.streams])
    activations = np.array([float(x.detach().double().norm(dim=-1).mean()) for x in probe.streams])
    squares = [
        sum(float(p.grad.double().square().sum()) for p in block.parameters() if p.grad is not None)
        for block in model.blocks
    ]
    return Profile(wiring, depth, seed, float(loss.detach()), gradients, np.sqrt(squares), activations, 0)


def fresh(plan: Plan, wiring: Wiring, depth: int, seed: int, vocab_size: int) -> Transformer:
    """The engine's own model at its initialisation, with the plan's starting weights."""
    config = ModelConfig(
        vocab_size=vocab_size,
        context=plan.context,
        d_model=plan.d_model,
        n_layers=depth,
        n_heads=plan.n_heads,
        norm=plan.norm,
        wiring=wiring,
    )
    model = build(config, seed)
    with torch.no_grad():
        for name, weight in model.blocks.named_parameters():
            if weight.dim() != 2 or plan.init == "scaled":
                continue
            scaled = name.endswith(("w_o.weight", "w_out.weight"))
            std = 0.02 / math.sqrt(2 * depth) if scaled else 0.02
            weight.mul_((0.02 if plan.init == "unscaled" else 1 / math.sqrt(weight.shape[1])) / std)
    return model


def averaged(profiles: list[Profile], what: Quantity = "gradients") -> dict[tuple[Wiring, int], np.ndarray]:
    """(wiring, depth) -> that quantity of the profiles: the geometric mean over seeds, since sizes differ by
    factors.

    Where one seed is not finite, neither is the mean; where one is 0 (too small for float32), the mean is 0.
    """
    groups: dict[tuple[Wiring, int], list[Profile]] = {}
    for profile in profiles:
        groups.setdefault((profile.wiring, profile.depth), []).append(profile)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return {
            place: np.exp(np.log([getattr(p, what) for p in group]).mean(0))
            for place, group in groups.items()
        }


def ratio(blocks: np.ndarray) -> float:
    """First block's over the last block's, of (depth,): 1 is a flat road, below 1 the gradient fades on its
    way back, above 1 it grows.

    NaN where the last is 0 or not finite.
    """
    first, last = float(blocks[0]), float(blocks[-1])
    return first / last if last > 0 and math.isfinite(last) else math.nan


def slice_of(profiles: Iterator[Profile], seconds: float) -> tuple[list[Profile], bool]:
    """What the iterator gives within `seconds` (at least one profile), and whether it has ended."""
    end, found = time.monotonic() + seconds, []
    for profile in profiles:
        found.append(profile)
        if time.monotonic() > end:
            return found, False
    return found, True
