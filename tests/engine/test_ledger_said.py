"""What pages say about a ledger in shares, differences and verdicts, against arithmetic written out here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engine.config import ModelConfig
from engine.ledger import GB, kv_numbers, ledger
from engine.ledger.blackboard import BARE, block, tied, with_heads_and_contexts
from engine.ledger.fits import fit, uses
from engine.ledger.growth import break_even, by_part, caches, work
from engine.ledger.shares import Pair, change, compared, row_share, where
from engine.presets import ENCODER_DECODERS, PRESETS


def of(name: str):
    preset = (PRESETS | ENCODER_DECODERS)[name]
    return ledger(preset.model, preset.encoder)


SMALL = ModelConfig(vocab_size=65, d_model=64, n_layers=3, n_heads=4, context=32, position="none")


def test_where_the_parameters_are():
    found = where(of("gpt2"))
    outside = 50257 * 768 + 1024 * 768 + 2 * 768
    network = 12 * (8 * 768**2 + 5 * 768)
    assert found.outside == outside and found.in_blocks == 124_439_808 - outside
    assert found.blocks_share == pytest.approx(1 - outside / 124_439_808)
    assert found.network == network and found.network_share == pytest.approx(network / found.in_blocks)
    assert found.attention == 12 * (4 * 768**2 + 4 * 768)
    assert (found.d_ff, found.queries, found.keys, found.usual) == (4, 1, 1, True)
    found = where(of("llama2-70b"))
    assert (found.d_ff, found.queries, found.keys, found.usual) == (28672 / 8192, 1, 1 / 8, False)
    assert where(ledger(replace(SMALL, ffn="none"))).network_share == 0
    t5 = of("t5-base")
    assert where(t5).attention == t5.components["attention"] + t5.components["cross_attention"]
    assert sum(row_share(t5, row) for row in t5.rows) == pytest.approx(1)


def test_two_models_and_a_change_of_fields():
    one, two = ledger(SMALL), ledger(replace(SMALL, n_kv_heads=1))
    found = change(one, two)
    assert found.parameters == -3 * 2 * 64 * 48 and found.saved == 3 * 2 * 64 * 48
    assert (found.before, found.after, found.larger) == (one.total, two.total, one.total)
    assert (found.cache_before, found.cache_after) == (3 * 2 * 64, 3 * 2 * 16)
    found = compared(of("gpt2"), of("bert-base"), ("embedding", "pooler", "cross_attention"))
    assert list(found) == ["embedding", "pooler", "all"]
    assert found["pooler"] == Pair(0, 590_592) and found["pooler"].ratio is None
    whole = found["all"]
    assert whole.difference == 109_482_240 - 124_439_808
    assert whole.ratio == pytest.approx(109_482_240 / 124_439_808)
    assert whole.times == pytest.approx(124_439_808 / 109_482_240)


def test_work_and_six_n():
    found = work(ledger(SMALL), 20)
    matrices = 3 * 12 * 64**2 + 65 * 64  # and the tied embedding, as the last product
    scores = 3 * 2 * 2 * 64 * 20
    assert found.flops.forward == 2 * matrices + scores and found.multiplying == matrices
    assert found.six_n_share == pytest.approx(6 * ledger(SMALL).total / (3 * (2 * matrices + scores)))
    assert found.six_multiplying_share == pytest.approx(2 * matrices / (2 * matrices + scores))
    assert found.text_forward == 20 * found.flops.forward
    assert found.text_training == 3 * found.text_forward
    assert found.attention == 3 * 4 * 64**2


def test_parts_and_caches_over_the_length():
    lengths = np.array([16, 1000])
    found = by_part(ledger(SMALL), lengths)
    assert found["scores and sums"].tolist() == [3 * 4 * 64 * 16, 3 * 4 * 64 * 1000]
    assert found["everything else"].tolist() == [2 * (3 * 12 * 64**2 + 65 * 64)] * 2
    assert found["attention's matrices"][0] == 2 * 3 * 4 * 64**2
    assert found["feed-forward"][0] == 2 * 3 * 8 * 64**2 and found["unembedding"][0] == 2 * 65 * 64
    mistral = of("mistral-7b")
    scores = by_part(mistral, np.array([2048, 4096, 32_768]))["scores and sums"]
    assert scores.tolist() == [4 * 32 * 4096 * n for n in (2048, 4096, 4096)]
    assert break_even(mistral).most == 4096 * 2 * 32 * 2 * 8 * 128
    assert break_even(of("gpt2")).most == 0
    found = caches(
        {"own": ledger(SMALL), "one": ledger(replace(SMALL, n_kv_heads=1))}, "float32", 5, np.array([1, 7])
    )
    assert found["own"].tolist() == [3 * 2 * 64 * 5 * 4, 3 * 2 * 64 * 5 * 7 * 4]
    assert found["one"].tolist() == [n / 4 for n in found["own"].tolist()]


def test_where_the_cache_is_as_large_and_uses_add_up():
    found = break_even(of("mistral-7b"))
    assert (found.token, found.group) == (2 * 32 * 2 * 8 * 128, 4)
    assert found.tokens == pytest.approx(2 * of("mistral-7b").total / found.token)
    assert break_even(of("bert-base")).token == 0
    t5 = of("t5-base")
    assert break_even(t5).token == 2 * kv_numbers(t5.config, t5.encoder)
    small = of("gpt2")
    memory = small.memory("bfloat16", 2, 64)
    found = uses(small, "bfloat16", 2, 64)
    assert {use: sum(parts.values()) for use, parts in found.items()} == {
        "to write": memory.inference,
        "to train": memory.training,
    }
    assert found["to write"]["weights"] == 2 * small.total
    assert found["to train"]["AdamW averages"] == 8 * small.total
    assert list(uses(small, "int8", 2, 64)) == ["to write"]


def test_what_fits():
    small = of("gpt2")

    def needs(name: str, dtype: str) -> int:
        return getattr(small.memory(dtype, 4, 512), name)

    # a size at which each of the three has another answer
    size = needs("training", "float32")
    found = fit(small, size, 4, 512)
    assert (found.writes_in, found.holds_in, found.trains_in) == ("float32", "float32", "float32")
    assert needs("training", "bfloat16") < size
    assert fit(small, size - 1, 4, 512).trains_in == "bfloat16"
    only_write = fit(small, needs("training", "bfloat16") - 1, 4, 512)
    assert (only_write.writes_in, only_write.trains_in) == ("float32", None)
    less = fit(small, needs("inference", "float32") - 1, 4, 512)
    assert (less.writes_in, less.holds_in) == ("bfloat16", "float32")
    bare = fit(small, math.ceil(small.total / 2), 4, 512)
    assert (bare.writes_in, bare.holds_in) == (None, "int4")
    none = fit(small, math.ceil(small.total / 2) - 1, 4, 512)
    assert none.holds_in is None and none.least_weights == math.ceil(small.total / 2)
    assert none.least_training == needs("training", "bfloat16")
    assert fit(of("gpt3-175b"), 80 * GB, 1, 2048).holds_in is None


def test_the_blackboard():
    one = block()
    assert (one.attention, one.network, one.norms) == (4 * 512**2, 2 * 512 * 2048, 4 * 512)
    assert one.total == 12 * 512**2 + 4 * 512 and one.network_share == pytest.approx(2097152 / one.total)
    assert with_heads_and_contexts(BARE) == {2 * 65 * 256 + 11 * 4 * 256**2}
    found = tied(PRESETS["gpt2"].model)
    assert found.saved == 50257 * 768 and found.more == pytest.approx(50257 * 768 / 124_439_808)
    assert found.untied == 124_439_808 + 50257 * 768
