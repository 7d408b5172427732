"""What a KV cache computes, takes and keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.config import ModelConfig, SampleConfig
from engine.model import build
from engine.parts.cache import KVCache
from studies.costs.ledger import ledger
from studies.costs.presets import PRESETS
from studies.generation.kv_cache import (
    CacheStep,
    by_family,
    cache_size,
    compare,
    divisors,
    family,
    filled_bytes,
    first_refill,
    flops,
    sharing,
    speed,
    totals,
    unchanged,
)
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

KINDS = {
    "plain": {}, "grouped rope": {"n_kv_heads": 2, "position": "rope"}, "gated": {"ffn": "swiglu"},
    "alibi": {"position": "alibi", "wiring": "parallel"}, "post": {"wiring": "post"},
    "no ffn": {"ffn": "none"}, "untied": {"tie_embeddings": False, "attention_bias": True},
}  # fmt: skip


def counted(config, before: int, new: int) -> int:
    """The products of a real forward pass of `new` tokens behind `before` that a cache holds, as PyTorch
    counts them on the meta device.
    """
    model = build(config, device="meta").eval().requires_grad_(False)
    cache = KVCache(model.config, config.context, model.embedding)
    cache.length = before
    with FlopCounterMode(display=False) as counter:
        model(torch.empty(1, new, dtype=torch.int64, device="meta"), cache=cache)
    return counter.get_total_flops()


@for_each("fields", KINDS.values(), ids=KINDS)
def test_flops_are_those_of_the_real_forward_passes(fields):
    config = tiny(**fields)
    for before, new in ((0, 1), (0, 5), (5, 1), (7, 1), (3, 4)):
        assert flops(build(config, device="meta").config, new, before + new) == counted(config, before, new)


def test_every_step_of_both_generations_is_counted():
    model = loud(tiny())
    pairs = compare(model, [1, 2, 3], 12, SampleConfig(temperature=1.0, seed=4))
    assert [p.token for p in pairs] == [p.token_without for p in pairs]
    assert max(p.difference for p in pairs) < 1e-3
    computed = [3, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 4]  # a context of 8: full after positions 0 to 7
    assert [p.computed for p in pairs] == computed
    assert [p.computed_without for p in pairs] == [3, 4, 5, 6, 7, 8, 4, 5, 6, 7, 8, 4]
    assert [p.refilled for p in pairs] == [n == 4 for n in computed]
    assert [p.begin for p in pairs] == [0] * 6 + [5] * 5 + [10]
    for p in pairs:
        assert p.flops == counted(model.config, p.computed_without - p.computed, p.computed)
        assert p.flops_without == counted(model.config, 0, p.computed_without)
    pairs = compare(model, list(range(8)), 2, SampleConfig(temperature=0.0))
    assert [(p.computed, p.begin, p.refilled) for p in pairs] == [(8, 0, False), (4, 5, True)]


@for_each(("fields", "prompt"), [({}, 5), ({"n_kv_heads": 2}, 8), ({"n_kv_heads": 1, "d_head": 12}, 1)])
def test_the_formula_gives_the_bytes_of_the_real_tensor(fields, prompt: int):
    model = loud(tiny(**fields))
    filled, whole = filled_bytes(model, list(range(prompt)))
    part, every = (cache_size(model.config, n) for n in (prompt, model.config.context))
    assert filled == part.formula == part.tensor
    assert whole == every.formula == ledger(model.config).memory("float32").kv_cache


@for_each("fields", [
    {}, {"position": "rope"}, {"position": "alibi", "n_kv_heads": 1}, {"mixer": "shared_qk"},
    {"qk_norm": True},
])  # fmt: skip
def test_earlier_keys_and_values_change_only_without_the_mask(fields):
    model, ids = loud(tiny(**fields)), [3, 1, 4, 1, 5, 9]
    kept, lost = unchanged(model, ids), unchanged(model, ids, mask=False)
    assert kept.most <= 1e-5 * kept.largest < 0.05 * kept.largest < lost.most
    # The first layer's keys and values come from the embeddings alone: nothing has mixed yet, mask or not.
    assert max(lost.keys[0], lost.values[0]) <= 1e-5 * lost.largest
    assert np.all(lost.values[1:] > 1e-3) and kept.keys.shape == kept.values.shape == (2,)


def test_speed_is_bounded_and_says_what_it_measured(monkeypatch: pytest.MonkeyPatch):
    ticks = (i / 10_000 for i in range(100_000))
    monkeypatch.setattr("studies.generation.kv_cache.time.perf_counter", lambda: next(ticks))
    found = speed(loud(tiny()), 6, seconds=0.05)
    assert found.tokens == 6 and found.blocks >= 1 and found.cached > 0 < found.uncached
    assert 3.4 < found.work < 3.6  # the mean of 1 to 6 positions: 3.5, and scores that grow
    clock = iter(range(1000))
    monkeypatch.setattr("studies.generation.kv_cache.time.perf_counter", lambda: float(next(clock)))
    slow = speed(loud(tiny()), 6, seconds=1.0)  # every look at the clock costs a second
    assert slow.tokens == 1 and slow.blocks == 1 and slow.cached == slow.uncached == 1.0 and slow.ratio == 1.0


FIRST = CacheStep(5, 5, 3, 0, 3, False, 300, 300, 1e-7)
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
    assert (found.same, found.difference) == (3, 3e-7)
    assert found.refilled.tolist() == [False, False, True, False]
    assert first_refill(PAIRS) == (2, 3) and first_refill(PAIRS[:2]) is None


def test_every_way_of_sharing_keys():
    assert [family(n, 8) for n in divisors(8)] == ["MHA", "GQA", "GQA", "MQA"]
    config = ModelConfig(vocab_size=65, d_model=96, n_layers=3, n_heads=6, n_kv_heads=2)
    found = sharing(config, 10, "bfloat16")
    assert (found.heads, found.model_heads) == (6, 2)
    assert {n: size.formula for n, size in found.sizes.items()} == {n: 1920 * n for n in (6, 3, 2, 1)}
    assert [found.saved(n) for n in (6, 3, 2, 1)] == [1, 2, 3, 6]
    alone = sharing(replace(config, mixer="shared_qk", n_kv_heads=None), 10, "float32")
    assert list(alone.sizes) == [6] and alone.saved(6) == 1


@for_each("name", ["llama2-7b", "llama2-70b", "mistral-7b"])
def test_published_models_with_every_way_of_sharing(name: str):
    c = PRESETS[name].model.resolved()
    one = c.n_layers * 2 * 128 * 4096 * 2
    assert by_family(c, 4096, "bfloat16") == {"MHA": c.n_heads * one, "GQA": 8 * one, "MQA": one}
    own = replace(c, n_kv_heads=4)
    assert by_family(own, 4096, "bfloat16")["GQA"] == 4 * one  # its own number where it shares
