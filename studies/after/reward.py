"""Reinforcement learning from a reward: a half-trained model answers sums, and right answers become likelier.

    half = half_trained()

    for look in reinforce(half, Plan()):

        ...

REINFORCE (Williams 1992) with the mean reward of a group of answers to the same question as the baseline,
which is what remains of GRPO (Shao et al. 2024) where each batch is used once: the gradient is that of
-advantage x log p(answer), and there is no critic and nothing to clip. A leash is the Kullback-Leibler
divergence from the model that it began as.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError
from engine.model import Transformer, build
from engine.training.optim import AdamW
from studies.tasks.lines import adding

Rewarded = Literal["right", "ends in 0"]
DIGITS = 2
TASK = adding("sums", "Sums", "Write the sum.", DIGITS, backwards=False)
ANSWER = TASK.length - 1 - TASK.given  # digits of an answer
LETTERS = "\n+=0123456789"
CONFIG = ModelConfig(
    vocab_size=len(LETTERS), d_model=64, n_layers=2, n_heads=4, context=TASK.length, position="learned"
)
HALF = 0.45  # of held-out sums right at the first try: where teaching stops
TEACH_RATE, TEACH_BATCH, TEACH_LOOK, TEACH_MOST = 2e-3, 64, 10, 600
ASKED = 256  # held-out sums that are read at a look
TRIES = 8  # answers that are drawn to each of them for "one of eight"
MOST_TAUGHT = 4  # half-trained models that are kept
_taught: dict[int, Transformer] = {}  # by seed, the oldest first


@dataclass(frozen=True)
class Plan:
    """A training by reward: `questions` a step, a group of `answers` to each; `leash` weighs the divergence
    from the first model, in nats per token.
    """

    rewarded: Rewarded = "right"
    answers: int = 8
    questions: int = 16
    leash: float = 0.0
    # Over three seeds, 400 steps at 5e-4 leave 55 to 60% of first tries right (63 to 69% at this rate), and
    # one of eight right for 81 to 92% of the sums (96 to 99%; 92 to 99% before the first step).
    rate: float = 2e-4
    steps: int = 400
    look_every: int = 20
    seed: int = 0

    def check(self) -> None:
        """Raises ConfigError for values out of range."""
        if self.rewarded not in ("right", "ends in 0"):
            raise ConfigError("rewarded", self.rewarded, "must be 'right' or 'ends in 0'")
        for name, least, most in (("answers", 2, 32), ("questions", 1, 64), ("steps", 1, 1000)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(name, getattr(self, name), f"must be from {least} to {most}")


@dataclass(frozen=True)
class Group:
    """One question, the answers drawn to it, their rewards, and their advantages: reward less the mean."""

    question: str
    answers: tuple[str, ...]
    rewards: tuple[float, ...]
    advantages: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean reward."""
        return sum(self.rewards) / len(self.rewards)


@dataclass(frozen=True)
class RewardEvaluation:
    """After `step` steps, on held-out sums: the share right when the likeliest digits are written (`greedy`),
    of answers that are drawn (`first_try`), and with at least one right among TRIES drawn (`any_of`); the
    mean `reward` of drawn answers, and their divergence from the first model in nats per token. `group` is
    one of the step's own.
    """

    step: int
    greedy: float
    first_try: float
    any_of: float
    reward: float
    divergence: float
    group: Group = field(repr=False)


@dataclass(frozen=True)
class Reinforced:
    """A training by reward and all of its looks."""

    plan: Plan
    looks: tuple[RewardEvaluation, ...]


def measure(plan: Plan) -> Steps[Reinforced]:
    """Teaches a model of the plan's seed halfway and trains it by reward. Yields the looks so far. Raises
    ConfigError for a plan that is none.
    """
    plan.check()
    yield Progress(0, plan.steps, ())
    if plan.seed not in _taught:
        model = build(CONFIG, plan.seed)
        for _ in teach(model, plan.seed):
            yield Progress(0, plan.steps, (), preparing=True)
        if len(_taught) >= MOST_TAUGHT:
            del _taught[next(iter(_taught))]
        _taught[plan.seed] = model
    looks: list[RewardEvaluation] = []
    for look in reinforce(_taught[plan.seed], plan):
        looks.append(look)
        yield Progress(look.step, plan.steps, tuple(looks))
    return Reinforced(plan, tuple(looks))


def encode(text: str) -> list[int]:
    return [LETTERS.index(letter) for letter in text]


def decode(ids: list[int]) -> str:
    return "".join(LETTERS[i] for i in ids)


def lines(count: int, draws: random.Random, held_out: bool) -> list[str]:
    """Draws sums with their answers, those held out or the others."""
    result: list[str] = []
    while len(result) < count:
        line = TASK.draw(draws, 0)
        if TASK.for_validation(line) == held_out:
            result.append(line)
    return result


def half_trained(seed: int = 0) -> Transformer:
    """Returns a model that was taught sums until HALF of its first answers are right."""
    model = build(CONFIG, seed)
    for _ in teach(model, seed):
        pass
    return model


