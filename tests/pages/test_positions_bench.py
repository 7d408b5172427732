"""Positions, side by side: the view with every option, without the text, without the models, and URLs written
by strangers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.measure.extrapolation import Curve
from engine.measure.schemes import SCHEMES, similarity
from engine.model import build
from pages.input.positions import bench as positions_bench
from pages.input.positions import bench_figures as figures
from pages.input.positions import bench_losses as positions_bench_losses
from tests.pages.stage import StageManager, open_page
from ui import state

PAGE = str(Path(__file__).parents[2] / "pages" / "input" / "positions" / "page.py")
VIEW = "Side by side"


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> StageManager:
    stage = StageManager()
    monkeypatch.setattr(state, "manager", lambda: stage)
    monkeypatch.setattr(positions_bench_losses, "WINDOWS", {"128": 12, "256": 8, "all": 8})
    monkeypatch.setattr(positions_bench_losses, "SLICE_SECONDS", 60.0)
    return stage


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), **{"positions_view": VIEW} | query)


def measured(page: AppTest) -> AppTest:
    """Run until all is measured: a variant each time, where the browser would come back by itself."""
    for _ in range(12):
        if page.get("progress") == [] and "Measured now" in sentences(page):
            return page
        page.run()
        assert not page.exception, page.exception
    raise AssertionError("it never ends")


def sentences(page: AppTest) -> str:
    return " | ".join(
        str(e.value)
        for kind in (page.error, page.warning, page.info, page.caption, page.markdown)
        for e in kind
    )


def test_all_six_are_measured_and_summed_up(manager, shakespeare):
    page = opened()
    facts = page.table[0].value
    assert (
        facts.loc["Learned", ["parameters here", "at GPT-2 small's sizes"]].tolist() == ["4,096", "786,432"]
        and facts.loc["RoPE", "parameters here"] == "0"
    )
    measured(page)
    said = sentences(page)
    assert (
        "8 windows of 256 characters" in said
        and "cost at most 0.05 nats more: ALiBi" in said
        and "no row for position 64" in said
    )
    numbers = page.table[1].value
    assert (
        list(numbers.index) == [scheme.title for scheme in SCHEMES.values()]
        and numbers.loc["Learned", "more at 256"] == "no answer"
    )
    assert (
        numbers.loc["None", "validation loss (nats)"] == "1.647"
        and numbers.loc["None", "against none"] == "+0.000"
    )


@pytest.mark.parametrize(
    "query",
    [
        {"bench_show": "Above own last 64", "bench_unit": "bits"},
        {"bench_windows": "128", "bench_bin": "1"},
        {"bench_bin": "16", "bench_trained": "true"},
        {"bench_bin": "4", "bench_windows": "all"},
    ],
)
def test_every_option_is_drawn(manager, shakespeare, query):
    page = measured(opened(**query))
    assert not page.error
    if "bench_unit" in query:
        assert page.table[1].value.loc["None", "validation loss (bits)"] == "2.376"  # 1.6472 / ln 2
        assert "Dotted: the same model" not in sentences(page)
    if "bench_windows" in query:
        assert ("12 windows" if query["bench_windows"] == "128" else "8 windows") in sentences(page)


def test_stopgaps_are_lines_of_their_own(manager, shakespeare):
    page = opened()
    page.get_by_key("bench_schemes").set_value(["T5"])
    page.get_by_key("bench_stopgaps").set_value(list(positions_bench_losses.STOPGAPS)).run()
    numbers = measured(page).table[1].value
    assert list(numbers.index) == ["T5", *positions_bench_losses.STOPGAPS]
    assert "never met buckets 27 to 31" in sentences(page) and "no row for position" not in sentences(page)
    page.get_by_key("bench_stopgaps").set_value([])
    page.get_by_key("bench_schemes").set_value([]).run()
    assert "Choose at least one scheme" in sentences(page) and not page.exception


def test_without_the_text_the_record_is_shown_and_said_to_be_one(manager, monkeypatch):
    monkeypatch.setattr(corpora, "shakespeare_path", lambda: None)
    page = opened(bench_windows="all", bench_stopgaps="T5: unmet buckets filled")
    said = sentences(page)
    assert (
        "not on this machine" in said
        and "were measured when the models were trained, on 20" in said
        and "Measured now" not in said
    )
    assert "ALiBi (+0.00)" in said and len(page.table[1].value) == 6


def test_without_the_models_a_sentence_says_how_to_make_them(manager, monkeypatch, tmp_path):
    monkeypatch.setattr(positions_bench, "FOLDER", tmp_path)
    positions_bench._models.clear()
    page = opened()
    assert "python -m engine.training.pretrain positions" in page.error[0].value
    positions_bench._models.clear()


@pytest.mark.parametrize(
    "query",
    [
        {"bench_schemes": "<b>x</b>"},
        {"bench_schemes": ""},
        {"bench_show": "x" * 500},
        {"bench_unit": "-1"},
        {"bench_windows": "10000000"},
        {"bench_bin": "0"},
        {"bench_stopgaps": "nan"},
        {"bench_trained": "perhaps"},
        {"bench_bin": "NaN", "bench_windows": "-5", "bench_unit": "1e9"},
    ],
)
def test_a_url_written_by_a_stranger_does_no_harm(manager, shakespeare, query):
    page = opened(**query)
    assert not page.error and "<b>x" not in sentences(page)


def some_curve(ends: bool) -> Curve:
    mean = np.linspace(2, 1, 32)
    return Curve(
        8,
        np.where(np.arange(32) < 8, mean, np.nan) if ends else mean,
        np.full(32, 0.1),
        9,
        (1.5, 0.1),
        {2: (0.0, 0.1), 4: (0.0, 0.1)},
    )


def test_a_curve_that_ends_lies_on_top_with_its_end_marked():
    lines = [
        figures.Line("Learned", "learned", some_curve(True)),
        figures.Line("RoPE", "rope", some_curve(False)),
    ]
    figure = figures.position_losses(lines, 64)
    named = [trace for trace in figure.data if trace.mode == "lines+markers"]
    assert [trace.name for trace in named] == ["RoPE", "Learned"] and [
        trace.legendrank for trace in named
    ] == [1, 0]
    assert (
        named[1].marker.size[-1] > 2 * named[1].marker.size[0]
        and named[1].x[-1] == 59.5
        and len(named[0].x) == 32
    )


def test_bits_and_the_own_window_are_drawn_as_such():
    lines = [figures.Line("RoPE", "rope", some_curve(False), stopgap=True)]
    plain, above = (
        figures.position_losses(lines, 64),
        figures.position_losses(lines, 64, scale=2.0, unit="bits", above=True),
    )
    assert (
        np.allclose((plain.data[1].y - 1.5) * 2, above.data[1].y, atol=1e-5)
        and "bits" in above.layout.yaxis.title.text
    )
    assert plain.data[1].line.dash == "dash"


def test_six_panels_share_one_axis():
    from engine.config import ModelConfig

    found = {
        name: (s.title, similarity(build(ModelConfig(d_model=32, position=name)), 128), None)
        for name, s in SCHEMES.items()
    }
    figure = figures.similarity_panels(found, 64, 128)
    axes = [figure.layout[f"yaxis{i or ''}"] for i in ("", 2, 3, 4, 5, 6)]
    assert len({tuple(axis.range) for axis in axes}) == 1 and len({tuple(axis.domain) for axis in axes}) == 2
    assert all(0 <= axis.domain[0] < axis.domain[1] <= 1 for axis in axes)
