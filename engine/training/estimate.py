"""How long a training will take: floating-point operations from the configs, and a speed that is known."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from engine import numerics
from engine.config import ModelConfig, TrainConfig
from engine.ledger import ledger
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY
from engine.training.train import early

# Share of one thread's float32 product rate that whole training steps reach for each thread at these sizes:
# assumed, for a first guess. After a first run its own speed is the guide (`Pace`).
EFFICIENCY = {"bfloat16": 0.8, "float32": 0.45}
SECOND_THREAD = 0.65  # what each further thread adds
# Seconds for each layer of one token of a sample: one at a time, products are too small to be fast.
SAMPLED_TOKEN = 2e-4


def tokens_a_step(model: ModelConfig, train: TrainConfig) -> int:
    """Tokens that are read for one update of the weights."""
    return train.batch_size * model.context


def forward_flops(model: ModelConfig, parts: Parts = HEALTHY) -> int:
    """Floating-point operations of one token's forward pass: the ledger's. A window of attention saves
    nothing, for the engine computes all scores and hides those beyond it.
    """
    return ledger(replace(model, window=0), parts=parts).flops().forward


def total_flops(
    model: ModelConfig, train: TrainConfig, validation_tokens: int = 0, parts: Parts = HEALTHY
) -> int:
    """Of a whole training: backward costs twice forward; evaluations are forward passes over both splits."""
    forward = forward_flops(model, parts)
    looks = 1 + looks_taken(train.steps, train.eval_every, train.look_early)
    read = min(train.eval_tokens or validation_tokens, validation_tokens)
    return 3 * forward * train.steps * tokens_a_step(model, train) + forward * (
        2 * read * looks + validation_tokens
    )


def looks_taken(steps: int, every: int, looks_early: bool) -> int:
    """How often a training of so many steps looks, after the first step: at an interval, and early.

    >>> looks_taken(200, 50, False), looks_taken(200, 50, True), looks_taken(200, 0, True)
    (4, 9, 0)
    """
    if not every:
        return 0
    below = sum(early(step, every) for step in range(1, min(steps + 1, every))) if looks_early else 0
    return steps // every + below


def sampling_seconds(model: ModelConfig, train: TrainConfig) -> float:
    """Spent on the samples that are written during a training."""
    if not train.sample_every:
        return 0.0
    samples = 1 + looks_taken(train.steps, train.sample_every, train.look_early)
    return samples * train.sample_length * model.n_layers * SAMPLED_TOKEN


@dataclass(frozen=True)
class Pace:
    """How far a training came, and in what time: of the whole run, whose last moment may have been slow."""

    model: ModelConfig
    train: TrainConfig
    steps: int
    seconds: float
    parts: Parts = HEALTHY

    @property
    def flops_a_second(self) -> float:
        """0 for a training that has not begun."""
        read = self.steps * tokens_a_step(self.model, self.train)
        return 3 * forward_flops(self.model, self.parts) * read / self.seconds if self.seconds > 0 else 0.0


def threads_rate(one: float, threads: int, native_bfloat16: bool) -> float:
    """Floating-point operations a second of a training, from those of one thread's float32 products."""
    share = EFFICIENCY["bfloat16" if native_bfloat16 else "float32"]
    return one * share * (1 + SECOND_THREAD * (threads - 1))


def seconds(
    model: ModelConfig, train: TrainConfig, validation_tokens: int, rate: float, parts: Parts = HEALTHY
) -> float:
    """From the first step to the end, at `rate` floating-point operations a second."""
    return total_flops(model, train, validation_tokens, parts) / rate + sampling_seconds(model, train)


def cpu_rate(threads: int, precision: str) -> float | None:
    """Floating-point operations a second that a training on this machine's processor may reach, by a short
    measurement on one thread; None where a GPU trains, whose speed is not measured in a server.
    """
    if numerics.pick_device().type != "cpu":
        return None
    torch.set_num_threads(1)
    native = numerics.has_bfloat16(torch.device("cpu")) and precision != "float32"
    return threads_rate(product_rate(), threads, native)


def product_rate() -> float:
    """Floating-point operations a second of one thread's float32 products, (512 x 128) @ (128 x 512). Takes
    about 0.1 s. The thread must be set to one: another with a parallel operation behind it slows trainings.
    """
    a, b = torch.ones(512, 128), torch.ones(128, 512)
    a @ b
    best, started = float("inf"), time.perf_counter()
    while time.perf_counter() - started < 0.1:
        before = time.perf_counter()
        for _ in range(8):
            a @ b
        best = min(best, time.perf_counter() - before)
    return 8 * 2 * 512 * 128 * 512 / best
