"""Scores of one pair of tokens at every two places, against the same product written out with the model's own
matrices.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.measure.place_scores import entrances, place_scores
from engine.model import build

SMALL = {"vocab_size": 9, "d_model": 16, "n_layers": 3, "n_heads": 4, "context": 12}


def stacked(model):
    return model.blocks[0].mixer.w_qkv.weight.detach().double().numpy()


def test_added_positions_are_the_product_of_embedding_plus_wave():
    model = build(ModelConfig(**SMALL, position="sinusoidal", norm="none", attention_bias=False), seed=3)
    found = place_scores(model, 5, 2, 1, 12)
    place = np.arange(12)[:, None]
    angle = place / 10_000 ** (2 * (np.arange(16) // 2) / 16)
    wave = np.where(np.arange(16) % 2, np.cos(angle), np.sin(angle))
    table = model.embedded(torch.arange(9)).detach().double().numpy()
    whole = stacked(model)  # W_Q, W_K, W_V, one below the other
    w_q, w_k = whole[:16][4:8], whole[16:32][4:8]  # head 1 of 4, 4 wide
    expected = ((table[5] + wave) @ w_q.T) @ ((table[2] + wave) @ w_k.T).T / math.sqrt(4)
    assert found.scores == pytest.approx(expected, abs=1e-5)
    row = found.apart(3)
    assert row.places.tolist() == list(range(3, 12))
    assert row.scores == pytest.approx([expected[m, m - 3] for m in range(3, 12)], abs=1e-5)
    assert row.spread == pytest.approx(np.ptp(np.diagonal(expected, -3)), abs=1e-5)
    assert row.mean == pytest.approx(np.diagonal(expected, -3).mean(), abs=1e-6)
    assert row.spread > 1e-3
    model = build(ModelConfig(**SMALL, position="rope", n_kv_heads=2), seed=3)
    found = place_scores(model, 5, 2, 3, 12)
    for distance in (0, 1, 7):
        row = found.apart(distance)
        assert row.spread < 1e-5 and row.mean == pytest.approx(row.lowest, abs=1e-5)
    assert abs(found.apart(1).mean - found.apart(5).mean) > 1e-3


def test_the_scheme_enters_once_or_in_every_block():
    def lit(position):
        return [on for _, on in entrances(build(ModelConfig(**SMALL, position=position), seed=0))]

    assert lit("sinusoidal") == lit("learned") == [True, False, False, False]
    assert lit("rope") == lit("alibi") == lit("t5") == [False, True, True, True]
    assert lit("none") == [False] * 4
    names = [name for name, _ in entrances(build(ModelConfig(**SMALL, position="rope"), seed=0))]
    assert names == ["embedding", "block 0", "block 1", "block 2"]
