"""The page After pre-training: it shows the engine's numbers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine import checkpoints
from engine.data import corpora
from engine.data.progress import Progress, Steps, finish
from engine.data.tokenizers.char import CharTokenizer
from engine.recording import record
from pages.lab.after import chain_of_thought, few_shot
from pages.lab.after import in_context_learning as context
from pages.lab.after.word_pairs import WORD_PAIRS
from studies.circuits import in_context
from studies.circuits.examples_in_prompt import COUNTS, FewShot, order
from studies.circuits.in_context import InContext, Layer, Regression, continued
from studies.experiments import distil_runs
from studies.experiments.lab_races import shipped
from studies.experiments.thinking_aloud import PROBLEMS, THINKING, accuracies
from studies.tasks.carries import LONG_ADDITIONS
from studies.tasks.parity import PARITIES
from studies.tasks.task import Task
from studies.weights.pretrained import library
from studies.weights.pretrained.load import open_model
from tests.pages import helpers
from tests.pages.conftest import LEARNED
from tests.pages.helpers import unescaped as said
from tests.pages.real_model import carried
from ui import background_jobs
from ui.site import ROOT

pytestmark = pytest.mark.usefixtures("manager", "learns_shortly", "measured_anew")

ROOM = "lab/after"


@cache
def engine(layer: Layer = "linear", d: int = 10, examples: int = 20) -> InContext:
    return finish(in_context.measure(Regression(layer, d, examples, steps=LEARNED)))


def test_errors_and_matrix_are_the_engines() -> None:
    page, told, drawn = helpers.visit(ROOM, after_view="context", **helpers.FOLDS)
    found = engine()
    by_name = {trace["name"]: trace for trace in drawn["context_errors"].traces}
    assert by_name["least squares"]["y"] == pytest.approx(found.least, abs=1e-5)
    assert by_name["one gradient step"]["y"] == pytest.approx(found.gradient, rel=1e-5)
    assert by_name["the layer"]["y"] == pytest.approx(found.layers.mean(0), rel=1e-4)
    assert by_name["the layer"]["x"] == found.counts.tolist() and context.HIGHEST > 1
    seeds = [trace["y"] for trace in drawn["context_errors"].traces if trace["name"] == "the layer, one seed"]
    np.testing.assert_allclose(seeds, found.layers, rtol=1e-4)
    (heat,) = drawn["context_matrix"].traces
    np.testing.assert_allclose(heat["z"], found.matrices[0], atol=1e-5)
    assert told.count(f"**{found.rates.mean():.3f}**") == 1 and "**0.645**" in told
    table = page.table[0].value  # in the fold: the numbers of each seed
    assert table["diagonal, mean"].tolist() == [f"{rate:.3f}" for rate in found.rates]
    assert table["differs from the step by"].tolist() == [f"{share:.1%}" for share in found.apart]
    assert r"\frac{20}{31} = 0.645" in told and len(drawn["context_losses"].traces) == 3


def test_the_answer_claims_a_gradient_step_only_where_it_is_one() -> None:
    found = engine(d=3, examples=10)
    same = replace(found, predicted=np.stack([found.stepped] * 3))
    assert same.is_gradient_step and "does one step of gradient descent" in context.answer(same)
    other = replace(found, predicted=np.zeros_like(found.predicted))
    assert not other.is_gradient_step and "is not a gradient step yet" in context.answer(other)
    soft = replace(found, plan=replace(found.plan, layer="softmax"))
    for error, word in ((0.9, "worse"), (0.01, "better")):
        at = replace(soft, layers=np.full_like(soft.layers, error))
        assert f"but {word} than one gradient step: its error is **{error:.2f}**" in context.answer(at)


def test_chosen_points_are_continued(drawn: dict[str, Any]) -> None:
    points = ((1.0, 1.5), (-0.5, 0.5))
    query = {"context_size": "1", "context_points": context.written(points)}
    page, found = helpers.opened(ROOM, after_view="context", **query), engine(d=1)
    lines = continued(found, points, np.linspace(-2, 2, 81))
    by_name = {trace.get("name"): trace for trace in drawn["context_plane"].traces}
    assert by_name["one gradient step"]["y"] == pytest.approx(lines[3], abs=1e-5)
    assert by_name["least squares"]["y"] == pytest.approx(lines[4], abs=1e-5)
    assert by_name["the layer"]["y"] == pytest.approx(lines[:3].mean(0), abs=1e-4)
    for axis in ("xaxis", "yaxis"):
        low, high = drawn["context_plane"].layout[axis]["range"]
        assert low == -high, "zero is in the middle"
    shown = drawn["context_plane"].traces[-1]
    assert list(zip(shown["x"], shown["y"], strict=True)) == list(points)
    assert ", ".join(shown["customdata"]) == query["context_points"] and "reach" in shown["meta"]["moves"]
    layer = continued(found, points, np.ones(1))[:3].mean()
    assert f"slope **{layer:.2f}** on your examples" in said(page)
    least, step = 1.25 / (1 + 0.25), found.plan.best_rate * 1.25 / 2  # 1.25 = 1 * 1.5 - 0.5 * 0.5
    done = replace(found, predicted=np.stack([found.stepped] * 3))
    assert f"least squares has **{least:.2f}**" in context.answer_points(done, points)
    soft = replace(found, plan=replace(found.plan, layer="softmax"))
    assert f"one gradient step **{step:.2f}**" in context.answer_points(soft, points)


def test_points_that_are_none_are_explained(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="context", context_size="1", context_points="<b>1</b>")
    assert context.TEXT["no points"] in said(page, "caption")
    assert len(drawn["context_plane"].traces[-1]["x"]) == len(context.parsed(context.FIRST))


def test_points_are_written_as_they_are_read() -> None:
    points = ((-1.5, 1.0), (0.5, -2.0), (0.0, 0.0))
    assert context.parsed(context.written(points)) == points
    assert context.parsed("1 1, 3 3") == () and context.parsed("nan 1") == () and context.parsed("") == ()
    assert context.parsed(", ".join(["1 1"] * 13)) == ()
    many = tuple((i / 4, 0.0) for i in range(12))
    assert len(context.added(many, (-1.0, 1.0))) == context.MOST_POINTS


@pytest.mark.parametrize(
    "says, text",
    [
        ({"moved": "-1 0.3, 2 2"}, "-1 0.3, 2 2"),
        ({"clicked": "0 0.5"}, f"{context.FIRST}, 0 0.5"),
        ({"moved": "-1 9"}, context.FIRST),
    ],
    ids=["dragged", "clicked", "forged"],
)
def test_what_the_figure_says_about_examples_is_put_into_the_box(says: dict[str, str], text: str) -> None:
    page = helpers.opened(ROOM, {context.PLANE: says}, after_view="context", context_size="1")
    assert page.text_input(key=context.POINTS).value == text


def test_a_bar_and_the_matrix_stand_there_while_the_layers_learn(
    monkeypatch: pytest.MonkeyPatch, drawn: dict[str, Any]
) -> None:
    monkeypatch.setattr(background_jobs, "GLANCE", 0.0)
    page = helpers.opened(ROOM, after_view="context")
    assert helpers.bars(page) and not page.exception
    plan = Regression(steps=LEARNED)
    context._learning([], plan)
    looks = list(in_context.learn(Regression(d=2, examples=5, steps=50)))
    context._learning(looks, plan)
    (heat,) = drawn["context_matrix"].traces
    np.testing.assert_allclose(heat["z"], looks[-1].matrices[0], atol=1e-5)
    assert len(drawn["context_losses"].traces) == 3


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> FewShot:
    """What a model of words would answer; it takes half a minute to ask SmolLM2."""
    pairs, draws = WORD_PAIRS["antonyms"], np.random.default_rng(0)
    shape = (2, 3, len(pairs), len(COUNTS))
    few = FewShot(pairs, tuple(range(len(pairs))), draws.random(shape), draws.integers(0, 26, shape))
    few.guess[0, :, :15, -1] = np.arange(15)  # right after the most examples
    few.guess[:, :, :, 0] = 25  # and never without one

    def measured(*_: object) -> Steps[FewShot]:
        yield Progress(1, 2, replace(few, probability=few.probability[:, :0], guess=few.guess[:, :0]))
        return few

    found = SimpleNamespace(model=None, tokenizer=CharTokenizer("abcdefghijklmnopqrstuvwxyz"))
    monkeypatch.setattr(few_shot, "measure", measured)
    monkeypatch.setattr(few_shot.model_choice, "first_of", lambda names: names[0])
    monkeypatch.setattr(few_shot.models, "model_of", lambda *_: found)
    return few


WORDS = {"after_view": "context", "context_learner": "words"}


def test_right_answers_by_examples_are_the_engines(few: FewShot, drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, **WORDS, **helpers.FOLDS)
    *single, mean, likely = drawn["context_by_examples"].traces
    np.testing.assert_allclose([trace["y"] for trace in single], few.accuracy[0], atol=1e-6)
    assert [trace["showlegend"] for trace in single] == [True, False, False]  # named once
    assert mean["y"] == pytest.approx(few.accuracy[0].mean(0), abs=1e-6)
    assert likely["y"] == pytest.approx(few.likelihood[0].mean(0), abs=1e-6)
    end = few.accuracy[0, :, -1].mean()
    assert not helpers.lacking(
        said(page),
        "with none it gives the antonym for **0%**",
        f"with {COUNTS[-1]} for **{end:.0%}** (mean of 3 draws)",
        f": {2 * 3 * len(few.pairs) * len(COUNTS):,} answers.",
    )
    assert f"{COUNTS[-1]} examples" in few_shot._guess(few, "antonyms").question
    (heat,) = drawn["context_words"].traces
    np.testing.assert_allclose(heat["z"], few.probability[0, 0], atol=1e-6)
    bold = np.array([[cell.startswith("<b>") for cell in row] for row in heat["text"]])
    np.testing.assert_array_equal(bold, few.right[0, 0])
    assert heat["text"][3][4].strip("</b>") == chr(ord("a") + few.guess[0, 0, 3, 4])


def test_exchanged_answers_are_shown_beside_the_others(few: FewShot, drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, **WORDS, context_answers="exchanged")
    by_name = {trace["name"]: trace["y"] for trace in drawn["context_by_examples"].traces}
    assert by_name["right answers"] == pytest.approx(few.accuracy[0].mean(0), abs=1e-6)
    assert by_name["right answers, examples swapped"] == pytest.approx(few.accuracy[1].mean(0), abs=1e-6)
    assert f"for **{few.accuracy[1, :, -1].mean():.0%}** of words" in said(page)
    first, second, asked = (WORD_PAIRS["antonyms"][i] for i in order(20, 0)[:3])
    assert page.code[0].value == f"{first[0]}: {second[1]} ⏎ {second[0]}: {asked[1]} ⏎ {asked[0]}:"


def test_without_smollm2_the_mode_of_words_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_shot.model_choice, "first_of", lambda names: "")
    assert few_shot.TEXT["not here"] in said(helpers.opened(ROOM, **WORDS), "info")


@carried
def test_every_answer_is_one_token_of_smollm2() -> None:
    tokenizer = open_model(library.located("smollm2-135m", None)).vocabulary()
    for pairs in WORD_PAIRS.values():
        assert len(pairs) > max(COUNTS) and len(set(pairs)) == len(pairs)
        assert [a for _, a in pairs if len(tokenizer.encode(f" {a}")) != 1] == []


def test_accuracies_are_the_stored_race_s(drawn: dict[str, Any]) -> None:
    page, stored = helpers.opened(ROOM, after_view="aloud", **helpers.FOLDS), shipped(THINKING)
    found = accuracies(stored.runs, stored)
    thin, means = drawn["aloud_accuracy"].traces[:9], drawn["aloud_accuracy"].traces[9:]
    for i, each in enumerate(found):
        assert means[i]["y"] == pytest.approx(each.mean) and means[i]["x"] == each.steps.tolist()
        np.testing.assert_allclose([t["y"] for t in thin[3 * i : 3 * i + 3]], each.shares, atol=1e-6)
    assert not helpers.lacking(
        said(page),
        f"**{found[2].end:.0%}** of new problems",
        f"coin toss (**{(found[0].end + found[1].end) / 2:.0%}**)",
        chain_of_thought.measured(found).split("\n")[0],
    )
    labels = solved_lines(page.code[0].value, "parity", PARITIES)  # one problem, as each is taught it
    assert labels == [*(task.title.lower() for task in PARITIES.values())]


def solved_lines(shown: str, name: str, tasks: Mapping[str, Task]) -> list[str]:
    """Returns the labels of the lines, each of which its task must find right; the answers stand in one
    column.
    """
    lines = [re.split(r"\s{2,}", line) for line in shown.split("\n")]
    for (_, steps, answer), task in zip(lines, tasks.values(), strict=True):
        assert answer.startswith(f"{name} ") and task.right(steps + answer.removeprefix(f"{name} ")), answer
    assert len({line.index(f"  {name} ") for line in shown.split("\n")}) == 1
    return [label for label, *_ in lines]


def test_addition_is_another_problem_of_the_same_view(drawn: dict[str, Any]) -> None:
    page = helpers.opened(ROOM, after_view="aloud", aloud_mode="addition", **helpers.FOLDS)
    solved_lines(page.code[0].value, "sum", LONG_ADDITIONS)
    stored = shipped(PROBLEMS["addition"].race)
    scores = accuracies(stored.runs, stored)
    for mean, each in zip(drawn["aloud_accuracy"].traces[9:], scores, strict=True):
        assert mean["y"] == pytest.approx(each.mean) and mean["x"] == each.steps.tolist()
    assert not drawn["aloud_accuracy"].layout.get("shapes")  # no sum is right by chance
    best = max(each.shares[:, -1].max() for each in scores[:2])
    assert not helpers.lacking(
        said(page),
        f"**{scores[2].end:.0%}** of new sums right",
        f"gets more than **{best:.0%}**" if best else "gets any of them right",
        chain_of_thought.measured(scores).split("\n")[0],
    )


def test_the_answer_is_of_what_has_been_measured() -> None:
    stored = shipped(THINKING)
    at_once, dots, aloud = accuracies(stored.runs, stored)
    assert (
        chain_of_thought.answer([]) == chain_of_thought.answer([at_once]) == "Nothing has been validated yet."
    )
    early = [
        replace(each, shares=each.shares[:, :3], steps=each.steps[:3]) for each in (at_once, dots, aloud)
    ]
    single = [replace(each, shares=each.shares[:1]) for each in (at_once, dots, aloud)]
    assert chain_of_thought.answer(single).startswith(
        "In this race, writing out its steps (chain of thought)"
    )
    told = chain_of_thought.answer(early)
    assert told.startswith(f"So far the model solves **{early[2].end:.0%}**") and "with dots" in told


def test_the_diagonal_of_a_matrix_has_its_numbers_while_they_can_be_read() -> None:
    small, large = (context.matrix(-2 * np.eye(size)).traces[0]["text"] for size in (12, 13))
    assert small[0][:2] == ["−2.00", ""] and [row[i] for i, row in enumerate(small)] == ["−2.00"] * 12
    assert {cell for row in large for cell in row} == {""}


def test_distillation_says_what_the_stored_students_reached(drawn):
    runs = distil_runs.shipped()
    for read in ("whole-64", "little-64", "unseen-64", "whole-32"):
        source, width = read.split("-")
        page = helpers.opened(ROOM, after_view="distillation", distil_read=read)
        found = distil_runs.gain(runs, source, int(width), 1.0)
        for losses in (found.text, found.teacher):
            assert f"**{sorted(losses)[1]:.3f}**" in said(page)
        apart = max(found.teacher) < min(found.text)
        assert ("In as many steps the teacher helps" in said(page)) == apart
        lines = drawn["distil_training"].traces
        ends = sorted(float(line["y"][-1]) for line in lines if line["line"]["width"] == 1)
        some = [run for run in runs if (run.plan.source, run.plan.width) == (source, int(width))]
        np.testing.assert_allclose(ends, sorted(run.losses[-1] for run in some))
    (dashed,) = [line for line in lines if line["line"]["dash"] == "dash"]
    (itself,) = [run.losses[-1] for run in runs if run.plan == distil_runs.ITSELF]
    np.testing.assert_allclose(dashed["y"], itself)


@pytest.mark.skipif(corpora.shakespeare_path() is None, reason="Tiny Shakespeare is not here")
def test_the_stored_loss_of_a_teacher_is_its_own_in_windows_of_its_students():
    (itself,) = [run.losses[-1] for run in distil_runs.shipped() if run.plan == distil_runs.ITSELF]
    teacher = checkpoints.load(ROOT / "checkpoints" / "shakespeare-modern").model
    text = corpora.load("shakespeare")
    half = text.validation[len(text.validation) // 2 :]
    starts = range(0, len(half) - 64, 64)
    count = distil_runs.TRAINING.eval_tokens // 64
    chosen = [starts[int(at)] for at in np.linspace(0, len(starts) - 1, count)]
    windows = torch.stack([half[at : at + 65] for at in chosen]).long()
    with torch.inference_mode():
        logits = teacher(windows[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    assert itself == pytest.approx(float(loss), rel=1e-5)


def test_one_position_shows_what_the_model_gives_to_other_characters(drawn):
    page = helpers.opened(
        ROOM, after_view="distillation", distil_shown="position", distil_temperature="2", distil_token="3",
        text="The king is dead", model="shakespeare-modern",
    )  # fmt: skip
    known = checkpoints.load(ROOT / "checkpoints" / "shakespeare-modern")
    ids = known.tokenizer.encode("The king is dead")
    scores = record(known.model, tuple(ids)).logits[3].astype(np.float64) / 2
    p = np.exp(scores - scores.max())
    p /= p.sum()
    (bars,) = drawn["distil_position"].traces
    np.testing.assert_allclose(bars["y"], np.sort(p)[::-1][: len(bars["y"])], rtol=1e-4)
    choices = float(np.exp(-(p * np.log(p)).sum()))
    assert f"**{choices:.1f}** equally likely ones" in said(page)
