"""How long a training will take: floating-point operations from the configs, speed from a run that was made
here or from a short measurement.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st
import torch

from engine import numerics
from engine.config import ModelConfig, TrainConfig
from engine.ledger import parameter_formula
from engine.service.profiles import Profile
from engine.service.state import RunView
from ui.text.numbers import duration

# Share of one thread's float32 product rate that whole training steps reach for each thread at these sizes
# (from the design, not measured).
EFFICIENCY = {"bfloat16": 0.8, "float32": 0.45}
SECOND_THREAD = 0.65  # what each further thread adds
SAMPLED_TOKEN = (
    2e-4  # seconds for each layer of one token of a sample: one at a time, products are too small to be fast
)


@dataclass(frozen=True)
class Estimate:
    seconds: float
    source: str  # how it was estimated, for the page

    @property
    def words(self) -> str:
        return duration(self.seconds)


def forward_flops(model: ModelConfig) -> float:
    """Floating-point operations of one token's forward pass: 2 for each weight that multiplies, 4 T d for
    each layer's scores and sums.
    """
    c = model.resolved()
    looked_up = (0 if c.tie_embeddings else c.vocab_size * c.d_model) + (
        c.context * c.d_model if c.position == "learned" else 0
    )
    attention = 0 if c.mixer == "none" else 4 * c.context * c.n_heads * c.d_head * c.n_layers
    return 2.0 * (parameter_formula(c) - looked_up) + attention


def total_flops(model: ModelConfig, train: TrainConfig, validation_tokens: int = 0) -> float:
    """Of a whole training: backward costs twice forward; evaluations are forward passes over both splits."""
    forward = forward_flops(model)
    looks = 1 + (train.steps // train.eval_every if train.eval_every else 0)
    read = min(train.eval_tokens or validation_tokens, validation_tokens)
    return 3 * forward * train.steps * train.batch_size * model.context + forward * (
        2 * read * looks + validation_tokens
    )


def estimate(
    model: ModelConfig, train: TrainConfig, validation_tokens: int, profile: Profile, last: RunView | None
) -> Estimate | None:
    """Seconds from pressing Train to the end. `last` is this owner's last run, whose speed is the best guide.

    None before the first run on a GPU: its speed is not measured in the server, which leaves it to the
    trainings.
    """
    work = total_flops(model, train, validation_tokens)
    samples = (1 + train.steps // train.sample_every) * train.sample_length if train.sample_every else 0
    writing = samples * model.n_layers * SAMPLED_TOKEN
    if last is not None and last.step and last.seconds > 0:
        read = (
            last.step * last.spec.train.batch_size * last.spec.model.context
        )  # of the whole run: its last moment may have been a slow one
        rate = read / last.seconds * 3 * forward_flops(last.spec.model)
        return Estimate(work / rate + writing, "from the speed of your last run")
    if numerics.pick_device().type != "cpu":
        return None
    native = numerics.has_bfloat16(torch.device("cpu")) and train.precision != "float32"
    share = EFFICIENCY["bfloat16" if native else "float32"] * (
        1 + SECOND_THREAD * (profile.threads_per_run - 1)
    )
    return Estimate(
        work / (product_rate() * share) + writing,
        "roughly, from this machine's measured speed in matrix products",
    )


@st.cache_resource(show_spinner=False)
def product_rate() -> float:
    """Floating-point operations a second of one thread's float32 products, (512 x 128) @ (128 x 512). Takes
    about 0.1 s, once.
    """
    torch.set_num_threads(
        1
    )  # another thread with a parallel torch operation behind it would slow trainings (DESIGN.md)
    a, b = torch.ones(512, 128), torch.ones(128, 512)
    a @ b
    best, started = float("inf"), time.perf_counter()
    while time.perf_counter() - started < 0.1:
        before = time.perf_counter()
        for _ in range(8):
            a @ b
        best = min(best, time.perf_counter() - before)
    return 8 * 2 * 512 * 128 * 512 / best
