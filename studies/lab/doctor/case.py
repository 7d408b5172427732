"""A case for the doctor: a model, the configuration that was meant, and what is known of its training."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig, ResolvedConfig, TrainConfig
from engine.data.corpus import Corpus
from engine.model import Transformer, build
from engine.training.batches import Batch, Batches
from engine.training.records import Evaluation

LARGE = 5_000_000  # parameters: from here on no copy in double precision is made
TEXTS, TOKENS = 3, 24  # of the texts that a model reads when nothing else is asked for


class NotApplicable(Exception):
    """Raised by a check that does not apply to a case; the message is the reason, a whole sentence."""


@dataclass(frozen=True, eq=False)
class TrainingCurve:
    """The course of a training: `losses` (step,) of batches, nats per token, at updates `steps`."""

    steps: np.ndarray = field(repr=False)
    losses: np.ndarray = field(repr=False)
    evaluations: tuple[Evaluation, ...] = ()
    diverged: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """A model to be examined, which is not changed. `meant` is the configuration that its maker believes to
    have built (None: its own), `train` its training's settings, `corpus` its text, `curve` its training's
    course. Unknown ones are None, and the checks that need them say so.
    """

    model: Transformer = field(repr=False)
    meant: ModelConfig | None = None
    corpus: Corpus | None = field(default=None, repr=False)
    train: TrainConfig | None = None
    curve: TrainingCurve | None = field(default=None, repr=False)

    @cached_property
    def wanted(self) -> ResolvedConfig:
        """The configuration that was meant, resolved."""
        return (self.meant or self.model.config).resolved()

    @property
    def large(self) -> bool:
        return sum(p.numel() for p in self.model.parameters()) > LARGE

    @cached_property
    def settings(self) -> TrainConfig:
        """The training's settings: the known ones, else the usual ones."""
        return self.train or TrainConfig()

    @cached_property
    def exact(self) -> Transformer:
        """The model in double precision and without dropout, to be experimented on; a large one unchanged."""
        if self.large:
            return self.model
        return copy.deepcopy(self.model).double().train(False).requires_grad_(False)

    def copied(self) -> Transformer:
        """Returns a copy of the model, to be put into other modes; a large one itself."""
        return self.model if self.large else copy.deepcopy(self.model)

    @cached_property
    def evaluated(self) -> Transformer:
        """The model in its own precision and without dropout."""
        return self.copied().train(False)

    @cached_property
    def ids(self) -> Tensor:
        """Returns a few texts, (TEXTS, TOKENS) or up to the context: its own, else random tokens."""
        length = min(TOKENS, self.model.config.context)
        random = torch.Generator().manual_seed(0)
        device = next(self.model.parameters()).device
        if self.corpus is None or len(self.corpus.validation) <= length:
            below = self.model.config.vocab_size
            return torch.randint(below, (TEXTS, length), generator=random).to(device)
        starts = torch.randint(len(self.corpus.validation) - length, (TEXTS,), generator=random)
        return torch.stack([self.corpus.validation[i : i + length] for i in starts.tolist()]).to(device)

    @property
    def predicts_next(self) -> bool:
        """True if the model predicts the next token: an encoder does not, unless it is trained to."""
        c = self.model.config
        asked = self.train is not None and self.train.objective == "next_token"
        return c.output_head == "linear" and (c.causal or asked)

    def twin(self) -> Transformer:
        """Builds the same model before its first step. Raises NotApplicable where that cannot be repeated."""
        if self.large:
            raise NotApplicable("This model was trained elsewhere: its initial weights are not known.")
        s = self.settings
        return build(self.model.config, s.seed, parts=self.model.parts, init=s.init).train(False)

    def batches(self) -> Batches:
        """Returns the source of its windows, split as in training. Raises NotApplicable without its text."""
        if self.corpus is None:
            raise NotApplicable("Its training text is not available here.")
        parts = self.model.parts
        train, validation = parts.split(self.corpus.train, self.corpus.validation)
        corpus = replace(self.corpus, train=train, validation=validation)
        return Batches(corpus, self.model.config, self.settings, parts.targets)

    def batch(self) -> Batch:
        """Returns the first batch of its training; without its text, a batch of random tokens."""
        if self.corpus is not None:
            return self.batches().at(0)
        windows = torch.randint(
            self.model.config.vocab_size,
            (8, min(64, self.model.config.context) + 1),
            generator=torch.Generator().manual_seed(0),
        )
        return Batch(*self.model.parts.targets(windows))

    def smoothed(self, window: int = 10) -> np.ndarray:
        """Returns the training's losses, means of `window` each. Raises NotApplicable without enough."""
        if self.curve is None:
            raise NotApplicable("No training history is available here.")
        if len(self.curve.losses) < 3 * window:
            raise NotApplicable("Training was too short to judge.")
        return np.convolve(self.curve.losses, np.full(window, 1 / window), "valid")


def relative_difference(first: Tensor, second: Tensor) -> float:
    """Returns the largest difference between two tensors over the first's largest number, or infinity."""
    size = max(float(first.abs().max()), 1e-12)
    difference = float((first - second).abs().max()) / size
    return difference if math.isfinite(difference) else math.inf


def by_the_book(case: Case) -> Transformer:
    """Builds the model that was meant, healthy and usually started. Raises NotApplicable if large."""
    if case.large:
        raise NotApplicable("This model was trained elsewhere: its initial weights are not known.")
    return build(replace(case.wanted, vocab_size=case.model.config.vocab_size), case.settings.seed).train(
        False
    )
