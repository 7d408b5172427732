"""Benchmark and Tool call as they are shown: the stored numbers, and claims only of what was measured."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.data.progress import Progress, Steps
from pages.lab.after import benchmark, tool_call
from studies.after.benchmark import (
    LETTERS,
    MIXED,
    ORDERS,
    WAYS,
    Contaminated,
    Scores,
    by_chance,
    right_letters,
)
from studies.after.benchmark_questions import ITEMS
from studies.after.finetune import FinetuneRecipe
from studies.experiments import benchmark_runs, tool_runs
from studies.experiments.benchmark_runs import Plan
from studies.experiments.tool_runs import RAN, Ran, Stream
from tests.pages import helpers
from tests.pages.helpers import unescaped as said
from ui import background_jobs, model_choice, models

pytestmark = pytest.mark.usefixtures("manager", "measured_anew")

ROOM = "lab/after"
COUNT = len(ITEMS)


def stored(plan: Plan) -> Scores:
    return next(run.scores for run in benchmark_runs.shipped() if run.plan == plan)


def bars(drawn: dict[str, Any]) -> list[Any]:
    return [trace for trace in drawn["bench_marks"].traces if trace["type"] == "bar"]


def test_marks_are_the_stored_scores_ways(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="benchmark", bench_question="5", **helpers.FOLDS)
    scores = stored(Plan(0))
    marks = [scores.mark(way) for way in WAYS]
    (bar,) = bars(drawn)
    assert list(bar["x"]) == marks and drawn["bench_marks"].layout["shapes"][0]["x1"] == by_chance()[1]
    assert f"between **{min(marks)}** and **{max(marks)}** of 20" in said(page)
    item, whole = ITEMS[4], scores.compared("whole")[4]
    best = f"**{whole.max():.2f}**".replace("-", "−")
    letter = LETTERS[right_letters(MIXED)[4]]
    row = next(line for line in said(page).split("\n") if f"✓ {letter}. {item.options[0]}" in line)
    assert (best in row) == (whole.argmax() == 0)
    assert item.question in said(page)
    table = page.dataframe[0].value
    assert table["A"].tolist() == [stored(Plan(k)).mark("letter", order="A") for k in range(4)]


def test_the_order_moves_the_mark_by_letter_alone(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="benchmark", bench_order="A", bench_examples="2")
    scores = stored(Plan(2))
    (bar,) = bars(drawn)
    mark = scores.mark("letter", order="A")
    assert list(bar["x"]) == [mark, *(scores.mark(way) for way in WAYS[1:])]
    assert f"with every right answer at A the model gets **{mark} of 20**" in said(page)
    best = max(LETTERS, key=lambda letter: scores.mark("letter", order=letter))
    assert f"It prefers {best}; the solved examples' answers were B, D." in said(page)


def test_paraphrases_have_no_mark_by_letter(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="benchmark", bench_wording="paraphrase")
    (bar,) = bars(drawn)
    assert list(bar["x"]) == [stored(Plan(0)).mark(way, "paraphrase") for way in WAYS[1:]]
    assert ITEMS[0].paraphrase in said(page) and "| – |" in said(page)


def test_a_trained_model_stands_beside_the_published_one(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="benchmark", bench_model="trained")
    before, after = bars(drawn)
    runs = [stored(Plan(0, seed)) for seed in benchmark_runs.SEEDS]
    assert list(before["x"]) == [stored(Plan(0)).mark(way) for way in WAYS]
    assert list(after["x"]) == [np.median([run.mark(way) for run in runs]) for way in WAYS]
    points = [t["x"] for t in drawn["bench_marks"].traces if t["type"] == "scatter"]
    assert points == [[run.mark(way) for way in WAYS] for run in runs]
    assert f"to **{np.median([run.mark('whole') for run in runs]):g} of 20**" in said(page)


def marked(whole: int, other: int = 0, letter: int = 0) -> Scores:
    """Scores with so many right by whole answers, to other questions, and by letter in a mixed order."""
    scores = np.zeros((3, COUNT, 4))
    scores[:2, :, 1] = 0.5
    scores[:2, :whole, 0] = 1
    for i, item in enumerate(ITEMS):
        scores[2, i, item.right_of_other if i < other else 0] = 1
    letters = np.zeros((4, COUNT, 4))
    for at in range(4):
        letters[at, :, (at + 1) % 4] = 0.5
        letters[at, :letter, at] = 1
    return Scores(scores, np.zeros((COUNT, 4)), letters, np.ones((COUNT, 4)))


def test_a_claim_about_training_is_made_only_where_every_run_has_it() -> None:
    before = marked(10, 10, 5)
    text = benchmark.trained_answer(
        before, [marked(20, 8, 5), marked(19, 9, 4), marked(20, 8, 5)], "question"
    )
    assert "raise the mark for whole answers from **10** to **20 of 20** (median of 3 seeds)" in text
    assert "it still only guesses" in text
    assert "it gains, too" in benchmark.trained_answer(before, [marked(20, 8, 15)], "question")
    for ends, wanted in (((15, 15), "prefers these answers"), ((15, 11), "learned the wording")):
        assert wanted in benchmark.trained_answer(before, [marked(end) for end in ends], "paraphrase")
    for ends, wanted in (((8, 14), "knows no more"), ((12, 14), "rise, too")):
        assert wanted in benchmark.trained_answer(before, [marked(20, end) for end in ends], "other")
    assert "(one run)" in benchmark.trained_answer(before, [marked(20)], "other")


@pytest.mark.parametrize(("ends", "points"), [((17,), 0), ((17, 12), 2), ((17, 12, 14), 3)])
def test_each_of_several_runs_is_a_point_and_a_single_one_is_its_bar(
    ends: tuple[int, ...], points: int
) -> None:
    figure = benchmark.bars(["whole"], marked(10), [marked(end) for end in ends], "question", MIXED)
    assert figure.traces[1]["x"] == [np.median(ends)]
    assert [trace["x"] for trace in figure.traces[2:]] == [[end] for end in ends[:points]]


def test_a_training_here_takes_the_place_of_the_stored_ones(
    monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any]
) -> None:
    seeds = []

    def trained(model: object, tokenizer: object, recipe: FinetuneRecipe) -> Steps[Contaminated]:
        seeds.append(recipe.seed)
        yield Progress(1, 2)
        return Contaminated((1.0,), marked(17, 3, 5))

    monkeypatch.setattr(benchmark, "contaminate", trained)
    monkeypatch.setattr(model_choice, "first_of", lambda names: names[0])
    monkeypatch.setattr(models, "model_of", lambda *_: SimpleNamespace(model=None, tokenizer=None))
    page = helpers.opened(ROOM, after_view="benchmark", bench_model="trained", bench_seed="7")
    helpers.clicked(page, "bench_train")
    assert seeds == [7] and "to **17 of 20** (one run)" in said(page)
    assert list(bars(drawn)[1]["x"]) == [5, 17, 17, 17]
    assert "not trained here" not in said(page, "caption")


def test_a_seed_that_is_not_trained_says_that_stored_runs_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, "first_of", lambda names: names[0])
    page = helpers.opened(ROOM, after_view="benchmark", bench_model="trained", bench_seed="7")
    assert "Seed 7 is not trained here: press *Train*. Shown are the 3 stored runs" in said(page, "caption")
    page = helpers.opened(ROOM, after_view="benchmark", bench_model="trained", bench_seed="2")
    assert "not trained here" not in said(page, "caption")


def test_without_smollm2_the_stored_marks_are_shown_and_nothing_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_choice, "first_of", lambda names: "timelapse")
    page = helpers.opened(ROOM, after_view="benchmark", bench_model="trained")
    assert "SmolLM2 is not installed here" in said(page, "caption") and "of 20**" in said(page)
    assert not [button for button in page.button if button.key == "bench_train"]


def test_the_answer_says_whether_letters_beat_guessing_and_places_decide() -> None:
    assert "within what guessing gets" in benchmark.answer(marked(14, 0, 5), "question", MIXED)
    assert "better than guessing" in benchmark.answer(marked(14, 0, 15), "question", MIXED)
    assert "hardly matters" in benchmark.answer(marked(14, 0, 5), "question", "C")
    always = marked(14)
    always.letters[..., 0] = 2
    for order in ORDERS[1:]:
        text = benchmark.answer(always, "question", order)
        assert f"**{COUNT if order == 'A' else 0} of 20**, in mixed order **5**" in text
        assert "the place decides" in text


# A tool call -------------------------------------------------------------------------------------------


def test_the_text_of_a_call_is_shown_by_who_wrote_it(drawn: dict[str, Any]) -> None:
    shown = tool_runs.shipped()[1].looks[-1].streams
    for ran, streams in zip(RAN, shown, strict=True):
        page = helpers.opened(
            ROOM, after_view="aloud", aloud_mode="tool", tool_ran=ran, tool_sum="3", tool_seed="1"
        )
        stream = streams[2]
        lines = page.code[0].value.split("\n")
        assert "".join(line.split(maxsplit=1)[1] for line in lines) == stream.line
        writers = [line.split()[0] for line in lines]
        assert writers == ["question", "model", *(["harness", "model"] if ran != "nobody" else [])]
        right = ran == "run" or stream.sum == f"{sum(map(int, stream.question[:-1].split('+'))):07d}"
        assert ("The sum is right." in said(page)) == right


def test_a_staircase_begins_each_piece_where_the_one_before_ended() -> None:
    lines = tool_call.staircase(Stream("1+2=", ("[1+2]", "(3)", "3"))).split("\n")
    columns = [len(line) - len(line.split(maxsplit=1)[1]) for line in lines]
    assert [column - columns[0] for column in columns] == [0, 4, 9, 12]


def values_by_name(traces: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns the values of traces by their name."""
    return {each["name"]: [t["y"] for t in traces if t["name"] == each["name"]] for each in traces}


