"""The logit lens: what the model would say if it stopped after each block (nostalgebraist 2020, "interpreting
GPT: the logit lens").
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from engine.errors import ShapeError
from engine.measure.recording import Recording, log_softmax
from engine.measure.residual import outputs
from engine.model import Transformer


@dataclass(frozen=True, eq=False)
class Lens:
    """Depth 0 is the stream before the first block, depth i + 1 that after block i; the last depth is the
    model's output.

    `kl` is KL(final || depth) = sum of p_final (ln p_final - ln p_depth), in nats: 0 at the last depth, and
    never negative. `settled` is the first depth from which on a position's top guess stays the final one.
    """

    log_probabilities: np.ndarray = field(repr=False)  # (depth, query, vocab) float32, nats
    guess: np.ndarray  # (depth, query) token id
    probability: np.ndarray  # (depth, query), of the guess
    kl: np.ndarray  # (depth, query), nats
    settled: np.ndarray  # (query,)

    def top(self, depth: int, position: int, count: int = 10) -> np.ndarray:
        """The ids of the likeliest tokens there, best first: at most (count,)."""
        return np.argsort(-self.log_probabilities[depth, position], kind="stable")[:count]


@torch.no_grad()
def logit_lens(model: Transformer, recording: Recording) -> Lens:
    """norm_final and the output head applied to the stream at every depth, in the model's own arithmetic.

    A post-norm model has no norm_final: its stream after each block has been through norm2 already. Raises
    ShapeError for a model without an output head.
    """
    if not model.output.present:
        raise ShapeError("this model has no output head: no depth of it says anything")
    like = next(model.parameters())
    logits = []
    for stream in outputs(recording):
        x = torch.tensor(stream, device=like.device, dtype=like.dtype)[
            None
        ]  # (1, query, d_model), as in the forward pass
        logits.append(model.logits(x)[0].float().cpu().numpy())
    return read_lens(np.stack(logits))


def read_lens(logits: np.ndarray) -> Lens:
    """Guesses, probabilities and distances from logits (depth, query, vocab), the last depth being the
    output.
    """
    log_p = log_softmax(logits)
    guess = log_p.argmax(-1)
    probability = np.exp(np.take_along_axis(log_p, guess[..., None], -1)[..., 0])
    kl = (np.exp(log_p[-1]) * (log_p[-1] - log_p)).sum(-1)
    kl = np.maximum(kl, 0.0)  # rounding may leave -1e-17
    return Lens(
        log_p.astype(np.float32),
        guess,
        probability.astype(np.float32),
        kl.astype(np.float32),
        first_settled(guess),
    )


def first_settled(guess: np.ndarray) -> np.ndarray:
    """(depth, query) -> (query,): the first depth from which on the guess is the last depth's.

    >>> first_settled(np.array([[1, 2], [3, 2], [1, 2]])).tolist()
    [2, 0]
    """
    same = guess == guess[-1]
    stays = np.logical_and.accumulate(same[::-1])[::-1]  # same here and at every later depth
    return stays.argmax(0)
