"""What a recurrent layer carries, and attention: against the chain of Jacobians, and counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.measure import carrying
from engine.measure.carrying import LAYERS, Carried, carried
from tests.engine.cases import for_each


def test_an_rnn_s_influence_is_the_product_of_its_jacobians(monkeypatch):
    """dh_T/dx_t = diag(1 - h²) W ... diag(1 - h²) U, multiplied out in NumPy (Pascanu et al. 2013, eq. 5)."""
    length, width = 6, 5
    monkeypatch.setattr(carrying, "SEEDS", 1)
    chance = torch.Generator().manual_seed(0)
    net = carrying._net("rnn", width, chance)
    x = torch.randn(1, length, width, dtype=torch.float64, generator=chance)[0].numpy()
    direction = torch.randn(width, dtype=torch.float64, generator=chance).numpy()
    w_in, w_own, b_in, b_own = (p.detach().numpy() for p in net.parameters())
    states, h = [], np.zeros(width)
    for each in x:
        h = np.tanh(w_in @ each + b_in + w_own @ h + b_own)
        states.append(h)
    slopes, back = [], direction
    for h in reversed(states):
        back = back * (1 - h**2)
        slopes.append(np.linalg.norm(w_in.T @ back))
        back = w_own.T @ back
    expected = np.array(slopes[1:]) / slopes[1]
    assert carried("rnn", length, width).influence == pytest.approx(expected, rel=1e-9)


def test_attention_carries_where_recurrence_forgets():
    found = {layer: carried(layer, 32) for layer in LAYERS}
    assert found["rnn"].left < 1e-8 < found["lstm"].left < 0.05 and 0.5 < found["attention"].left < 2
    falls = np.diff(np.log(found["rnn"].influence))
    assert falls.max() < 0 and np.log(found["rnn"].left) / 30 == pytest.approx(falls.mean())
    net = carrying._net("lstm", 4, torch.Generator().manual_seed(0))
    both = (net.bias_hh_l0 + net.bias_ih_l0).detach()  # input, forget, cell, output
    assert both[4:8].tolist() == [1.0] * 4 and not (torch.cat([both[:4], both[8:]]) == 1).any()
    one = Carried("attention", 16, 8, np.ones(15))
    projections, scores, sums = 4 * 16 * 8 * 8, 16 * 16 * 8, 16 * 16 * 8
    assert (one.products, one.path, one.one_by_one) == (projections + scores + sums, 1, 1)


@for_each(("layer", "products"), [("rnn", 16 * 2 * 64), ("lstm", 16 * 8 * 64)])
def test_a_recurrent_layer_s_steps_and_products(layer, products):
    one = Carried(layer, 16, 8, np.ones(15))
    assert (one.products, one.path, one.one_by_one) == (products, 16, 16)