def test_shares_and_tokens_are_the_stored_runs(drawn: dict[str, Any]) -> None:
    runs = tool_runs.shipped()
    by_name = {}
    for ran in ("broken", "run"):
        page = helpers.opened(ROOM, after_view="aloud", aloud_mode="tool", tool_ran=ran, **helpers.FOLDS)
        by_name |= values_by_name(drawn["tool_by_step"].traces)
    for ran in RAN:
        each = [[look.right[RAN.index(ran)] for look in run.looks] for run in runs]
        *thin, thick = by_name[tool_call.TEXT(f"line {ran}", off=tool_runs.OFF)]
        np.testing.assert_allclose(thin, each, atol=1e-6)
        np.testing.assert_allclose(thick, np.median(each, 0), atol=1e-6)
    stream = runs[0].looks[-1].streams[0][0]
    row = f"| **Call, run** | **100%** | **{len(stream.by_model)}** | **{len(stream.by_harness)}** |"
    assert row in said(page)
    assert "| At once | 0% | 7 | 0 |" in said(page) and "| Chain of thought | 100% | 19 | 0 |" in said(page)


@pytest.mark.parametrize("ran", RAN)
def test_figure_and_table_follow_who_runs_the_call(drawn: dict[str, Any], ran: Ran) -> None:
    page = helpers.opened(ROOM, after_view="aloud", aloud_mode="tool", tool_ran=ran)
    wide = {trace["name"] for trace in drawn["tool_by_step"].traces if trace["line"]["width"] > 3}
    assert wide == {tool_call.TEXT(f"line {ran}", off=tool_runs.OFF)}
    (row,) = [line for line in said(page).split("\n") if line.startswith("| **")]
    right = [run.looks[-1].right[RAN.index(ran)] for run in tool_runs.shipped()]
    way, share = row.replace("*", "").strip("| ").split(" | ")[:2]
    assert way == tool_call.TEXT(f"row {ran}", off=tool_runs.OFF)
    assert share == "0%" if ran == "broken" else share.endswith(f"{max(right):.0%}")


