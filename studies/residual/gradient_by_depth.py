"""Gradients and activations by depth, in fresh models that are wired in different ways.

Xiong et al. 2020 ("On Layer Normalization in the Transformer Architecture") compare the two norms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, Norm, Wiring
from engine.data.corpus import Corpus
from engine.data.progress import Progress, Steps
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, NORMS

Init = Literal["scaled", "unscaled", "fan_in"]
Quantity = Literal["gradients", "weights", "activations"]


@dataclass(frozen=True)
class Plan:
    """The models to measure: every wiring at every depth with every seed. Hashable, so that a result can be
    cached under it. `init`: 'scaled' is the engine's own (std 0.02, writes to the stream scaled by 1/sqrt(2
    L)); 'unscaled' leaves that scaling out; 'fan_in' draws the blocks' matrices with std 1/sqrt(inputs).
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

    @property
    def work(self) -> int:
        """The layers to be passed forward and back: the unit of progress."""
        return sum(self.depths) * len(self.wirings) * self.seeds


@dataclass(frozen=True, eq=False)
class Profile:
    """One model. Depth 0 is the stream before the first block, depth i + 1 the output of block i.

    `gradients`: Frobenius norm of d loss / d stream over the batch, with the loss a mean over tokens, nats.
    `weights`: norm of d loss / d parameters of each block, which Xiong et al. plot. `activations`: norm of
    the stream, mean over tokens. None of them need be finite.
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
    """A probe that keeps the stream before the first block and after each, with its gradient."""

    def __init__(self, wiring: Wiring) -> None:
        self.last = "norm2" if HEALTHY.wirings[wiring].ends_normed else "resid_post"
        self.streams: list[Tensor] = []

    def __call__(self, name: str, x: Tensor) -> Tensor:
        if name == "blocks.0.resid_pre" or (name.startswith("blocks.") and name.endswith(f".{self.last}")):
            x.retain_grad()
            self.streams.append(x)
        return x


def measure(plan: Plan, text: Tensor, vocab_size: int) -> Iterator[Profile]:
    """Yields a profile for each model of the plan, small depths first, all on the same windows."""
    done = 0
    for depth in sorted(set(plan.depths)):
        for seed in range(plan.seeds):
            tokens = _windows(text, plan, seed)
            for wiring in plan.wirings:
                done += depth
                yield replace(_one(plan, wiring, depth, seed, tokens, vocab_size), done=done)


def measuring(plan: Plan, corpus: Corpus) -> Steps[tuple[Profile, ...]]:
    """Measures the profiles on a corpus, with those so far after each."""
    profiles: tuple[Profile, ...] = ()
    for profile in measure(plan, corpus.train, corpus.vocab_size):
        profiles = (*profiles, profile)
        yield Progress(profile.done, plan.work, profiles)
    return profiles


def _windows(text: Tensor, plan: Plan, seed: int) -> Tensor:
    """Draws windows, (batch, context + 1) ids."""
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
    weights = block_gradients(model)
    return Profile(wiring, depth, seed, float(loss.detach()), gradients, weights, activations, 0)


def block_gradients(model: Transformer) -> np.ndarray:
    """Returns the norm of d loss / d parameters of each block after a backward pass: (layer,)."""
    squares = [
        sum(float(p.grad.double().square().sum()) for p in block.parameters() if p.grad is not None)
        for block in model.blocks
    ]
    return np.sqrt(np.array(squares))


def fresh(plan: Plan, wiring: Wiring, depth: int, seed: int, vocab_size: int) -> Transformer:
    """Builds the engine's own model with the plan's starting weights."""
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
    """Returns (wiring, depth) -> a quantity of the profiles: the geometric mean over seeds. Where one seed is
    not finite, neither is the mean; where one is 0 (too small for float32), the mean is 0.
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
    """Returns the first block's value over the last's: below 1 it fades on its way back. Or NaN."""
    first, last = float(blocks[0]), float(blocks[-1])
    return first / last if last > 0 and math.isfinite(last) else math.nan


