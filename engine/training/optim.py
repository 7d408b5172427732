"""Optimisers over flat buffers: AdamW for everything, SGD for everything, or Muon for the blocks' matrices
and AdamW for the rest.

All parameters lie in one float32 buffer, grouped so that each group is one contiguous slice: one fused
AdamW call a group, and all matrices of one shape are already a batch for Muon. The model computes with
views of that buffer, or of a bfloat16 copy of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import compress, groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from engine.config import TrainConfig
from engine.parts.parameters import StackedLinear
from engine.training.numerics import Numerics, gains_by_bfloat16

_ADAMW = partial(adamw, amsgrad=False, eps=1e-8, maximize=False)


@dataclass(frozen=True)
class Slot:
    """One parameter's range in the flat buffers."""

    name: str
    shape: torch.Size
    start: int
    # "matrix" (2-D, inside a block), "table" (embeddings and positions), "vector" (gains, biases), "stepped"
    # (a gradient that is its step: what a part lists in `stepped`)
    group: str
    row_blocks: tuple[int, ...]

    @property
    def stop(self) -> int:
        return self.start + self.shape.numel()

    def of(self, flat: Tensor) -> Tensor:
        return flat[self.start : self.stop].view(self.shape)


GROUPS = ("matrix", "table", "vector", "stepped")


def layout(model: nn.Module) -> list[Slot]:
    """Lists every parameter once, by group, equal shapes side by side. The slots fill the buffer without a
    gap.
    """
    stacked = {
        f"{name}.weight": m.row_blocks for name, m in model.named_modules() if isinstance(m, StackedLinear)
    }

    stepped = {f"{name}.{p}" for name, m in model.named_modules() for p in getattr(m, "stepped", ())}

    def group(name: str, parameter: Tensor) -> str:
        if name in stepped:
            return "stepped"
        if parameter.dim() < 2:
            return "vector"
        return "matrix" if "blocks." in name else "table"

    entries = [
        (name, p, group(name, p), stacked.get(name, (p.shape[0],))) for name, p in model.named_parameters()
    ]
    entries.sort(key=lambda e: (GROUPS.index(e[2]), e[1].shape, e[3]))  # stable: layers keep their order
    slots, start = [], 0
    for name, parameter, kind, blocks in entries:
        slots.append(Slot(name, parameter.shape, start, kind, blocks))
        start += parameter.numel()
    assert start == sum(p.numel() for p in model.parameters())
    return slots


