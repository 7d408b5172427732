"""LayerNorm and RMSNorm on four numbers, by hand; and whose norms stand where."""

from __future__ import annotations

import math

import pytest

from engine.measure.norm_example import habits, normed


def test_the_two_norms_by_hand():
    found = normed((1.0, 2.0, 3.0, 6.0))  # deviations -2, -1, 0, 3: squares sum to 14; squares of x to 50
    assert (found.mean, found.variance, found.rms) == pytest.approx((3.0, 14 / 4, math.sqrt(50 / 4)))
    assert found.layernorm == pytest.approx([d / math.sqrt(3.5) for d in (-2, -1, 0, 3)], rel=1e-5)
    assert found.rmsnorm == pytest.approx([x / math.sqrt(12.5) for x in (1, 2, 3, 6)], rel=1e-5)
    found = {(one.wiring, one.norm): one.models for one in habits()}
    assert found["post", "layernorm"] == ("BERT base", "Transformer base of 2017")
    assert "GPT-2 small" in found["pre", "layernorm"]
    assert {"LLaMA-2 7B", "T5 base"} <= set(found["pre", "rmsnorm"])
