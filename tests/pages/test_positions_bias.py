"""The ALiBi and T5 views alone: every topic with every option, every kind of model, and URLs written by
strangers.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig
from pages.input.positions import bias_figures as figures
from pages.input.positions import head as positions_head
from pages.input.positions import t5 as positions_t5
from pages.input.positions.alibi import ALIBI_TOPICS, LENGTHS, MULTIPLIERS
from pages.input.positions.t5 import BUCKETS, FARTHEST, T5_TOPICS
from tests.pages.stage import open_page
from ui import subject

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "positions" / "page.py")
SLOPES, MATRIX, EFFECT = ALIBI_TOPICS
STEPS, LEARNED = T5_TOPICS
CLASSIC = "shakespeare-classic"


pytestmark = pytest.mark.usefixtures("manager")


def opened(view: str, topic: str, model: str = CLASSIC, **query: str) -> AppTest:
    key = "alibi_topic" if view == "ALiBi" else "t5_topic"
    return open_page(
        AppTest.from_file(PAGE, default_timeout=60),
        **{"positions_view": view, key: topic, "model": model} | query,
    )


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def test_eight_heads_have_the_paper_s_slopes():
    page = opened("ALiBi", SLOPES, alibi_heads="8")
    assert [*page.dataframe[0].value["slope"]] == [
        "1/2",
        "1/4",
        "1/8",
        "1/16",
        "1/32",
        "1/64",
        "1/128",
        "1/256",
    ]
    page.get_by_key("alibi_heads").set_value(12).run()
    assert [*page.dataframe[0].value["slope"]][8:] == ["2^(−0.5)", "2^(−1.5)", "2^(−2.5)", "2^(−3.5)"]
    assert "12 is not a power of two" in sentences(page)
    for heads in range(1, 33, 3):
        page.get_by_key("alibi_heads").set_value(heads).run()
        assert not page.exception and len(page.dataframe[0].value) == heads
    for times in MULTIPLIERS:
        page.get_by_key("alibi_times").set_value(times).run()
        assert not page.exception and not page.error


def test_the_matrix_with_every_option():
    page = opened("ALiBi", MATRIX, alibi_heads="8", alibi_matrix_head="7")
    assert "**Head 7 of 8**: slope $m$ = 0.00390625" in sentences(page)
    assert [*page.table[0].value.iloc[1]] == ["−0.003906", "0", "−∞"]
    page.get_by_key("alibi_heads").set_value(4).run()
    assert "**Head 3 of 4**" in sentences(page)
    page.get_by_key("alibi_mask").set_value("both ways").run()
    assert "both ways" in sentences(page) and "−∞" not in page.table[0].value.to_string()
    for length in LENGTHS:
        page.get_by_key("alibi_length").set_value(length).run()
        assert not page.exception
    page.get_by_key("alibi_heads").set_value(1).run()
    assert "**Head 0 of 1**" in sentences(page)


def test_the_effect_on_a_pattern():
    page = opened("ALiBi", EFFECT, alibi_layer="0", alibi_head="0")
    assert "looks **4.81** tokens away without the bias and **2.06** with it" in sentences(
        page
    ) and "by hand" in sentences(page)
    page.get_by_key("alibi_times").set_value(16).run()
    assert "by hand" in sentences(page) and not page.exception


def test_the_small_model_that_was_trained_with_alibi_can_be_chosen():
    if positions_head.example("alibi") is None:
        pytest.skip("checkpoints/positions/alibi is not there")
    page = opened("ALiBi", EFFECT, alibi_source="a small model trained with ALiBi")
    assert "was trained with ALiBi" in sentences(page) and "taken out" in sentences(page)
    for layer, head in ((0, 3), (3, 0)):
        page.get_by_key("alibi_layer").set_value(layer)
        page.get_by_key("alibi_head").set_value(head).run()
        assert not page.exception


def test_buckets_with_every_option():
    page = opened("T5", STEPS)
    assert [*page.dataframe[0].value["key − query"]][15:17] == [
        "−15",
        "−16 to −18",
    ] and "from **113** on" in sentences(page)
    page.get_by_key("t5_mask").set_value("both ways").run()
    assert "**31 of 32** buckets are ever used" in sentences(page)
    for buckets in BUCKETS:
        page.get_by_key("t5_buckets").set_value(buckets)
        for far in FARTHEST:
            page.get_by_key("t5_far").set_value(far).run()
            assert not page.exception and not page.error, (buckets, far)
    page.get_by_key("t5_far").set_value(8).run()
    assert "leaves none to share: 64 is used instead" in sentences(page)


def test_a_model_without_the_bias_is_explained(monkeypatch):
    monkeypatch.setattr(positions_t5, "example", lambda scheme: None)
    page = opened("T5", LEARNED)
    assert "has no such bias" in sentences(page) and not page.error


def test_the_small_model_that_was_trained_with_t5_stands_in():
    if positions_head.example("t5") is None:
        pytest.skip("checkpoints/positions/t5 is not there")
    page = opened("T5", LEARNED, t5_head="3")
    assert "Shown instead: a small model trained with T5's bias" in sentences(page)
    assert "32 buckets × 4 heads = 128 learned numbers" in sentences(
        page
    ) and "never used within the context" in sentences(page)


VARIANTS = {
    "alibi": {"position": "alibi"},
    "alibi, both ways": {"position": "alibi", "causal": False},
    "t5": {"position": "t5"},
    "t5, both ways": {"position": "t5", "causal": False},
    "t5, long": {"position": "t5", "context": 256},
    "t5, many heads": {"position": "t5", "n_heads": 16},
    "no mixer": {"mixer": "none", "position": "none"},
    "mean": {"mixer": "mean", "position": "none"},
    "one head": {"n_heads": 1, "position": "t5"},
    "many layers": {"n_layers": 12, "n_heads": 8},
    "grouped": {"n_kv_heads": 2, "position": "rope"},
    "forty heads": {"n_heads": 40, "d_model": 80},
}


@pytest.mark.parametrize("view", ["ALiBi", "T5"])
@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_every_kind_of_model(monkeypatch, view, fields):
    values = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64} | fields
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**values))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    subject.st.cache_resource.clear()
    key, topics = ("alibi_topic", ALIBI_TOPICS) if view == "ALiBi" else ("t5_topic", T5_TOPICS)
    page = opened(view, topics[0], "untrained-classic")
    for topic in topics:
        page.get_by_key(key).set_value(topic).run()
        assert not page.exception and not page.error, topic
    said = sentences(page)  # of the last topic: the effect, or the learned bias
    if values.get("position") == "t5" and view == "T5":
        assert "Shown instead" not in said
    if values.get("position") == "alibi" and view == "ALiBi":
        assert "was trained with ALiBi" in said
    if values.get("mixer") == "none" and view == "ALiBi":
        assert "no mixer" in said
    subject.st.cache_resource.clear()


@pytest.mark.parametrize("text", ["A", "", "x" * 3000, "<b>bold</b> :material/home: **"])
def test_any_text(text):
    for view, topic in (("ALiBi", EFFECT), ("T5", LEARNED)):
        assert not opened(view, topic, text=text).error


@pytest.mark.parametrize(
    "query",
    [
        {"alibi_topic": "<script>"},
        {"alibi_heads": "-4"},
        {"alibi_heads": "1000000000"},
        {"alibi_heads": "NaN", "alibi_times": "-1"},
        {
            "alibi_topic": MATRIX,
            "alibi_length": "10000000",
            "alibi_mask": "sideways",
            "alibi_matrix_head": "99",
        },
        {"alibi_topic": MATRIX, "alibi_heads": "1", "alibi_matrix_head": "5"},
        {
            "alibi_topic": EFFECT,
            "alibi_layer": "77",
            "alibi_head": "-1",
            "alibi_times": "inf",
            "alibi_source": "my own",
        },
        {"positions_view": "T5", "t5_topic": "nothing"},
        {"positions_view": "T5", "t5_buckets": "31", "t5_far": "1e99", "t5_mask": "<b>"},
        {"positions_view": "T5", "t5_buckets": "128", "t5_far": "8"},
        {"positions_view": "T5", "t5_topic": LEARNED, "t5_head": "4000"},
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(query):
    page = open_page(
        AppTest.from_file(PAGE, default_timeout=60), **{"positions_view": "ALiBi", "model": CLASSIC} | query
    )
    assert not page.error and "<b>" not in sentences(page)


def test_two_patterns_beside_each_other_have_labels_that_fit():
    labels = [f"<{i}>" for i in range(100)]
    figure = figures.half_width_pattern(np.eye(100), labels)
    assert len(figure.layout.xaxis.tickvals) <= 24 and figure.layout.xaxis.ticktext[1] == "&lt;5&gt;"
    assert figure.data[0].customdata[99][1] == "query “&lt;99&gt;” at 99<br>key “&lt;1&gt;” at 1"
