"""In-context learning: the arithmetic of a layer of attention, of a gradient step and of least squares, and
what a short training comes to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from studies.circuits.in_context import (
    COUNTS,
    HEADS,
    LOOK_EVERY,
    AttentionLayer,
    InContext,
    Regression,
    continued,
    gradient_step,
    learn,
    least_squares,
    measure,
    prompts,
)

SMALL = Regression(d=3, examples=8, seeds=2, steps=100, batch=16)


def draws(count: int, seed: int = 0) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(seed + i) for i in range(count)]


def constructed(plan: Regression, rate: float) -> AttentionLayer:
    """Von Oswald et al. 2023, proposition 1: the value is the example's y, key · query is rate x_i·x."""
    layer = AttentionLayer(plan, draws(plan.seeds))
    with torch.no_grad():
        layer.keys.zero_()
        layer.keys[:, 0, : plan.d] = rate * torch.eye(plan.d)
        layer.values.zero_()
        layer.values[:, 0, plan.d] = 1.0
    return layer


@pytest.fixture(scope="module")
def found() -> InContext:
    torch.set_num_threads(1)
    return finish(measure(Regression(d=4, examples=10, steps=700)))


def test_linear_attention_with_the_constructed_weights_is_one_step_of_gradient_descent():
    examples, query, _ = prompts(draws(2), 16, 8, 3)
    layer = constructed(SMALL, 0.7)
    w = torch.zeros(2, 16, 3, requires_grad=True)
    x, y = examples[..., :-1], examples[..., -1]
    loss = ((torch.einsum("sbnd,sbd->sbn", x, w) - y).square().mean(-1) / 2).sum()
    (gradient,) = torch.autograd.grad(loss, w)
    stepped = (-0.7 * gradient * query).sum(-1)
    torch.testing.assert_close(layer(examples, query), stepped)
    torch.testing.assert_close(gradient_step(examples, query, 0.7), stepped)
    np.testing.assert_allclose(layer.matrix(), np.broadcast_to(0.7 * np.eye(3), (2, 3, 3)), atol=1e-7)


def test_a_softmax_layer_weights_values_by_a_softmax_of_scores():
    plan = replace(SMALL, layer="softmax", seeds=1)
    layer = AttentionLayer(plan, draws(1))
    examples, query, _ = prompts(draws(1), 1, 8, 3)
    keys, values = layer.keys[0, 0].detach(), layer.values[0, 0].detach()
    scores = torch.stack([e @ keys @ query[0, 0] for e in examples[0, 0]])
    weights = scores.exp() / scores.exp().sum()
    expected = sum(w * (values @ e) for w, e in zip(weights, examples[0, 0], strict=True))
    torch.testing.assert_close(layer(examples, query)[0, 0], expected)


