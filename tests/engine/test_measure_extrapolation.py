"""Loss by position: against prefixes fed one by one, against worked numbers, and what the stopgaps change."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from engine.config import ModelConfig
from engine.errors import CorpusError, ShapeError
from engine.measure import extrapolation
from engine.measure.extrapolation_facts import above_tail, costs, far_buckets, in_unit, least, reach_of
from engine.model import build
from engine.parts.positions import t5_bucket
from tests.engine.cases import for_each

CONFIG = ModelConfig(vocab_size=11, context=8, d_model=16, n_layers=2, n_heads=2)
TOKENS = torch.randint(11, (200,), generator=torch.Generator().manual_seed(3))


def fresh(position, **fields):
    model = build(replace(CONFIG, position=position, **fields), seed=5).requires_grad_(False).eval()
    with torch.no_grad():  # large enough that positions and tokens show
        for parameter in model.parameters():
            parameter.mul_(8)
    return model


def measured(model, starts, length):
    return np.concatenate(list(extrapolation.position_losses(model, TOKENS, starts, length, batch=3)))


@given(
    some.integers(1, 400), some.integers(1, 9), some.integers(0, 60), some.integers(1, 4), some.integers(1, 6)
)
def test_windows_lie_inside_the_text_and_on_the_grid(tokens, context, count, times, stretch):
    if tokens < times * context + 1:
        with pytest.raises(CorpusError):
            extrapolation.window_starts(tokens, context, count, times, stretch)
        return
    starts = extrapolation.window_starts(tokens, context, count, times, stretch)
    assert starts[0] == 0 and (np.diff(starts) > 0).all() and not (starts % context).any()
    assert starts[-1] + times * context + 1 <= tokens
    every = np.arange(0, tokens - times * context, context)
    assert len(starts) <= (count if 0 < count < len(every) else len(every))
    if count == 0:
        assert (starts == every).all()


@for_each("position", ["none", "sinusoidal", "rope", "alibi", "t5"])
def test_losses_are_those_of_prefixes_fed_one_by_one(position):
    model, starts = fresh(position), np.array([0, 8, 50, 100])
    found = measured(model, starts, 24)
    assert found.shape == (4, 24) and found.dtype == np.float32
    for row, start in enumerate(starts.tolist()):
        for p in (0, 1, 7, 8, 23):  # within the context of 8 and beyond it
            logits = model(TOKENS[None, start : start + p + 1])[0, -1].double()
            loss = float(logits.logsumexp(0) - logits[TOKENS[start + p + 1]])
            assert found[row, p] == pytest.approx(loss, abs=1e-4)


def test_a_learned_table_answers_as_far_as_it_goes():
    model, starts = fresh("learned"), np.array([0, 8, 16])
    found = measured(model, starts, 24)
    assert np.isfinite(found[:, :8]).all() and np.isnan(found[:, 8:]).all()
    with pytest.raises(ShapeError):
        model(TOKENS[None, :9])
    c = extrapolation.curve(found, starts, 8, width=4)
    assert np.isfinite(c.mean[:2]).all() and np.isnan(c.mean[2:]).all() and np.isnan(c.excess[2]).all()
    with pytest.raises(ShapeError, match="length"):
        next(extrapolation.position_losses(model, TOKENS, starts, 0))


def test_means_and_errors_by_hand(monkeypatch):
    monkeypatch.setattr(extrapolation, "TAIL", 1)
    losses = np.array([[1, 3, 5, 5], [3, 5, 5, 7]], dtype=np.float32)
    c = extrapolation.curve(losses, np.array([0, 10]), 2, width=2)
    assert c.mean.tolist() == [3, 5.5] and c.windows == 2 and c.first.tolist() == [0, 2]
    assert c.error.tolist() == pytest.approx([1.0, 0.5])  # windows' means 2, 4 and 5, 6: sd / sqrt(2)
    assert c.tail == pytest.approx((4.0, 1.0))  # position 1 of both: 3 and 5
    assert np.isnan(c.excess[2]).all()  # no window begins where the other's second context does


def test_the_excess_compares_the_same_characters():
    context, count = 16, 40
    difficulty = np.random.default_rng(0).gamma(2.0, 1.0, context * (count + 4))
    starts = np.arange(count) * context
    losses = np.stack([difficulty[s : s + 3 * context] for s in starts]).astype(np.float32)
    losses[:, context : 2 * context] += 0.5
    losses[:, 2 * context :] += 1.25
    c = extrapolation.curve(losses, starts, context)
    assert c.excess[2] == pytest.approx((0.5, 0.0), abs=1e-5)
    assert c.excess[3] == pytest.approx((1.25, 0.0), abs=1e-5)
    assert c.tail[0] == pytest.approx(losses[:, context - extrapolation.TAIL : context].mean(), abs=1e-5)
    c = extrapolation.curve(np.random.default_rng(0).normal(size=(20, 16)), np.arange(20) * 8, 8)
    assert np.isfinite(c.mean).all() and np.isnan(c.error).all() and np.isnan(c.tail[1])


@for_each("all_of_it", [True, False], ids=["every window", "stretches"])
def test_the_errors_are_those_of_a_text_whose_scenes_differ(all_of_it):
    """Windows of a scene are hard or easy together."""
    rng, context, said, found = np.random.default_rng(1), 16, [], []
    starts = extrapolation.window_starts(1024 * context + 1, context, 0 if all_of_it else 320, times=1)
    for _ in range(200):
        scenes = np.repeat(rng.normal(size=70), 16)[rng.integers(16) :]  # 16 windows each, half of a block
        losses = 2 + 0.5 * scenes[starts // context][:, None] + 0.3 * rng.normal(size=(len(starts), context))
        c = extrapolation.curve(losses.astype(np.float32), starts, context)
        said.append(c.error[0])
        found.append(c.mean[0])
    assert np.mean(said) / np.std(found) == pytest.approx(1.0, abs=0.2)
    independent = np.hypot(0.5, 0.3 / np.sqrt(8)) / np.sqrt(len(starts))
    assert np.mean(said) > 2.5 * independent


def test_a_curve_goes_through_json_and_back():
    starts = np.array([0, 8, 16, 100, 108])  # two blocks
    c = extrapolation.curve(measured(fresh("learned"), starts, 32), starts, 8)
    again = extrapolation.Curve.from_dict(json.loads(json.dumps(c.to_dict(), allow_nan=False)))
    assert np.allclose(again.mean, c.mean, atol=1e-4, equal_nan=True)
    assert np.allclose(again.error, c.error, atol=1e-4, equal_nan=True)
    assert again.windows == c.windows
    assert again.tail == pytest.approx(c.tail, abs=1e-4)
    assert set(again.excess) == {2, 3, 4}
    assert np.isnan(again.excess[4]).all()


@for_each("kind", ["repeat", "hold", "far"])
def test_a_stopgap_changes_nothing_within_the_context(kind):
    model = fresh(extrapolation.STOPGAP_FOR[kind])
    before = {name: p.clone() for name, p in model.named_parameters()}
    longer = extrapolation.stopgap(model, kind)
    assert torch.equal(longer(TOKENS[None, :8]), model(TOKENS[None, :8]))
    assert longer(TOKENS[None, :32]).shape == (1, 32, 11)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_the_learned_table_is_repeated_or_held():
    model = fresh("learned")
    table = model.positions.weight
    repeated, held = (
        extrapolation.stopgap(model, "repeat").positions.weight,
        extrapolation.stopgap(model, "hold").positions.weight,
    )
    for p in range(32):
        assert torch.equal(repeated[p], table[p % 8]) and torch.equal(held[p], table[min(p, 7)])
    model = fresh("t5")
    last = extrapolation.farthest_bucket(model.config)
    weight = extrapolation.stopgap(model, "far").positions.weight
    beyond = t5_bucket(torch.tensor([-8, -40, -1000]), False, 32, 128)
    assert (beyond > last).all() and all(torch.equal(weight[b], model.positions.weight[last]) for b in beyond)


def test_the_larger_base_slows_the_slowest_pair_by_the_factor():
    model = fresh("rope")  # heads of 8: four pairs
    slow = extrapolation.stopgap(model, "ntk", times=4).config.rope_theta
    exponents = np.arange(0, 8, 2) / 8
    ratio = model.config.rope_theta**-exponents / slow**-exponents
    assert ratio[0] == pytest.approx(1) and ratio[-1] == pytest.approx(4) and (np.diff(ratio) > 0).all()
    model = fresh("rope", rope_fraction=0.5)  # two pairs of a head's four
    slow = extrapolation.stopgap(model, "ntk", times=4).config.rope_theta
    assert model.config.rope_theta ** (-2 / 4) / slow ** (-2 / 4) == pytest.approx(4)
    one = fresh("rope", rope_fraction=0.25)  # one pair: its frequency is 1 whatever the base
    assert extrapolation.stopgap(one, "ntk").config.rope_theta == one.config.rope_theta


@for_each("context", [8, 64])
def test_training_never_meets_the_buckets_beyond_the_farthest(context):
    """The gradient says which buckets a training at this context can change."""
    model = build(replace(CONFIG, position="t5", context=context), seed=1)
    model(TOKENS[None, :context]).square().sum().backward()
    met = model.positions.weight.grad.abs().sum(1) > 0
    last = extrapolation.farthest_bucket(model.config)
    assert met[: last + 1].all() and not met[last + 1 :].any()


CURVE = extrapolation.Curve(
    8, np.array([3.0, 2.0, np.nan]), np.array([0.3, 0.2, np.nan]), 9, (2.0, 0.1),
    {2: (0.5, 0.05), 4: (1.0, 0.2)},
)  # fmt: skip


def test_bits_are_nats_over_ln_2():
    bits = in_unit(CURVE, "bits")
    assert bits.mean == pytest.approx(CURVE.mean / math.log(2), nan_ok=True)
    assert bits.error == pytest.approx(CURVE.error / math.log(2), nan_ok=True)
    assert bits.tail == pytest.approx((2.0 / math.log(2), 0.1 / math.log(2)))
    assert bits.excess[4] == pytest.approx((1.0 / math.log(2), 0.2 / math.log(2)))
    assert (bits.width, bits.windows) == (8, 9) and in_unit(CURVE, "nats").tail == CURVE.tail
    assert above_tail(CURVE) == pytest.approx([1.0, 0.0, np.nan], nan_ok=True)
    found = costs(CURVE, 1.5, 1.75)
    assert (found.validation, found.against_none, found.tail) == (1.5, -0.25, (2.0, 0.1))
    assert found.more == {2: (0.5, 0.05), 4: (1.0, 0.2)}
    bits = costs(CURVE, 1.5, 1.75, "bits")
    assert bits.validation == pytest.approx(2.16404, abs=1e-5)
    assert bits.against_none == pytest.approx(-0.36067, abs=1e-5)
    assert bits.more[2] == pytest.approx((0.5 / math.log(2), 0.05 / math.log(2)))
    silent = replace(CURVE, excess={2: (math.nan, math.nan), 4: (math.nan, math.nan)})
    assert costs(silent, 1.5, None).against_none is None and costs(silent, 1.5, None).more == {
        2: None,
        4: None,
    }


def test_what_holds_and_what_breaks():
    def far(value: float) -> extrapolation.Curve:
        return replace(CURVE, excess={2: (9.0, 0.0), extrapolation.TIMES: (value, 0.0)})

    found = reach_of({"a": far(0.7), "b": far(0.05), "c": far(math.nan), "d": far(-0.1), "e": far(0.051)})
    assert list(found.held.items()) == [("d", -0.1), ("b", 0.05)]
    assert list(found.lost.items()) == [("e", 0.051), ("a", 0.7)]
    assert least({"x": 2.0, "y": 1.0, "z": 3.0}) == "y"


def test_t5_s_far_buckets():
    model = build(ModelConfig(vocab_size=11, context=64, d_model=16, n_layers=1, n_heads=4, position="t5"))
    with torch.no_grad():
        model.positions.weight.zero_()
        model.positions.weight[26] = torch.tensor([-1.0, -2.0, -3.0, -4.0])
        model.positions.weight[30, 2] = -0.5
    found = far_buckets(model)
    assert (found.last, found.end, found.met, found.unmet) == (26, 31, -2.5, 0.5)
    assert found.factor == pytest.approx(math.exp(2.5))
    assert far_buckets(build(replace(model.config, context=200))) is None
    assert far_buckets(build(replace(model.config, position="rope"))) is None
