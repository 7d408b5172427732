"""The RoPE view alone: every topic with every option, models that turn and models that do not, and URLs
written by strangers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig
from engine.measure import rotary
from engine.measure.recording import record
from pages.input.positions import arrows
from pages.input.positions import rope_figures as figures
from pages.input.positions.arrows import parse
from pages.input.positions.rope import BASES, CONTEXTS, REACHES, SHIFTS, TOPICS, WIDTHS
from tests.pages.stage import open_page
from ui import subject

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "positions" / "page.py")
ARROWS, DISTANCE, TURNS, LAYOUTS = TOPICS
MODERN, CLASSIC = "shakespeare-modern", "shakespeare-classic"


pytestmark = pytest.mark.usefixtures("manager")


def opened(topic: str, model: str = MODERN, **query: str) -> AppTest:
    return open_page(
        AppTest.from_file(PAGE, default_timeout=60),
        positions_view="RoPE",
        rope_topic=topic,
        model=model,
        **query,
    )


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def test_arrows_are_the_model_s_and_a_shift_leaves_the_score():
    page = opened(ARROWS, rope_layer="1", rope_head="2", rope_query="9", rope_key="5")
    assert page.query_params["rope_at"] == "9-5-0"
    assert "before its scaling" in sentences(page) and "random" not in sentences(page)
    for shift in SHIFTS:
        page.get_by_key("rope_shift").set_value(shift).run()
        assert not page.exception and not page.error
        table = page.table[0].value
        assert [*table.index] == ["bfloat16", "float32", "float64"]
        assert float(table["difference"].iloc[2]) < 1e-9
        assert table.columns[1] == f"q·k at ({9 + shift:,}, {5 + shift:,})"


def test_the_link_says_where_the_arrows_stand():
    page = opened(ARROWS, rope_query="9", rope_key="5", rope_at="20-3-7")
    assert page.query_params["rope_at"] == "20-3-7" and "q·k at (20, 3)" in page.table[0].value.columns
    page = opened(ARROWS, rope_query="9", rope_key="5", rope_at="99999-3-700")
    assert page.query_params["rope_at"] == "127-3-15"


@pytest.mark.parametrize("model", [CLASSIC, "untrained-classic"])
@pytest.mark.parametrize("topic", [ARROWS, DISTANCE, LAYOUTS])
def test_a_model_of_another_kind_gets_random_vectors_and_is_told_so(topic, model):
    page = opened(topic, model)
    assert "drawn at random" in sentences(page) and not page.error


def test_every_curve_of_the_score():
    page = opened(DISTANCE)
    assert "(the model's)" not in sentences(page)
    for key, options in (("rope_base", BASES), ("rope_reach", REACHES)):
        for option in options:
            page.get_by_key(key).set_value(option).run()
            assert not page.exception and not page.error, (key, option)
    page.get_by_key("rope_vectors").set_value("q = k = ones").run()
    for width in WIDTHS:
        page.get_by_key("rope_width").set_value(width).run()
        assert not page.exception and f"√{width} = {width**0.5:.3f}" in sentences(page)


def test_a_link_reproduces_a_curve():
    page = opened(
        DISTANCE, rope_base="1,000,000", rope_reach="4,096", rope_vectors="q = k = ones", rope_width="64"
    )
    assert "Base 1,000,000: at distance 0 the score is **8.000**, at 4,096" in sentences(page)


def test_turns_count_the_pairs_that_never_complete_one():
    page = opened(TURNS)
    assert "**10 of 16 pairs never complete a turn** within 128 positions" in sentences(page)
    page.get_by_key("rope_sizes").set_value("LLaMA 2 7B").run()
    assert "**18 of 64 pairs" in sentences(page) and "Touvron et al. 2023" in sentences(page)
    page.get_by_key("rope_sizes").set_value("your own").run()
    for key, options in (
        ("rope_turn_width", WIDTHS),
        ("rope_turn_base", BASES),
        ("rope_turn_context", CONTEXTS),
    ):
        for option in options:
            page.get_by_key(key).set_value(option).run()
            assert not page.exception and "never complete a turn" in sentences(page), (key, option)


def test_the_layouts_are_the_same_and_the_mix_up_costs():
    page = opened(LAYOUTS)
    table = page.table[0].value
    changes = [float(x) for x in table["largest change of a score"]]
    assert changes[0] == 0 and changes[1] < 1e-12 and changes[2] > 1 and changes[3] > 1
    assert "takes the loss on this text from **1.03" in sentences(page)


VARIANTS = {
    "qk-norm": {"qk_norm": True},
    "grouped": {"n_kv_heads": 2},
    "shared": {"mixer": "shared_qk"},
    "similarity": {"mixer": "similarity"},
    "mean": {"mixer": "mean"},
    "no mixer": {"mixer": "none"},
    "masked": {"causal": False},
    "one pair": {"d_head": 2},
    "half a head": {"rope_fraction": 0.5},
    "base 200": {"rope_theta": 200.0},
    "many heads": {"n_heads": 16, "n_layers": 12},
    "odd heads": {"position": "alibi", "d_head": 7},
    "wide": {"d_head": 128},
}


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_model(monkeypatch, fields):
    values = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64, "position": "rope"} | fields
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**values))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    subject.st.cache_resource.clear()
    page = opened(ARROWS, "untrained-classic")
    for topic in (*TOPICS[1:], ARROWS):
        page.get_by_key("rope_topic").set_value(topic).run()
        assert not page.exception and not page.error, topic
    subject.st.cache_resource.clear()


def test_a_head_that_turns_in_part(monkeypatch):
    """8 dimensions a head, 4 of which turn: what is said is the model's own score, not that of a whole turn."""
    fields = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64, "position": "rope"}
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**fields, rope_fraction=0.5))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    subject.st.cache_resource.clear()
    sent: dict[str, Any] = {}
    monkeypatch.setattr(arrows, "mounted", lambda name: lambda data, **rest: sent.update(data))
    page = opened(ARROWS, "untrained-classic", text="To be, or not", rope_query="9", rope_key="5")
    found = subject._untrained("classic")
    scores = record(found.model, found.tokenizer.encode("To be, or not"))["blocks.0.scores"]
    score = float(scores[0, 9, 5]) * 8**0.5  # before its scaling
    said = re.search(r"before its scaling is \*\*(−?[0-9.]+)\*\*", sentences(page))
    assert said and float(said[1].replace("−", "-")) == pytest.approx(score, abs=6e-4)
    assert sent["note"].startswith("All 2 pairs") and len(sent["q"]) == 4 and len(sent["theta"]) == 2
    terms = rotary.pair_terms(np.array(sent["q"]), np.array(sent["k"]), 9, 5, 10_000.0).sum()
    assert terms + sent["rest"] == pytest.approx(score, abs=1e-4) and sent["d_head"] == 8
    page.get_by_key("rope_topic").set_value(TURNS).run()
    assert "of 2 pairs never complete a turn** within 64" in sentences(page)
    subject.st.cache_resource.clear()