Means = Mapping[tuple[Wiring, int], np.ndarray]  # (wiring, depth) -> one number for each place
Fate = Literal["not finite", "zero", "zero at the last", "zero at the first", "flat", "fades", "vanishes"]
Growth = Literal["grows", "explodes"]
Reason = Literal[
    "no norm", "stream grows", "saturates", "as pre-norm", "own paths", "small writes", "restored", "epsilon"
]
FLAT = 3.0  # a ratio within this factor of 1 is called flat
FAR = 100.0  # a ratio beyond this factor vanishes or explodes; a nearer one fades or grows
EPS = ModelConfig.norm_eps  # of the measured models


def blocks_of(values: np.ndarray, depth: int) -> np.ndarray:
    """Returns one number for each block (depth,), without the stream before the first."""
    return values[-depth:]


def unusable(profiles: Sequence[Profile]) -> int:
    """Counts models with numbers that are not finite."""
    return sum(not profile.finite for profile in profiles)


def ratios(means: Means, wiring: Wiring, depths: Sequence[int]) -> np.ndarray:
    """Returns first block over last, for each of the depths at which the wiring was measured so far."""
    there = [depth for depth in depths if (wiring, depth) in means]
    return np.array([ratio(blocks_of(means[wiring, depth], depth)) for depth in there])


@dataclass(frozen=True)
class GradientFlow:
    """The gradient from the last block to the first: `ratio` first over last; `reached` of `blocks`."""

    fate: Fate | Growth
    ratio: float
    reached: int
    blocks: int


def gradient_flow(blocks: np.ndarray) -> GradientFlow:
    """Judges gradients (block,).

    >>> gradient_flow(np.array([1e-6, 1.0])).fate, gradient_flow(np.array([2.0, 1.0])).fate
    ('vanishes', 'flat')
    """
    result = ratio(blocks) if np.isfinite(blocks).all() else math.inf
    return GradientFlow(_fate(blocks, result), result, int((blocks > 0).sum()), len(blocks))


def _fate(blocks: np.ndarray, quotient: float) -> Fate | Growth:
    if not np.isfinite(blocks).all():
        return "not finite"
    if blocks[-1] == 0:
        return "zero at the last" if blocks.any() else "zero"
    if quotient == 0:
        return "zero at the first"
    if 1 / FLAT <= quotient <= FLAT:
        return "flat"
    if quotient < 1:
        return "vanishes" if quotient < 1 / FAR else "fades"
    return "explodes" if quotient > FAR else "grows"


def reason(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> Reason | None:
    """Returns why gradients (block,) differ from theory, given stream `lengths`, or None."""
    quotient = ratio(blocks) if np.isfinite(blocks).all() else math.inf
    flat = 1 / FLAT <= quotient <= FLAT
    norm = NORMS[plan.norm]
    bare = not norm.present
    if wiring == "pre" and not flat:
        return "stream grows" if norm.divides else "no norm" if bare else "saturates"
    if wiring == "post" and bare:
        return "as pre-norm"
    if wiring == "post" and not quotient < 1 / FLAT:
        return "own paths" if plan.init == "fan_in" else "small writes"
    if wiring == "none" and norm.divides:
        if flat:
            return "restored"
        if (lengths**2 / plan.d_model < EPS).any():
            return "epsilon"
    return None


@dataclass(frozen=True)
class LastBlock:
    """The last block's gradient in `depth` over `least` blocks: in theory for pre-norm, and measured."""

    least: int
    depth: int
    theory: float
    pre: float
    post: float


def last_block(weights: Means, depth: int) -> LastBlock | None:
    """Reads off `averaged(..., "weights")`; None for a single depth or numbers that are not finite."""
    least = min((d for _, d in weights), default=0)
    pairs = [[weights.get((w, d)) for d in (least, depth)] for w in ("pre", "post")]
    last = [[math.nan if v is None else float(v[-1]) for v in pair] for pair in pairs]
    if depth <= least or not all(math.isfinite(v) and v > 0 for pair in last for v in pair):
        return None
    pre, post = (there / here for here, there in last)
    return LastBlock(least, depth, math.sqrt(least / depth), pre, post)
