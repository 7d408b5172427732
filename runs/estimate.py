"""The duration of a training, estimated from the work that its configurations ask for and a known speed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch

from engine.config import ModelConfig, TrainConfig
from engine.parts.registry import HEALTHY, Parts
from engine.training import numerics
from engine.training.loop import early
from studies.costs.ledger import BatchShape, activations, ledger

MOVED = 560.0  # operations for each number that backward keeps
LAYER = 1.6e8  # operations for each layer of a step
# Muon's Newton-Schulz iterations: operations for each parameter of a matrix and each unit of its shorter
# side, five times two products of the Gram matrix and one that applies it (30 for square ones, 22.5 for 4:1).
NEWTON_SCHULZ = 25
# Share of one thread's float32 product rate that this work goes through at: for a first guess. After a first
# run its own speed is the guide (`Pace`).
EFFICIENCY = {"bfloat16": 1.5, "float32": 0.9}
SECOND_THREAD = 0.65  # what each further thread adds
# Seconds for each layer of one token of a sample: one at a time, products are too small to be fast.
SAMPLED_TOKEN = 2e-4
HEADS_SCORED = 6e-3  # seconds for each layer whose heads are scored at a look


def tokens_a_step(model: ModelConfig, train: TrainConfig) -> int:
    """Returns the tokens that are read for one update of the weights."""
    return train.batch_size * model.context


def forward_flops(model: ModelConfig, parts: Parts = HEALTHY, encoder: ModelConfig | None = None) -> int:
    """Returns the FLOPs of one token's forward pass, as the ledger counts them; with an `encoder`, of one
    token that it reads and one that the decoder writes. A sliding window saves nothing: the engine computes
    all scores and masks those beyond it.
    """
    return ledger(replace(model, window=0), encoder, parts).flops().forward


def forward_work(
    model: ModelConfig, train: TrainConfig, parts: Parts = HEALTHY, encoder: ModelConfig | None = None
) -> float:
    """Returns the operations of one token's forward pass, moving its numbers included: a third of the
    movement in training, where backward goes over them twice.
    """
    c, below = model.resolved(), encoder.resolved() if encoder else None
    kept = activations(c, BatchShape(train.batch_size, c.context), parts, encoder=below).values()
    return forward_flops(model, parts, encoder) + MOVED * sum(each.size(4) / 4 for each in kept) / 3


def step_work(
    model: ModelConfig, train: TrainConfig, parts: Parts = HEALTHY, encoder: ModelConfig | None = None
) -> float:
    """Returns the operations of one update of the weights: backward costs twice forward; then the
    optimiser.
    """
    muon = NEWTON_SCHULZ * ledger(model, encoder, parts).in_blocks * model.d_model
    return (
        3 * forward_work(model, train, parts, encoder) * tokens_a_step(model, train)
        + LAYER * (model.n_layers + (encoder.n_layers if encoder else 0))
        + (muon if train.optimizer == "muon" else 0)
    )


def total_work(
    model: ModelConfig, train: TrainConfig, validation_tokens: int = 0, parts: Parts = HEALTHY
) -> float:
    """Returns the operations of a whole training. Evaluations are forward passes over both splits."""
    looks = 1 + looks_taken(train.steps, train.eval_every, train.look_early)
    read = min(train.eval_tokens or validation_tokens, validation_tokens)
    return train.steps * step_work(model, train, parts) + forward_work(model, train, parts) * (
        2 * read * looks + validation_tokens
    )


def looks_taken(steps: int, every: int, looks_early: bool) -> int:
    """Returns how often a training of so many steps is evaluated after the first step: at an interval, and
    early.

    >>> looks_taken(200, 50, False), looks_taken(200, 50, True), looks_taken(200, 0, True)
    (4, 9, 0)
    """
    if not every:
        return 0
    below = sum(early(step, every) for step in range(1, min(steps + 1, every))) if looks_early else 0
    return steps // every + below


def sampling_seconds(model: ModelConfig, train: TrainConfig) -> float:
    """Returns the seconds spent on the samples of a training."""
    if not train.sample_every:
        return 0.0
    samples = 1 + looks_taken(train.steps, train.sample_every, train.look_early)
    return samples * train.sample_length * model.n_layers * SAMPLED_TOKEN


def scoring_seconds(model: ModelConfig, train: TrainConfig) -> float:
    """Returns the seconds spent on scoring the heads, where that is done: at each evaluation, and twice at
    the end.
    """
    looks = 3 + looks_taken(train.steps, train.eval_every, train.look_early)
    return looks * model.n_layers * HEADS_SCORED if train.repeat else 0.0


@dataclass(frozen=True)
class Pace:
    """The steps of a training so far and the seconds that they took, over the whole run: its last moment may
    have been slow.
    """

    model: ModelConfig
    train: TrainConfig
    steps: int
    seconds: float
    parts: Parts = HEALTHY
    encoder: ModelConfig | None = None  # that the model reads, where it is a decoder

    @property
    def work_a_second(self) -> float:
        """Operations a second; 0 for a training that has not begun."""
        done = self.steps * step_work(self.model, self.train, self.parts, self.encoder)
        return done / self.seconds if self.seconds > 0 else 0.0


def threads_rate(single_thread: float, threads: int, by_bfloat16: bool) -> float:
    """Returns the operations a second of a training, from the rate of one thread's float32 products;
    `by_bfloat16` if it takes bfloat16 since that is faster.
    """
    share = EFFICIENCY["bfloat16" if by_bfloat16 else "float32"]
    return single_thread * share * (1 + SECOND_THREAD * (threads - 1))


def seconds(
    model: ModelConfig, train: TrainConfig, validation_tokens: int, rate: float, parts: Parts = HEALTHY
) -> float:
    """Returns the seconds of a training from first step to end, at a `rate` of operations a second."""
    beside = sampling_seconds(model, train) + scoring_seconds(model, train)
    return total_work(model, train, validation_tokens, parts) / rate + beside


def cpu_rate(threads: int, precision: str) -> float | None:
    """Measures the operations a second that a training may reach on this machine's processor, with one
    thread; None where a GPU trains, whose speed is not measured in a server.
    """
    if numerics.pick_device().type != "cpu":
        return None
    torch.set_num_threads(1)
    gains = numerics.gains_by_bfloat16(torch.device("cpu")) and precision != "float32"
    return threads_rate(product_rate(), threads, gains)


def product_rate() -> float:
    """Measures the FLOPs a second of one thread's float32 products, (512 x 128) @ (128 x 512), in about 0.1
    s. Torch must be set to one thread: a parallel operation of another one slows trainings.
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
