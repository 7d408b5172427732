"""How long a training takes, against arithmetic written out here."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from engine.config import ModelConfig, TrainConfig
from engine.parts.registry import HEALTHY
from runs import estimate, kinds

MODEL = ModelConfig(
    vocab_size=65, d_model=64, n_layers=3, n_heads=4, context=32, position="none", tie_embeddings=True
)
TRAIN = TrainConfig(
    steps=100, batch_size=8, eval_every=25, eval_tokens=1000, sample_every=50, sample_length=40,
    snapshot_every=0,
)  # fmt: skip


def test_what_is_moved_is_counted_beside_what_is_multiplied():
    """Of a model without attention and without a network only the final norm and the output keep anything."""
    bare = replace(MODEL, mixer="none", ffn="none")
    moved = (estimate.forward_work(bare, TRAIN) - estimate.forward_flops(bare)) * 3 / estimate.MOVED
    assert moved == pytest.approx((64 + 2) + (64 + 65))
    more = estimate.forward_work(replace(MODEL, n_layers=4), TRAIN) - estimate.forward_work(MODEL, TRAIN)
    again = estimate.forward_work(replace(MODEL, n_layers=5), TRAIN) - estimate.forward_work(MODEL, TRAIN)
    assert again == pytest.approx(2 * more), "each layer as much as another"


def test_all_of_a_training():
    one = estimate.forward_work(MODEL, TRAIN)
    read = 100 * 8 * 32
    assert estimate.tokens_a_step(MODEL, TRAIN) == 8 * 32
    whole = 3 * one * read + 100 * estimate.LAYER * 3
    assert estimate.total_work(MODEL, TRAIN, 5000) == pytest.approx(whole + one * (2 * 1000 * 5 + 5000))
    rare = replace(TRAIN, eval_tokens=0, eval_every=0)
    assert estimate.total_work(MODEL, rare, 5000) == pytest.approx(whole + one * 15000)
    blocks = 3 * (4 * 64 * 64 + 2 * 64 * 256 + 2 * 64)  # matrices, and the gains of two norms
    muon = estimate.step_work(MODEL, replace(TRAIN, optimizer="muon")) - estimate.step_work(MODEL, TRAIN)
    assert muon == pytest.approx(estimate.NEWTON_SCHULZ * blocks * 64)
    assert estimate.scoring_seconds(MODEL, TRAIN) == 0
    assert estimate.scoring_seconds(MODEL, replace(TRAIN, repeat=0.2)) == pytest.approx((4 + 3) * 3 * 0.006)
    assert estimate.sampling_seconds(MODEL, TRAIN) == pytest.approx(3 * 40 * 3 * 0.0002)
    assert estimate.sampling_seconds(MODEL, replace(TRAIN, sample_every=0)) == 0


def test_the_last_runs_pace_foretells_its_own_length():
    quiet = replace(TRAIN, sample_every=0, eval_every=0, eval_tokens=1)
    pace = estimate.Pace(MODEL, quiet, steps=50, seconds=7.0)
    assert estimate.seconds(MODEL, quiet, 0, pace.work_a_second) == pytest.approx(14.0)
    assert estimate.Pace(MODEL, quiet, 0, 0.0).work_a_second == 0
    assert estimate.threads_rate(1e9, 1, False) == 0.9e9 and estimate.threads_rate(1e9, 1, True) == 1.5e9
    assert estimate.threads_rate(1e9, 3, False) == pytest.approx(0.9e9 * 2.3)
    assert estimate.product_rate() > 1e8


def test_targets_are_written_a_symbol_at_a_time():
    """Where products cost nothing: the looks' and the samples' symbols through both towers' layers."""
    text, train = kinds.PAIRS.read("dates", ""), replace(TRAIN, eval_every=25, look_early=False)
    found = kinds.PAIRS.seconds(MODEL, train, "dates", 0, math.inf, HEALTHY)
    assert found == pytest.approx(text.longest[1] * (3 * (1 + 4) + 5) * 2 * 3 * 0.0002)
    assert kinds.PAIRS.tokens(MODEL, train, "dates") == 8 * sum(text.longest)


def test_a_step_goes_through_the_layers_of_both_towers():
    encoder = replace(MODEL, n_layers=2, causal=False)
    products = 3 * estimate.forward_work(MODEL, TRAIN, encoder=encoder) * 8 * 32
    found = estimate.step_work(MODEL, TRAIN, encoder=encoder)
    assert found - products == pytest.approx(estimate.LAYER * (3 + 2), rel=1e-3)
