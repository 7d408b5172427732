"""A run that learns from pairs, labels or a task: what is chosen, drawn and said is what its records hold."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.corpora import shakespeare_path
from engine.paired_data import pair_text
from engine.presets import PAIRED
from engine.service.history import HistoryLog
from engine.service.state import RunSpec
from engine.tasks import TASKS
from engine.training import kinds
from engine.training.records import Evaluation, Sample, Step, TaskScores
from engine.training.tasks import recipe
from tests.pages.stage import StageManager, view_of
from tests.pages.start.training import clicked, opened, sentences

# (step, validation loss, share right of those learned from, of those held out)
COURSE = ((0, 2.9, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.0712, 0.96, 0.89))
needs_shakespeare = pytest.mark.skipif(shakespeare_path() is None, reason="needs Tiny Shakespeare")


def looked(course: tuple[tuple[int, float, float, float], ...], *samples: Sample) -> HistoryLog:
    log = HistoryLog()
    for step in range(1, course[-1][0] + 1):
        log.add(Step(step, 1.5, 1.0, 1e-3, 864 * step, 0.02 * step))
    for step, loss, train, held_out in course:
        end = step == course[-1][0]
        if end:  # a quick look first, then one at all that is held out
            log.add(Evaluation(step, 0.2, 0.3, step / 50, False, task=TaskScores(0.95, 0.71)))
        log.add(Evaluation(step, loss, loss, step / 50, end, task=TaskScores(train, held_out)))
    for sample in samples:
        log.add(sample)
    return log


def watched(manager: StageManager, *samples: Sample, name: str = "pairs-reverse", **query: str) -> AppTest:
    page = clicked(clicked(opened(data="pairs", pairs=name, **query), "pairs_settings"), "train")
    manager.change("run-0", history=looked(COURSE, *samples).view())
    return page.run()


def test_a_task_is_chosen_described_and_started_with_its_settings(manager: StageManager) -> None:
    page = opened(data="pairs", pairs="pairs-dates")
    said = sentences(page)
    text = pair_text("dates")
    assert page.header[0].value == "Dates: when can it do it alone?"
    assert (
        f"**20,000** pairs to learn from and **1,000** others, held out; **{text.vocab_size:,}** symbols"
        in said
    )
    page = clicked(clicked(page, "pairs_settings"), "train")
    assert not page.exception
    spec = manager.view("run-0").spec
    assert (spec.model, spec.train) == kinds.recipe("pairs-dates")
    assert (spec.corpus, spec.name) == ("pairs-dates", "dates")


def test_before_the_first_run_the_loss_of_knowing_nothing_is_said(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = opened(data="pairs", pairs="pairs-sort")
    signs = 12 + 3  # a to l, and padding, begin and end
    assert f"torn between **{signs}** symbols ({math.log(signs):.2f} nats)" in sentences(page)
    lines = [shape["y0"] for shape in drawn["empty_chart"].layout["shapes"]]
    assert any(line == pytest.approx(math.log(signs)) for line in lines)
    first = pair_text("sort").train[0]
    assert f"{first.source} → {first.target}" in " ".join(str(one.value) for one in page.code)


def test_what_is_shown_of_a_run(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched(manager)
    shown = drawn["solved_chart"]
    assert [trace["y"] for trace in shown.traces] == [[0.0, 0.17, 0.89], [0.0, 0.22, 0.96]]
    assert [trace["name"] for trace in shown.traces] == ["held out 89%", "learned from 96%"]
    assert shown.layout["yaxis"]["title"]["text"] == "written right, whole and alone"
    assert [trace["x"] for trace in shown.traces] == [[0, 50, 100]] * 2
    said = sentences(page)
    assert "From noise to Shakespeare" not in said and PAIRED["reverse"].summary in said
    notes = [note["text"] for note in drawn["loss_chart"].layout["annotations"]]
    assert "0.07" in notes and "0.30" not in notes
    assert "After **100** steps it writes **89%** of the targets that it never saw" in said
    assert "alone (96% of those it learned from)" in said
    assert f"Its loss is **0.071** nats; knowing nothing, it would be {math.log(15):.2f}." in said
    lines = [shape["y0"] for shape in drawn["loss_chart"].layout["shapes"]]
    assert any(line == pytest.approx(math.log(15)) for line in lines)
    assert "Bits / character" not in [metric.label for metric in page.metric]
    assert "Loss in" not in [one.label for one in page.get("button_group")]


@needs_shakespeare
def test_what_is_shown_of_labels(manager: StageManager, drawn: dict[str, Any]) -> None:
    said = sentences(watched(manager, name=kinds.SPEAKERS))
    assert "it names the speaker of **89%** of the texts that it never read (96% of those it learned" in said
    assert f"knowing nothing, it would be {math.log(8):.2f}" in said
    assert drawn["solved_chart"].layout["yaxis"]["title"]["text"] == "named right"


def test_what_it_writes_is_marked(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.start.train import samples

    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data))
    watched(manager, Sample(0, "abc", "abc"), Sample(50, "abc", "cba"), Sample(100, "a!", "a"))
    texts = [s["text"] for s in sent[-1]["data"]["runs"][0]["samples"]]
    assert texts == ["\n✗ wrong  abc\n← abc", "\n✓ right  cba\n← abc", "\n? not known  a\n← a!"]


def test_only_runs_of_the_same_task_are_laid_over(manager: StageManager) -> None:
    from pages.start.train.beside import comparable

    model, train = kinds.recipe("pairs-reverse")
    views = [
        view_of(RunSpec(model, train, name), name) for name in ("pairs-reverse", "pairs-sort", "python", "x")
    ]
    assert [[comparable(a, b) for b in views] for a in views] == [
        [True, False, False, False],
        [False, True, False, False],
        [False, False, True, True],
        [False, False, True, True],
    ]


# (step, validation loss, share solved of those trained on, of those held out)
SOLVING = ((0, 2.4, 0.0, 0.0), (50, 1.31, 0.22, 0.17), (100, 0.97, 0.86, 0.79))
WROTE = "abcdefgh>hgfedcba\nabcdefgh>abcdefgh\nab"
FLOOR = 8 * math.log(8) / 18


def watched_task(manager: StageManager, **query: str) -> AppTest:
    page = clicked(opened(data="task", task="reverse", preset="task", **query), "train")
    manager.change("run-0", history=looked(SOLVING, Sample(100, "\n", WROTE)).view())
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


def test_what_is_shown_of_a_run_on_a_task(manager: StageManager, drawn: dict[str, Any]) -> None:
    page = watched_task(manager)
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


def test_answers_to_a_task_are_marked(manager: StageManager, monkeypatch: pytest.MonkeyPatch) -> None:
    from pages.start.train import samples

    sent: list[Any] = []
    monkeypatch.setattr(samples, "mounted", lambda *_, **__: lambda **data: sent.append(data))
    watched_task(manager)
    (text,) = [s["text"] for s in sent[-1]["data"]["runs"][0]["samples"]]
    assert text == "\n✓ right  abcdefgh>hgfedcba\n✗ wrong  abcdefgh>abcdefgh"
    assert "<" not in json.dumps(text)


PAIRS = {"data": "pairs", "pairs": "pairs-reverse"}
TASK = {"data": "task", "task": "reverse"}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (PAIRS | {"wiring": "parallel"}, "has no place for cross-attention"),
        (PAIRS | {"window": "4"}, "**Window** 4: needs the causal mask"),
        (PAIRS | {"batch_size": "1000000"}, "tokens a step"),
        (TASK | {"tokenizer": "bpe"}, "the tokenizer must be char"),
        (TASK | {"context": "9"}, "must be at least 18"),
    ],
)
def test_what_does_not_go_with_pairs_or_a_task_is_said(
    query: dict[str, str], says: str, manager: StageManager
) -> None:
    page = opened(**query)
    assert says in sentences(page), sentences(page)
    assert page.button(key="train").disabled