def test_the_matrix_is_all_that_is_linear_in_the_examples_y():
    plan = replace(SMALL, seeds=1)
    layer = AttentionLayer(plan, draws(1))
    examples, query, _ = prompts(draws(1), 1, 8, 3)
    y = examples[..., -1].clone().requires_grad_()
    small = torch.cat([examples[..., :-1], y[..., None] * 1e-4], -1)
    linear = torch.autograd.grad(layer(small, query).sum(), y)[0] / 1e-4
    expected = examples[0, 0, :, :-1].double().numpy() @ layer.matrix()[0] @ query[0, 0].double().numpy() / 8
    np.testing.assert_allclose(linear[0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("count", [2, 5, 9])
def test_least_squares_is_torch_s(count: int):
    examples, query, y = prompts(draws(1), 12, count, 5)
    x, target = examples[..., :-1].double(), examples[..., -1:].double()
    w = torch.linalg.lstsq(x, target, driver="gelsd").solution[..., 0]
    torch.testing.assert_close(least_squares(examples, query), (w * query.double()).sum(-1))
    if count >= 5:
        torch.testing.assert_close(least_squares(examples, query), y.double(), atol=1e-3, rtol=1e-3)


def test_prompts_hold_a_linear_function_each():
    examples, query, y = prompts(draws(2), 6, 20, 4)
    x = torch.cat([examples[..., :-1], query[:, :, None]], 2).double()
    both = torch.cat([examples[..., -1], y[..., None]], -1).double()
    w = torch.linalg.lstsq(x, both[..., None]).solution
    torch.testing.assert_close((x @ w)[..., 0], both, atol=1e-4, rtol=1e-4)
    assert len({tuple(row.flatten().tolist()) for row in w.flatten(0, 1)}) == 12  # none is another's


def test_the_best_step_size_is_where_the_measured_error_is_lowest():
    plan = Regression(d=10, examples=20)
    examples, query, y = prompts(draws(1), 20_000, 20, 10)
    step = gradient_step(examples, query, 1.0)
    best = float((step * y).sum() / step.square().sum())
    assert plan.best_rate == 20 / 31 and best == pytest.approx(plan.best_rate, abs=0.01)
    error = float((plan.best_rate * step - y).square().mean() / y.square().mean())
    assert plan.best_error == 1 - 20 / 31 and error == pytest.approx(plan.best_error, abs=0.01)


def test_looks_come_from_the_first_step_to_the_last_and_again_alike():
    looks = list(learn(SMALL))
    assert [look.step for look in looks] == [*range(0, SMALL.steps + 1, LOOK_EVERY)]
    assert np.isnan(looks[0].losses).all() and np.isfinite(looks[-1].losses).all()
    again = list(learn(SMALL))[-1]
    assert np.array_equal(again.matrices, looks[-1].matrices)
    alone = list(learn(replace(SMALL, seed=1, seeds=1)))[-1]  # no seed disturbs another
    np.testing.assert_allclose(alone.matrices[0], looks[-1].matrices[1], atol=1e-4)


def test_training_finds_the_gradient_step(found: InContext):
    assert found.is_gradient_step and (found.apart < 0.02).all()
    np.testing.assert_allclose(found.rates, found.plan.best_rate, atol=0.04)  # 10 / 15
    assert found.beside < 0.04
    assert found.error == pytest.approx(found.gradient_error, rel=0.05)


def test_one_seed_that_has_not_found_it_is_enough_to_say_so(found: InContext):
    other = found.predicted.copy()
    other[1] += np.sqrt(0.06 * np.square(found.stepped).mean())
    mixed = replace(found, predicted=other)
    assert (mixed.apart >= 0.05).tolist() == [False, True, False] and not mixed.is_gradient_step


def test_errors_are_those_of_the_predictors(found: InContext):
    assert found.counts.tolist() == sorted({*COUNTS, 10})
    d = found.plan.d
    below = found.counts < d
    np.testing.assert_allclose(found.least[below], 1 - found.counts[below] / d, atol=0.05)
    np.testing.assert_allclose(found.least[~below], 0, atol=1e-6)
    rate = found.plan.best_rate
    expected = 1 - 2 * rate + rate**2 * (found.counts + d + 1) / found.counts
    np.testing.assert_allclose(found.gradient, expected, rtol=0.12)
    assert found.layers.shape == (3, len(found.counts))


def test_a_softmax_layer_is_no_gradient_step():
    plan = Regression("softmax", d=4, examples=10, steps=300)
    found = finish(measure(plan))
    assert HEADS["softmax4"] == 4 and not found.is_gradient_step
    assert found.error > found.gradient_error


def test_points_are_continued_by_layers_step_and_least_squares():
    plan = Regression(d=1, examples=20, seeds=2, steps=25)
    found = finish(measure(plan))
    points, at = ((1.0, 2.0), (-0.5, 0.0)), np.array([0.0, 1.0, -2.0])
    *layers, step, least = continued(found, points, at)
    assert len(layers) == 2
    np.testing.assert_allclose(step, plan.best_rate * 1.0 * at, atol=1e-6)  # mean of x y is 1
    np.testing.assert_allclose(least, 2.0 / 1.25 * at, atol=1e-6)
    examples = torch.tensor(points)[None, None].expand(2, 1, -1, -1)
    with torch.no_grad():
        one = found.layer(examples, torch.full((2, 1, 1), -2.0))
    np.testing.assert_allclose([layer[2] for layer in layers], one[:, 0], rtol=1e-5)
