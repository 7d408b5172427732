"""A benchmark of our own, and how its number is made: twenty multiple-choice questions, marked in four ways.

    scores = finish(measure(model, tokenizer))

    scores.right("whole").sum()  # of 20

A language model gives no answer but probabilities, and the mark depends on what is compared: the letters
A to D below the options (Hendrycks et al. 2020), the probability of each whole answer, that divided by its
tokens, or what the question adds to it (both Brown et al. 2020, section 2.4; the last also Holtzman et al.
2021, "Surface Form Competition"). Gao et al.'s evaluation harness reports several of them side by side.

A model that was trained on the questions has learned them, and perhaps no more than them: `contaminate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Literal, get_args

import numpy as np
import torch

from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.model import Transformer
from engine.sample.decoder import Held
from studies.after.benchmark_questions import EXAMPLES, ITEMS
from studies.after.finetune import FinetuneRecipe, Lesson, fine_tune, with_weights
from studies.generation.row_products import FewRows

Way = Literal["letter", "whole", "token", "gain"]
Wording = Literal["question", "paraphrase", "other"]
WAYS: tuple[Way, ...] = get_args(Way)
WORDINGS: tuple[Wording, ...] = get_args(Wording)
LETTERS = "ABCD"
MIXED = "mixed"
ORDERS = (MIXED, *LETTERS)  # where the right answers stand: each letter for a quarter of them, or one letter
_MIXED = np.array([1, 3, 0, 2, 2, 0, 3, 1, 0, 1, 2, 3, 3, 2, 1, 0, 1, 0, 3, 2])  # of MIXED
REST = 0.025  # of a distribution, beyond either end of an interval of 95%
RECIPE = FinetuneRecipe(rank=4, steps=8, rate=4e-3)  # of training on the questions


def right_letters(order: str) -> np.ndarray:
    """Returns the letter of the right answer below each question, (item,), 0 for A."""
    return _MIXED if order == MIXED else np.full(len(ITEMS), LETTERS.index(order))


def arranged(options: Sequence[str], letter: int) -> list[str]:
    """Returns the options, of which the first is right, turned until that one stands at a letter, 0 for A.

    >>> arranged(["right", "x", "y", "z"], 2)
    ['y', 'z', 'right', 'x']
    """
    return [options[(at - letter) % len(options)] for at in range(len(options))]


def cloze(question: str) -> str:
    """Returns the prompt whose continuation is an answer."""
    return f"Question: {question}\nAnswer:"


def sheet(question: str, options: Sequence[str]) -> str:
    """Returns the prompt that lists the options, and whose continuation is a letter."""
    listed = "".join(f"{letter}. {option}\n" for letter, option in zip(LETTERS, options, strict=True))
    return f"Question: {question}\n{listed}Answer:"


def shown(count: int, letters: bool) -> str:
    """Returns the first `count` examples, solved, that stand before a question."""
    text = ""
    for item, letter in EXAMPLES[:count]:
        options = arranged(item.options, LETTERS.index(letter))
        prompt = sheet(item.question, options) if letters else cloze(item.question)
        text += f"{prompt} {letter if letters else item.options[0]}\n\n"
    return text


@dataclass(frozen=True, eq=False)
class Scores:
    """A model's log-probabilities, in nats: `whole` (wording, item, option) of each answer after each of
    WORDINGS, `unconditional` (item, option) of each answer without a question, `letters` (right, item,
    letter) of each letter, with the right answer at each of them. `tokens` (item, option) are those of the
    answers. Option 0 is right for the question and its paraphrase.
    """

    whole: np.ndarray = field(repr=False)
    unconditional: np.ndarray = field(repr=False)
    letters: np.ndarray = field(repr=False)
    tokens: np.ndarray = field(repr=False)

    def compared(self, way: Way, wording: Wording = "question", order: str = MIXED) -> np.ndarray:
        """Returns what is compared between the options, (item, option), in nats."""
        if way == "letter":
            at = right_letters(order)
            lines = self.letters[at, np.arange(len(at))]  # (item, letter)
            letter_of = (np.arange(len(LETTERS)) + at[:, None]) % len(LETTERS)  # (item, option)
            return np.take_along_axis(lines, letter_of, 1)
        whole = self.whole[WORDINGS.index(wording)]
        if way == "token":
            return whole / self.tokens
        return whole - self.unconditional if way == "gain" else whole

    def right(self, way: Way, wording: Wording = "question", order: str = MIXED) -> np.ndarray:
        """True where the option with the highest score is right, (item,)."""
        wanted = [item.right_of_other if wording == "other" else 0 for item in ITEMS]
        result: np.ndarray = self.compared(way, wording, order).argmax(1) == np.array(wanted)
        return result

    def mark(self, way: Way, wording: Wording = "question", order: str = MIXED) -> int:
        """Counts the questions that are answered right."""
        return int(self.right(way, wording, order).sum())


@torch.inference_mode()
def measure(model: Transformer, tokenizer: Tokenizer, examples: int = 0) -> Steps[Scores]:
    """Asks a model everything, with that many examples before each question."""
    held, without = Held(model), Held(model)
    whole = np.zeros((len(WORDINGS), len(ITEMS), len(LETTERS)))
    unconditional, letters = np.zeros_like(whole[0]), np.zeros((len(LETTERS), *whole[0].shape))
    signs = [tokenizer.encode(f" {letter}") for letter in LETTERS]
    texts = [[tokenizer.encode(f" {option}") for option in item.options] for item in ITEMS]
    before, before_sheet = shown(examples, letters=False), shown(examples, letters=True)
    for at, (item, answers) in enumerate(zip(ITEMS, texts, strict=True)):
        yield Progress(at, 2 * len(ITEMS))
        unconditional[at] = log_p(without, tokenizer.encode("Answer:"), answers)
        for which, question in enumerate((item.question, item.paraphrase, item.other)):
            whole[which, at] = log_p(held, tokenizer.encode(before + cloze(question)), answers)
    for at, item in enumerate(ITEMS):
        yield Progress(len(ITEMS) + at, 2 * len(ITEMS))
        for right in range(len(LETTERS)):
            prompt = before_sheet + sheet(item.question, arranged(item.options, right))
            letters[right, at] = log_p(held, tokenizer.encode(prompt), signs)
    return Scores(
        whole, unconditional, letters, np.array([[len(ids) for ids in row] for row in texts], float)
    )


def log_p(held: Held, prompt: Sequence[int], answers: Sequence[Sequence[int]]) -> list[float]:
    """Returns ln P(answer | prompt) of each answer, the sum over its tokens. The prompt is read once, and of
    a prompt read before only what differs.
    """
    decoder, result = held.begin(prompt), []
    with FewRows():
        first = decoder.read_each(prompt[decoder.length :])[-1:]
        held.ids = list(prompt)
        for answer in answers:
            decoder.cache.length = len(prompt)
            rows = [first] if len(answer) == 1 else [first, decoder.read_each(answer[:-1])]
            chances = torch.cat(rows).log_softmax(-1)  # (token, vocab)
            result.append(float(chances[torch.arange(len(answer)), torch.tensor(answer)].sum()))
    decoder.cache.length = len(prompt)
    return result


@dataclass(frozen=True)
class Contaminated:
    """A model after training on the questions with their answers: the mean loss before every step and at the
    end, in nats per token of an answer, and its scores then.
    """

    losses: tuple[float, ...]
    scores: Scores = field(repr=False)


def contaminate(
    model: Transformer, tokenizer: Tokenizer, recipe: FinetuneRecipe = RECIPE
) -> Steps[Contaminated]:
    """Trains adapters on the questions, not on their paraphrases, and measures the model again. The loss
    counts the right answers alone.
    """
    lessons = [Lesson(cloze(item.question), f" {item.options[0]}") for item in ITEMS]
    losses = []
    for look in fine_tune(model, tokenizer, lessons, recipe):
        yield Progress(look.step, recipe.steps + 2 * len(ITEMS))
        losses.append(look.loss)
    scores = measure(with_weights(model, look.weights), tokenizer)
    while True:
        try:
            done = next(scores).done
        except StopIteration as end:
            return Contaminated(tuple(losses), end.value)
        yield Progress(recipe.steps + done, recipe.steps + 2 * len(ITEMS))


def up_to(count: int, chance: float) -> np.ndarray:
    """Returns the probability of at most k right answers, (k from 0 to `count`,), each right by `chance`."""
    each = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    return np.cumsum(each)


def by_chance(count: int = len(ITEMS), options: int = len(LETTERS)) -> tuple[int, int]:
    """Returns the least and the most right answers of guessing, with at most REST beyond either.

    >>> by_chance(20, 4)
    (2, 9)
    """
    below = up_to(count, 1 / options)
    return int((below >= REST).argmax()), int((below >= 1 - REST).argmax())


def interval(right: int, count: int) -> tuple[float, float]:
    """Returns the shares of right answers that a mark is compatible with: at the lower end at least as many,
    at the upper end at most as many, are right with a probability of REST (Clopper and Pearson 1934).

    >>> [round(share, 3) for share in interval(5, 20)]
    [0.087, 0.491]
    """
    grid = np.linspace(0, 1, 10_001)
    at_most = np.array([up_to(count, share) for share in grid])  # (share, k)
    low = grid[(1 - at_most[:, right - 1] >= REST).argmax()] if right else 0.0
    high = grid[np.flatnonzero(at_most[:, right] >= REST)[-1]]
    return float(low), float(high)
