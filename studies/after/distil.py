"""Distillation (Hinton et al. 2015): a small student learns a text from its characters, or from the
probabilities that a larger teacher gives to every character at each position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, TrainConfig
from engine.data.corpus import Corpus
from engine.model import Transformer, build
from engine.recording import Recording
from engine.training.batches import Batches, measure
from engine.training.numerics import choose
from engine.training.optim import Optimiser, learning_rate_factor


def soft_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Returns the cross-entropy of the student's probabilities with the teacher's, both softened by a
    temperature, times its square so that gradients keep their size (Hinton et al. 2015, 2), in nats: logits
    (token, vocab) -> a scalar.
    """
    softened = (teacher / temperature).softmax(-1)
    return -(temperature**2) * (softened * F.log_softmax(student / temperature, -1)).sum(-1).mean()


def distil(
    model: ModelConfig,
    config: TrainConfig,
    corpus: Corpus,
    teacher: Transformer | None = None,
    temperature: float = 1.0,
) -> Iterator[tuple[int, float]]:
    """Trains a student on the characters of a text, or on a teacher's probabilities of them. Yields (step,
    loss): nats per character of `eval_tokens` of the validation text, before the first step and at each
    `eval_every`. The windows are those of its seed, whatever it learns from.
    """
    student = build(replace(model, vocab_size=corpus.vocab_size), config.seed, init=config.init)
    numerics = choose("float32", "cpu")
    batches, optimiser = Batches(corpus, model, config), Optimiser(student, config, numerics)
    for step in range(config.steps + 1):
        if step % config.eval_every == 0:
            yield step, measure(student, batches, corpus.validation, config.eval_tokens).nats
        if step == config.steps:
            return
        batch = batches.at(step)
        with numerics.scope():
            logits = student.train()(batch.inputs).flatten(0, 1)  # (token, vocab)
            if teacher is None:
                loss = F.cross_entropy(logits, batch.targets.flatten())
            else:
                with torch.no_grad():
                    said = teacher(batch.inputs).flatten(0, 1)
                loss = soft_loss(logits, said, temperature)
            optimiser.update(loss, learning_rate_factor(config, step))


@dataclass(frozen=True, eq=False)
class DarkKnowledge:
    """A teacher's probabilities after one position, (vocab,), at a temperature. `entropy` is in nats; `right`
    is the probability of the character that stands there.
    """

    probabilities: np.ndarray
    entropy: float
    right: float

    @property
    def likeliest(self) -> np.ndarray:
        """Ids, the likeliest first: (vocab,)."""
        return np.argsort(-self.probabilities, kind="stable")


def least_certain(recording: Recording) -> int:
    """Returns the position, but for the last, after which a recorded model is least certain: by entropy."""
    log_p = recording.log_probabilities[:-1].astype(np.float64)  # (position, vocab)
    return int((np.exp(log_p) * np.maximum(log_p, -1e3)).sum(-1).argmin())


def dark_knowledge(recording: Recording, position: int, temperature: float) -> DarkKnowledge:
    """Returns what a recorded teacher says about the character after `position`, which the text has."""
    scores = recording.logits[position].astype(np.float64) / temperature
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    entropy = -float((chances * np.log(np.maximum(chances, 1e-300))).sum())
    return DarkKnowledge(chances, entropy, float(chances[recording.ids[position + 1]]))
