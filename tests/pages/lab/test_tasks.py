"""The tasks' room: what it says and draws is what the shipped models do and their metrics hold."""

import json
import re
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import checkpoints
from engine.data import corpora
from engine.probe import Recorder
from engine.sample import complete
from pages.lab.tasks import solved, source_heads, task_models
from studies.tasks.all import TASKS
from studies.tasks.problems import answered, lines_of
from studies.tasks.task_heads import looking
from studies.tasks.task_scores import out_of_turn
from tests.pages import helpers
from tests.pages.helpers import unescaped as said
from tests.pages.stage import StageManager
from ui.site import ROOT

pytestmark = pytest.mark.usefixtures("manager")

NAMES = [name for name in TASKS if (ROOT / "checkpoints" / "tasks" / name).is_dir()]


@pytest.fixture(autouse=True)
def gone(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Where links and buttons lead to: a page alone has no router to lead there."""
    found: list[tuple[str, dict[str, str]]] = []

    def go(path: str, *, query_params: dict[str, str], **_: object) -> None:
        found.append((path, query_params))

    monkeypatch.setattr(task_models.st, "switch_page", go)
    return found


def opened(view: str, **query: str) -> AppTest:
    return helpers.opened("lab/tasks", tasks_view=view, **query)


def codes(page: AppTest) -> list[str]:
    return [code.value for code in page.code]


def stored(path: str) -> Any:
    return json.loads((ROOT / "checkpoints" / f"{path}.json").read_text())


def shipped_task(name: str) -> tuple[checkpoints.Checkpoint, Any]:
    """The shipped model of a task, and its corpus."""
    return checkpoints.load(ROOT / "checkpoints" / "tasks" / name), corpora.load(name)


@pytest.mark.parametrize(
    "name",
    [n if n in ("reverse", "markov") else pytest.param(n, marks=pytest.mark.exhaustive) for n in NAMES],
)
def test_every_task_shows_its_curve_its_floor_and_its_answers(name, drawn):
    said_so = said(opened("solve", task=name, grokking_axis="plain", measure="true"))
    known, chart = stored(f"tasks/{name}/metrics"), drawn["task_learned"]
    for trace, field in zip(chart.traces, ("solved", "validation_loss", "train_solved"), strict=False):
        assert trace["y"] == pytest.approx([point[field] for point in known["curve"]])
    assert chart.traces[0]["x"] == [point["step"] for point in known["curve"]]
    floor = TASKS[name].floor(shipped_task(name)[0].config.context)
    (line,) = chart.layout["shapes"]
    assert line["y0"] == line["y1"] == pytest.approx(floor)
    assert ("of the positions" in said_so) == (name == "markov")
    assert ("because the answer follows" in said_so) == TASKS[name].answers_only
    share = known["solved"]["validation"]
    shown = "100%" if share == 1 else f"{share:.0%}" if name == "markov" else f"{min(share, 0.999):.1%}"
    assert not helpers.lacking(said_so, f"**{known['validation_loss']:.3f}**", f"{floor:.3f}", f"**{shown}**")


def test_answers_are_the_models_own() -> None:
    page, (found, held_out) = opened("solve", task="reverse", task_problems="3"), shipped_task("reverse")
    lines = codes(page)[0].split("\n")
    assert len(lines) == 6
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
def test_a_problem_of_ones_own(task: str, typed: str, says: str) -> None:
    page = opened("solve", task=task, task_line=typed)
    assert says in " | ".join([said(page), *codes(page)])


def patterns(found: checkpoints.Checkpoint, row: torch.Tensor) -> np.ndarray:
    """(layer, head, query, key) of a row of tokens, for two layers."""
    recorder = Recorder({"pattern"})
    with torch.inference_mode():
        found.model(row[None], recorder)
    return np.stack([recorder[f"blocks.{layer}.pattern"][0] for layer in range(2)])


def test_heads_of_the_model_that_thinks_aloud_read_the_next_bit(drawn: dict[str, Any]) -> None:
    page, (found, corpus) = opened("heads", task="parity_aloud"), shipped_task("parity_aloud")
    assert source_heads.TEXT["last result"] in [caption.value for caption in page.caption]
    last, weights = len(corpus.validation) // 34 - 1, dict[int, list[np.ndarray]]()
    for start in (torch.linspace(0, last, 40).long() * 34).tolist():
        row = corpus.validation[start : start + 33]
        seen = patterns(found, row)
        for i in range(16):
            weights.setdefault(int(row[17 + i]), []).append(seen[:, :, 17 + i, 1 + i])
    means = np.mean([weight for each in weights.values() for weight in each], axis=0)
    np.testing.assert_allclose(np.reshape(drawn["task_scores"].traces[0]["y"], (2, 4)), means, atol=1e-4)
    for bit in "01":  # after each partial result another head
        weight = np.mean(weights[found.tokenizer.encode(bit)[0]], axis=0)
        layer, head = np.unravel_index(weight.argmax(), weight.shape)
        assert f"**{layer}.{head}** where it is {bit} (**{weight.max():.0%}**" in said(page)


def test_readers_are_told_only_where_each_result_has_a_head_of_its_own() -> None:
    zero, one = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])
    readers = source_heads.readers_by_result({"0": zero, "1": one})
    assert [(each.layer, each.head, each.value) for each in readers or ()] == [(0, 0, 0.9), (0, 1, 0.8)]
    assert source_heads.readers_by_result({"0": zero, "1": zero}) is None  # one head reads both
    assert source_heads.readers_by_result({"0": zero, "1": 0.5 * one}) is None  # nobody clearly does


def test_the_head_that_reverses(drawn: dict[str, Any]) -> None:
    page, (found, corpus) = opened("heads", task="reverse"), shipped_task("reverse")
    seen = looking(found.model, found.tokenizer, TASKS["reverse"], lines_of(corpus.validation, 18, 40))
    assert seen is not None
    assert drawn["task_scores"].traces[0]["y"] == pytest.approx(seen.scores.ravel().tolist(), abs=1e-4)
    best = seen.best[0]
    assert not helpers.lacking(
        said(page),
        f"Head **{best.layer}.{best.head}** attends to the source of each answer character: **{best.value:.0%}**",
        f"(uniform: {seen.even:.0%})",
    )
    (across,) = drawn["task_scores"].layout["shapes"]
    assert across["y0"] == across["y1"] == pytest.approx(seen.even)
    frames = [(s["x0"] + 0.5, s["y0"] + 0.5) for s in drawn["task_pattern"].layout["shapes"]]
    assert frames == [(8 - i, 9 + i) for i in range(8)]
    assert best.value > 0.8


def test_which_order_of_digits_is_learned_first(drawn: dict[str, Any]) -> None:
    race = stored("races/digits")
    firsts: dict[str, list[int]] = {}
    for run in (*race["runs"], *race["repeats"]):
        step = next(e["step"] for e in run["looks"] if e["task"]["validation"] >= 0.95)
        firsts.setdefault(run["name"], []).append(step)
    (other, later), (name, first) = ((name, median(steps)) for name, steps in firsts.items())
    assert first < later  # the last digit first
    assert not helpers.lacking(
        said(opened("order")),
        f"*{name}* is learned first: 95% of held-out sums are right at step **{first:,}**",
        f"(median of 3 seeds), {later - first:,} steps before *{other}*.",
    )
    for trace, run in zip(drawn["order_solved"].traces, race["runs"], strict=True):
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


def test_a_carry_that_runs_on_is_what_is_left_to_go_wrong() -> None:
    answer = said(opened("order", measure="true"))
    for name in ("addition", "addition_reversed"):
        task, (found, corpus) = TASKS[name], shipped_task(name)
        right: dict[bool, list[bool]] = {True: [], False: []}
        lines = lines_of(corpus.validation, task.length, 1000)
        for one in answered(found.model, found.tokenizer, task, lines):
            right[carried(one.question)].append(one.right)
        on, elsewhere = (np.mean(right[there]) for there in (True, False))
        told = f"**{on:.1%}** right where a carry propagates ({len(right[True])} sums), {elsewhere:.1%} elsewhere."
        assert f"{task.title}: {told}" in answer
        assert on < elsewhere or name == "addition_reversed", "the words say that it is the harder half"


def test_repeat_follows_another_rule_than_induction() -> None:
    """A circle by hand: after abcdef abc, an f out of turn. Induction says a, whoever was away longest is d."""
    answer, (found, _) = said(opened("heads", task="repeat", measure="true")), shipped_task("repeat")
    counted = out_of_turn(found.model, found.tokenizer, TASKS["repeat"].alphabet)
    assert f"least recently used character **{counted.longest:.0%}**" in answer and counted.longest > 0.6
    assert f"followed last time **{counted.after:.0%}**" in answer and counted.after < 0.1
    assert "least recently used" not in said(opened("heads", task="copy", measure="true"))


def test_grokking_says_what_its_curve_holds(drawn: dict[str, Any]) -> None:
    page, curve = opened("solve", task="modular", measure="true"), stored("tasks/modular/metrics")["curve"]
    by_heart, rule = (next(p for p in curve if p[kind] >= 0.95) for kind in ("train_solved", "solved"))
    assert by_heart["step"] * 2 < rule["step"]
    assert not helpers.lacking(
        said(page),
        f"Yes: after **{by_heart['step']:,}** steps it has memorised 95% of its training sums",
        f"only **{by_heart['solved']:.0%}**",
        f"**{rule['step']:,}** steps, when 95%",
        "a + b and b + a are always in the same split",
    )
    assert [header.value for header in page.header] == [solved.TEXT["question grokking"]]
    assert drawn["task_learned"].layout["xaxis"]["type"] == "log"
    opened("solve", task="modular", grokking_axis="plain")
    assert "type" not in drawn["task_learned"].layout["xaxis"]


def test_it_is_trained_live(manager: StageManager, gone: list[tuple[str, dict[str, str]]]) -> None:
    helpers.clicked(opened("solve", task="copy"), "train_task_live")
    assert gone == [("pages/start/train/page.py", {"run": "run-0", "data": "task", "task": "copy"})]
    opened("heads", task="sort").button(key="task_look_inside").click().run()
    assert gone[1:] == [("pages/inside/attention/page.py", {"model": "task-sort"})]
    spec = manager.views["run-0"].spec
    assert spec.corpus == "copy" and spec.model.context == 18
