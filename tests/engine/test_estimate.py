"""How long a training takes, against arithmetic written out here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.ledger import ledger
from engine.training.estimate import (
    SAMPLED_TOKEN,
    Pace,
    forward_flops,
    product_rate,
    sampling_seconds,
    seconds,
    threads_rate,
    tokens_a_step,
    total_flops,
)

MODEL = ModelConfig(
    vocab_size=65, d_model=64, n_layers=3, n_heads=4, context=32, position="none", tie_embeddings=True
)
TRAIN = TrainConfig(
    steps=100,
    batch_size=8,
    eval_every=25,
    eval_tokens=1000,
    sample_every=50,
    sample_length=40,
    snapshot_every=0,
)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"position": "learned"},
        {"position": "t5"},
        {"tie_embeddings": False},
        {"mixer": "none"},
        {"mixer": "mean"},
        {"ffn": "swiglu", "ffn_bias": True},
    ],
)
def test_forward_flops_are_the_ledgers(fields):
    model = replace(MODEL, **fields)
    assert forward_flops(model) == ledger(model).flops(32).forward


def test_a_window_saves_the_engine_nothing():
    assert forward_flops(replace(MODEL, window=4)) == forward_flops(MODEL)


def test_all_of_a_training():
    one = forward_flops(MODEL)
    read = 100 * 8 * 32
    assert tokens_a_step(MODEL, TRAIN) == 8 * 32
    assert total_flops(MODEL, TRAIN, 5000) == 3 * one * read + one * (2 * 1000 * 5 + 5000)
    assert (
        total_flops(MODEL, replace(TRAIN, eval_tokens=0, eval_every=0), 5000) == 3 * one * read + one * 15000
    )
    assert sampling_seconds(MODEL, TRAIN) == pytest.approx(3 * 40 * 3 * SAMPLED_TOKEN)
    assert sampling_seconds(MODEL, replace(TRAIN, sample_every=0)) == 0


def test_the_last_runs_pace_foretells_its_own_length():
    quiet = replace(TRAIN, sample_every=0, eval_every=0, eval_tokens=1)
    pace = Pace(MODEL, quiet, steps=50, seconds=7.0)
    assert seconds(MODEL, quiet, 0, pace.flops_a_second) == pytest.approx(14.0)
    assert Pace(MODEL, quiet, 0, 0.0).flops_a_second == 0


def test_threads_and_precision():
    assert threads_rate(1e9, 1, False) == 0.45e9 and threads_rate(1e9, 1, True) == 0.8e9
    assert threads_rate(1e9, 3, False) == pytest.approx(0.45e9 * 2.3)
    assert product_rate() > 1e8
