"""Which guess holds after pre-training: adapters, steps of a layer, exchanged answers, dots, beta, temperature,
a call that nobody runs, letters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.model import build
from studies.after.benchmark import MIXED, Scores, right_letters
from studies.after.finetune import FinetuneRecipe, adapters
from studies.after.preferences import PreferenceEvaluation
from studies.circuits.examples_in_prompt import COUNTS, FewShot
from studies.circuits.in_context import Regression
from studies.experiments import preference_runs
from studies.experiments.lab_races import shipped
from studies.experiments.thinking_aloud import CARRIES, DOTS, THINKING, accuracies
from studies.experiments.tool_runs import ToolEvaluation
from studies.guesses import after, reward
from studies.tasks.attempts import COUNTS as ANSWERS
from studies.tasks.attempts import Attempts
from tests.engine.cases import for_each
from tests.engine.helpers import tiny


@for_each("now, then", [(1, 16), (4, 16), (1, 2)])
def test_an_adapter_grows_with_its_rank(now: int, then: int) -> None:
    model = build(tiny(d_model=64, n_layers=2))
    counts = [
        sum(half.numel() for a in adapters(model, FinetuneRecipe(rank)).values() for half in (a.up, a.down))
        for rank in (now, then)
    ]
    truth = after.adapter(model, now, then)
    assert truth is not None and truth.right == "times"
    assert [truth.numbers["before"], truth.numbers["after"]] == counts and counts[1] == then / now * counts[0]
    assert after.adapter(model, 0, 16) is None and after.adapter(model, 16, 16) is None


@for_each("end, without, right", [
    (0.9, 0.01, "kept"), (0.3, 0.01, "half"), (0.05, 0.01, "lost"), (0.9, 0.7, None),
])  # fmt: skip
def test_what_rehearsal_leaves_of_an_old_fact(end: float, without: float, right: str | None) -> None:
    truth = after.rehearsed(0.8, [without, without, 1.0], [end, end, 0.0])
    assert (truth and truth.right) == right
    if truth:
        assert truth.numbers == {"before": 0.8, "without": without, "rehearsed": end}
    assert after.rehearsed(0.8, [], [end]) is None and after.rehearsed(0.0, [0.1], [end]) is None


@for_each("examples, other, right", [(20, 40, "longer"), (40, 5, "shorter"), (400, 500, "same")])
def test_the_step_that_more_examples_teach(examples: int, other: int, right: str) -> None:
    truth = after.step_size(Regression(examples=examples), Regression(examples=other))
    assert truth is not None and truth.right == right
    eta = np.linspace(0, 1, 100_001)
    error = 1 - 2 * eta + eta**2 * (other + 11) / other
    assert abs(truth.numbers["after"] - eta[error.argmin()]) < 1e-4
    assert after.step_size(Regression("softmax"), Regression(examples=other)) is None
    assert after.step_size(Regression(), Regression()) is None


def few_shot(before: int, left: int) -> FewShot:
    """Ten words, of which so many are right after the most examples."""
    guess = np.ones((2, 3, 10, len(COUNTS)), dtype=int)
    guess[0, :, :before, -1] = guess[1, :, :left, -1] = 7
    return FewShot((("a", "b"),) * 10, (7,) * 10, guess / 2, guess)


@for_each("before, left, right", [(8, 8, "same"), (8, 3, "half"), (8, 1, "few"), (0, 4, None)])
def test_what_exchanged_answers_leave(before: int, left: int, right: str | None) -> None:
    truth = after.exchanged(few_shot(before, left))
    assert (truth and truth.right) == right
    if truth:
        assert truth.numbers == pytest.approx({"before": before / 10, "after": left / 10})


@for_each("share, right", [(0.5, "coin"), (0.75, "between"), (0.98, "aloud")])
def test_dots_are_as_good_as_what_they_come_to(share: float, right: str) -> None:
    stored = shipped(THINKING)
    scores = accuracies(stored.runs, stored)
    other = [replace(s, shares=np.full_like(s.shares, share)) if s.task == DOTS else s for s in scores]
    truth = after.dots(other)
    assert truth is not None and truth.right == right and truth.numbers[DOTS] == np.float64(share)
    assert after.dots(scores[:2]) is None


def test_dots_that_do_worse_than_an_answer_at_once_are_no_better() -> None:
    stored = shipped(CARRIES)
    at_once, with_dots, aloud = accuracies(stored.runs, stored)
    better = replace(at_once, shares=np.full_like(at_once.shares, with_dots.end + 0.4))
    truth = after.dots([better, with_dots, aloud])
    assert truth is not None and truth.right == "coin"


@for_each("then, right", [((12, 9, 30), "farther"), (16, "same"), (30, "nearer")])
def test_how_far_another_beta_goes_is_judged_by_medians(then: int | tuple[int, ...], right: str) -> None:
    first = preference_runs.shipped()[0].preferred.looks[0]

    def runs(*ends: int) -> list[tuple[PreferenceEvaluation, ...]]:
        return [(replace(first, measured=40), replace(first, measured=end)) for end in ends]

    others = runs(*then) if isinstance(then, tuple) else runs(then)
    truth = reward.beta(runs(17, 15, 2), others)
    assert truth is not None and truth.right == right
    assert truth.numbers == {"before": 40, "now": 15, "then": 12 if isinstance(then, tuple) else then}
    assert reward.beta(runs(40), others) is None and reward.beta([], others) is None


def verified_by(*ends: float) -> Attempts:
    """A seed for each share that is solved among the most answers."""
    shares = np.array([np.linspace(0.1, end, len(ANSWERS)) for end in ends])
    return Attempts(1.0, shares, shares, ())


@for_each("then, right", [((0.8, 0.9, 0.95), "more"), ((0.6, 0.5, 0.4), "fewer"), ((0.9, 0.9, 0.6), "same")])
def test_another_temperature_solves_more_or_fewer_only_where_every_seed_says_so(
    then: tuple[float, ...], right: str
) -> None:
    truth = after.verified(verified_by(0.7, 0.75, 0.9), verified_by(*then))
    assert truth is not None and truth.right == right
    expected = {"before": 0.75, "after": np.median(then), "single": 0.1, "single_after": 0.1}
    assert truth.numbers == pytest.approx(expected)
    assert after.verified(replace(verified_by(0.5), verifier=np.zeros((1, 7))), verified_by(0.5)) is None


def marked_by_letter(at_mixed: int, at_a: int) -> Scores:
    """So many right by letter with mixed right answers, of those whose letter is A first, and with all at A."""
    letters = np.zeros((4, 20, 4))
    for letter in range(4):
        letters[letter, :, (letter + 1) % 4] = 0.5  # wrong
    letters[0, :at_a, 0] = 1
    others = np.flatnonzero(right_letters(MIXED))
    at = np.flatnonzero(right_letters(MIXED) == 0)
    for item in others[: at_mixed - int((at < at_a).sum())]:
        letters[right_letters(MIXED)[item], item, right_letters(MIXED)[item]] = 1
    return Scores(np.zeros((3, 20, 4)), np.zeros((20, 4)), letters, np.ones((20, 4)))


@for_each("mixed, at_a, right", [
    (5, 20, "nearly all"), (5, 18, "nearly all"), (15, 15, "same"), (10, 0, "nearly none"), (5, 10, None),
])  # fmt: skip
def test_the_mark_with_every_right_answer_at_a(mixed: int, at_a: int, right: str | None) -> None:
    scores = marked_by_letter(mixed, at_a)
    assert (scores.mark("letter"), scores.mark("letter", order="A")) == (mixed, at_a)
    truth = after.placed(scores, "A")
    assert (truth and truth.right) == right
    if truth:
        assert truth.numbers == {"before": mixed, "after": at_a}


@for_each("made_up, right", [((1.0, 0.8, 0.9), "made"), ((0.1, 0.0, 0.0), "skips"), ((1.0, 0.1, 1.0), None)])
def test_a_call_that_nobody_runs(made_up: tuple[float, ...], right: str | None) -> None:
    shares = (0.8, 0.0, 0.1)
    ends = [
        ToolEvaluation(9, 1.0, made, (1.0, share, 0.0), (1.0, 1.0, 1.0))
        for made, share in zip(made_up, shares, strict=True)
    ]
    truth = after.unrun(ends)
    assert (truth and truth.right) == right
    if truth:
        assert truth.numbers == {"made_up": np.median(made_up), "low": 0.0, "high": 0.8}
        assert "waits" in truth.offered
    assert after.unrun([]) is None
