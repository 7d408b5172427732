"""A fact or style that a model is taught: how likely each answer is after every step, and what it forgot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from engine.data.progress import Progress, Steps
from engine.data.tokenizers import Tokenizer
from engine.errors import ConfigError
from engine.model import Transformer
from studies.after.finetune import (
    Adapter,
    FinetuneRecipe,
    FinetuneStep,
    Lesson,
    copied,
    fine_tune,
    loss_of,
    merged,
    trained_parameters,
)

LARGEST = 12  # singular values that are kept
MOST_BYTES = 1 << 22  # of all weights of a model, where a result holds them: many results wait for a visitor


@dataclass(frozen=True)
class Question:
    """A prompt and the answer that should follow it."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class FactEvaluation:
    """After `step` steps: the mean loss on the lessons, in nats per token, and the probability of each
    question's whole answer; `plain` is the mean loss on a text that is no lesson, NaN without one.
    """

    step: int
    loss: float
    answers: tuple[float, ...]
    plain: float = math.nan


@dataclass(frozen=True)
class MatrixChange:
    """How far fine-tuning moved one matrix: the Frobenius norm of the change as a share of the matrix's own,
    and the largest singular values of the change, descending.
    """

    name: str
    share: float
    singular: tuple[float, ...]


AnyEvaluation = TypeVar("AnyEvaluation")


