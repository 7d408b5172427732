"""Several answers to a question: the estimates against all choices, and answers drawn as often as they should."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from engine.model import build
from studies.after.reward import CONFIG, decode, draw_answers, lines, questions_of
from studies.tasks import attempts
from studies.tasks.attempts import COUNTS, MOST, SEEDS, majority_at, measure, pass_at


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_is_the_mean_over_all_choices_of_k(k: int) -> None:
    right = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]).bool()
    expected = [np.mean([row[list(c)].any() for c in combinations(range(5), k)]) for row in right.numpy()]
    assert pass_at(right, k) == pytest.approx(np.mean(expected))


def test_the_most_frequent_answer_of_each_group_counts_and_a_tie_is_drawn_by_lot() -> None:
    answers = torch.tensor([[1, 1, 2, 3, 3, 4, 4, 5]])
    right = answers == 4
    assert majority_at(answers, right, 8) == pytest.approx(1 / 3)  # of 1, 3 and 4
    assert majority_at(answers, right, 4) == pytest.approx(0.5)  # 1 in the first group, 4 in the second
    assert majority_at(answers, right, 1) == majority_at(answers, right, 2) == pytest.approx(0.25)


def test_at_a_temperature_near_zero_the_likeliest_answers_are_drawn() -> None:
    model, questions = build(CONFIG, seed=3), questions_of(lines(3, random.Random(5), held_out=False))
    cold = draw_answers(model, questions, 20, torch.Generator().manual_seed(0), 1e-4)
    assert (cold == draw_answers(model, questions, 1, None)).all()


def test_curves_are_those_of_the_drawn_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "ASKED", 6)
    monkeypatch.setattr(attempts, "teach", lambda model, seed: iter(()))
    found = finish(measure())[1.0]
    assert found.verifier.shape == found.majority.shape == (len(SEEDS), len(COUNTS)) and len(found.votes) == 6
    assert (np.diff(found.verifier, axis=1) >= 0).all() and (found.verifier >= found.majority - 1e-9).all()
    np.testing.assert_allclose(found.majority[:, :2], found.single[:, None].repeat(2, 1))
    questions = questions_of(lines(6, random.Random(-1), held_out=True))
    again = draw_answers(build(CONFIG, 0), questions, MOST, torch.Generator().manual_seed(0))
    assert dict(found.votes[2].answers) == Counter(map(decode, again[2].tolist()))
    left, right = found.votes[2].question.rstrip("=").split("+")
    assert int(found.votes[2].right) == int(left) + int(right)


def test_a_measurement_can_be_left_or_paused_at_every_look_of_its_teaching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "ASKED", 2)
    monkeypatch.setattr(attempts, "teach", lambda model, seed: iter((0.1, 0.3)))
    done = [progress.done for progress in measure()]
    assert done == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


@pytest.mark.exhaustive
def test_a_verifier_gains_most_and_a_vote_gains_on_every_seed() -> None:
    by_temperature = finish(measure())
    found, cold = by_temperature[1.0], by_temperature[0.5]
    assert (cold.single > found.single).all() and (cold.verifier[:, -1] < found.verifier[:, -1]).all()
    assert (found.verifier[:, -1] > 0.95).all() and (found.single < 0.6).all()
    assert (found.majority[:, -1] > found.single + 0.1).all()
    assert (found.majority[:, -1] < found.verifier[:, -1] - 0.1).all()
