"""The view "Beam search" of the Generation page: its knobs, what it compares, and links written by
strangers.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.sample import beam_search
from pages.output.generation import beam
from pages.output.generation.beam_figures import PRUNED_ROWS, beam_tree, rows
from tests.engine.helpers import loud, tiny
from tests.pages.stage import open_page

PAGE = str(Path(__file__).parents[3] / "pages" / "output" / "generation" / "page.py")


pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    return open_page(AppTest.from_file(PAGE, default_timeout=60), generation_view="Beam search", **query)


def entries(page: AppTest):
    return page.dataframe[0].value


def words(page: AppTest) -> str:
    return " | ".join(str(e.value) for kind in (page.info, page.caption, page.markdown) for e in kind)


def test_width_one_is_greedy():
    page = opened(beam_width="1", beam_depth="8")
    found = entries(page)
    assert found["it wrote"][0] == found["it wrote"][1] and "width 1 is greedy" in words(page)
    assert found["log-probability"][0] == pytest.approx(found["log-probability"][1], abs=1e-4)


def test_a_wider_beam_is_at_least_as_probable_and_the_seed_moves_the_sample():
    page = opened(beam_width="8", beam_depth="10")
    found = entries(page)
    assert found["log-probability"][0] >= found["log-probability"][1] - 1e-4
    assert (
        np.allclose(np.exp(found["log-probability"]), found["probability"]) and (found["tokens"] == 10).all()
    )
    drawn = found["it wrote"][2]
    page.number_input(key="beam_seed").set_value(3).run()
    assert not page.exception and entries(page)["it wrote"][2] != drawn


@pytest.mark.parametrize("stop", list(beam.STOPS))
def test_every_stop_and_penalty(stop: str):
    page = opened(beam_stop=stop, beam_penalty="0", beam_width="4", beam_depth="8")
    found = entries(page)
    assert math.isfinite(found["log-probability"].sum())
    if stop == "space":  # at penalty 0 a finished short word beats what goes on
        assert found["it wrote"][0].endswith("␣") and found["tokens"][0] < 8
    assert found["it wrote"][1][:-1].count({"space": "␣", "line": "⏎", "full stop": "."}.get(stop, "\0")) == 0


@pytest.mark.parametrize(
    "query",
    [
        {"beam_width": "99"},
        {"beam_width": "-1"},
        {"beam_width": "x"},
        {"beam_depth": "1000000"},
        {"beam_depth": "nan"},
        {"beam_penalty": "inf"},
        {"beam_penalty": "-9"},
        {"beam_stop": "<b>"},
        {"beam_seed": "-4"},
        {"text": ""},
        {"text": "🙂"},
        {"text": "a" * 3000},
    ],
)
def test_a_strangers_link_is_no_error(query):
    opened(**query)


def test_an_encoder_has_nothing_to_search(monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    from engine import presets
    from ui import subject

    encoder = replace(
        presets.PRESETS["classic"], model=replace(presets.PRESETS["classic"].model, causal=False, n_layers=1)
    )
    monkeypatch.setitem(presets.PRESETS, "classic", encoder)
    subject._untrained.clear()
    page = opened(model="untrained-classic")
    subject._untrained.clear()
    assert "nothing to search" in words(page)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_width_one_is_greedy_past_the_context_too(seed: int):
    """Beam and greedy read the same end of a text that is too long for both of them."""
    from ui.subject import EXAMPLES

    text = (EXAMPLES["Romeo"] + EXAMPLES["Repeats"] + EXAMPLES["First Citizen"])[seed * 7 :]
    found = entries(opened(text=text * 2, beam_width="1", beam_depth="20"))
    assert found["it wrote"][0] == found["it wrote"][1]
    assert found["log-probability"][0] == pytest.approx(found["log-probability"][1], abs=1e-3)


def test_a_long_text_says_what_is_dropped():
    assert "tokens of the text are dropped" in words(opened(text="ab " * 60, beam_depth="20"))


def test_the_tree_draws_each_node_once_and_the_winners_way_is_filled():
    found = beam_search(loud(tiny(), seed=2), [1], 6, 3, shown=5)
    place = rows(found)
    for depth in range(1, 7):
        level = [n for n in found.nodes if n.depth == depth and n.index in place]
        assert sorted(place[n.index] for n in level) == list(range(len(level)))
        assert (
            all(place[n.index] < 3 for n in level if n.kept) and sum(not n.kept for n in level) <= PRUNED_ROWS
        )
    figure = beam_tree(found, [str(n.token) for n in found.nodes], [""] * len(found.nodes), root="x")
    named = {trace.name: trace for trace in figure.data if trace.name}
    assert [found.nodes[i].token for i in sorted(named["winner"].customdata)] == list(
        found.path(found.winner)
    )
    assert len(named["kept"].x) + len(named["winner"].x) == sum(n.kept for n in found.nodes)
    scores = next(trace for trace in figure.data if trace.mode == "text")
    first = next(n for n in found.nodes if n.kept)
    assert len(scores.text) == 18 and float(scores.text[0].replace("−", "-")) == pytest.approx(
        first.log_probability, abs=0.01
    )
    order = [trace.mode for trace in figure.data]
    assert (
        order.index("text") > 4 and order[:5] == ["lines"] * 5
    )  # each score has a gap in the edges behind it
    assert all(x % 1 == 0.5 for x in scores.x)  # half-way between two boxes
