"""Gradients by depth and wiring, and what a recurrent layer and attention carry."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.probe import Patcher
from studies.families import influence_by_distance
from studies.families.influence_by_distance import LAYERS, LayerInfluence, layer_influence
from studies.residual.gradient_by_depth import Plan, _windows, averaged, fresh, measure, ratio
from tests.engine.cases import for_each
from tests.engine.helpers import verse

SMALL = {"d_model": 16, "n_heads": 2, "context": 8, "batch": 2}


def gradient_flow(**fields):
    text = verse()
    return list(measure(Plan(**fields), text.train, text.vocab_size))


@for_each("wiring", ["pre", "post", "parallel", "none"])
@for_each("norm", ["layernorm", "rmsnorm", "none"])
@for_each("init", ["scaled", "fan_in"])
def test_every_wiring_is_measured(wiring, norm, init):
    profiles = gradient_flow(depths=(3, 1), wirings=(wiring,), norm=norm, init=init, seeds=2, **SMALL)
    assert [(p.depth, p.seed) for p in profiles] == [(1, 0), (1, 1), (3, 0), (3, 1)]
    assert [p.done for p in profiles] == [1, 2, 5, 8]
    for p in profiles:
        assert p.finite and p.loss > 0 and (p.gradients > 0).all() and (p.weights > 0).all()
        assert len(p.gradients) == len(p.activations) == len(p.weights) + 1 == p.depth + 1


@for_each("wiring", ["pre", "post", "none"])
def test_a_gradient_is_what_the_loss_does_when_the_stream_is_nudged(wiring):
    """The gradient's norm is its largest slope."""
    text, plan = verse(), Plan(depths=(2,), wirings=(wiring,), init="fan_in", seeds=1, **SMALL)
    profile = next(measure(plan, text.train, text.vocab_size))
    model = fresh(plan, wiring, 2, 0, text.vocab_size).double()
    tokens = _windows(text.train, plan, 0)
    name = f"blocks.0.{'norm2' if wiring == 'post' else 'resid_post'}"

    def loss_with(nudge):
        logits = model(tokens[:, :-1], Patcher({name: lambda x: x + nudge}))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    nudge = torch.zeros(2, 8, 16, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss_with(nudge), nudge)
    step = 1e-4 * gradient / gradient.norm()
    with torch.no_grad():
        slope = float(loss_with(step) - loss_with(-step)) / 2e-4
    assert profile.gradients[1] == pytest.approx(slope, rel=1e-3)


def test_activations_are_the_streams_own_and_weights_start_as_said():
    text, (profile,) = verse(), gradient_flow(depths=(4,), wirings=("post",), seeds=1)
    # a norm without bias gives every token the length sqrt(64)
    np.testing.assert_allclose(profile.activations[1:], 8.0, rtol=1e-2)
    for init, expected in (("scaled", 0.02 / math.sqrt(8)), ("unscaled", 0.02), ("fan_in", 1 / 16)):
        model = fresh(Plan(init=init), "pre", 4, 0, text.vocab_size)
        assert float(model.blocks[0].ffn.w_out.weight.detach().std()) == pytest.approx(expected, rel=0.03)
        assert float(model.embedding.detach().std()) == pytest.approx(0.02, rel=0.05)


def test_the_same_plan_gives_the_same_numbers_and_other_seeds_others():
    first, second = (gradient_flow(depths=(2,), wirings=("pre",), seeds=2, **SMALL) for _ in range(2))
    np.testing.assert_array_equal(first[1].gradients, second[1].gradients)
    assert (first[0].gradients != first[1].gradients).any()
    mean = averaged(first)["pre", 2]
    np.testing.assert_allclose(mean, np.sqrt(first[0].gradients * first[1].gradients), rtol=1e-9)
    assert ratio(np.array([2.0, 5.0, 4.0])) == 0.5
    assert math.isnan(ratio(np.array([1.0, 0.0])))
    assert math.isnan(ratio(np.array([1.0, np.nan])))
    assert ratio(np.array([0.0, 1.0])) == 0


def test_an_rnn_s_influence_is_the_product_of_its_jacobians(monkeypatch):
    """dh_T/dx_t = diag(1 - h²) W ... diag(1 - h²) U, multiplied out in NumPy (Pascanu et al. 2013, eq. 5)."""
    length, width = 6, 5
    monkeypatch.setattr(influence_by_distance, "SEEDS", 1)
    chance = torch.Generator().manual_seed(0)
    net = influence_by_distance._net("rnn", width, chance)
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
    assert layer_influence("rnn", length, width).influence == pytest.approx(expected, rel=1e-9)


def test_attention_carries_where_recurrence_forgets():
    found = {layer: layer_influence(layer, 32) for layer in LAYERS}
    assert found["rnn"].left < 1e-8 < found["lstm"].left < 0.05 and 0.5 < found["attention"].left < 2
    falls = np.diff(np.log(found["rnn"].influence))
    assert falls.max() < 0 and np.log(found["rnn"].left) / 30 == pytest.approx(falls.mean())
    net = influence_by_distance._net("lstm", 4, torch.Generator().manual_seed(0))
    both = (net.bias_hh_l0 + net.bias_ih_l0).detach()  # input, forget, cell, output
    assert both[4:8].tolist() == [1.0] * 4 and not (torch.cat([both[:4], both[8:]]) == 1).any()
    one = LayerInfluence("attention", 16, 8, np.ones(15))
    projections, scores, sums = 4 * 16 * 8 * 8, 16 * 16 * 8, 16 * 16 * 8
    assert (one.products, one.path, one.sequential_steps) == (projections + scores + sums, 1, 1)


@for_each(("layer", "products"), [("rnn", 16 * 2 * 64), ("lstm", 16 * 8 * 64)])
def test_a_recurrent_layer_s_steps_and_products(layer, products):
    one = LayerInfluence(layer, 16, 8, np.ones(15))
    assert (one.products, one.path, one.sequential_steps) == (products, 16, 16)
