"""The tasks' room: what it says and draws is what the shipped models do and their metrics hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.data import corpora
from engine.data.tasks.all import TASKS
from engine.measure.tasks.task_scores import out_of_turn
from engine.probe import Recorder
from engine.sample import complete
from engine.sample.problems import answered, lines_of
from engine.weights import checkpoints
from pages.lab.tasks import shipped, words
from tests.pages import helpers
from tests.pages.helpers import unescaped as said
from tests.pages.stage import StageManager

ROOT = Path(__file__).parents[3]
NAMES = [name for name in TASKS if (ROOT / "checkpoints" / "tasks" / name).is_dir()]


@pytest.fixture(autouse=True)
def gone(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Where links and buttons lead to: a page alone has no router to lead there."""
    found: list[tuple[str, dict[str, str]]] = []

    def go(path: str, *, query_params: dict[str, str], **_: object) -> None:
        found.append((path, query_params))

    monkeypatch.setattr(shipped.st, "switch_page", go)
    return found


def opened(view: str, **query: str) -> AppTest:
    return helpers.opened("lab/tasks", tasks_view=view, **query)


def codes(page: AppTest) -> list[str]:
    return [code.value for code in page.code]


def metrics(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "checkpoints" / "tasks" / name / "metrics.json").read_text())


@pytest.mark.parametrize(
    "name",
    [n if n in ("reverse", "markov") else pytest.param(n, marks=pytest.mark.exhaustive) for n in NAMES],
)
def test_every_task_shows_its_curve_its_floor_and_its_answers(name, manager, drawn):
    page, known = opened("solve", task=name, grokking_axis="plain", measure="true"), metrics(name)
    chart, curve = drawn["task_learned"], known["curve"]
    assert chart.traces[0]["y"] == pytest.approx([point["solved"] for point in curve])
    assert chart.traces[2]["y"] == pytest.approx([point["train_solved"] for point in curve])
    assert chart.traces[1]["y"] == pytest.approx([point["validation_loss"] for point in curve])
    assert chart.traces[0]["x"] == [point["step"] for point in curve]
    context = checkpoints.load(ROOT / "checkpoints" / "tasks" / name).config.context
    floor = TASKS[name].floor(context)
    (line,) = chart.layout["shapes"]
    assert line["y0"] == line["y1"] == pytest.approx(floor)
    assert f"**{known['validation_loss']:.3f}**" in said(page) and f"{floor:.3f}" in said(page)
    share = known["solved"]["validation"]
    shown = "100%" if share == 1 else f"{share:.0%}" if name == "markov" else f"{min(share, 0.999):.1%}"
    assert f"**{shown}**" in said(page)


def test_answers_are_the_models_own(manager: StageManager) -> None:
    page = opened("solve", task="reverse", task_problems="3")
    found = checkpoints.load(ROOT / "checkpoints" / "tasks" / "reverse")
    lines = codes(page)[0].split("\n")
    assert len(lines) == 6
    held_out = corpora.load("reverse")
    text = held_out.tokenizer.decode(held_out.validation.tolist())
    for line in lines:
        mark, word, question, answer = re.fullmatch(r"(.) (\w+)  (\S+) (\S+)(?:   .*)?", line).groups()  # type: ignore[union-attr]
        assert complete(found.model, found.tokenizer, "\n" + question, 8, 0.0, 0) == answer
        right = answer == question[7::-1]
        assert (mark, word) == (("✓", "right") if right else ("✗", "wrong"))
        assert f"\n{question}" in text  # held out
    assert codes(opened("solve", task="reverse"))[0] != codes(page)[0]


@pytest.mark.parametrize(
    ("task", "typed", "says"),
    [
        ("reverse", "abcdefgh", "abcdefgh> hgfedcba"),
        ("reverse", "xyz", "“xyz” is not a question for this task: type 8 characters from a to h."),
        ("reverse", "<b>hi</b> *x*", "is not a question for this task"),
        ("markov", "abc", "A sample."),
    ],
)
def test_a_problem_of_ones_own(task: str, typed: str, says: str, manager: StageManager) -> None:
    page = opened("solve", task=task, task_line=typed)
    assert says in " | ".join([said(page), *codes(page)])


