"""The view "Beam search" of the Generation page: its knobs, what it compares,."""

from __future__ import annotations

import math

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.sample import beam_search
from engine.sample.rivals import ending_with, rivals
from pages.output.generation import beam
from pages.output.generation.beam_figures import PRUNED_ROWS, beam_tree, rows
from tests.engine.helpers import loud, tiny
from tests.pages import helpers
from tests.pages.helpers import said as words
from ui import models
from ui.reading import show_token

pytestmark = pytest.mark.usefixtures("manager")


def opened(**query: str) -> AppTest:
    return helpers.opened("output/generation", generation_view="beam", measure="true", **query)


def entries(page: AppTest):
    return page.dataframe[0].value


def found_by(depth: int, width: int, stop: str = "", penalty: float = 1.0, seed: int = 0):
    """What the engine finds where the page looks: (model, ids, beam, rivals)."""
    kept = models._shipped("shakespeare-classic")
    ids = tuple(kept.tokenizer.encode("KING RICHARD II:\n"))
    ends = ending_with(kept.tokenizer, stop, 65)
    found = beam_search(kept.model, ids, depth, width, length_penalty=penalty, stop=ends, shown=width + 2)
    return kept, ids, found, rivals(kept.model, ids, found, depth, ends, seed)


def test_a_wider_beam_is_more_probable_and_the_seed_moves_the_sample(drawn):
    page = opened(beam_width="8", beam_depth="16")
    found, said = entries(page), words(page)
    kept, ids, beam, three = found_by(16, 8)
    texts = (three.winner, three.greedy, three.sample)
    for row, text in zip(found.to_dict("records"), texts, strict=True):
        with torch.inference_mode():
            logs = (
                kept.model(torch.tensor([[*ids, *text.tokens]]))[0, len(ids) - 1 : -1]
                .double()
                .log_softmax(-1)
            )
        total = sum(logs[i, token].item() for i, token in enumerate(text.tokens))
        assert row["log-probability"] == pytest.approx(total, abs=1e-3) and row["tokens"] == 16
        assert row["per token"] == pytest.approx(total / 16, abs=1e-4)
        assert row["probability"] == pytest.approx(math.exp(total), rel=1e-2)
        assert row["it wrote"] == show_token(kept.tokenizer.decode(list(text.tokens)))
    assert list(found["found by"]) == ["beam, width 8", "greedy (width 1)", "a sample, temperature 1, seed 0"]
    better, rarer = (math.exp(texts[0].total - other.total) for other in texts[1:])
    assert f"**The beam's text is {better:,.1f} times as probable as the greedy one**: somewhere" in said
    assert f"is {rarer:,.0f} times less probable than the winner" in said
    table = drawn["beam_figure"].table
    assert table["total"] == [node.total for node in beam.nodes]
    assert table["score"] == [node.score for node in beam.nodes]
    assert table["kept"] == [str(node.kept) for node in beam.nodes]
    assert table["log_probability"] == [node.log_probability for node in beam.nodes]
    assert table["token"] == [
        kept.tokenizer.decode([n.token]).replace(" ", "␣").replace("\n", "⏎") for n in beam.nodes
    ]
    assert table["branch"][beam.winner] == found["it wrote"][0]
    assert drawn["beam_figure"].alt.endswith(f"the winner writes {found['it wrote'][0]}.")
    drew = found["it wrote"][2]
    page.number_input(key="beam_seed").set_value(3).run()
    assert not page.exception and entries(page)["it wrote"][2] != drew


@pytest.mark.parametrize(
    ("stop", "penalty", "said"),
    [
        ("space", "0", "and shorter**: 2 tokens against 5. Each further token"),
        ("line", "0", "**Here width 4 finds what greedy decoding finds**: none of"),
    ],
)
def test_every_stop_and_penalty(stop: str, penalty: str, said: str):
    page = opened(beam_stop=stop, beam_penalty=penalty, beam_width="4", beam_depth="8")
    found = entries(page)
    three = found_by(8, 4, beam.STOPS[stop], float(penalty))[3]
    assert said in words(page)
    assert list(found["tokens"]) == [len(t.tokens) for t in (three.winner, three.greedy, three.sample)]
    assert found["log-probability"].tolist() == [t.total for t in (three.winner, three.greedy, three.sample)]
    if penalty == "0" and stop == "space":  # at penalty 0 a finished short word beats what goes on
        assert found["it wrote"][0].endswith("␣")
    assert found["it wrote"][1][:-1].count({"space": "␣", "line": "⏎", "full stop": "."}[stop]) == 0


def test_a_long_text_says_what_is_dropped():
    said = words(opened(text="ab " * 60, beam_depth="20"))
    assert "context of 128: the first 19 tokens of the text are dropped" in said


def test_width_one_is_said_to_be_greedy():
    page = opened(beam_width="1", beam_depth="8")
    found = entries(page)
    assert found["it wrote"][0] == found["it wrote"][1] and "width 1 is greedy" in words(page)


def test_the_tree_draws_each_node_once_and_the_winners_way_is_filled():
    found = beam_search(loud(tiny(), seed=2), [1], 6, 3, shown=5)
    place = rows(found)
    for depth in range(1, 7):
        level = [n for n in found.nodes if n.depth == depth and n.index in place]
        assert sorted(place[n.index] for n in level) == list(range(len(level)))
        assert all(place[n.index] < 3 for n in level if n.kept)
        assert sum(not n.kept for n in level) <= PRUNED_ROWS
    figure = beam_tree(found, [str(n.token) for n in found.nodes], [""] * len(found.nodes), root="x")
    named = {trace.name: trace for trace in figure.data if trace.name}
    assert [found.nodes[i].token for i in sorted(named["winner"].customdata)] == list(
        found.path(found.winner)
    )
    assert len(named["kept"].x) + len(named["winner"].x) == sum(n.kept for n in found.nodes)
    scores = next(trace for trace in figure.data if trace.mode == "text")
    first = next(n for n in found.nodes if n.kept)
    assert len(scores.text) == 18
    assert float(scores.text[0].replace("−", "-")) == pytest.approx(first.log_probability, abs=0.01)
    order = [trace.mode for trace in figure.data]
    assert (
        order.index("text") > 4 and order[:5] == ["lines"] * 5
    )  # each score has a gap in the edges behind it
    assert all(x % 1 == 0.5 for x in scores.x)  # half-way between two boxes
