"""Training by reward: advantages, the gradient against one written out, and what a reward can and cannot
teach.
"""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import pytest
import torch

from engine.data.progress import finish
from engine.errors import ConfigError
from engine.model import build
from engine.training.optim import AdamW
from studies.after import reward
from studies.after.reward import (
    CONFIG,
    TASK,
    Plan,
    advantages,
    decode,
    draw_answers,
    encode,
    half_trained,
    lines,
    questions_of,
    reinforce,
    rewards,
)


@pytest.fixture(scope="module")
def untrained():
    return build(CONFIG, seed=3)


def asked(count: int = 6):
    return questions_of(lines(count, random.Random(5), held_out=False))


def test_a_right_answer_is_rewarded_and_one_that_ends_in_zero():
    question = torch.tensor([encode("17+25=")])
    drawn = torch.tensor([[encode("042"), encode("050"), encode("043")]])
    assert rewards(question, drawn, "right").tolist() == [[1, 0, 0]]
    assert rewards(question, drawn, "ends in 0").tolist() == [[0, 1, 0]]


def test_the_advantages_of_a_group_sum_to_zero():
    reward_of = torch.tensor([[1.0, 0, 0, 1], [1, 1, 1, 1]])
    assert advantages(reward_of).tolist() == [[0.5, -0.5, -0.5, 0.5], [0, 0, 0, 0]]


def test_held_out_sums_are_never_taught():
    taught = lines(300, random.Random(0), held_out=False)
    new = lines(300, random.Random(0), held_out=True)
    assert not set(taught) & set(new) and all(TASK.right(line) for line in taught + new)


def test_answers_are_drawn_as_often_as_the_model_says(untrained):
    question = torch.tensor([encode("17+25=")])
    drawn = draw_answers(untrained, question, 4000, torch.Generator().manual_seed(0))
    p = untrained(question)[0, -1].softmax(-1)
    share = torch.bincount(drawn[0, :, 0], minlength=len(p)) / 4000
    assert share.tolist() == pytest.approx(p.tolist(), abs=0.03)


def test_a_step_is_that_of_reinforce_written_out_answer_by_answer(untrained, monkeypatch):
    """Each answer's log probability is read on its own, and its gradient weighed by its advantage."""
    plan = Plan(answers=4, questions=3, steps=1, rate=1e-2, seed=1)
    monkeypatch.setattr(reward, "rewards", lambda asked, drawn, kind: (drawn[..., 0] % 2).float())
    steps: list = []
    monkeypatch.setattr(
        AdamW,
        "step",
        lambda self: steps.extend(p.grad for p in self.parameters),
    )
    list(reinforce(untrained, plan))

    other = copy.deepcopy(untrained)
    draws, generator = random.Random(2), torch.Generator().manual_seed(2)
    questions = questions_of(lines(3, draws, held_out=False))
    drawn = draw_answers(other, questions, 4, generator)
    total = 0.0
    for question, answers in zip(questions, drawn, strict=True):
        gained = [float(answer[0] % 2) for answer in answers]
        for answer, got in zip(answers, gained, strict=True):
            ids, chosen = question.clone(), 0.0
            for token in answer:
                chosen = chosen + other(ids[None])[0, -1].log_softmax(-1)[token]
                ids = torch.cat([ids, token[None]])
            total = total - (got - sum(gained) / 4) * chosen / 12
    total.backward()
    for got, parameter in zip(steps, other.parameters(), strict=True):
        torch.testing.assert_close(got, parameter.grad, rtol=1e-4, atol=1e-6)


def test_the_divergence_starts_at_zero_and_a_penalty_keeps_it_lower(untrained):
    def last(leash: float) -> float:
        plan = Plan("ends in 0", answers=4, questions=4, steps=15, look_every=15, rate=2e-3, leash=leash)
        looks = list(reinforce(untrained, plan))
        assert looks[0].divergence == pytest.approx(0, abs=1e-6) and [look.step for look in looks] == [0, 15]
        return looks[-1].divergence

    assert last(3.0) < 0.7 * last(0.0)


def test_the_model_that_it_began_as_is_left_alone(untrained):
    before = [p.clone() for p in untrained.parameters()]
    list(reinforce(untrained, Plan(answers=2, questions=2, steps=2)))
    assert all(torch.equal(p, q) for p, q in zip(untrained.parameters(), before, strict=True))


def test_a_look_counts_on_held_out_sums(untrained, monkeypatch):
    known = {decode(row) for row in questions_of(lines(reward.ASKED, random.Random(-1), True)).tolist()}
    seen: list[str] = []
    real = reward.rewards

    def counted(question, drawn, kind):
        if len(question) == reward.ASKED:
            seen.extend(decode(row) for row in question.tolist())
        return real(question, drawn, kind)

    monkeypatch.setattr(reward, "rewards", counted)
    found = finish(iter_measure(untrained, monkeypatch))
    assert set(seen) == known and found.looks[-1].step == 1


def iter_measure(model, monkeypatch):
    monkeypatch.setattr(reward, "_taught", {0: model})
    return reward.measure(Plan(answers=2, questions=2, steps=1))


def test_while_a_model_is_taught_it_can_be_left_at_every_look_and_it_is_taught_once(monkeypatch):
    monkeypatch.setattr(reward, "_taught", {seed: build(CONFIG, seed) for seed in range(reward.MOST_TAUGHT)})
    monkeypatch.setattr(reward, "teach", lambda model, seed: iter((0.1, 0.2, 0.5)))
    plan = Plan(answers=2, questions=2, steps=1, seed=9)
    for looks in (3, 0):
        steps = [*reward.measure(plan)]
        assert [(step.done, step.total) for step in steps if step.preparing] == [(0, 1)] * looks
        assert [step.done for step in steps if not step.preparing] == [0, 0, 1]
    assert [*reward._taught] == [*range(1, reward.MOST_TAUGHT), 9], "the oldest goes first"
    stopped = reward.measure(replace(plan, seed=10))
    next(stopped), next(stopped)
    stopped.close()
    assert 10 not in reward._taught, "half-taught ones are not kept"


@pytest.mark.parametrize("plan", [Plan("else"), Plan(answers=1), Plan(questions=0), Plan(steps=0)])
def test_a_plan_that_is_none_is_refused(untrained, plan):
    with pytest.raises(ConfigError):
        next(reinforce(untrained, plan))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reward_makes_right_answers_likelier_and_a_wrong_reward_is_hacked(seed):
    half = half_trained(seed)
    for looks in (list(reinforce(half, Plan(seed=seed, look_every=400))),):
        assert looks[-1].first_try > looks[0].first_try + 0.08  # stored: by 0.23, 0.20, 0.10
    hacked = list(reinforce(half, Plan("ends in 0", seed=seed, steps=100, look_every=100)))
    assert hacked[-1].reward > 0.9 > 0.2 > hacked[-1].first_try