@pytest.mark.parametrize(
    "text", ["A", "\n", "", "x" * 3000, "<b>bold</b> :material/home: **", "\u05d0\u0301\U0001f600"]
)
def test_any_text(text):
    page = opened(ARROWS, text=text)
    for topic in (DISTANCE, LAYOUTS):
        page.get_by_key("rope_topic").set_value(topic).run()
        assert not page.exception and not page.error, topic


@pytest.mark.parametrize(
    "query",
    [
        {"rope_topic": "<script>"},
        {"rope_at": "1-2"},
        {"rope_at": "-1--1--1"},
        {"rope_at": "²-³-¹"},
        {"rope_at": "9" * 400},
        {"rope_at": "99999999-1-1"},
        {"rope_query": "-5", "rope_key": "10000"},
        {"rope_shift": "NaN"},
        {"rope_shift": "-10"},
        {"rope_layer": "99", "rope_head": "-1"},
        {"rope_topic": DISTANCE, "rope_base": "0", "rope_reach": "1e9", "rope_vectors": "nothing"},
        {"rope_topic": DISTANCE, "rope_base": "inf", "rope_vectors": "q = k = ones", "rope_width": "3"},
        {"rope_topic": TURNS, "rope_sizes": "GPT-9"},
        {"rope_topic": TURNS, "rope_sizes": "your own", "rope_turn_width": "7", "rope_turn_context": "-1"},
        {"rope_topic": LAYOUTS, "rope_layer": "x", "rope_head": "1" * 400},
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(query):
    page = open_page(
        AppTest.from_file(PAGE, default_timeout=60), **{"positions_view": "RoPE", "model": MODERN} | query
    )
    assert not page.error and "GPT-9" not in sentences(page)


def test_only_three_whole_numbers_are_a_place():
    assert parse("0-0-0", 127, 16) == (0, 0, 0) and parse("500-1-99", 127, 16) == (127, 1, 15)
    for wrong in ("", "1-2", "1-2-3-4", "-1-2-3", "a-b-c", "1.5-2-3", "٣-1-1", "1234567-1-1"):
        assert parse(wrong, 127, 16) is None


def test_bars_that_are_all_of_one_kind():
    figure = figures.turn_bars(np.array([20.0, 2.0]), np.array([1.0, 0.1]))
    assert [trace.name for trace in figure.data] == ["complete a turn"]
    figure = figures.turn_bars(np.array([0.5, 0.1]), np.array([1.0, 0.1]))
    assert [trace.name for trace in figure.data] == ["never complete one"]


def test_the_diagram_joins_each_dimension_once():
    figure = figures.layout_diagram(8)
    words = [trace.customdata for trace in figure.data if trace.mode == "markers+text"]
    assert words[0][1].endswith("turns with dimension 5") and words[1][1].endswith("turns with dimension 0")