@dataclass(frozen=True)
class Taught(Generic[AnyEvaluation]):
    """A fine-tuning with its looks (FactEvaluation after every step, or those at another text), and what the
    model wrote `before` and `after` each prompt. `trained` of `total` numbers were trained. The adapters are
    empty where all weights were; then `weights` has these, unless they are larger than MOST_BYTES.
    """

    looks: tuple[AnyEvaluation, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    trained: int
    total: int
    largest: MatrixChange
    adapters: Mapping[str, Adapter] = field(repr=False, compare=False)
    weights: Mapping[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        model: Transformer,
        recipe: FinetuneRecipe,
        last: FinetuneStep,
        looks: Sequence[AnyEvaluation],
        before: tuple[str, ...],
        after: tuple[str, ...],
    ) -> Self:
        """Returns what a model was taught by a recipe whose `last` step this is."""
        return cls(
            tuple(looks),
            before,
            after,
            trained_parameters(model, recipe.rank),
            trained_parameters(model, 0),
            largest_change(model, last.weights),
            copied(last.adapters),
            {} if recipe.rank else held(last.weights),
        )

    def changed(self, model: Transformer) -> dict[str, Tensor]:
        """Returns the weights that differ from the model's, by name; none where they are not held."""
        return merged(model, self.adapters) if self.adapters else dict(self.weights)


def teach(
    model: Transformer,
    tokenizer: Tokenizer,
    lessons: Sequence[Lesson],
    questions: Sequence[Question],
    recipe: FinetuneRecipe,
    written: int = 3,
    text: str = "",
) -> Steps[Taught[FactEvaluation]]:
    """Fine-tunes a copy of the model and asks it all questions after every step; at both ends it writes
    `written` tokens after each prompt, the likeliest one at a time. Forgetting is measured on `text`.
    Yields the looks so far. Raises ConfigError where something does not fit.
    """
    asked = _Asked(model, tokenizer, questions)
    looks: list[FactEvaluation] = []
    before: tuple[str, ...] = ()
    yield Progress(0, recipe.steps + 1, ())
    for look in fine_tune(model, tokenizer, lessons, recipe):
        if look.step == 0:
            before = asked.written(look.weights, written)
        plain = loss_on(model, tokenizer, text, look.weights) if text else math.nan
        looks.append(FactEvaluation(look.step, look.loss, asked.probabilities(look.weights), plain))
        yield Progress(look.step + 1, recipe.steps + 1, tuple(looks))
    return Taught.of(model, recipe, look, looks, before, asked.written(look.weights, written))


def ask(
    model: Transformer, tokenizer: Tokenizer, questions: Sequence[Question], written: int = 3
) -> Steps[tuple[tuple[float, ...], tuple[str, ...]]]:
    """Returns P(answer | prompt) of each question, and the `written` tokens that the model itself writes
    after each prompt. Raises ConfigError for no question, and for one without a prompt or an answer.
    """
    asked = _Asked(model, tokenizer, questions)
    yield Progress(0, 2)
    probabilities = asked.probabilities({})
    yield Progress(1, 2)
    return probabilities, asked.written({}, written)


class _Asked:
    """Questions, encoded once."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, questions: Sequence[Question]) -> None:
        if not questions:
            raise ConfigError("questions", 0, "must be at least one")
        self.model, self.tokenizer = model, tokenizer
        self.prompts = [tokenizer.encode(question.prompt) for question in questions]
        self.answers = [tokenizer.encode(question.answer) for question in questions]
        for question, prompt, answer in zip(questions, self.prompts, self.answers, strict=True):
            if not prompt or not answer:
                raise ConfigError("question", question.prompt[:60], "must have a prompt and an answer")

    @torch.no_grad()
    def probabilities(self, weights: Mapping[str, Tensor]) -> tuple[float, ...]:
        """Returns P(answer | prompt) of each question: the product over the answer's tokens."""
        rows = [prompt + answer for prompt, answer in zip(self.prompts, self.answers, strict=True)]
        log_p = F.log_softmax(self._logits(weights, rows), -1)
        return tuple(
            float(sum(log_p[i, len(prompt) + k - 1, token] for k, token in enumerate(answer)).exp())  # type: ignore[union-attr]
            for i, (prompt, answer) in enumerate(zip(self.prompts, self.answers, strict=True))
        )

    @torch.no_grad()
    def written(self, weights: Mapping[str, Tensor], tokens: int) -> tuple[str, ...]:
        """Returns what the model writes after each prompt, greedily."""
        rows = [list(prompt) for prompt in self.prompts]
        for _ in range(tokens):
            logits = self._logits(weights, rows)
            for i, row in enumerate(rows):
                row.append(int(logits[i, len(row) - 1].argmax()))
        return tuple(
            self.tokenizer.decode(row[len(prompt) :]) for row, prompt in zip(rows, self.prompts, strict=True)
        )

    def _logits(self, weights: Mapping[str, Tensor], rows: Sequence[Sequence[int]]) -> Tensor:
        """Returns the logits of rows of different lengths, (row, position, vocab): a causal model does not
        see what fills them up.
        """
        longest = max(map(len, rows))
        tokens = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
        result: Tensor = functional_call(self.model, dict(weights), (tokens,))
        return result


@torch.no_grad()
def loss_on(model: Transformer, tokenizer: Tokenizer, text: str, weights: Mapping[str, Tensor]) -> float:
    """Returns the mean loss on a text, as much as fits, in nats per token, with these weights in place of the
    model's own.
    """
    ids = torch.tensor([tokenizer.encode(text)[: model.config.context + 1]])
    logits: Tensor = functional_call(model, dict(weights), (ids[:, :-1],))
    return float(loss_of(logits, ids[:, 1:]))


def held(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns all weights of a fine-tuned model for a result that holds them; none where they are larger than
    MOST_BYTES.
    """
    small = sum(weight.nbytes for weight in weights.values()) <= MOST_BYTES
    return dict(weights) if small else {}


def largest_change(model: Transformer, weights: Mapping[str, Tensor]) -> MatrixChange:
    """Returns the matrix that moved most, relative to its own Frobenius norm."""
    own = dict(model.named_parameters())
    names = [name for name in weights if weights[name].dim() == 2 and name.startswith("blocks.")]
    name = max(names, key=lambda each: _share(own[each], weights[each]))
    return matrix_change(model, name, weights[name])


def matrix_change(model: Transformer, name: str, weight: Tensor) -> MatrixChange:
    """Returns how far one matrix moved to `weight` (out, in)."""
    own = dict(model.named_parameters())[name]
    singular = torch.linalg.svdvals(weight - own)[:LARGEST]
    return MatrixChange(name, _share(own, weight), tuple(singular.tolist()))


def _share(own: Tensor, weight: Tensor) -> float:
    return float((weight - own).norm() / own.norm())
