"""The view "KV cache" alone: every part and option, every kind of model, and links written by strangers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig, SampleConfig
from engine.ledger import ledger
from engine.measure.caching import Speed, compare
from engine.measure.recording import record
from engine.model import build
from pages.output.generation import cache_bytes, cache_pairs, cache_steps, cache_why
from tests.pages import helpers
from tests.pages.helpers import said as sentences
from tests.pages.stage import StageManager
from ui import models
from ui.text.numbers import flop, gigabytes


@pytest.fixture(autouse=True)
def quick(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_steps, "SPEED_SECONDS", 0.02)
    for cached in (cache_pairs._compared, cache_steps._filled, cache_why._unchanged, cache_steps._speed_of):
        cached.clear()  # their key is the model's name, and the tests give one name to many models


def opened(**query: str) -> AppTest:
    folds = {"measure": "true", "hand": "true"}
    return helpers.opened("output/generation", generation_view="cache", **folds, **query)


def small(monkeypatch: pytest.MonkeyPatch, **fields) -> None:
    sizes = {"n_layers": 1, "d_model": 16, "n_heads": 4, "d_ff": 32}
    config = ModelConfig(**presets.PRESETS["classic"].model.to_dict() | sizes | fields)
    monkeypatch.setitem(presets.PRESETS, "classic", replace(presets.PRESETS["classic"], model=config))
    models._untrained.clear()


def test_both_write_the_same_and_the_bytes_agree(drawn):
    page = opened(kv_length="12", kv_part="Step by step")  # as old links name it
    words = sentences(page)
    assert "✓ **12 of 12 tokens are identical.**" in words and "✓ **Bytes agree.**" in words
    assert "✗" not in words
    assert (
        "17 tokens the formula says 69,632 bytes, and the filled part of the cache's tensor has 69,632"
        in words
    )  # 4 · 2 · 4 · 32 · 17 · 4
    assert (
        f"room for more, {4 * 2 * 4 * 32 * 64 * 4:,} bytes in all" in words
    )  # of 64 positions, to begin with
    assert "one position is computed instead of 28" in words and "was full" not in words
    assert [m.label for m in page.metric] == ["With, tokens/s", "Without, tokens/s", "Times as fast"]
    model = models._shipped("shakespeare-classic").model
    ids = models._shipped("shakespeare-classic").tokenizer.encode("KING RICHARD II:\n")
    pairs = compare(model, ids, 12, SampleConfig(temperature=0.0))
    cached, uncached = [p.flops for p in pairs], [p.flops_without for p in pairs]
    figure = drawn["kv_flops"]
    assert [trace["y"] for trace in figure.traces] == [uncached, cached]
    assert figure.table["total_with_cache"] == [sum(cached[: i + 1]) for i in range(12)]
    assert figure.table["computed"] == [17] + [1] * 11
    assert figure.table["computed_without"] == list(range(17, 29))
    total = f"{flop(sum(cached))} with the cache, {flop(sum(uncached))} without"
    assert f"**In total {total}: {sum(uncached) / sum(cached):.1f} times as much.**" in words
    last = f"{flop(cached[-1])} with the cache and {flop(uncached[-1])} without"
    assert f"The last one costs {last}, {uncached[-1] / cached[-1]:.0f} times as much" in words
    assert f"at most {max(p.difference for p in pairs):.1e}:" in words


def test_what_does_not_agree_is_said_not_to(monkeypatch: pytest.MonkeyPatch):
    """The page's own checks compare two things."""
    monkeypatch.setattr(cache_steps, "filled_bytes", lambda *_: (69_631, 70_000))
    real = cache_steps.totals
    monkeypatch.setattr(cache_steps, "totals", lambda pairs: replace(real(pairs), same=3))
    words = sentences(opened(kv_length="4"))
    assert "✗ **Bytes differ.**" in words and "✗ **3 of 4 tokens are identical.**" in words
    assert "rounding decided" in words
    wrong = cache_bytes.sharing

    def sharing(*asked):
        found = wrong(*asked)
        return replace(found, sizes={n: replace(size, tensor=7) for n, size in found.sizes.items()})

    monkeypatch.setattr(cache_bytes, "sharing", sharing)
    assert "✗ The tensor that the engine's" in sentences(opened(kv_part="bytes"))


def test_past_the_context_the_page_says_what_happens(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, context=20)
    words = sentences(opened(model="untrained-classic", kv_length="16", kv_temperature="1.5", kv_seed="3"))
    # 17 tokens are given; the 4th written one fills the context, and the last 10 of 21 stay.
    assert "Before step 4 the context of 20 tokens was full" in words
    assert "the token that stood at 11 now stands at 0" in words
    assert "✓ **16 of 16 tokens" in words
    models._untrained.clear()


