"""A benchmark of our own: its questions, four ways to mark them, chance, and training on the questions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from engine.data.tokenizers.char import CharTokenizer
from engine.model import Transformer, build
from engine.sample.decoder import Held
from studies.after.benchmark import (
    LETTERS,
    MIXED,
    ORDERS,
    RECIPE,
    WAYS,
    WORDINGS,
    Scores,
    arranged,
    by_chance,
    cloze,
    contaminate,
    interval,
    log_p,
    measure,
    right_letters,
    sheet,
    shown,
)
from studies.after.benchmark_questions import EXAMPLES, ITEMS
from studies.after.finetune import Lesson, batch
from studies.experiments.benchmark_runs import PLANS, SEEDS, BenchmarkRun, Plan, shipped
from studies.experiments.command import from_json, to_json
from tests.engine.cases import for_each
from tests.engine.helpers import tiny

COUNT = len(ITEMS)
LINES = [text for item in ITEMS for text in (item.question, item.paraphrase, item.other, *item.options)]
TOKENIZER = CharTokenizer("".join(sorted({*"Question:\nAnswer ABCD.", *"".join(LINES), *shown(3, True)})))


@pytest.fixture(scope="module")
def model() -> Transformer:
    return build(tiny(vocab_size=TOKENIZER.vocab_size, context=768, d_model=16, n_layers=1, n_heads=2))


def test_every_question_has_four_options_and_two_other_wordings():
    assert COUNT == 20
    for item in ITEMS:
        assert len(item.options) == len({*item.options}) == len(LETTERS)
        assert len({item.question, item.paraphrase, item.other}) == 3 and 0 < item.right_of_other < 4
    assert np.bincount(right_letters(MIXED)).tolist() == [5, 5, 5, 5]
    assert not {item.question for item, _ in EXAMPLES} & {*LINES}


@for_each("letter", range(4))
def test_an_order_puts_the_right_option_at_its_letter(letter: int):
    for item in ITEMS:
        options = arranged(item.options, letter)
        assert options[letter] == item.options[0] and sorted(options) == sorted(item.options)
        assert f"\n{LETTERS[letter]}. {item.options[0]}\n" in sheet(item.question, options)


def scores_of(whole: np.ndarray, letters: np.ndarray | None = None) -> Scores:
    letters = np.zeros((4, COUNT, 4)) if letters is None else letters
    return Scores(whole, np.zeros((COUNT, 4)), letters, np.ones((COUNT, 4)))


@for_each("says", LETTERS)
def test_a_model_that_always_says_a_letter_is_marked_by_the_order_alone(says: str):
    letters = np.zeros((4, COUNT, 4))
    letters[..., LETTERS.index(says)] = 1
    scores = scores_of(np.zeros((3, COUNT, 4)), letters)
    marks = {order: scores.mark("letter", order=order) for order in ORDERS}
    assert marks == {MIXED: 5} | {letter: COUNT * (letter == says) for letter in LETTERS}


def test_a_model_that_reads_the_options_is_marked_alike_in_every_order():
    letters = np.eye(4)[:, None, :].repeat(COUNT, 1)  # the letter of the right answer
    scores = scores_of(np.zeros((3, COUNT, 4)), letters)
    assert [scores.mark("letter", order=order) for order in ORDERS] == [COUNT] * 5


def test_ways_differ_by_an_answers_tokens_and_by_what_it_has_without_a_question():
    whole = np.full((3, COUNT, 4), -99.0)
    whole[0, 0] = [-6, -5, -12, -7]
    tokens, without = np.ones((COUNT, 4)), np.zeros((COUNT, 4))
    tokens[0], without[0] = [2, 1, 6, 1], [-8, -7, -12, -20]
    scores = Scores(whole, without, np.zeros((4, COUNT, 4)), tokens)
    chosen = {way: int(scores.compared(way)[0].argmax()) for way in WAYS[1:]}
    assert chosen == {"whole": 1, "token": 2, "gain": 3}
    assert scores.compared("token")[0].tolist() == [-3, -5, -2, -7]
    assert scores.compared("gain")[0].tolist() == [2, 2, 0, 13]


def test_another_question_has_another_right_option():
    whole = np.zeros((3, COUNT, 4))
    whole[..., 0] = 1  # the right answer of the question and the paraphrase
    scores = scores_of(whole)
    assert [scores.mark("whole", wording) for wording in WORDINGS] == [COUNT, COUNT, 0]


def test_an_answers_probability_is_the_product_over_its_tokens(model: Transformer):
    item = ITEMS[4]
    prompt = TOKENIZER.encode(cloze(item.question))
    answers = [TOKENIZER.encode(f" {option}") for option in item.options]
    held = Held(model)
    with torch.inference_mode():
        log_p(held, TOKENIZER.encode(cloze(ITEMS[3].question)), answers)  # another prompt was read before
        found = log_p(held, prompt, answers)
        for answer, score in zip(answers, found, strict=True):
            chances = model(torch.tensor([prompt + answer]))[0].softmax(-1)
            each = [float(chances[len(prompt) - 1 + i, token]) for i, token in enumerate(answer)]
            assert score == pytest.approx(np.log(each).sum(), abs=1e-4)


@for_each("examples", [0, 2])
def test_everything_is_asked_with_its_examples(model: Transformer, examples: int):
    scores = finish(measure(model, TOKENIZER, examples))
    item, at = ITEMS[7], 7

    def direct(prompt: str, answer: str) -> float:
        before, after = TOKENIZER.encode(prompt), TOKENIZER.encode(answer)
        logits = model(torch.tensor([before + after]))[0].detach().log_softmax(-1)
        return sum(float(logits[len(before) - 1 + i, token]) for i, token in enumerate(after))

    few, letters = shown(examples, False), shown(examples, True)
    assert few.count("Question:") == letters.count("Question:") == examples
    assert scores.whole[1, at, 2] == pytest.approx(
        direct(few + cloze(item.paraphrase), f" {item.options[2]}"), abs=1e-3
    )
    assert scores.unconditional[at, 3] == pytest.approx(direct("Answer:", f" {item.options[3]}"), abs=1e-3)
    asked = letters + sheet(item.question, arranged(item.options, 1))
    # " D" is two characters here: the blank has its own probability
    assert scores.letters[1, at, 3] == pytest.approx(direct(asked, " D"), abs=1e-3)
    assert scores.tokens[at, 1] == len(f" {item.options[1]}")


@for_each("count, options", [(20, 4), (20, 2), (7, 3)])
def test_guessing_stays_within_its_interval_in_95_of_100_exams(count: int, options: int):
    low, high = by_chance(count, options)
    chance = [
        Fraction(comb(count, k) * (options - 1) ** (count - k), options**count) for k in range(count + 1)
    ]
    assert sum(chance[low : high + 1]) >= Fraction(95, 100)
    assert sum(chance[:low]) < Fraction(25, 1000) and sum(chance[high + 1 :]) <= Fraction(25, 1000)
    assert sum(chance[: low + 1]) >= Fraction(25, 1000) and sum(chance[high:]) > Fraction(25, 1000)


@for_each("right", [0, 5, 14, 20])
def test_an_interval_ends_where_the_mark_would_be_a_rare_one(right: int):
    low, high = interval(right, 20)
    at_least = sum(comb(20, k) * low**k * (1 - low) ** (20 - k) for k in range(right, 21))
    at_most = sum(comb(20, k) * high**k * (1 - high) ** (20 - k) for k in range(right + 1))
    assert low <= right / 20 <= high
    assert low == 0 if right == 0 else at_least == pytest.approx(0.025, abs=5e-4)
    assert high == 1 if right == 20 else at_most == pytest.approx(0.025, abs=5e-4)


def test_training_on_the_questions_raises_their_answers_and_leaves_the_model_as_it_was(monkeypatch):
    monkeypatch.setattr("studies.after.benchmark.ITEMS", ITEMS[:3])
    monkeypatch.setattr("studies.after.benchmark._MIXED", right_letters(MIXED)[:3])
    small = build(tiny(vocab_size=TOKENIZER.vocab_size, context=768, d_model=16, n_layers=1, n_heads=2))
    before = {name: weight.clone() for name, weight in small.named_parameters()}
    first = finish(measure(small, TOKENIZER))
    shares: list[float] = []
    found = finish(
        contaminate(small, TOKENIZER, replace(RECIPE, rate=3e-2)), lambda p: shares.append(p.share)
    )
    assert len(found.losses) == RECIPE.steps + 1 and found.losses[-1] < found.losses[0]
    assert (found.scores.whole[0, :, 0] > first.whole[0, :, 0]).all()
    assert shares == sorted(shares) and all(torch.equal(w, before[n]) for n, w in small.named_parameters())


def test_the_training_fits_into_a_step_and_its_loss_counts_answers_alone():
    item = ITEMS[0]
    _, targets = batch([Lesson(cloze(item.question), f" {item.options[0]}")], TOKENIZER, 96)
    assert int((targets >= 0).sum()) == len(f" {item.options[0]}")


def test_every_measurement_is_stored_and_read_as_it_was_written():
    runs = {run.plan: run for run in shipped()}
    assert tuple(runs) == PLANS and len(SEEDS) == 3
    for run in runs.values():
        assert "studies.experiments benchmark" in run.made
        assert run.scores.whole.shape == (3, COUNT, 4) and run.scores.letters.shape == (4, COUNT, 4)
        assert len(run.losses) == (0 if run.plan.seed is None else RECIPE.steps + 1)
    again = from_json(BenchmarkRun, to_json(runs[Plan(0)]))
    assert isinstance(again, BenchmarkRun) and again.plan == Plan(0)
    np.testing.assert_allclose(again.scores.whole, runs[Plan(0)].scores.whole, rtol=1e-5)


@for_each("seed", SEEDS)
def test_stored_models_learned_the_questions_and_no_letters(seed: int):
    before, after = (next(run.scores for run in shipped() if run.plan == Plan(0, s)) for s in (None, seed))
    low, high = by_chance()
    assert after.mark("whole") == COUNT > before.mark("whole") > high
    assert low <= before.mark("letter") <= high and low <= after.mark("letter") <= high
    assert after.mark("whole", "paraphrase") > before.mark("whole", "paraphrase")
    assert after.mark("whole", "other") <= before.mark("whole", "other")
