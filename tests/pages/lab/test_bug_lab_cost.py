"""The bug lab's first view: what the stored race holds is what is drawn, said and written there."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.corpora import shakespeare_path
from engine.service.bugs import FOLDER, Finding, Side
from pages.lab.faults import words
from tests.pages import helpers


def opened(**query: str) -> AppTest:
    return helpers.opened("lab/faults", **query)


def said(page: AppTest) -> str:
    return helpers.said(page, "markdown")


def held(name: str) -> list[dict]:
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["runs"]


def share_of_words(text: str) -> float:
    """Written once more, letter by letter."""
    corpus = shakespeare_path() or pytest.skip("Tiny Shakespeare is not here")
    known = set(re.findall(r"[a-z']+", corpus.read_text("utf-8").lower().replace("-", " ")))
    inside = sum(
        len(w) for w in re.findall(r"[A-Za-z']+", text) if w.strip("'").lower() in known and len(w) > 1
    )
    return inside / sum(not c.isspace() for c in text)


def without_empty_lines(text: str) -> str:
    return re.sub(r"\n(?:[ \n]*\n)?", "\n", text).strip("\n")


@pytest.mark.parametrize("name", ["no_mask", "first_block_only"])
def test_the_stored_race_is_drawn_and_said(name: str, drawn) -> None:
    page = opened(fault=name)
    healthy, broken = held(name)
    losses = [run["looks"][-1]["validation_loss"] for run in (healthy, broken)]
    answer = next(e.value for e in page.markdown if e.value.startswith("Loss"))
    assert f"**{losses[1]:.2f}** with the bug, **{losses[0]:.2f}** healthy" in answer
    assert ("looks **better**" in answer) == (losses[1] < losses[0])
    traces = [t for t in drawn[f"race_chart_fault_{name}"].traces if "whole split" not in t["name"]]
    curves = {t["name"].rsplit(" ", 1)[0]: t for t in traces}
    for run, label in ((healthy, "healthy"), (broken, "with the bug")):
        looks = [(e["step"], e["validation_loss"]) for e in run["looks"] if not e["complete"]]
        np.testing.assert_allclose(
            list(zip(curves[label]["x"], curves[label]["y"], strict=True)), looks, rtol=1e-4
        )
        wrote = run["samples"][-1]
        assert any(code.value == without_empty_lines(wrote["text"]) for code in page.code)
        share = re.search(r"\*\*(?:Healthy|With the bug)\*\* writes · (\d+)%", said(page))
        assert share


def test_the_share_in_words_is_counted_once_more() -> None:
    page = opened(fault="no_mask")
    found = re.findall(r"writes · (\d+)% of it in words", said(page))
    for run, percent in zip(held("no_mask"), found, strict=True):
        assert abs(share_of_words(run["samples"][-1]["text"]) * 100 - int(percent)) < 3  # apostrophes


def test_patterns_of_both_are_those_of_the_file(drawn) -> None:
    import base64

    opened(fault="no_mask", measure="true", fault_layer="1", fault_head="2")
    stored = json.loads((FOLDER / "no_mask.json").read_text("utf-8"))["patterns"]
    for broken, each in zip((False, True), stored, strict=True):
        steps = np.frombuffer(base64.b64decode(each["weights"]), np.uint8).reshape(each["shape"])
        heat = drawn[f"fault_pattern_{broken}"].traces[0]
        np.testing.assert_allclose(heat["z"], steps[1, 2] / 255, atol=1e-6)


def side(loss: float, text: str = "thou art", share: float = 0.5, died: int | None = None) -> Side:
    return Side(loss, 200, "ROMEO:\n", text, share, died)


@pytest.mark.parametrize(
    ("broken", "wanted"),
    [
        (side(0.05, "TTTT", 0.0), "Loss **0.05** with the bug, **2.10** healthy: the bug looks **better**."),
        (side(2.6), "Loss **2.60** with the bug, **2.10** healthy: it costs **0.50 nats**."),
        (side(2.11), "Loss **2.11** with the bug, **2.10** healthy: the loss does not show it."),
        (
            side(3.3, died=31),
            "With the bug the training **dies at step 31**: the loss is no number any more.",
        ),
    ],
)
def test_the_answer_says_what_the_loss_says(broken: Side, wanted: str) -> None:
    assert words.answer(Finding(side(2.1), broken)).startswith(wanted)


def test_the_answer_quotes_both_and_their_share_of_words() -> None:
    answer = words.answer(Finding(side(2.1, "thou art", 0.62), side(0.05, "a*b\nc", 0.0)))
    assert "It writes “a\\*b c…”, of which **0%** lies in words" in answer
    assert "healthy twin's “thou art…” **62%** does" in answer


def test_blanks_can_be_seen() -> None:
    answer = words.answer(Finding(side(2.1), side(0.01, "\n" * 40, 0.0)))
    assert f"It writes “{'⏎' * words.QUOTED}…”" in answer and words.shown("\n\n") == "⏎⏎"
    assert words.shown("a\n\n \nb\n") == "a\nb"