def test_heads_of_the_model_that_thinks_aloud_read_the_next_bit(
    manager: StageManager, drawn: dict[str, Any]
) -> None:
    page = opened("heads", task="parity_aloud")
    assert words.PARTIAL in [caption.value for caption in page.caption]
    found, corpus = (
        checkpoints.load(ROOT / "checkpoints" / "tasks" / "parity_aloud"),
        corpora.load("parity_aloud"),
    )
    last = len(corpus.validation) // 34 - 1
    weights: dict[int, list[np.ndarray]] = {}
    for start in (torch.linspace(0, last, 40).long() * 34).tolist():
        row, recorder = corpus.validation[start : start + 33], Recorder({"pattern"})
        with torch.inference_mode():
            found.model(row[None], recorder)
        patterns = np.stack([recorder[f"blocks.{layer}.pattern"][0] for layer in range(2)])
        for i in range(16):
            weights.setdefault(int(row[17 + i]), []).append(patterns[:, :, 17 + i, 1 + i])
    means = np.mean([weight for each in weights.values() for weight in each], axis=0)
    np.testing.assert_allclose(np.reshape(drawn["task_scores"].traces[0]["y"], (2, 4)), means, atol=1e-4)
    for bit in "01":  # after each partial result another head
        weight = np.mean(weights[found.tokenizer.encode(bit)[0]], axis=0)
        layer, head = np.unravel_index(weight.argmax(), weight.shape)
        assert f"**{layer}.{head}** where it is {bit} (**{weight.max():.0%}**" in said(page)


def test_the_head_that_reverses(manager: StageManager, drawn: dict[str, Any]) -> None:
    """By a second way: the place that mirrors the query, read off the pattern itself."""
    page = opened("heads", task="reverse")
    found = checkpoints.load(ROOT / "checkpoints" / "tasks" / "reverse")
    corpus = corpora.load("reverse")
    rows = torch.linspace(0, 1999, 40).long() * 18
    sums = np.zeros((2, 4))
    for start in rows.tolist():
        recorder = Recorder({"pattern"})
        with torch.inference_mode():
            found.model(corpus.validation[start : start + 18][None], recorder)
        for layer in range(2):
            pattern = recorder[f"blocks.{layer}.pattern"][0]
            sums[layer] += [float(sum(p[9 + i, 8 - i] for i in range(8))) / 8 / 40 for p in pattern]
    assert drawn["task_scores"].traces[0]["y"] == pytest.approx(sums.ravel().tolist(), abs=1e-4)
    layer, head = np.unravel_index(sums.argmax(), sums.shape)
    answer = said(page)
    assert (
        f"Head **{layer}.{head}** attends to the source of each answer character: **{sums.max():.0%}**"
        in answer
    )
    even = np.mean([1 / (10 + i) for i in range(8)])
    assert f"(uniform: {even:.0%})" in answer
    (across,) = drawn["task_scores"].layout["shapes"]
    assert across["y0"] == across["y1"] == pytest.approx(even)
    frames = [(s["x0"] + 0.5, s["y0"] + 0.5) for s in drawn["task_pattern"].layout["shapes"]]
    assert frames == [(8 - i, 9 + i) for i in range(8)]
    assert sums.max() > 0.8


def test_which_order_of_digits_is_learned_first(manager: StageManager, drawn: dict[str, Any]) -> None:
    stored = json.loads((ROOT / "checkpoints" / "races" / "digits.json").read_text())["runs"]
    repeats = json.loads((ROOT / "checkpoints" / "races" / "digits.json").read_text())["repeats"]
    firsts = [
        median(
            next(e["step"] for e in each["looks"] if e["task"]["validation"] >= 0.95)
            for each in (run, *(other for other in repeats if other["name"] == run["name"]))
        )
        for run in stored
    ]
    answer = said(opened("order"))
    assert firsts[1] < firsts[0]  # the last digit first
    assert (
        f"*{stored[1]['name']}* is learned first: 95% of held-out sums are right at step **{firsts[1]:,}**"
        f" (median of 3 seeds), {firsts[0] - firsts[1]:,} steps before *{stored[0]['name']}*." in answer
    )
    for trace, run in zip(drawn["order_solved"].traces, stored, strict=True):
        assert list(trace["y"]) == [e["task"]["validation"] for e in run["looks"]]
        assert list(trace["x"]) == [e["step"] for e in run["looks"]]


