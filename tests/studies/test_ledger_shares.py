"""What pages say about a ledger in shares, differences and verdicts, against arithmetic written out here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import build
from studies.costs import model_choices
from studies.costs.block import block_of
from studies.costs.budget import budget, grown
from studies.costs.fits import alike, fit, smallest, uses
from studies.costs.growth import break_even, by_heads, by_part, caches
from studies.costs.hand_count import counted, terms
from studies.costs.lecture_models import LECTURE_MODELS
from studies.costs.ledger import GB, kv_numbers, ledger, ledger_of
from studies.costs.presets import PRESETS
from studies.costs.published_models import BY_YEAR, ENCODER_DECODERS
from studies.costs.shares import Difference, change, differences, largest, quick_reference, where
from studies.costs.sizes import fitting, padding
from studies.pairs.config import seq2seq_config
from studies.pairs.seq2seq import build_pair
from tests.engine.cases import for_each


def of(name: str):
    return ledger_of((PRESETS | ENCODER_DECODERS)[name])


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


def test_two_models_and_a_change_of_fields():
    one, two = ledger(SMALL), ledger(replace(SMALL, n_kv_heads=1))
    parameters, cached = change(one, two)
    assert parameters.difference == -3 * 2 * 64 * 48
    assert parameters == Difference(one.total, two.total) and cached == Difference(3 * 2 * 64, 3 * 2 * 16)
    found = differences(of("gpt2"), of("bert-base"), ("embedding", "pooler", "cross_attention"))
    assert list(found) == ["embedding", "pooler", "all"]
    assert found["pooler"] == Difference(0, 590_592) and found["pooler"].ratio is None
    whole = found["all"]
    assert whole.difference == 109_482_240 - 124_439_808
    assert whole.ratio == pytest.approx(109_482_240 / 124_439_808)
    assert whole.times == pytest.approx(124_439_808 / 109_482_240)


def test_work_and_six_n():
    found = ledger(SMALL).flops(20)
    matrices = 3 * 12 * 64**2 + 65 * 64  # and the tied embedding, as the last product
    scores = 3 * 2 * 2 * 64 * 20
    assert found.forward == 2 * matrices + scores and found.multiplying == matrices
    assert found.of_training(ledger(SMALL).total) == pytest.approx(
        6 * ledger(SMALL).total / (3 * (2 * matrices + scores))
    )
    assert found.of_training(found.multiplying) == pytest.approx(2 * matrices / (2 * matrices + scores))
    assert found.text == 20 * found.forward
    assert ledger(SMALL).in_attention == 3 * 4 * 64**2


def test_parts_and_caches_over_the_length():
    lengths = np.array([16, 1000])
    found = by_part(ledger(SMALL), lengths)
    assert found["scores and weighted sums"].tolist() == [3 * 4 * 64 * 16, 3 * 4 * 64 * 1000]
    assert found["everything else"].tolist() == [2 * (3 * 12 * 64**2 + 65 * 64)] * 2
    assert found["attention's matrices"][0] == 2 * 3 * 4 * 64**2
    assert found["feed-forward"][0] == 2 * 3 * 8 * 64**2 and found["unembedding"][0] == 2 * 65 * 64
    mistral = of("mistral-7b")
    scores = by_part(mistral, np.array([2048, 4096, 32_768]))["scores and weighted sums"]
    assert scores.tolist() == [4 * 32 * 4096 * n for n in (2048, 4096, 4096)]
    assert break_even(mistral).most == 4096 * 2 * 32 * 2 * 8 * 128
    assert break_even(of("gpt2")).most == 0
    both = {"own": ledger(SMALL), "one": ledger(replace(SMALL, n_kv_heads=1))}
    found = caches(both, "float32", 5, np.array([1, 7]))
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
    sums = {use: sum(parts.values()) for use, parts in found.items()}
    assert sums == {"to write": memory.inference, "to train": memory.training}
    assert found["to write"]["weights"] == 2 * small.total
    assert found["to train"]["AdamW moments"] == 8 * small.total
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
    """Neither heads nor the length of the text change the count of a bare model."""
    bare = LECTURE_MODELS["bare-256"].model
    totals = {ledger(replace(bare, n_heads=h, context=t)).total for h in (1, 4, 8) for t in (16, 512, 4096)}
    assert totals == {2 * 65 * 256 + 11 * 4 * 256**2} == {2_916_864}
    assert ledger_of(LECTURE_MODELS["bare-128"]).total == 2 * 65 * 128 + 12 * 4 * 128**2 == 803_072
    one = block_of(ledger_of(LECTURE_MODELS["block-512"]))
    assert (one.attention, one.feedforward, one.norm) == (4 * 512**2, 2 * 512 * 2048, 4 * 512)


def test_counts_by_hand() -> None:
    d, layers = 192, 6
    nano = 2 * 65 * d + 256 * d + layers * (12 * d * d + 9 * d + 4 * d) + 2 * d
    assert ledger_of(LECTURE_MODELS["nanogpt-192"]).total == nano == 2_743_680
    lab = 65 * 128 + 128 * 128 + 4 * (12 * 128**2 + 4 * 128) + 2 * 128
    assert ledger_of(LECTURE_MODELS["lab"]).total == lab == 813_440
    assert not LECTURE_MODELS.keys() & PRESETS.keys()
    for preset in LECTURE_MODELS.values():
        built = build(preset.model, device="meta")
        assert sum(p.numel() for p in built.parameters()) == ledger_of(preset).total
        assert preset.source and not preset.trainable and not preset.published
    found = terms(of("gpt2"))
    assert [(term.component, term.formula, term.numbers) for term in found] == [
        ("embedding", "V·d", "50,257·768"), ("position", "T·d", "1,024·768"), ("attention", "L·4·d²", "12·4·768²"),
        ("feedforward", "L·2·d·d_ff", "12·2·768·3,072"),
    ]  # fmt: skip
    by_hand = 50257 * 768 + 1024 * 768 + 12 * 12 * 768**2
    assert counted(tuple(found)) == by_hand == 124_439_808 - 12 * (9 + 4) * 768 - 2 * 768
    attention = next(t for t in terms(of("llama2-70b")) if t.component == "attention")
    assert attention.formula == "L·(2·d² + 2·H_kv·d_head·d)"
    assert attention.parameters == 80 * (2 * 8192**2 + 2 * 8 * 128 * 8192)
    bare = ledger(ModelConfig(mixer="none", ffn="none"))
    assert [term.component for term in terms(bare)] == ["embedding", "position"]


def value(numbers: str) -> int:
    """What a term's numbers come to: only digits, dots, squares, sums and brackets stand in them."""
    written = numbers.replace(",", "").replace("·", "*").replace("²", "**2")
    assert set(written) <= set("0123456789*+() ")
    return int(eval(written))


