"""What is said of curves of loss by position, against plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import ModelConfig
from engine.measure.extrapolation import TIMES, Curve
from engine.measure.extrapolation_facts import above_tail, costs, far_buckets, in_unit, least, reach_of
from engine.model import build

CURVE = Curve(
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
    def far(value: float) -> Curve:
        return replace(CURVE, excess={2: (9.0, 0.0), TIMES: (value, 0.0)})

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
