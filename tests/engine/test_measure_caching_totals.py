"""Sums over a text written twice, and caches for every way of sharing keys, against arithmetic written out here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.config import ModelConfig
from engine.measure.caching import Pair
from engine.measure.caching_totals import by_family, divisors, family, first_refill, sharing, totals
from engine.presets import PRESETS
from tests.engine.cases import for_each

FIRST = Pair(5, 5, 3, 0, 3, False, 300, 300, 1e-7)
PAIRS = (
    FIRST,
    replace(FIRST, position=4, computed=1, flops=110, flops_without=400, difference=3e-7),
    replace(FIRST, position=5, begin=3, computed=2, flops=200, flops_without=200, refilled=True, token=6),
    replace(FIRST, position=6, begin=3, computed=1, flops=100, flops_without=330),
)


def test_totals_and_the_first_refill():
    found = totals(PAIRS)
    assert found.cached.tolist() == [300, 110, 200, 100] and found.uncached.tolist() == [300, 400, 200, 330]
    assert found.cached_sum.tolist() == [300, 410, 610, 710]
    assert found.uncached_sum.tolist() == [300, 700, 900, 1230]
    assert found.times == pytest.approx(1230 / 710) and found.times_last == pytest.approx(3.3)
    assert (found.same, found.difference) == (3, 3e-7) and found.refilled.tolist() == [
        False,
        False,
        True,
        False,
    ]
    assert first_refill(PAIRS) == (2, 3) and first_refill(PAIRS[:2]) is None


def test_every_way_of_sharing_keys():
    assert [family(n, 8) for n in divisors(8)] == ["MHA", "GQA", "GQA", "MQA"]
    config = ModelConfig(vocab_size=65, d_model=96, n_layers=3, n_heads=6, n_kv_heads=2)
    found = sharing(config, 10, "bfloat16")
    assert (found.heads, found.own) == (6, 2)
    assert {n: size.formula for n, size in found.sizes.items()} == {
        n: 3 * 2 * n * 16 * 10 * 2 for n in (6, 3, 2, 1)
    }
    assert [found.saved(n) for n in (6, 3, 2, 1)] == [1, 2, 3, 6]
    alone = sharing(replace(config, mixer="shared_qk", n_kv_heads=None), 10, "float32")
    assert list(alone.sizes) == [6] and alone.saved(6) == 1


@for_each(("name", "grouped"), [("llama2-7b", 8), ("llama2-70b", 8), ("mistral-7b", 8)])
def test_published_models_with_every_way_of_sharing(name: str, grouped: int):
    c = PRESETS[name].model.resolved()
    one = c.n_layers * 2 * 128 * 4096 * 2
    assert by_family(c, 4096, "bfloat16") == {"MHA": c.n_heads * one, "GQA": grouped * one, "MQA": one}
    own = replace(c, n_kv_heads=4)
    assert by_family(own, 4096, "bfloat16")["GQA"] == 4 * one  # its own number where it shares