class Optimiser:
    """Owns the weights of a model while it trains.

    `model`'s parameters become views of the buffers, in the dtype and on the device of `numerics`.
    `update(loss)` does the backward pass and one step; `state` / `load_state` carry everything, exactly.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, numerics: Numerics) -> None:
        self.config = config
        self.slots = layout(model)
        device = numerics.device
        own = dict(model.named_parameters())
        flat = torch.cat([own[s.name].detach().reshape(-1).float().cpu() for s in self.slots])
        self.master_weights = flat.to(device)  # float32: what the steps change
        # What the model computes with: the same tensor in float32, else a rounded copy.
        self.compute_weights = self.master_weights.to(numerics.dtype)
        self.gradient = torch.zeros_like(self.master_weights)
        self.first_moment = torch.zeros_like(self.master_weights)  # AdamW's; Muon's and SGD's momentum
        self.second_moment = torch.zeros_like(self.master_weights)  # AdamW's
        self.steps = torch.zeros((), device=device)
        self.parameters = [own[s.name] for s in self.slots]
        for slot, parameter in zip(self.slots, self.parameters, strict=True):
            parameter.data = slot.of(self.compute_weights)
        self.slices = {
            kind: slice(s[0].start, s[-1].stop)
            for kind in GROUPS
            if (s := [x for x in self.slots if x.group == kind])
        }
        # Newton-Schulz tolerates bfloat16 (Jordan et al. 2024): it only has to come near an orthogonal
        # matrix.
        self.muon_dtype = torch.bfloat16 if gains_by_bfloat16(device) else torch.float32

    def update(self, loss: Tensor, scale: float) -> float:
        """Does the backward pass, clips the gradient, and steps with every learning rate multiplied by
        `scale`. Returns the gradient norm before clipping.
        """
        # No `.grad` is filled, so there is none to set to zero.
        gradients = torch.autograd.grad(loss, self.parameters, materialize_grads=True)
        with torch.no_grad():
            flat = torch.cat([g.reshape(-1) for g in gradients])
            self.gradient.copy_(flat)
            stepped = self.slices.get("stepped", slice(len(flat), None))  # the last: of no loss
            of_loss = self.gradient[: stepped.start]
            norm = float(of_loss.norm())
            if 0 < self.config.grad_clip < norm:
                of_loss.mul_(self.config.grad_clip / norm)
            self.steps += 1
            for kind, where in self.slices.items():
                if kind == "stepped":
                    self.master_weights[where].sub_(self.gradient[where])
                elif kind == "matrix" and self.config.optimizer == "muon":
                    self._muon(self.config.muon_learning_rate * scale)
                else:
                    decay = 0.0 if kind == "vector" else self.config.weight_decay
                    step = self._sgd if self.config.optimizer == "sgd" else self._adamw
                    step(where, self.config.learning_rate * scale, decay)
            if self.compute_weights is not self.master_weights:
                self.compute_weights.copy_(self.master_weights)
        return norm

    def _adamw(self, where: slice, rate: float, decay: float) -> None:
        """Decoupled weight decay (Loshchilov & Hutter 2019), fused over one slice."""
        c = self.config
        weights, gradient, first, second = (
            [b[where]] for b in (self.master_weights, self.gradient, self.first_moment, self.second_moment)
        )
        # The fused kernel counts its own step: it is given a copy, so that all groups share one count.
        count = [self.steps - 1]
        rates: dict[str, Any] = {"lr": rate, "weight_decay": decay, "beta1": c.beta1, "beta2": c.beta2}
        _ADAMW(weights, gradient, first, second, [], count, fused=True, **rates)

    def _sgd(self, where: slice, rate: float, decay: float) -> None:
        """Momentum m = beta1 m + g, then w -= rate m; weight decay as AdamW's."""
        momentum = self.first_moment[where].mul_(self.config.beta1).add_(self.gradient[where])
        self.master_weights[where].mul_(1 - rate * decay).sub_(momentum, alpha=rate)

    def _muon(self, rate: float) -> None:
        """Momentum, then each matrix's update is replaced by the nearest orthogonal one (Jordan et al.
        2024).
        """
        where, mu = self.slices["matrix"], self.config.muon_momentum
        momentum = self.first_moment[where].mul_(mu).add_(self.gradient[where])
        look_ahead = self.gradient[where].add_(
            momentum, alpha=mu
        )  # Nesterov; the gradient is not needed again
        weights = self.master_weights[where].mul_(1 - rate * self.config.weight_decay)
        matrices = [s for s in self.slots if s.group == "matrix"]
        for (shape, blocks), run in groupby(matrices, key=lambda s: (s.shape, s.row_blocks)):
            slots = list(run)
            stacked, target = (
                flat[slots[0].start : slots[-1].stop].view(-1, *shape) for flat in (look_ahead, weights)
            )
            for update, weight in zip(_split(stacked, blocks), _split(target, blocks), strict=True):
                rows, columns = update.shape[1:]
                weight.sub_(
                    orthogonalise(update.to(self.muon_dtype)),
                    alpha=rate * math.sqrt(max(1.0, rows / columns)),
                )

    def _buffers(self) -> dict[str, Tensor]:
        """Returns what a state holds, each (parameter,), by the first part of its name there."""
        return {"model": self.master_weights, "first": self.first_moment, "second": self.second_moment}

    def state(self) -> dict[str, Tensor]:
        """Returns copies on the CPU, by parameter: `model.*`, `first.*`, `second.*` (AdamW's only), and
        `steps`.
        """
        tensors = {"steps": self.steps.detach().cpu().clone()}
        for prefix, flat in self._buffers().items():
            copy = flat.detach().cpu().clone() if flat.device.type == "cpu" else flat.detach().cpu()
            tensors |= {f"{prefix}.{s.name}": s.of(copy) for s in self.slots}
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Restores what `state` returned. Raises KeyError or RuntimeError when the tensors are not this
        model's.
        """
        self.steps.copy_(tensors["steps"])
        for prefix, flat in self._buffers().items():
            for slot in self.slots:
                slot.of(flat).copy_(tensors[f"{prefix}.{slot.name}"])
        if self.compute_weights is not self.master_weights:
            self.compute_weights.copy_(self.master_weights)


class AdamW:
    """AdamW (Loshchilov & Hutter 2019) on parameters as they are, with the numbers of torch.optim.AdamW: the
    first use of that one imports PyTorch's compiler (1.6 s, 70 MB).
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        self.rate, self.betas, self.weight_decay = rate, betas, weight_decay
        self.parameters = list(parameters)
        self.first, self.second = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        self.steps = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Changes the parameters that have a gradient."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        has = [p.grad is not None for p in self.parameters]
        own = (self.parameters, self.first, self.second, self.steps)
        weights, first, second, steps = ([*compress(each, has)] for each in own)
        beta1, beta2 = self.betas
        rates: dict[str, Any] = {
            "lr": self.rate,
            "weight_decay": self.weight_decay,
            "beta1": beta1,
            "beta2": beta2,
        }
        _ADAMW(weights, gradients, first, second, [], steps, foreach=False, **rates)