@for_each("name", [*PRESETS, *ENCODER_DECODERS, *LECTURE_MODELS])
def test_what_is_written_is_what_is_counted(name: str) -> None:
    counts = ledger_of((PRESETS | ENCODER_DECODERS | LECTURE_MODELS)[name])
    found = terms(counts)
    assert all(value(term.numbers) == term.parameters for term in found)
    assert 0.99 < counted(found) / counts.total <= 1


def test_eight_heads_are_not_eight_times_the_work() -> None:
    found = {each.heads: each for each in by_heads(of("gpt2").config, 1024)}
    assert set(found) == {1, 2, 4, 8, 16, 32}
    one_layer = 2 * 4 * 768 * 768 + 2 * 2 * 1024 * 768
    assert {each.flops for each in found.values()} == {12 * one_layer}
    assert (found[1].d_head, found[8].d_head) == (768, 96)
    assert (found[1].weights, found[8].weights) == (1024, 8 * 1024)
    narrow = by_heads(ModelConfig(d_model=12, n_heads=3).resolved(), 8)
    assert [each.heads for each in narrow] == [1, 2, 4]
    windowed = by_heads(of("mistral-7b").config, 8192, heads=(8,))
    assert windowed[0].weights == 8 * 4096
    c = PRESETS["gpt2"].model.resolved()
    vocab, *others = fitting(c)
    assert (vocab.factor, vocab.padded, vocab.fits) == (1, 50_304, False)
    assert all(each.fits for each in others)
    assert {each.field: each.factor for each in others} == {"d_model": 256, "d_head": 64, "d_ff": 1024}
    assert padding(c) == 47 * 768
    assert padding(PRESETS["pythia-70m"].model.resolved()) == 0  # padded by its makers