@pytest.mark.parametrize(("dtype", "heads"), [("float32", 4), ("bfloat16", 1), ("float8", 2)])
def test_bytes_for_every_number_of_heads_and_kind_of_number(dtype: str, heads: int, drawn):
    words = sentences(opened(kv_part="bytes", kv_dtype=dtype, kv_heads=str(heads), kv_tokens="1024"))
    number = {"float32": 4, "bfloat16": 2, "float8": 1}[dtype]
    size = 4 * 2 * heads * 32 * 1024 * number
    assert f"= 4 · 2 · {heads} · 32 · 1,024 · {number} = **{size:,} bytes = {gigabytes(size)}**" in words
    assert f"in {dtype}: {size:,} bytes" in words and "✓" in words and "✗" not in words
    assert f"has the shape 4 × 2 × 1 × {heads} × 1,024 × 32" in words
    assert f"**With {heads} of 4 key-value heads the cache of 1,024 tokens takes {gigabytes(size)}" in words
    assert ("times less" in words) == (heads != 4)
    assert heads == 4 or f", {4 // heads} times less than with a key head each.**" in words
    assert "70B: 80 layers, 8 of 64" in words and "Touvron et al" in words
    own = drawn["kv_heads_figure"]
    assert own.traces[0]["x"] == [4 * 2 * n * 32 * 1024 * number for n in (4, 2, 1)]
    published = drawn["kv_published"]
    layers, widths, shared = (32, 80, 32, 32), (32, 64, 32, 32), (8, 8, 8, 8)
    for trace, ways in zip(published.traces, (widths, shared, (1, 1, 1, 1)), strict=True):
        expected = [n * 2 * heads * 128 * 1024 * number for n, heads in zip(layers, ways, strict=True)]
        assert trace["x"] == published.table[f"{trace['name']}_bytes"] == expected
    assert published.table["has"] == ["MHA", "GQA", "GQA", "GQA"]


def test_the_answer_is_how_far_a_model_without_the_mask_moves_them(drawn):
    """The same weights in a model of another configuration: nothing is edited."""
    page = opened(kv_part="why", text="ROMEO:\nWhat")
    said = sentences(page)
    on, off = (float(m.value) for m in page.metric)
    table, traces = drawn["kv_changes"].table, drawn["kv_changes"].traces
    columns = ("key_mask_on", "value_mask_on", "key_mask_off", "value_mask_off")
    assert [table[name] for name in columns] == [trace["y"] for trace in traces]
    assert on < 1e-4 and off == float(f"{max(table['key_mask_off'] + table['value_mask_off']):.2g}")
    assert table["key_mask_off"][0] < 1e-5 < 0.1 < min(table["key_mask_off"][1:])  # layer 0 has mixed nothing
    found = models._shipped("shakespeare-classic")
    blind = build(replace(found.model.config, causal=False), 0).eval()
    blind.load_state_dict(found.model.state_dict())
    ids = found.tokenizer.encode("ROMEO:\nWhat")
    with torch.inference_mode():
        ids = [*ids, int(found.model(torch.tensor([ids]))[0, -1].argmax())]

    def moved(model) -> np.ndarray:  # (layer,)
        before, after = record(model, ids[:-1]), record(model, ids)
        return np.array(
            [
                max(
                    np.abs(after[f"blocks.{layer}.{name}"][:, :-1] - before[f"blocks.{layer}.{name}"]).max()
                    for name in ("k", "v")
                )
                for layer in range(4)
            ]
        )

    kept, lost = moved(found.model), moved(blind)
    assert kept.max() < 1e-5 and lost[1:].min() > 0.1
    told = re.search(
        r"values by \*\*(\S+)\*\*, rounding .* by \*\*(\S+)\*\*, and no cache .* stays \((\S+)\)", said
    )
    assert told is not None and float(told[1]) < 1e-5 and float(told[3]) < 1e-5
    assert float(told[2]) == pytest.approx(lost.max(), rel=0.05)


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"causal": False}, "every later token changes"), ({"mixer": "none", "ffn": "gelu"}, "never exchange")],
)
def test_a_model_that_can_keep_nothing_gets_a_sentence(fields, said: str, monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, **fields)
    page = opened(model="untrained-classic")
    models._untrained.clear()
    assert said in sentences(page) and not page.metric


def test_the_speed_is_measured_once_for_a_model_until_asked_again(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(
        cache_steps, "speed", lambda *_: asked.append(1) or Speed(7, 2, 1000.0, 250.0 - len(asked), 4.0, 9.0)
    )
    page = opened(kv_length="8")
    page.slider(key="kv_length").set_value(9).run()
    assert len(asked) == 1
    assert page.metric[1].value == "249"
    assert "2 blocks of 7 tokens" in sentences(page)
    assert "9.0 times" in sentences(page)
    page.button(key="kv_again").click().run()
    assert len(asked) == 2 and page.metric[1].value == "248"


def test_the_answer_counts_the_work_of_both_ways():
    """With the cache the first step computes the prompt's 6 positions, and each of the others one."""
    page = opened(text="ROMEO:", kv_length="12")
    config = models._shipped("shakespeare-classic").model.config
    per_position = {seen: ledger(config).flops(seen).forward for seen in range(6, 18)}
    cached = 6 * per_position[6] + sum(per_position[seen] for seen in range(7, 18))
    uncached = sum(seen * per_position[seen] for seen in range(6, 18))
    said = sentences(page)
    assert f"all took **{uncached / cached:.1f} times** less work" in said
    assert "computed **1 position instead of 17**" in said and "12 of 12 tokens came out the same" in said
