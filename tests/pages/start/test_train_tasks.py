"""A run that trains on a synthetic task: floor, accuracy, marks and sentence are what its records hold."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.service.history import HistoryLog
from engine.tasks import TASKS
from engine.training.records import Evaluation, Sample, Step, TaskScores
from engine.training.tasks import recipe
from tests.pages.stage import StageManager
from tests.pages.start.training import clicked, opened, sentences

# (step, validation loss, share solved of those trained on, of those held out)
COURSE = ((0, 2.4, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.97, 0.86, 0.79))
WROTE = "abcdefgh>hgfedcba\nabcdefgh>abcdefgh\nab"
FLOOR = 8 * math.log(8) / 18


def looked() -> HistoryLog:
    log = HistoryLog()
    for step in range(1, COURSE[-1][0] + 1):
        log.add(Step(step, 1.5, 1.0, 1e-3, 864 * step, 0.02 * step))
    for step, loss, train, held_out in COURSE:
        end = step == COURSE[-1][0]
        if end:  # a quick look first, then one at all that is held out
            log.add(Evaluation(step, 1.1, 1.2, step / 50, False, 1.1, 1.2, None, TaskScores(0.84, 0.71)))
        log.add(Evaluation(step, loss, loss, step / 50, end, loss, loss, None, TaskScores(train, held_out)))
    log.add(Sample(100, "\n", WROTE))
    return log


def watched(manager: StageManager, **query: str) -> AppTest:
    page = clicked(opened(data="task", task="reverse", preset="task", **query), "train")
    manager.change("run-0", history=looked().view())
    return page.run()


def test_a_task_is_a_text_to_train_on(manager: StageManager) -> None:
    page = opened(data="task", task="sort")
    assert (
        page.header[0].value == "When does it find the rule? Write the letters in the order of the alphabet."
    )
    said = sentences(page)
    assert "**18,000** problems to train on and **2,000** others" in said
    assert f"It begins at {math.log(10):.2f} nats, and no model can get below **0.89**" in said.replace(
        f"{TASKS['sort'].floor(64):.2f}", "0.89"
    )
    page = clicked(page, "train")
    assert manager.view("run-0").spec.corpus == "sort"


def test_a_window_that_is_no_problem_long_is_named(manager: StageManager) -> None:
    said = sentences(opened(data="task", task="reverse", preset="task"))
    assert "A problem of Reverse has **18** characters: a window of 25 ends in the middle of the next" in said
    said = sentences(opened(data="task", task="reverse", preset="task", context="16"))
    assert "a window of 16 sees no problem to its end" in said
    for task in ("repeat", "markov"):  # as long as the preset's window; of no length at all
        assert "A problem of" not in sentences(opened(data="task", task=task, preset="task"))


def test_what_is_shown_of_a_run(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched(manager)
    floor = TASKS["reverse"].floor(recipe(TASKS["reverse"])[0].context)
    assert floor == pytest.approx(FLOOR)
    shown = drawn["solved_chart"]
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.79], [0.0, 0.22, 0.86]]
    assert [trace["name"] for trace in shown.traces] == ["held out 79%", "trained on 86%"]
    assert shown.traces[0]["x"] == [0, 50, 100]
    context = manager.view("run-0").spec.model.context
    lowest = TASKS["reverse"].floor(context)
    assert any(str(trace["name"]).endswith(" 0.97") for trace in drawn["loss_chart"].traces)
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert f"the floor: {lowest:.2f}" in notes and "0.97" in notes
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert any(line == pytest.approx(lowest) for line in lines)
    said = sentences(page)
    assert "After **100** steps it solves **79%** of the problems that it never saw (86% of those it" in said
    assert f"Its loss is **0.970** nats; no model gets below {lowest:.3f}." in said


def test_what_it_writes_is_marked(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.start.train import samples

    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data))
    watched(manager)
    (text,) = [s["text"] for s in sent[-1]["data"]["runs"][0]["samples"]]
    assert text == "\n✓ right  abcdefgh>hgfedcba\n✗ wrong  abcdefgh>abcdefgh"
    assert "<" not in json.dumps(text)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"tokenizer": "bpe"}, "the tokenizer must be char"),
        ({"context": "9"}, "must be at least 18"),
    ],
)
def test_what_does_not_go_with_a_task_is_said(
    query: dict[str, str], says: str, manager: StageManager
) -> None:
    page = opened(data="task", task="reverse", **query)
    assert says in sentences(page), sentences(page)
    assert page.button(key="train").disabled


def test_in_bits_the_floor_is_in_bits(manager: StageManager, drawn: dict[str, Any]) -> None:
    watched(manager, loss_in="bits per character")
    lowest = TASKS["reverse"].floor(manager.view("run-0").spec.model.context) / math.log(2)
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert any(line == pytest.approx(lowest) for line in lines)
