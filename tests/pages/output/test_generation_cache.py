"""The view "KV cache" alone: every part and option, every kind of model, and links written by strangers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig
from engine.measure.caching import Speed, cache_size
from pages.output.generation import cache as kv_cache
from pages.output.generation import cache_bytes as kv_cache_bytes
from pages.output.generation import cache_figures as figures
from tests.pages.stage import StageManager, open_page
from ui import state, subject

PAGE = str(Path(__file__).parents[3] / "pages" / "output" / "generation" / "page.py")


@pytest.fixture(autouse=True)
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    torch.set_num_threads(
        1
    )  # as ui.state.manager does in the app: thousands of tiny operations wait for each other's threads
    monkeypatch.setattr(state, "manager", lambda: stage)
    monkeypatch.setattr(kv_cache, "SPEED_SECONDS", 0.02)
    for cached in (kv_cache._compared, kv_cache._filled, kv_cache._unchanged, kv_cache._speed_of):
        cached.clear()  # their key is the model's name, and the tests give one name to many models
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), generation_view="KV cache", **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def small(monkeypatch: pytest.MonkeyPatch, **fields) -> None:
    config = ModelConfig(
        **{
            **presets.PRESETS["classic"].model.to_dict(),
            "n_layers": 1,
            "d_model": 16,
            "n_heads": 4,
            "d_ff": 32,
            **fields,
        }
    )
    monkeypatch.setitem(presets.PRESETS, "classic", replace(presets.PRESETS["classic"], model=config))
    subject._untrained.clear()


def test_both_write_the_same_and_the_bytes_agree():
    page = opened(kv_length="12")
    words = sentences(page)
    assert (
        "✓ **12 of 12 tokens are identical.**" in words and "✓ **Bytes agree.**" in words and "✗" not in words
    )
    assert (
        "17 tokens the formula says 69,632 bytes, and the filled part of the cache's tensor has 69,632"
        in words
    )  # 4 · 2 · 4 · 32 · 17 · 4
    assert "one position is computed instead of 28" in words and "was full" not in words
    assert [m.label for m in page.metric] == ["With, tokens/s", "Without, tokens/s", "Times as fast"]


def test_past_the_context_the_page_says_what_happens(monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, context=20)
    words = sentences(opened(model="untrained-classic", kv_length="16", kv_temperature="1.5", kv_seed="3"))
    # 17 tokens are given; the 4th written one fills the context, and the last 10 of 21 stay.
    assert (
        "Before step 4 the context of 20 tokens was full" in words
        and "the token that stood at 11 now stands at 0" in words
    )
    assert "✓ **16 of 16 tokens" in words
    subject._untrained.clear()


def test_a_longer_text_begins_like_a_shorter_one():
    frames = {}

    def keep(**sent):
        frames[len(sent["data"]["steps"])] = sent["data"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kv_cache, "_mount", lambda: keep)
        for length in ("8", "24", "40"):
            opened(kv_length=length, kv_temperature="0.8", kv_seed="5", kv_step="3")
    assert sorted(frames) == [8, 24, 40]
    assert (
        frames[8]["labels"] == frames[24]["labels"][:25] == frames[40]["labels"][:25]
        and frames[40]["step"] == 3
    )
    last = frames[40]["steps"][-1]
    assert (
        last["computed"] == 1
        and last["position"] - last["begin"] == 56
        and last["flops_without"] > 50 * last["flops"]
    )
    assert (
        frames[8]["per_position"] == 4 * 2 * 4 * 32 * 4 and frames[8]["numbers"] == "4 · 2 · 4 · 32 · T · 4"
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8"])
@pytest.mark.parametrize("heads", ["4", "2", "1"])
def test_bytes_for_every_number_of_heads_and_kind_of_number(dtype: str, heads: str):
    words = sentences(opened(kv_part="How many bytes", kv_dtype=dtype, kv_heads=heads, kv_tokens="1024"))
    size = 4 * 2 * int(heads) * 32 * 1024 * {"float32": 4, "bfloat16": 2, "float8": 1}[dtype]
    assert (
        f"**{size:,} bytes" in words
        and f"in {dtype}: {size:,} bytes" in words
        and "✓" in words
        and "✗" not in words
    )
    assert (f"{4 // int(heads)} times less" in words) == (heads != "4")
    assert "70B: 80 layers, 8 of 64" in words and "Touvron et al" in words


def test_the_causal_mask_is_what_keeps_them():
    page = opened(kv_part="Why it may be kept")
    on, off = (float(m.value) for m in page.metric)
    assert on < 1e-4 < 0.1 < off
    assert "first 17 tokens" in sentences(page)


@pytest.mark.parametrize("part", kv_cache.PARTS)
@pytest.mark.parametrize(
    "fields",
    [
        {"position": "rope", "n_kv_heads": 2, "wiring": "parallel"},
        {"position": "alibi", "n_kv_heads": 1},
        {"mixer": "shared_qk"},
        {"mixer": "mean"},
        {"n_heads": 1},
        {"context": 4},
        {"n_heads": 16},
        {"qk_norm": True, "position": "t5", "wiring": "post"},
    ],
    ids=["rope", "multi-query", "shared", "mean", "one head", "short", "many heads", "t5"],
)
def test_every_part_of_every_kind_of_model(part: str, fields, monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, **fields)
    page = opened(model="untrained-classic", kv_part=part, kv_length="4")
    subject._untrained.clear()
    assert "✗" not in sentences(page)


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"causal": False}, "every later token changes"), ({"mixer": "none", "ffn": "gelu"}, "never exchange")],
)
def test_a_model_that_can_keep_nothing_gets_a_sentence(fields, said: str, monkeypatch: pytest.MonkeyPatch):
    small(monkeypatch, **fields)
    page = opened(model="untrained-classic")
    subject._untrained.clear()
    assert said in sentences(page) and not page.metric


@pytest.mark.parametrize(
    "value", ["", "x", "-1", "nan", "inf", "1e400", "10000000000", "0x1", "1;2", "½", "3"]
)
@pytest.mark.parametrize("part", kv_cache.PARTS)
def test_a_strangers_link_is_no_error(value: str, part: str):
    names = ("kv_length", "kv_temperature", "kv_seed", "kv_step", "kv_tokens", "kv_dtype", "kv_heads")
    assert "✗" not in sentences(opened(kv_part=part, **dict.fromkeys(names, value)))
    opened(kv_part=value)


def test_the_speed_is_measured_once_for_a_model_until_asked_again(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(
        kv_cache, "speed", lambda *_: asked.append(1) or Speed(7, 2, 1000.0, 250.0 - len(asked), 4.0, 9.0)
    )
    page = opened(kv_length="8")
    page.slider(key="kv_length").set_value(9).run()
    assert (
        len(asked) == 1
        and page.metric[1].value == "249"
        and "2 blocks of 7 tokens" in sentences(page)
        and "9.0 times" in sentences(page)
    )
    page.button(key="kv_again").click().run()
    assert len(asked) == 2 and page.metric[1].value == "248"


def test_the_figures_hold_the_numbers():
    with_cache, without, refilled = (
        np.array([40, 10, 20]),
        np.array([40, 50, 20]),
        np.array([False, False, True]),
    )
    made = figures.flops_by_step(with_cache, without, ["a", "b", "c"], refilled)
    assert [list(t.y) for t in made.data] == [[40, 50, 20], [40, 10, 20], [20]] and list(made.data[2].x) == [
        2
    ]
    bars = figures.bytes_by_heads([4, 2, 1], [400, 200, 100], 4, 2)
    assert list(bars.data[0].x) == [400, 200, 100] and len(set(bars.data[0].marker.color)) == 2
    assert bars.layout.xaxis.ticktext == (
        "0",
        "128 B",
        "256 B",
        "384 B",
    )  # in the unit of the words beside the bars
    changed = figures.changes((np.zeros(2), np.zeros(2)), (np.array([0.0, 2.0]), np.array([0.0, 1.0])))
    assert [list(t.y) for t in changed.data] == [[0, 0], [0, 0], [0, 2], [0, 1]] and len(
        changed.data[3].text
    ) == 2


def test_published_bars_are_the_ledgers():
    ways = {
        way: np.array(
            [
                float(cache_size(presets.PRESETS[m].model, 4096, "bfloat16", n).formula)
                for m in ("llama2-7b", "llama3-8b")
            ]
        )
        for way, n in (("MHA", 32), ("GQA", 8), ("MQA", 1))
    }
    made = figures.published(["a", "b"], ways, ["MHA", "GQA"])
    assert [trace.name for trace in made.data] == ["MHA", "GQA", "MQA"] and list(made.data[0].x) == [
        2**31,
        2**31,
    ]
    assert made.data[1].text[1] == "<b>GQA 512 MB</b>"
    assert kv_cache_bytes.divisors(32) == [32, 16, 8, 4, 2, 1] and kv_cache_bytes.divisors(1) == [1]
