"""Two trainings held against each other, and one batch as it is fed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from engine.training.compare import Compared, MeanLoss, compared
from engine.training.records import Evaluation
from engine.training.shifted import shifted_batch
from tests.engine.trainings import CORPUS, MODEL, TRAIN


def look(step: int, loss: float, complete: bool = False) -> Evaluation:
    return Evaluation(step, loss, loss, 0.0, complete)


def test_two_trainings_are_compared_where_both_were_looked_at_alike() -> None:
    first, second = [look(0, 4.0), look(10, 3.0), look(20, 2.5)], [look(0, 4.1), look(10, 3.5)]
    found = compared(first, second)
    assert found == Compared((10, 10), (3.0, 3.5), False) and found.difference == 0.5
    assert compared([*first, look(30, 2.0, True)], second) == found, "one of them is not at its end"
    both = compared([*first, look(30, 2.0, True)], [*second, look(60, 1.0, True)])
    assert both == Compared((30, 60), (2.0, 1.0), True)
    assert compared(first, []) is None and compared([look(5, math.nan)], [look(5, 1.0)]) is None


def test_a_loss_is_a_share_of_the_texts_surprise() -> None:
    chances = [0.5, 0.25, 0.125]  # of three tokens, each after those before it
    nats = -math.log(math.prod(chances)) / 3
    said = MeanLoss(nats, 3)
    assert said.sum == pytest.approx(-math.log(1 / 64))
    assert 10**said.power_of_ten == pytest.approx(math.prod(chances))
    assert said.mean_probability == pytest.approx(0.25)  # the geometric mean of the three


def test_the_targets_of_a_batch_are_its_inputs_one_place_further() -> None:
    found = shifted_batch(CORPUS, MODEL, TRAIN, 7)
    text = CORPUS.text
    for start, x, y in zip(found.starts, found.x, found.y, strict=True):
        assert "".join(x) == text[start : start + MODEL.context]
        assert "".join(y) == text[start + 1 : start + MODEL.context + 1]
        assert 0 <= start < found.bound
    assert found.bound + MODEL.context == found.tokens == len(CORPUS.train)
    assert found.shifted == found.pairs == (MODEL.context - 1) * TRAIN.batch_size
    masked = replace(MODEL, vocab_size=CORPUS.vocab_size + 1, causal=False)
    hidden = shifted_batch(CORPUS, masked, replace(TRAIN, objective="masked"), 7)
    assert "[mask]" in hidden.x[0] and "" in hidden.y[0] and hidden.shifted < hidden.pairs / 2