def test_chinchilla_s_own_table() -> None:
    """Hoffmann et al. 2022, table 3: 1 B parameters, 1.21e20 FLOP, 20.2 B tokens; 10 B, 1.23e22, 205.1 B."""
    for size, flops, tokens in ((1e9, 1.21e20, 20.2e9), (1e10, 1.23e22, 205.1e9)):
        found = budget(int(size))
        assert found.flops == pytest.approx(flops, rel=0.03)
        assert found.tokens == pytest.approx(tokens, rel=0.03)
    assert budget(10**9).loss == pytest.approx(1.69 + 406.4 * 10 ** (-9 * 0.34) + 410.7 * (2e10) ** -0.28)
    laws = grown(10)
    assert laws["Kaplan et al. 2020"] == pytest.approx((5.3703, 1.8621), rel=1e-4)
    assert laws["Hoffmann et al. 2022"] == pytest.approx((10**0.5, 10**0.5))
    assert all(n * d == pytest.approx(10) for n, d in laws.values())


def test_the_largest_parts_and_what_is_elsewhere() -> None:
    found, elsewhere = largest(of("gpt2"))
    assert list(found) == ["feedforward", "embedding", "attention"]
    assert found["embedding"] == 50257 * 768 and elsewhere == 1024 * 768 + 25 * 2 * 768
    bare, none = largest(ledger(ModelConfig(mixer="none", ffn="none", norm="none")))
    assert none == 0 and sum(bare.values()) == 65 * 128 + 64 * 128
    llama, sizes = of("llama2-7b"), {"large": 80 * GB, "small": 8 * GB, "mid": 16 * GB}
    assert smallest(llama, sizes, "bfloat16", 1, 4096) == "mid"  # 2 bytes of 6.74 B, and 2 GB of cache
    assert smallest(llama, sizes, "int4", 1, 4096) == "small"
    assert smallest(llama, sizes, "float32", 64, 4096) is None
    small = alike(ledger_of(LECTURE_MODELS["lab"]), sizes, 1, 128)
    assert list(small.values()) == [["large", "small", "mid"]], "one row where all can do the same"


@for_each("name", ["gpt2", "llama2-70b", "pythia-70m", "fast"])
def test_seven_rows_add_up(name: str) -> None:
    c = PRESETS[name].model.resolved()
    rows = quick_reference(c)
    assert len(rows) == 7 and sum(row.parameters for row in rows) == ledger(c).total
    shapes = {row.part: row.shape for row in rows}
    assert shapes["attention"] == shapes["residual"] == (c.context, c.d_model)
    assert shapes["feedforward"] == (c.context, c.d_model)
    assert shapes["unembedding"] == (c.context, c.vocab_size)


@for_each("name", list(BY_YEAR))
def test_a_model_with_its_own_choices_is_that_model(name):
    preset = BY_YEAR[name]
    made = model_choices.morphed(preset, model_choices.choices_of(preset))
    assert made.model.resolved() == preset.model.resolved() or name == "t5-base"
    assert model_choices.costs(made).parameters == ledger_of(preset).total


