"""The positions page alone: its views "Why" and "Sinusoidal" with every option, every kind of model, and URLs
written by strangers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import presets
from engine.config import ModelConfig
from engine.measure.permutation import SCHEMES
from pages.input.positions import clock, figures
from pages.input.positions import sinusoidal as positions_sinusoidal
from tests.pages.stage import open_page
from ui import subject

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "positions" / "page.py")
ORDER = ["Why", "Sinusoidal", "Learned", "RoPE", "ALiBi", "T5", "Side by side"]
TRAINED = {"why_on": "A trained model"}
WAVES = {"positions_view": "Sinusoidal"}
SMALL = {"d_model": 32, "n_layers": 2, "n_heads": 4, "context": 64}


pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **query)


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def metrics(page: AppTest) -> list[str]:
    return [str(metric.value) for metric in page.metric]


def test_the_views_stand_in_their_order():
    shown = list(opened().get_by_key("positions_view").options)
    assert shown[:2] == ORDER[:2] and shown == [name for name in ORDER if name in shown]


@pytest.mark.parametrize("view", ORDER)
def test_every_view_there_is_opens(view):
    page = opened(positions_view=view)
    assert not page.error and "Why it matters" in sentences(page)


# Why


def test_without_positions_the_difference_is_rounding():
    page = opened()
    assert "dog bites man" in sentences(page) and "man bites dog" in sentences(page)
    assert re.search(r"10⁻[⁷⁸]", metrics(page)[0]) or metrics(page)[0] == "0"
    assert "one and the same bag of words" in sentences(page)


def test_every_scheme_and_the_mask_make_a_difference():
    page = opened(why_sentence="the cat that the dog chased", why_order="shuffle")
    for causal in (False, True):
        page.get_by_key("why_causal").set_value(causal).run()
        for scheme in SCHEMES:
            page.get_by_key("why_scheme").set_value(scheme).run()
            assert not page.exception and not page.error
            seen = metrics(page)[0]
            assert ("10⁻" in seen or seen == "0") == (scheme == "none" and not causal), (scheme, causal, seen)
        page.get_by_key("why_scheme").set_value("none").run()
        assert ("by itself leaks some position" in sentences(page)) == causal


def test_alibi_without_a_mask_is_explained_where_it_sees_nothing():
    assert "keeps every distance" in sentences(opened(why_scheme="alibi"))
    assert "keeps every distance" not in sentences(opened(why_scheme="alibi", why_order="rotate"))


def test_orders_rows_seeds_and_examples():
    page = opened(why_sentence="a b c d e f")
    for order in ("rotate", "shuffle"):
        page.get_by_key("why_order").set_value(order).run()
        assert not page.exception
    assert "**a b c d e f**" in sentences(page)
    before = sentences(page)
    page.get_by_key("why_again").click().run()
    assert page.get_by_key("why_seed").value == 1 and sentences(page) != before
    page.get_by_key("why_rows").set_value("as they stand").run()
    assert not page.exception
    page.get_by_key("why_example").set_value("not all who wander are lost").run()
    assert "**not all who wander are lost**" in sentences(page)


def test_a_sentence_that_reads_the_same_is_said_to():
    assert "reads the same" in sentences(opened(why_sentence="ha ha ha"))


def test_a_trained_model_is_read_in_and_out_of_order():
    page = opened(**TRAINED, why_order="shuffle")
    said = sentences(page)
    assert "| on | on |" in said and "| off | off |" in said and "In the new order it reads" in said
    rounding = re.search(r"\| off \| off \| (\S+ × 10⁻\S+)", said)
    assert rounding, said
    for unit in ("words", "tokens"):
        page.get_by_key("why_unit").set_value(unit).run()
        for setting in (
            "no positions, mask",
            "positions, no mask",
            "no positions, no mask",
            "positions, mask",
        ):
            page.get_by_key("why_setting").set_value(setting).run()
            assert not page.exception and not page.error


@pytest.mark.parametrize(
    "fields",
    [
        *({"position": scheme} for scheme in SCHEMES),
        {"causal": False},
        {"mixer": "none"},
        {"mixer": "mean"},
        {"mixer": "shared_qk"},
        {"wiring": "post"},
        {"wiring": "none"},
        {"norm": "none"},
        {"qk_norm": True, "position": "rope"},
        {"n_kv_heads": 2, "position": "t5"},
        {"context": 1},
    ],
    ids=str,
)
def test_every_kind_of_model_is_measured_or_explained(monkeypatch, fields):
    preset = replace(presets.PRESETS["classic"], model=ModelConfig(**{**SMALL, **fields}))
    monkeypatch.setattr(subject, "PRESETS", {"classic": preset})
    monkeypatch.setattr(subject, "TRAINABLE", {"classic": preset})
    subject.st.cache_resource.clear()
    page = opened(**TRAINED, model="untrained-classic")
    assert not page.error
    assert ("only one order" if fields.get("context") == 1 else "the order makes no difference") in sentences(
        page
    )
    subject.st.cache_resource.clear()


@pytest.mark.parametrize(
    "text",
    ["x", "oneword", "\n\n", "   ", "a\u202eb\u0301 \U0001f600 \x00 c", "<b>bold</b> [x](y) $z$ " * 30],
)
def test_any_text_is_read(text):
    for query in ({"why_sentence": text}, {**TRAINED, "text": text}):
        page = opened(**query)
        assert not page.error


def test_a_word_of_many_letters_and_many_words():
    page = opened(why_sentence="x" * 190 + " y")
    assert not page.error
    assert "the first 16 are used" in sentences(opened(why_sentence=" ".join("abcdefghijklmnopqrstuvwxyz")))
    assert "fewer than two words" in sentences(opened(why_sentence="one"))


# Sinusoidal


def test_every_part_with_every_size():
    for part in positions_sinusoidal.PARTS:
        page = opened(**WAVES, sinusoid_part=part)
        for length, width, base in ((2, 2, 2), (512, 512, 1_000_000), (3, 6, 10), (64, 64, 10_000)):
            page.get_by_key("sinusoid_length").set_value(length)
            page.get_by_key("sinusoid_width").set_value(width)
            page.get_by_key("sinusoid_base").set_value(base).run()
            assert not page.exception and not page.error, (part, length, width, base)
            assert "Why it matters" in sentences(page)


def test_the_rotation_opens_with_the_worked_example():
    page = opened(**WAVES, sinusoid_part="Rotation")
    latex = page.latex[0].value
    for number in ("0.980", "0.199", "-0.199", "0.479", "0.878", "0.644", "0.765"):
        assert number in latex
    assert all("10⁻" in value for value in metrics(page))
    page.get_by_key("sinusoid_step").set_value(-60).run()
    assert "p = 60 is used instead of 5" in sentences(page) and not page.exception
    page.get_by_key("sinusoid_pair").set_value(31).run()
    page.get_by_key("sinusoid_width").set_value(4).run()  # there is no pair 31 any more
    assert not page.exception and "Pair 1 turns" in sentences(page)


def test_an_odd_width_is_made_even_with_a_sentence():
    page = opened(**WAVES, sinusoid_width="33")
    assert "d = 32 is used instead of 33" in sentences(page)


@pytest.mark.parametrize(
    "query",
    [
        {"positions_view": "<script>"},
        {"why_on": "x"},
        {"why_scheme": "abacus"},
        {"why_order": "9"},
        {"why_order": "shuffle", "why_seed": "-4"},
        {"why_order": "shuffle", "why_seed": "1e400"},
        {"why_order": "shuffle", "why_seed": "9" * 400},
        {"why_causal": "perhaps"},
        {"why_rows": ""},
        {**TRAINED, "why_setting": "none", "why_unit": "years"},
        {**WAVES, "sinusoid_part": "Sundial"},
        {**WAVES, "sinusoid_length": "-1", "sinusoid_width": "nan", "sinusoid_base": "-3"},
        {**WAVES, "sinusoid_length": "1000000000", "sinusoid_width": "511", "sinusoid_base": "inf"},
        {**WAVES, "sinusoid_part": "Similarity", "sinusoid_length": "1e400", "sinusoid_width": "7" * 400},
        {
            **WAVES,
            "sinusoid_part": "Clock",
            "clock_position": "9" * 50,
            "sinusoid_width": "x",
            "sinusoid_length": "",
        },
        {**WAVES, "sinusoid_part": "Clock", "clock_position": "<b>"},
        {**WAVES, "sinusoid_part": "Clock", "clock_position": ""},
        *(
            {
                **WAVES,
                "sinusoid_part": "Rotation",
                "sinusoid_pair": v,
                "sinusoid_step": v,
                "sinusoid_position": v,
            }
            for v in ("99999", "-1e400", "inf", "-7", "½")
        ),
    ],
    ids=str,
)
def test_a_url_written_by_a_stranger_does_no_harm(query):
    page = opened(**query)
    assert not page.error and "Why it matters" in sentences(page)


def test_the_clock_takes_its_position_from_the_link_within_its_range(monkeypatch):
    for value, expected in (
        ("7", 7),
        ("63", 63),
        ("64", 63),
        ("-2", 5),
        ("²", 5),
        ("", 5),
        ("9999999", 5),
        ("999999", 63),
    ):
        monkeypatch.setattr(clock.st, "query_params", {clock.POSITION: value})
        assert clock.linked(64) == expected, value
    monkeypatch.setattr(clock.st, "query_params", {})
    assert clock.linked(3) == 2


def test_of_many_hands_the_first_and_the_last_are_kept():
    assert (
        clock.shown(256)[0] == 0
        and clock.shown(256)[-1] == 255
        and len(set(clock.shown(256))) == clock.MOST_HANDS
    )
    assert clock.shown(33)[-1] == 32 and clock.shown(1) == [0]


# Figures


def test_zero_has_a_place_on_the_logarithmic_axis_and_keeps_its_number_in_the_hover():
    figure = figures.scheme_dots(
        {"no mask": dict.fromkeys(SCHEMES, 0.0), "causal mask": dict.fromkeys(SCHEMES, 1.5)},
        ("no mask", "rope"),
    )
    assert list(figure.data[0].y) == [figures.FLOOR] * 6 and list(figure.data[0].customdata) == [0.0] * 6
    assert [i for i, ring in enumerate(figure.data[0].marker.line.width) if ring] == [SCHEMES.index("rope")]


def test_words_that_look_like_markup_are_drawn_as_they_are():
    figure = figures.word_rows(np.zeros((2, 3)), ["<b>", "a&b"], 1.0, "x")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "a&amp;b"]


@pytest.mark.parametrize("count", [1, 2, 7, 64, 200, 512])
def test_an_axis_has_a_few_round_labels(count):
    ticks = figures.table_map(np.zeros((count, count))).layout.xaxis.tickvals
    assert 1 <= len(ticks) <= 8 and ticks[0] == 0 and ticks[-1] < count