def teach(model: Transformer, seed: int) -> Iterator[float]:
    """Teaches a model sums with their answers until HALF of held-out ones are right at the first try. Yields
    that share, at every TEACH_LOOK-th step.
    """
    draws = random.Random(seed)
    questions = questions_of(lines(ASKED, random.Random(-1), held_out=True))
    optimiser = AdamW(model.parameters(), TEACH_RATE)
    generator = torch.Generator().manual_seed(seed)
    for step in range(TEACH_MOST):
        ids = torch.tensor([encode(line) for line in lines(TEACH_BATCH, draws, held_out=False)])
        logits = model(ids[:, :-1])[:, TASK.given - 1 :]
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, TASK.given :].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % TEACH_LOOK == 0:
            drawn = draw_answers(model, questions, 1, generator)
            right = float(rewards(questions, drawn, "right").mean())
            yield right
            if right >= HALF:
                return


def questions_of(known: list[str]) -> Tensor:
    """Returns the questions of lines, (question, position)."""
    return torch.tensor([encode(line[: TASK.given]) for line in known])


@torch.no_grad()
def draw_answers(
    model: Transformer,
    questions: Tensor,
    count: int,
    generator: torch.Generator | None,
    temperature: float = 1.0,
) -> Tensor:
    """Draws `count` answers to each question, (question, answer, digit); the likeliest ones without a
    generator. The model reads a text once, however often it was drawn so far.
    """
    ids = questions.repeat_interleave(count, 0)
    for _ in range(ANSWER):
        texts, of = ids.unique(dim=0, return_inverse=True)
        logits = model(texts)[of, -1]
        if generator is None:
            token = logits.argmax(-1, keepdim=True)
        else:
            token = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)
        ids = torch.cat([ids, token], 1)
    return ids[:, TASK.given :].view(len(questions), count, ANSWER)


def rewards(questions: Tensor, drawn: Tensor, rewarded: Rewarded) -> Tensor:
    """Returns 1 for each answer that is right, or that ends in 0, and 0 for others: (question, answer)."""
    if rewarded == "ends in 0":
        return (drawn[..., -1] == LETTERS.index("0")).float()
    assert TASK.answer is not None
    right = torch.tensor([encode(TASK.answer(decode(row.tolist()))) for row in questions])
    return (drawn == right[:, None]).all(-1).float()


def advantages(reward: Tensor) -> Tensor:
    """Subtracts the mean of each group from its rewards, (question, answer)."""
    return reward - reward.mean(-1, keepdim=True)


def log_p(model: Transformer, questions: Tensor, drawn: Tensor) -> Tensor:
    """Returns the log probabilities of every token at every digit of the answers: (question, answer, digit,
    vocab).
    """
    count = drawn.shape[1]
    ids = torch.cat([questions.repeat_interleave(count, 0), drawn.flatten(0, 1)[:, :-1]], 1)
    return model(ids)[:, TASK.given - 1 :].log_softmax(-1).view(*drawn.shape, -1)


def reinforce(first: Transformer, plan: Plan) -> Iterator[RewardEvaluation]:
    """Trains a copy of a model by reward and yields looks: before the first step, every `look_every` steps
    and at the end. Raises ConfigError for a plan that is none.
    """
    plan.check()
    model = copy.deepcopy(first)
    draws = random.Random(plan.seed + 1)
    generator = torch.Generator().manual_seed(plan.seed + 1)
    held_out = questions_of(lines(ASKED, random.Random(-1), held_out=True))
    optimiser = AdamW(model.parameters(), plan.rate)
    for step in range(plan.steps + 1):
        questions = questions_of(lines(plan.questions, draws, held_out=False))
        drawn = draw_answers(model, questions, plan.answers, generator)
        reward = rewards(questions, drawn, plan.rewarded)
        gain = advantages(reward)
        if step % plan.look_every == 0 or step == plan.steps:
            yield _look(model, first, held_out, plan, step, _group(questions, drawn, reward, gain))
        if step == plan.steps:
            return
        with torch.enable_grad():
            every = log_p(model, questions, drawn)
            chosen = every.gather(-1, drawn[..., None])[..., 0].sum(-1)
            loss = -(gain * chosen).mean()
            if plan.leash:
                with torch.no_grad():
                    before = log_p(first, questions, drawn)
                loss = loss + plan.leash * (every.exp() * (every - before)).sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


@torch.no_grad()
def _look(
    model: Transformer, first: Transformer, questions: Tensor, plan: Plan, step: int, group: Group
) -> RewardEvaluation:
    generator = torch.Generator().manual_seed(2**20)  # the same draws at every look
    drawn = draw_answers(model, questions, TRIES, generator)
    right = rewards(questions, drawn, "right")
    now, before = log_p(model, questions, drawn), log_p(first, questions, drawn)
    return RewardEvaluation(
        step,
        float(rewards(questions, draw_answers(model, questions, 1, None), "right").mean()),
        float(right.mean()),
        float(right.amax(-1).mean()),
        float(rewards(questions, drawn, plan.rewarded).mean()),
        float((now.exp() * (now - before)).sum(-1).mean()),
        group,
    )


def _group(questions: Tensor, drawn: Tensor, reward: Tensor, gain: Tensor) -> Group:
    """Returns the first group whose answers are not all alike in reward; else the first."""
    at = int((reward.amax(-1) > reward.amin(-1)).float().argmax())
    return Group(
        decode(questions[at].tolist()),
        tuple(decode(row) for row in drawn[at].tolist()),
        tuple(reward[at].tolist()),
        tuple(gain[at].tolist()),
    )
