"""The causal mask taken away, the square root and the self-term, and one attention cut into heads, against
arithmetic done here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.ledger.heads import by_heads
from engine.measure import scaling, self_term
from engine.measure.masking import without_mask
from engine.measure.recording import record
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

MODEL = loud(tiny(n_layers=1), factor=4.0).requires_grad_(False)
IDS = (3, 1, 4, 1, 5, 9, 2)


def test_without_the_mask_the_softmax_runs_over_all_keys():
    before = record(MODEL, IDS)
    found = without_mask(MODEL, before)
    scores = before["blocks.0.scores"].astype(float)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    np.testing.assert_allclose(found.patterns[0], p, rtol=1e-4, atol=1e-6)
    future = np.mean([p[:, q, q + 1 :].sum(-1) for q in range(6)], axis=0)
    np.testing.assert_allclose(found.future[0], future, rtol=1e-4)
    np.testing.assert_allclose(
        found.following[0], [np.mean([h[q, q + 1] for q in range(6)]) for h in p], rtol=1e-4
    )
    logits = torch.tensor(before.logits[:-1]).double().log_softmax(-1)
    wanted = [-float(logits[i, IDS[i + 1]]) for i in range(6)]
    np.testing.assert_allclose(found.loss_with, wanted, rtol=1e-5)
    assert found.mean_with == pytest.approx(np.mean(wanted)) != found.mean_without


def test_the_same_scores_are_sharp_without_the_scale():
    for width in (1, 64, 512):
        found = scaling.one_query(width, 3)
        e = np.exp(found.scores / width**0.5)
        np.testing.assert_allclose(found.scaled, e / e.sum())
        assert found.most_plain >= found.most_scaled and found.plain.sum() == pytest.approx(1)
        assert found.plain[found.best] == found.most_plain
    assert scaling.one_query(1).most_plain == scaling.one_query(1).most_scaled
    assert scaling.one_query(64).most_plain > 0.95 > 0.5 > scaling.one_query(64).most_scaled
    plain, scaled = (scaling.scaling(scaling.WIDTHS, e) for e in (0.0, 0.5))
    at = scaling.crossing(plain, scaled)
    assert at is not None and 16 <= at <= 128
    place = list(plain.widths).index(at)
    assert plain.jacobian[place] > scaled.jacobian[place] and plain.jacobian[-1] < scaled.jacobian[-1]


@for_each("width", [64, 256])
def test_a_token_is_most_like_itself_until_there_are_two_matrices(width):
    found = [self_term.compared(width, seed) for seed in range(20)]
    own = {way: np.mean([one[way].own_score for one in found]) for way in self_term.WAYS}
    root = width**0.5
    assert own["raw"] == pytest.approx(root, rel=0.05) and own["shared"] == pytest.approx(root, rel=0.1)
    assert abs(own["separate"]) < 0.5
    assert np.mean([one["raw"].other_spread for one in found]) == pytest.approx(1, abs=0.15)
    weights = {way: np.mean([one[way].own_weight for one in found]) for way in self_term.WAYS}
    assert weights["raw"] > 0.95 and weights["shared"] > 0.95 and weights["separate"] < 0.3
    one = found[0]["separate"]
    e = np.exp(one.scores)
    np.testing.assert_allclose(one.weights, e / e.sum(-1, keepdims=True))


def test_eight_heads_cost_what_one_costs():
    config = replace(ModelConfig(), d_model=128, n_heads=8, d_head=None, n_kv_heads=None).resolved()
    found = {cut.n_heads: cut for cut in by_heads(config)}
    assert set(found) == {1, 2, 4, 8, 16, 32} and found[8].d_head == 16
    assert len({cut.flops for cut in found.values()}) == 1
    d, t, layers = 128, config.context, config.n_layers
    assert found[1].flops == layers * (2 * 4 * d * d + 2 * 2 * t * d), "four matrices, scores and sums"
