"""A corpus: a text as ids in two splits, and the losses of predictors without a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.data.tokenizers import Storable, characters
from engine.errors import CorpusError

if TYPE_CHECKING:
    from engine.model import Transformer
    from engine.training.records import TaskScores

VALIDATION_SHARE = 0.1  # the last tenth
LN_2 = float(np.log(2))


class Task(Protocol):
    """A source of problems to train on, such as `studies.tasks.task.Task`."""

    @property
    def title(self) -> str: ...

    @property
    def length(self) -> int:
        """The tokens of a problem with its line break; 1 for a stream, which goes on for ever."""

    @property
    def stream(self) -> bool: ...

    @property
    def answers_only(self) -> bool:
        """True if the loss is of the answers alone."""

    @property
    def graded(self) -> tuple[bool, ...]:
        """Which positions of a problem count in the loss: (length,)."""


@dataclass(frozen=True)
class Corpus:
    """A text, its tokenizer, and its ids split into training (the first 90% of the characters) and validation
    (the last 10%).

    The text is cut before it is made into tokens: every tokenizer is then measured on the same characters.
    Both parts of a synthetic `task` begin with a line break and hold complete problems; none is in both.
    """

    name: str
    text: str
    tokenizer: Storable
    train: Tensor  # (n_train,) int64
    validation: Tensor  # (n_validation,) int64
    cut: str = "char"  # how the tokenizer was made: TrainConfig.tokenizer
    task: Task | None = None
    # With a task: the shares of its problems that a model solves, for each evaluation of a training
    solved: Callable[[Transformer, Corpus], TaskScores | None] | None = None

    @property
    def period(self) -> int:
        """The tokens from one possible window start to the next: a synthetic task's length, else 1."""
        return self.task.length if self.task else 1

    @property
    def problems(self) -> tuple[int, int]:
        """The numbers of a task's problems in training and validation; (0, 0) where there are none."""
        if self.task is None or self.task.stream:
            return 0, 0
        return len(self.train) // self.period, len(self.validation) // self.period

    def graded(self, length: int) -> Tensor | None:
        """Returns which predicted tokens of a window count in the loss, bool (length,); None where all do."""
        if self.task is None or not self.task.answers_only:
            return None
        return torch.tensor(self.task.graded).repeat(-(-length // self.period))[:length]

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.vocab_size

    @property
    def characters(self) -> int:
        return len(self.text)

    @property
    def kind(self) -> str:
        """The kind of token: char, byte or bpe."""
        return self.cut.split(":")[0]

    @cached_property
    def token_characters(self) -> np.ndarray:
        """Characters that begin in each token, by id: int64 (vocab,)."""
        return characters(self.tokenizer)

    @property
    def characters_per_token(self) -> float:
        """The mean number of characters per token, over the whole text."""
        return self.characters / (len(self.train) + len(self.validation))

    @cached_property
    def baselines(self) -> dict[str, float]:
        """Validation losses (nats per token) of four predictors that have no network.

        `uniform` knows nothing: ln V. `unigram` knows how often each token occurs in the training split,
        `bigram` which follows which, `trigram` which follows which two; they count with add-one smoothing.
        """
        v = self.vocab_size
        train, validation = self.train.numpy(), self.validation.numpy()
        counts = self._counts(len(validation))
        unigram = np.bincount(train, minlength=v) + 1.0
        unigram /= unigram.sum()
        result = {"uniform": float(np.log(v)), "unigram": float(-np.log(unigram[validation])[counts].mean())}
        result["bigram"] = _following(train, validation, v, 1, counts)
        if min(len(train), len(validation)) > 2:
            result["trigram"] = _following(train, validation, v, 2, counts)
        return result

    def _counts(self, length: int) -> np.ndarray:
        """Which tokens of a split count in the loss: bool (length,), all of them but in some tasks."""
        some = self.graded(length - 1)
        return np.ones(length, dtype=bool) if some is None else np.concatenate(([False], some.numpy()))

    @cached_property
    def baselines_in_bits(self) -> dict[str, float]:
        """Losses of the same predictors in bits per character of the tokens that they predict."""
        # (n_validation,)
        of = self.token_characters[self.validation.numpy()] * self._counts(len(self.validation))
        predicted = {"bigram": of[1:], "trigram": of[2:]}  # what comes before is given
        return {
            name: nats * int((some > 0).sum() if self.task else len(some)) / max(int(some.sum()), 1) / LN_2
            for name, nats in self.baselines.items()
            for some in [predicted.get(name, of)]
        }


def _following(
    train: np.ndarray, validation: np.ndarray, vocab: int, given: int, counted: np.ndarray
) -> float:
    """Returns the mean -ln p of `counted` tokens, each after `given` others: p = (all + 1) / (before + V)."""

    def numbered(tokens: np.ndarray, length: int) -> np.ndarray:
        """Encodes every run of `length` tokens as a number below V^length; int64 holds V to 2^21."""
        starts = len(tokens) - given
        number = np.zeros(starts, dtype=np.int64)
        for i in range(length):
            number = number * vocab + tokens[i : i + starts]
        return number

    def counts(length: int) -> np.ndarray:
        # Only what occurs is counted: a table of all V x V would be larger than the text.
        runs, frequencies = np.unique(numbered(train, length), return_counts=True)
        wanted = numbered(validation, length)
        place = np.minimum(np.searchsorted(runs, wanted), len(runs) - 1)
        return np.where(runs[place] == wanted, frequencies[place], 0)

    losses = -np.log((counts(given + 1) + 1.0) / (counts(given) + vocab))
    return float(losses[counted[given:]].mean())


def check_length(corpus: Corpus, context: int) -> None:
    """Raises CorpusError, saying how much is missing, when no window of context + 1 tokens fits."""
    if len(corpus.train) < context + 2:
        # a tenth of what is added is for validation
        tokens = (context + 2 - len(corpus.train)) / (1 - VALIDATION_SHARE)
        missing = int(np.ceil(tokens * corpus.characters_per_token))
        smaller = ", or a smaller vocabulary" if corpus.kind == "bpe" else ""
        raise CorpusError(
            f"{corpus.name} has {len(corpus.train)} tokens to train on; a context of {context} needs"
            f" {context + 2}: add about {missing} more characters, or choose a shorter context{smaller}"
        )
