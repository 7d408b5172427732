"""The score of every head during a training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.measure.head_scores import COUNT, DRAWS, Formed, formed, grown, head_scores, read_at, strongest
from engine.measure.induction import drawn, ordinary
from engine.probe import Recorder
from engine.tokenizers import token_bytes
from engine.training.records import Evaluation, HeadScores
from tests.engine.helpers import loud
from tests.engine.trainings import CORPUS, MODEL, only, run

DEEP = replace(MODEL, context=48, position="rope", n_heads=2)


def test_scores_are_means_over_draws_of_what_the_patterns_hold() -> None:
    model, tokenizer = loud(DEEP), CORPUS.tokenizer
    found = head_scores(model, tokenizer)
    assert found is not None
    pool = ordinary(token_bytes(tokenizer))
    count = min(24, 24, len(pool))
    ahead, before, first, second = [], [], [], []
    for seed in range(4):
        once = drawn(pool, count, seed)
        tokens = torch.tensor([once + once])
        recorder = Recorder({"pattern"})
        logits = model(tokens, recorder)[0]
        cost = F.cross_entropy(logits[:-1], tokens[0, 1:], reduction="none").tolist()  # of places 1 ...
        first.append(sum(cost[: count - 1]) / (count - 1))
        second.append(sum(cost[count:]) / (count - 1))
        patterns = torch.stack([recorder[f"blocks.{i}.pattern"][0] for i in range(2)])
        last, every = range(count, 2 * count), range(1, 2 * count)
        ahead.append(sum(patterns[:, :, q, q - count + 1] for q in last) / count)
        before.append(sum(patterns[:, :, q, q - 1] for q in every) / (2 * count - 1))
    assert found.induction == pytest.approx(np.array(torch.stack(ahead).mean(0).tolist()), abs=1e-6)
    assert found.previous == pytest.approx(np.array(torch.stack(before).mean(0).tolist()), abs=1e-6)
    assert found.first_loss == pytest.approx(sum(first) / 4, abs=1e-5)
    assert found.second_loss == pytest.approx(sum(second) / 4, abs=1e-5)
    assert (COUNT, DRAWS) == (24, 4)


def test_what_cannot_be_measured_is_none() -> None:
    for fields in ({"causal": False}, {"mixer": "none"}, {"context": 3}):
        model = loud(replace(MODEL, **fields))
        assert head_scores(model, CORPUS.tokenizer) is None and read_at(model, CORPUS.tokenizer, 0) is None
    assert read_at(loud(MODEL), CORPUS.tokenizer, 0) is not None


def test_a_head_forms_where_it_first_has_half_of_its_weight_there() -> None:
    def look(induction: tuple[tuple[float, ...], ...], previous: float) -> HeadScores:
        return HeadScores(induction, ((previous, 0.1), (0.0, 0.0)), 4.0, 2.0)

    looks = [
        (0, look(((0.0, 0.0), (0.1, 0.2)), 0.49)), (5, None), (10, look(((0.0, 0.0), (0.1, 0.5)), 0.7)),
        (20, look(((0.0, 0.0), (0.6, 0.4)), 0.3)), (30, look(((0.0, 0.0), (0.9, 0.8)), 0.9)),
    ]  # fmt: skip
    assert formed(looks) == (
        Formed(10, "previous", 0, 0),
        Formed(10, "induction", 1, 1),
        Formed(20, "induction", 1, 0),
    )
    best = strongest(((0.3, 0.2), (0.1, 0.8)))
    assert (best.layer, best.head, best.value) == (1, 1, 0.8)


def test_a_training_on_repeats_says_at_every_look_what_its_heads_do() -> None:
    repeating, plain = run(repeat=0.5), run()
    assert [look.heads for look in only(plain, Evaluation)] == [None] * 4  # at its end there are two
    looks = only(repeating, Evaluation)
    assert [look.step for look in looks] == [0, 10, 20, 20] and all(look.heads for look in looks)
    shape = [(len(look.heads.induction), len(look.heads.previous[0])) for look in looks]
    assert shape == [(MODEL.n_layers, MODEL.n_heads)] * 4
    assert looks[0].heads != looks[2].heads


def test_what_has_grown_is_the_newest_looks_strongest_head_from_where_it_last_did_little() -> None:
    def look(step: int, induction: tuple[float, float], previous: float) -> Evaluation:
        heads = HeadScores((induction,), ((0.0, previous),), 4.0 + step, 2.0 + step)
        return Evaluation(step, 1.0, 1.0, step / 4, True, heads=heads)

    unscored = Evaluation(40, 1.0, 1.0, 20.0, True)
    looks = [
        look(1, (0.01, 0.3), 0.2), look(2, (0.05, 0.2), 0.6), look(5, (0.4, 0.1), 0.7),
        look(10, (0.6, 0.2), 0.8), look(20, (0.9, 0.3), 0.9), unscored,
    ]  # fmt: skip
    found = grown(looks)
    assert found is not None and found.is_formed
    assert (found.step, found.head.layer, found.head.head, found.head.value) == (20, 0, 0, 0.9)
    assert (found.since, found.before, found.seconds) == (2, 0.05, 4.5)  # the last look below LITTLE
    assert (found.first_loss, found.second_loss) == (24.0, 22.0)
    assert (found.formed, found.previous.head, found.previous.value, found.previous_formed) == (10, 1, 0.9, 2)
    always = grown([look(3, (0.2, 0.0), 0.1), look(7, (0.4, 0.0), 0.1)])
    assert always is not None and not always.is_formed
    assert (always.since, always.before, always.seconds) == (3, 0.2, 1.0)
    assert always.formed is None and always.previous_formed is None
    assert grown([unscored]) is None and grown([]) is None
