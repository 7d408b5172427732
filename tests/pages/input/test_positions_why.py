"""The view "Why": every number against the engine's own comparison, every kind of model."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engine.measure.permutation import (
    SCHEMES,
    Plan,
    compare,
    in_order_and_out,
    new_order,
    word_ids,
    word_order,
)
from pages.input.positions import why_figures as figures
from pages.input.positions.answers import TITLES
from tests.pages.helpers import unescaped
from tests.pages.input.positions import (
    CLASSIC,
    ids_of,
    metrics,
    plain,
    positions,
    shipped,
)

MASKS = {"no mask": False, "causal mask": True}

pytestmark = pytest.mark.usefixtures("manager")


def test_words_in_two_orders(drawn):
    words = ["dog", "bites", "man", "here"]
    page = positions(
        "why", why_sentence="dog bites man here", why_order="rotate", why_scheme="rope", why_causal="true"
    )
    order = np.array([1, 2, 3, 0])
    found = compare(word_ids(words), order, Plan("rope", True))
    orders = drawn["why_orders"]
    assert [a["text"] for a in orders.layout["annotations"]] == [
        "<b>dog bites man here</b>",
        "<b>bites man here dog</b>",
    ]
    assert orders.traces[0]["z"] == pytest.approx(found.before, abs=1e-6)
    assert orders.traces[1]["z"] == pytest.approx(found.after, abs=1e-6)
    assert drawn["why_before"].traces[0]["z"] == pytest.approx(found.before, abs=1e-6)
    assert drawn["why_after"].traces[0]["z"] == pytest.approx(found.after[[3, 0, 1, 2]], abs=1e-6)  # matched
    apart = found.after[[3, 0, 1, 2]] - found.before
    assert drawn["why_difference"].traces[0]["z"] == pytest.approx(apart, abs=1e-6)
    assert orders.table["largest_difference"] == pytest.approx(np.abs(apart).max(1), abs=1e-6)
    assert orders.layout["yaxis2"]["ticktext"] == [
        f"{word}<br><i>changed: {change:.2f}</i>"
        for word, change in zip(
            ["bites", "man", "here", "dog"], np.abs(apart).max(1)[[1, 2, 3, 0]], strict=True
        )
    ]
    assert plain(metrics(page)[0]) == pytest.approx(np.abs(apart).max(), abs=5e-4)
    page.get_by_key("why_rows").set_value("as they stand").run()
    assert drawn["why_after"].traces[0]["z"] == pytest.approx(found.after, abs=1e-6)
    assert drawn["why_after"].layout["yaxis"]["ticktext"] == ["bites", "man", "here", "dog"]


def test_all_schemes_with_and_without_the_mask(drawn):
    page = positions("why", why_sentence="the cat that the dog chased", why_order="shuffle", why_seed="5")
    ids, order = word_ids(["the", "cat", "that", "the", "dog", "chased"]), new_order(6, "shuffle", 5)
    largest = {(s, m): compare(ids, order, Plan(s, m)).largest for s in SCHEMES for m in (False, True)}
    for trace in drawn["why_schemes"].traces:
        expected = [largest[s, MASKS[trace["name"]]] for s in SCHEMES]
        assert trace["text"] == list(TITLES.values()) and trace["customdata"] == pytest.approx(expected)
    table = drawn["why_schemes"].table
    rows = zip(table["scheme"], table["mask"], table["largest_difference"], strict=True)
    assert {(s, MASKS[m]): v for s, m, v in rows} == pytest.approx(
        {(TITLES[s], m): v for (s, m), v in largest.items()}
    )
    for causal in (False, True):
        page.get_by_key("why_causal").set_value(causal).run()
        for scheme in SCHEMES:
            page.get_by_key("why_scheme").set_value(scheme).run()
            assert not page.exception and not page.error
            assert plain(metrics(page)[0]) == pytest.approx(largest[scheme, causal], rel=0.05)
            ringed = [
                (scheme, trace["name"])
                for trace in drawn["why_schemes"].traces
                for scheme, width in zip(SCHEMES, trace["marker"]["line"]["width"], strict=True)
                if width
            ]
            assert ringed == [(scheme, "causal mask" if causal else "no mask")]


LESSONS = {
    r"one and the same bag of words: no word's row changes by more than \*\*(\S+ × \S+|0)\*\*": (
        "none",
        False,
        (),
    ),
    r"rows change by up to \*\*(\S+)\*\*: the causal mask .* Without the mask it is (\S+ × \S+|0)\.": (
        "none",
        True,
        (("none", False),),
    ),
    r"no row changes by more than \*\*(\S+ × \S+|0)\*\*: .* keeps every distance": ("alibi", False, ()),
    r"With RoPE positions .* by up to \*\*(\S+)\*\*: now .* positions and mask it was (\S+ × \S+|0)\.": (
        "rope",
        True,
        (("none", False),),
    ),
}


@pytest.mark.parametrize("pattern", LESSONS)
def test_the_lesson_is_read_off_the_numbers(pattern):
    scheme, causal, others = LESSONS[pattern]
    page = positions("why", why_scheme=scheme, why_causal=str(causal).lower())
    said = re.search(pattern, unescaped(page))
    assert said, unescaped(page)
    ids = word_ids(("dog", "bites", "man"))
    for text, plan in zip(said.groups(), ((scheme, causal), *others), strict=True):
        expected = compare(ids, np.array([2, 1, 0]), Plan(*plan)).largest
        assert plain(text) == pytest.approx(expected, rel=0.06, abs=5e-4)


def test_a_trained_model_in_and_out_of_order(drawn):
    """The table, the bars and the sentence are the engine's own measurement of each setting, told apart."""
    page = positions("why", why_on="A trained model", why_order="rotate")
    assert page.get_by_key("why_on").value == "trained"
    model, ids = shipped(CLASSIC).model, ids_of(CLASSIC)
    texts = [shipped(CLASSIC).tokenizer.decode([i]) for i in ids]
    order = word_order(texts, "rotate")
    found = {(s.position, s.mask): s for s in in_order_and_out(model, ids, order)}
    said = unescaped(page)
    rows = re.findall(r"\| (on|off) \| (on|off) \| ([^|]+) \| (\S+) \| (\S+) \|", said)
    assert {(p == "on", m == "on") for p, m, *_ in rows} == set(found)
    for position, mask, moved, loss_in, loss_out in rows:
        one = found[position == "on", mask == "on"]
        if one.relative > 1e-4:  # else it is rounding, another in every run
            assert plain(moved) == pytest.approx(one.relative, abs=6e-4)
        assert (loss_in, loss_out) == (
            ("none", "none") if mask == "off" else (f"{one.loss_in:.3f}", f"{one.loss_out:.3f}")
        )
    names = {
        (True, True): "positions, mask",
        (False, True): "no positions, mask",
        (True, False): "positions, no mask",
    }
    for key, name in names.items():
        page.get_by_key("why_setting").set_value(name).run()
        assert drawn["why_moved"].traces[0]["y"] == pytest.approx(found[key].moved, abs=1e-3)
    both, leak = found[True, True], found[False, True]
    assert (
        f"The mask alone makes it {leak.relative:.3f}, mask and positions (Learned) {both.relative:.3f}. The loss"
        f" of this text is {both.loss_in:.2f} nats per token in order and {both.loss_out:.2f} out of order; with"
        f" the positions taken away it is {leak.loss_in:.2f} even in order." in said
    )
    page.get_by_key("why_unit").set_value("tokens").run()
    assert not page.exception and "In the new order it reads" in unescaped(page)


def test_words_that_look_like_markup_are_drawn_as_they_are():
    figure = figures.word_rows(np.zeros((2, 3)), ["<b>", "a&b"], 1.0, "x")
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "a&amp;b"]
