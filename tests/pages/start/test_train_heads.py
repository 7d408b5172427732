"""Heads that form while it trains: what the page says and draws is what the looks hold, and what the pattern of
the newest snapshot is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import corpora
from engine.measure.induction import drawn as draw_letters
from engine.measure.induction import ordinary
from engine.probe import Recorder
from engine.service.history import HistoryLog
from engine.tokenizers import token_bytes
from engine.training.records import Evaluation, HeadScores, Step
from tests.pages.stage import StageManager
from tests.pages.start.training import clicked, opened, sentences

# (step, seconds of training, copying of heads 1.0 and 1.3, reading the letter before of head 0.2, both losses)
COURSE = (
    (0, 0.0, 0.02, 0.03, 0.07, 4.25, 4.26),
    (10, 2.0, 0.04, 0.09, 0.21, 4.30, 4.02),
    (20, 4.5, 0.12, 0.08, 0.55, 4.41, 3.13),
    (30, 7.0, 0.21, 0.38, 0.61, 4.52, 2.24),
    (40, 9.5, 0.33, 0.74, 0.63, 4.63, 0.85),
)


def looked(count: int) -> HistoryLog:
    log = HistoryLog()
    for step in range(1, COURSE[count - 1][0] + 1):
        log.add(Step(step, 3.0, 1.0, 1e-3, 100 * step, 0.2 * step))
    for step, seconds, one, other, before, first, second in COURSE[:count]:
        heads = HeadScores(
            ((0.0, 0.0, 0.0, 0.0), (one, 0.0, 0.0, other)),
            ((0.0, 0.0, before, 0.0), (0.0,) * 4),
            first,
            second,
        )
        log.add(Evaluation(step, 2.5, 2.6, seconds, False, 1.0, 1.0, heads))
    return log


def watched(manager: StageManager, count: int, **query: str) -> AppTest:
    page = clicked(opened(preset="induction", **query), "train")
    manager.change("run-0", history=looked(count).view(), snapshots=tuple(one[0] for one in COURSE[:count]))
    return page.run()


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (
            1,
            (
                "At step **0** no head copies yet: head 1.3 gives most, **0.03**",
                "cost 4.25 nats, and **4.26**",
            ),
        ),
        (
            3,
            (
                "At step **20** no head copies yet: head 1.0 gives most, **0.12**",
                "cost 4.41 nats, and **3.13**",
            ),
        ),
        (
            5,
            (
                "At step **40** head **1.3** looks at the place after the first occurrence with **0.74**",
                "at step 20, 5 s of training before, with 0.08",  # 9.5 - 4.5; the last look below a tenth
                "cost 4.63 nats, and **0.85**",
            ),
        ),
    ],
)
def test_the_answer_is_of_the_newest_look(
    manager: StageManager, drawn: Any, count: int, says: tuple[str, ...]
) -> None:
    said = sentences(watched(manager, count))
    for words in says:
        assert words in said


def test_every_heads_score_is_drawn_and_named_where_it_passed_a_half(
    manager: StageManager, drawn: Any
) -> None:
    watched(manager, 5)
    figure = drawn["head_scores"]
    lines = {trace["hovertemplate"].split(":")[0]: trace["y"] for trace in figure.traces}
    assert len([name for name in lines if name.startswith("head")]) == 16, "eight heads, two scores each"
    assert lines["head 1.3 copies"] == pytest.approx([one[3] for one in COURSE])
    assert lines["head 0.2 reads the letter before"] == pytest.approx([one[4] for one in COURSE])
    assert lines["new letters"] == pytest.approx([one[5] for one in COURSE])
    assert lines["the same letters again"] == pytest.approx([one[6] for one in COURSE])
    named = [(note["text"], note["x"], note["y"]) for note in figure.layout["annotations"]]
    assert named[:2] == [("0.2", 20, 0.55), ("1.3", 40, 0.74)]
    assert [text for text, *_ in named[2:]] == ["new letters 4.63", "again 0.85"]
    assert figure.table["induction_1.3"] == pytest.approx([one[3] for one in COURSE])
    assert figure.table["second_reading_nats"] == pytest.approx([one[6] for one in COURSE])


def test_the_pattern_is_that_of_the_best_head_at_the_newest_snapshot(
    manager: StageManager, drawn: Any
) -> None:
    page = watched(manager, 5)
    checkpoint = manager.model("run-0", 40)
    once = draw_letters(ordinary(token_bytes(checkpoint.tokenizer)), 24, 0)
    recorder = Recorder({"pattern"})
    checkpoint.model(torch.tensor([[*once, *once]]), recorder)
    wanted = recorder["blocks.1.pattern"][0, 3].numpy()
    shown = np.array(drawn["head_pattern"].traces[0]["z"])
    assert shown == pytest.approx(wanted, abs=1e-6)
    assert "What head **1.3** looks at, step 40" in sentences(page)


def test_the_text_that_it_writes_is_one_click_away(
    manager: StageManager, drawn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages.start.train import run

    seen: list[int] = []
    monkeypatch.setattr(run, "samples", lambda views, **named: seen.append(len(views)))
    for query, shown in (({}, []), ({"measure": "true"}, [1])):
        page = watched(manager, 5, **query)
        seen.clear()
        page.run()
        assert seen == shown
        manager.views.clear()


def test_a_run_without_repeats_shows_its_text_as_ever(manager: StageManager, drawn: Any) -> None:
    page = clicked(opened(), "train")
    assert "head_scores" not in drawn and "Can it learn to write?" in [one.value for one in page.header]
    assert "Watch it happen: when does a head learn to copy?" in [
        one.value for one in opened(preset="induction").header
    ]


def test_before_the_first_run_the_windows_are_parted_where_they_begin_again(
    manager: StageManager, drawn: Any
) -> None:
    page = opened(preset="induction")
    corpus = corpora.load("python")
    text = "".join(corpus.tokenizer.decode([int(i)]) for i in corpus.train)
    lines = page.code[-1].value.replace("\u2060", "").split("\n")
    assert len(lines) == 12 and all(len(line) == 52 + 2 and line.endswith(" …") for line in lines)
    lines = [line[:-2] for line in lines]
    parted = [line.split("│") for line in lines if "│" in line]
    assert 2 <= len(parted) <= 10, "about half of them"
    for first, *others in parted:
        assert all(piece == first for piece in others[:-1]) and first.startswith(others[-1])
    plain = [line.replace("⏎", "\n") for line in lines if "│" not in line]
    assert plain and all(line in text for line in plain)
    assert "**50%** of the windows" in sentences(
        page
    ) and f"{np.log(corpus.vocab_size):.2f} nats" in sentences(page)
    assert "when in 1,000 steps" in sentences(page)


def test_a_training_that_failed_says_so(manager: StageManager, drawn: Any) -> None:
    page = watched(manager, 5)
    log = looked(5)
    heads = log.view().evaluations[-1].heads
    log.add(Evaluation(41, math.nan, math.nan, 10.0, False, heads=heads))
    manager.change("run-0", history=log.view())
    said = sentences(page.run())
    assert "At step **41** its loss is no number any more" in said and "looks at the place" not in said