@for_each("name", ["llama2-7b", "bert-base", "pythia-70m", "gemma-2b", "t5-base"])
def test_what_is_drawn_can_be_built_and_has_as_many_parameters(name):
    """GPT-2's sizes with the choices of others, built on the meta device."""
    made = model_choices.morphed(BY_YEAR["gpt2"], model_choices.choices_of(BY_YEAR[name]))
    model = (
        build_pair(pair, device="meta")
        if (pair := seq2seq_config(made))
        else build(made.model, device="meta")
    )
    assert sum(p.numel() for p in model.parameters()) == model_choices.costs(made).parameters
    assert model_choices.choices_of(made) == model_choices.choices_of(BY_YEAR[name])


def test_choices_as_the_papers_have_them():
    assert model_choices.unchanged("transformer-base") == tuple(model_choices.OFFERED)
    assert model_choices.unchanged("gpt2") == ("norm", "heads", "tying")
    assert model_choices.unchanged("llama2-70b") == () and "gemma-2b" in model_choices.users("heads", "one")
    first = {facet: values[0] for facet, values in model_choices.OFFERED.items()}
    assert model_choices.choices_of(BY_YEAR["transformer-base"]) == first | {"biases": "network"}
    heads = [model_choices.choices_of(BY_YEAR[name])["heads"] for name in ("gpt2", "gemma-2b", "mistral-7b")]
    assert heads == ["own", "one", "grouped"]


def test_whose_choices_they_are_and_what_sizes_follow():
    own = model_choices.choices_of(BY_YEAR["gpt2"])
    assert model_choices.named(own) == ("gpt2", "gpt3-175b")
    mixed = own | {"position": "alibi", "tying": "untied"}
    assert model_choices.named(mixed) == ()
    assert model_choices.nearest_model(mixed) == ("gpt2", ("position", "tying"))
    assert model_choices.users("position", "alibi") == ()
    assert model_choices.users("family", "both") == ("transformer-base", "t5-base")
    gpt2, gemma = BY_YEAR["gpt2"].model, BY_YEAR["gemma-2b"].model
    assert [model_choices.hidden_width(gpt2, ffn) for ffn in ("swiglu", "relu")] == [2048, 3072]
    assert model_choices.hidden_width(gemma, "gelu") == 24_576
    assert [model_choices.key_heads(gpt2, heads) for heads in ("own", "grouped", "one")] == [12, 3, 1]
    assert model_choices.key_heads(BY_YEAR["mistral-7b"].model, "grouped") == 8
    for base, other, d_ff in (("llama2-7b", "gpt2", 11_008 * 3 // 2), ("gpt2", "llama2-7b", 2048)):
        made = model_choices.morphed(BY_YEAR[base], model_choices.choices_of(BY_YEAR[other]))
        assert made.model.resolved().d_ff == d_ff


def test_costs_by_hand():
    assert model_choices.costs(BY_YEAR["t5-base"]).cache == 12 * 2 * 768 * 2
    assert model_choices.costs(BY_YEAR["bert-base"]).cache == 0
    d, layers, vocab, tokens = 768, 12, 50_257, 512
    block = 2 * (4 * d * d + 2 * 4 * d * d + 2 * tokens * d)
    assert model_choices.costs(BY_YEAR["gpt2"]).flops == layers * block + 2 * vocab * d
    found = model_choices.three(model_choices.Size(layers=2, d_model=32, heads=4), vocab=100, context=16)
    block, cross = 12 * 32 * 32 + 2 * 32, 4 * 32 * 32 + 32
    ends = 100 * 32 + 16 * 32 + 32
    assert found["encoder"].total == found["decoder"].total == 2 * block + ends
    assert found["both"].total == 2 * (2 * block + cross) + ends + 16 * 32 + 32


def test_what_does_not_go_together_is_said():
    with pytest.raises(ConfigError, match="cross-attention"):
        model_choices.morphed(
            BY_YEAR["pythia-70m"], model_choices.choices_of(BY_YEAR["pythia-70m"]) | {"family": "both"}
        )
    with pytest.raises(ConfigError, match="window"):
        model_choices.morphed(BY_YEAR["mistral-7b"], model_choices.choices_of(BY_YEAR["t5-base"]))