def test_a_claim_about_calls_is_the_range_of_all_runs() -> None:
    look = tool_runs.shipped()[0].looks[-1]
    ends = [
        replace(look, made_up=share, right=(share, share / 2, 0.0), repeated=(1, 1, share))
        for share in (1, 0.95, 0.98)
    ]
    assert tool_call.answer("run", ends).startswith("A call is text until somebody runs it")
    assert "gets **95% to 100%** of new sums right" in tool_call.answer("run", ends)
    assert "for **95% to 100%** of sums it writes a result itself" in tool_call.answer("nobody", ends)
    assert "it repeats **95% to 100%** of the wrong results" in tool_call.answer("broken", ends)
    assert "itself **48% to 50%** (3 seeds)." in tool_call.answer("run", ends)
    low = [*ends, replace(look, made_up=0.2, right=(0.2, 0.0, 0.0), repeated=(1, 1, 0.2))]
    assert tool_call.answer("run", low).startswith("A call alone is not enough")
    assert tool_call.answer("nobody", low).startswith("Nobody runs the call: for **20% to 100%**")
    assert tool_call.answer("broken", low).startswith("Off by 1")
    assert "(one run)" in tool_call.answer("broken", low[:1])


def test_a_training_of_the_calling_model_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_jobs, "GLANCE", 60.0)
    monkeypatch.setattr(tool_call, "learn", lambda seed: tool_runs.learn(seed, 2))
    page = helpers.opened(ROOM, after_view="aloud", aloud_mode="tool", tool_seed="7")
    helpers.clicked(page, "tool_train")
    assert "(one run)" in said(page)