def carried(line: str) -> bool:
    """Whether some digit of the sum of `045+157=` depends on more than two columns, by trying: with the ones
    made zero, a digit left of the tens is another.
    """
    first, second = (int(part) for part in line.rstrip("=").split("+"))
    for cut in (10, 100):
        without = (first - first % cut) + (second - second % cut)
        if (first + second) // (cut * 10) != without // (cut * 10):
            return True
    return False


def test_a_carry_that_runs_on_is_what_is_left_to_go_wrong(manager: StageManager) -> None:
    answer = said(opened("order", measure="true"))
    for name in ("addition", "addition_reversed"):
        found = checkpoints.load(ROOT / "checkpoints" / "tasks" / name)
        task, corpus = TASKS[name], corpora.load(name)
        lines = lines_of(corpus.validation, task.length, 1000)
        right = {True: [], False: []}
        for one in answered(found.model, found.tokenizer, task, lines):
            right[carried(one.question)].append(one.right)
        on, elsewhere = (np.mean(right[there]) for there in (True, False))
        assert (
            f"{task.title}: **{on:.1%}** right where a carry propagates ({len(right[True])} sums),"
            f" {elsewhere:.1%} elsewhere." in answer
        )
        assert on < elsewhere or name == "addition_reversed", "the words say that it is the harder half"


def test_repeat_follows_another_rule_than_induction(manager: StageManager) -> None:
    """A circle by hand: after abcdef abc, an f out of turn. Induction says a, whoever was away longest is d."""
    answer = said(opened("heads", task="repeat", measure="true"))
    found = checkpoints.load(ROOT / "checkpoints" / "tasks" / "repeat")
    counted = out_of_turn(found.model, found.tokenizer, TASKS["repeat"].alphabet)
    assert f"least recently used character **{counted.longest:.0%}**" in answer and counted.longest > 0.6
    assert f"followed last time **{counted.after:.0%}**" in answer and counted.after < 0.1
    assert "least recently used" not in said(opened("heads", task="copy", measure="true"))


@pytest.mark.skipif("modular" not in NAMES, reason="its model is not there")
def test_grokking_says_what_its_curve_holds(manager: StageManager, drawn: dict[str, Any]) -> None:
    page, curve = opened("solve", task="modular", measure="true"), metrics("modular")["curve"]
    by_heart = next(point for point in curve if point["train_solved"] >= 0.95)
    rule = next(point for point in curve if point["solved"] >= 0.95)
    answer = said(page)
    assert f"Yes: after **{by_heart['step']:,}** steps it has memorised 95% of its training sums" in answer
    assert (
        f"only **{by_heart['solved']:.0%}**" in answer and f"**{rule['step']:,}** steps, when 95%" in answer
    )
    assert by_heart["step"] * 2 < rule["step"]
    assert [header.value for header in page.header] == [words.GROKKING_QUESTION]
    assert "a + b and b + a are always in the same split" in answer
    assert drawn["task_learned"].layout["xaxis"]["type"] == "log"
    opened("solve", task="modular", grokking_axis="plain")
    assert "type" not in drawn["task_learned"].layout["xaxis"]


def test_it_is_trained_live(manager: StageManager, gone: list[tuple[str, dict[str, str]]]) -> None:
    page = opened("solve", task="copy")
    page.button(key="train_task_live").click().run()
    assert not page.exception
    assert gone == [("pages/start/train/page.py", {"run": "run-0", "data": "task", "task": "copy"})]
    opened("heads", task="sort").button(key="task_look_inside").click().run()
    assert gone[1:] == [("pages/inside/attention/page.py", {"model": "task-sort"})]
    view = manager.view("run-0")
    assert view is not None and view.spec.corpus == "copy" and view.spec.model.context == 18