def _split(batch: Tensor, row_blocks: tuple[int, ...]) -> list[Tensor]:
    """(n, rows, columns) -> the matrices that were stacked by rows; equal ones stay together as one larger
    batch.
    """
    if len(set(row_blocks)) == 1:
        return [batch.view(-1, row_blocks[0], batch.shape[-1])]
    return list(batch.split(row_blocks, dim=1))


def orthogonalise(g: Tensor, steps: int = 5) -> Tensor:
    """Brings every singular value of each matrix (n, rows, columns) near 1, by a quintic Newton-Schulz
    iteration.

    The coefficients are those of Jordan et al. 2024: they climb fastest from zero and end between about 0.7
    and 1.2.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = g.shape[1] > g.shape[2]
    x = g.transpose(1, 2) if tall else g  # the Gram matrix is then the smaller one
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = torch.bmm(x, x.transpose(1, 2))  # (n, rows, columns) -> (n, rows, rows)
        mix = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)  # b G + c G^2
        x = torch.baddbmm(x, mix, x, beta=a)  # a X + mix X, (n, rows, columns)
    return x.transpose(1, 2) if tall else x


def spent(config: TrainConfig, step: int, seconds: float) -> float:
    """Returns the share of a training's budget, 0 to 1, that so many steps and seconds of computing spend.

    >>> spent(TrainConfig(steps=100, seconds=10.0), 25, 5.0)
    0.5
    """
    return max(step / config.steps, seconds / config.seconds if config.seconds else 0.0)


def learning_rate_factor(config: TrainConfig, step: int, seconds: float = 0.0) -> float:
    """Returns the factor of the peak learning rate at a step (from 0) after so many seconds: linear warm-up,
    then the schedule. It would reach `min_lr_fraction` at step `config.steps`, one after the last, or when
    the seconds are over.
    """
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if config.schedule == "constant":
        return 1.0
    span = max(1, config.steps - config.warmup_steps)
    gone = (step - config.warmup_steps) / span
    progress = min(1.0, max(gone, spent(config, 0, seconds)))
    fall = 1 - progress if config.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
    return config.min_lr_fraction + (1 - config.min_lr_fraction) * fall
