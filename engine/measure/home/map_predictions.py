"""What the living map says after its lanes: the logit lens at every depth, and the next token at every
temperature and top-k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.errors import HeadError
from engine.model import Transformer

GUESSES = 3  # of each depth and lane
KEPT = 128  # likeliest tokens of the last lane, at each depth: top-k cuts among them
TEMPERATURES = tuple(tenth / 10 for tenth in range(1, 21))  # at which the others are added up
LEAST = -80.0  # e to the power of less is no ordinary float32: it would add nothing, at ten times the time


@dataclass(frozen=True, eq=False)
class Said:
    """What the model would say if it stopped at a depth (the logit lens): the likeliest tokens after each
    lane, best first, and their probabilities, (depth, lane, guess).
    """

    tokens: np.ndarray = field(repr=False)
    chances: np.ndarray = field(repr=False)

    def after(self, other: Said, lanes: slice) -> Said:
        """Behind those lanes of another one."""
        return Said(
            np.concatenate([other.tokens[:, lanes], self.tokens], axis=1),
            np.concatenate([other.chances[:, lanes], self.chances], axis=1),
        )


@dataclass(frozen=True, eq=False)
class Outlook:
    """The next token after a text, at each depth: the KEPT likeliest, best first (of equal ones the smaller
    id), with their logits (depth, kept), and the others together: `rest` (depth, temperature) is
    ln sum exp(logit / T) over them at TEMPERATURES, -inf where there are none.

    With that, the probabilities of the kept at each of these temperatures and each top-k up to KEPT are
    exact: softmax over the kept alone after a cut, and with `rest` in the sum without one.
    """

    tokens: np.ndarray = field(repr=False)
    logits: np.ndarray = field(repr=False)
    rest: np.ndarray = field(repr=False)


@torch.no_grad()
def depth_logits(model: Transformer, streams: np.ndarray) -> Tensor:
    """The logit lens (nostalgebraist 2020): the final norm and the output head, in the model's arithmetic, on
    streams (depth, lane, d_model) -> (depth, lane, vocab). Raises HeadError for a model without a head.
    """
    if not model.output.present:
        raise HeadError("this model has no output head: it gives vectors, and no logits")
    like = model.embedding
    x = torch.from_numpy(np.ascontiguousarray(streams)).to(device=like.device, dtype=like.dtype)
    return model.logits(x).float().cpu()


@torch.no_grad()
def said(logits: Tensor) -> Said:
    """Of logits (depth, lane, vocab)."""
    best = logits.topk(min(GUESSES, logits.shape[-1]), dim=-1)
    chances = (best.values - logits.logsumexp(-1, keepdim=True)).exp()
    return Said(best.indices.numpy(), chances.numpy())


@torch.no_grad()
def outlook(logits: Tensor) -> Outlook:
    """Of one lane's logits (depth, vocab)."""
    order = logits.topk(min(KEPT, logits.shape[-1]), dim=-1)
    others = logits.scatter(-1, order.indices, -torch.inf)
    rest = np.stack([_added_up(row) for row in others])
    return Outlook(order.indices.numpy(), order.values.numpy(), rest)


def _added_up(logits: Tensor) -> np.ndarray:
    """ln sum exp(logit / T) at TEMPERATURES: (vocab,) -> (temperature,). One row at a time stays in the
    processor's cache: a third of the time of all rows at once.
    """
    most = float(logits.max())
    if most == -math.inf:
        return np.full(len(TEMPERATURES), -np.inf, dtype=np.float32)
    below, scaled = logits - most, torch.empty_like(logits)
    sums = [float(torch.mul(below, 1 / t, out=scaled).clamp_(min=LEAST).exp_().sum()) for t in TEMPERATURES]
    added = [most / t + math.log(s) for t, s in zip(TEMPERATURES, sums, strict=True)]
    return np.array(added, dtype=np.float32)
