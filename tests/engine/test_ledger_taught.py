"""What a course counts: models by hand, heads, sizes that suit the hardware, budgets; held against arithmetic."""

from __future__ import annotations

import pytest

from engine.config import ModelConfig
from engine.ledger import ledger, ledger_of
from engine.ledger.blackboard import LAB, counted, terms
from engine.ledger.budget import budget, grown
from engine.ledger.fits import alike, smallest
from engine.ledger.growth import by_heads
from engine.ledger.shares import largest, quick_reference
from engine.ledger.sizes import fitting, padding
from engine.model import build
from engine.presets import ENCODER_DECODERS, PRESETS, TAUGHT
from engine.presets.variations import ASPECTS, ORIGINAL, kept, variation
from tests.engine.cases import for_each


def test_counts_by_hand() -> None:
    d, layers = 192, 6
    nano = 2 * 65 * d + 256 * d + layers * (12 * d * d + 9 * d + 4 * d) + 2 * d
    assert ledger_of(TAUGHT["nanogpt-192"]).total == nano == 2_743_680
    assert ledger(LAB).total == 65 * 128 + 128 * 128 + 4 * (12 * 128**2 + 4 * 128) + 2 * 128 == 813_440
    assert not TAUGHT.keys() & PRESETS.keys()
    for preset in TAUGHT.values():
        built = build(preset.model, device="meta")
        assert sum(p.numel() for p in built.parameters()) == ledger_of(preset).total
        assert preset.source and not preset.trainable and not preset.published
    found = {term.component: term for term in terms(ledger_of(PRESETS["gpt2"]))}
    assert {name: (term.formula, term.numbers) for name, term in found.items()} == {
        "embedding": ("V·d", "50,257·768"),
        "position": ("T·d", "1,024·768"),
        "attention": ("L·4·d²", "12·4·768²"),
        "feedforward": ("L·2·d·d_ff", "12·2·768·3,072"),
    }
    by_hand = 50257 * 768 + 1024 * 768 + 12 * 12 * 768**2
    assert counted(tuple(found.values())) == by_hand == 124_439_808 - 12 * (9 + 4) * 768 - 2 * 768
    attention = next(t for t in terms(ledger_of(PRESETS["llama2-70b"])) if t.component == "attention")
    assert attention.formula == "L·(2·d² + 2·H_kv·d_head·d)"
    assert attention.parameters == 80 * (2 * 8192**2 + 2 * 8 * 128 * 8192)
    bare = ledger(ModelConfig(mixer="none", ffn="none"))
    assert [term.component for term in terms(bare)] == ["embedding", "position"]


def value(numbers: str) -> int:
    """What a term's numbers come to: only digits, dots, squares, sums and brackets stand in them."""
    written = numbers.replace(",", "").replace("·", "*").replace("²", "**2")
    assert set(written) <= set("0123456789*+() ")
    return int(eval(written))


@for_each("name", [*PRESETS, *ENCODER_DECODERS, *TAUGHT])
def test_what_is_written_is_what_is_counted(name: str) -> None:
    counts = ledger_of((PRESETS | ENCODER_DECODERS | TAUGHT)[name])
    found = terms(counts)
    assert all(value(term.numbers) == term.parameters for term in found)
    assert 0.99 < counted(found) / counts.total <= 1


def test_eight_heads_are_not_eight_times_the_work() -> None:
    found = {each.heads: each for each in by_heads(ledger_of(PRESETS["gpt2"]), 1024)}
    assert set(found) == {1, 2, 4, 8, 16}
    one_layer = 2 * 4 * 768 * 768 + 2 * 2 * 1024 * 768
    assert {each.flops for each in found.values()} == {12 * one_layer}
    assert (found[1].d_head, found[8].d_head) == (768, 96)
    assert (found[1].weights, found[8].weights) == (1024, 8 * 1024)
    narrow = by_heads(ledger(ModelConfig(d_model=12, n_heads=3)), 8)
    assert [each.heads for each in narrow] == [1, 2]
    assert by_heads(ledger(ModelConfig(mixer="mean")), 8) == ()
    windowed = by_heads(ledger_of(PRESETS["mistral-7b"]), 8192, (8,))
    assert windowed[0].weights == 8 * 4096
    c = PRESETS["gpt2"].model.resolved()
    vocab, *others = fitting(c)
    assert (vocab.factor, vocab.padded, vocab.fits) == (1, 50_304, False)
    assert [(each.field, each.factor) for each in others] == [
        ("d_model", 256),
        ("d_head", 64),
        ("d_ff", 1024),
    ]
    assert all(each.fits for each in others)
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
    assert laws["Kaplan et al. 2020"] == pytest.approx((5.37, 1.86), abs=0.01)
    assert laws["Hoffmann et al. 2022"] == pytest.approx((10**0.5, 10**0.5))
    assert all(n * d == pytest.approx(10) for n, d in laws.values())


def test_what_was_changed_since_2017() -> None:
    assert variation(ORIGINAL) == {
        "norm": "layernorm", "wiring": "post", "position": "sinusoidal", "ffn": "relu", "heads": "own",
        "tying": "tied",
    }  # fmt: skip
    assert kept(ORIGINAL) == ASPECTS
    assert kept(PRESETS["gpt2"].model) == ("norm", "heads", "tying")
    assert kept(PRESETS["llama2-7b"].model) == ("heads",) and kept(PRESETS["llama2-70b"].model) == ()
    assert variation(PRESETS["gemma-2b"].model)["heads"] == "one"
    block = 4 * 512**2 + 2 * 512 * 2048
    assert ledger(ORIGINAL).components["attention"] + 6 * 2 * 512 * 2048 == 6 * block


def test_the_largest_parts_and_what_is_elsewhere() -> None:
    found, elsewhere = largest(ledger_of(PRESETS["gpt2"]))
    assert list(found) == ["feedforward", "embedding", "attention"]
    assert found["embedding"] == 50257 * 768 and elsewhere == 1024 * 768 + 25 * 2 * 768
    bare, none = largest(ledger(ModelConfig(mixer="none", ffn="none", norm="none")))
    assert none == 0 and sum(bare.values()) == 65 * 128 + 64 * 128
    llama, sizes = (
        ledger_of(PRESETS["llama2-7b"]),
        {"large": 80 * 2**30, "small": 8 * 2**30, "mid": 16 * 2**30},
    )
    assert smallest(llama, sizes, "bfloat16", 1, 4096) == "mid"  # 2 bytes of 6.74 B, and 2 GB of cache
    assert smallest(llama, sizes, "int4", 1, 4096) == "small"
    assert smallest(llama, sizes, "float32", 64, 4096) is None
    small = alike(ledger_of(TAUGHT["lab"]), sizes, 1, 128)
    assert list(small.values()) == [["large", "small", "mid"]], "one row where all can do the same"


@for_each("name", ["gpt2", "llama2-70b", "pythia-70m", "fast"])
def test_seven_rows_add_up(name: str) -> None:
    c = PRESETS[name].model.resolved()
    rows = quick_reference(c)
    assert len(rows) == 7 and sum(row.parameters for row in rows) == ledger(c).total
    shapes = {row.part: row.shape for row in rows}
    assert shapes["scores"] == (c.n_heads, c.context, c.context)
    assert shapes["unembedding"] == (c.context, c.vocab_size) and shapes["feedforward"] == (
        c.context,
        c.d_model,
    )
