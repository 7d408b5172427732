"""How probable a given text is to a model: the chain rule, its logarithm, the loss and the perplexity.

p(x_1 ... x_T | x_0) = product of p(x_t | x_0 ... x_t-1). Training lowers the mean of -ln p(x_t | ...).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from engine.data.corpus import Corpus
from engine.errors import ShapeError
from engine.training.numerics import perplexity
from studies.generation.branches import Likelihood


@dataclass(frozen=True, eq=False)
class Scored:
    """Tokens of a text with their probabilities after all before them. Arrays are (token,): of a text of T
    the first token has nothing before it, and T - 1 are scored.
    """

    p: np.ndarray = field(repr=False)  # of each token after all before it
    nats: np.ndarray = field(repr=False)  # -ln p
    likelihood: Likelihood
    guessing: float  # ln V: nats of a draw among all V tokens

    @property
    def finite(self) -> bool:
        """False where the model has diverged, or holds a token of the text for impossible."""
        return bool(np.isfinite(self.nats).all())

    @property
    def product(self) -> tuple[float, int]:
        """(mantissa, power of ten) of the product of all p, which float64 could not hold of a long text."""
        ten = self.likelihood.total / math.log(10)
        power = math.floor(ten)
        return 10 ** (ten - power), power

    @property
    def sums(self) -> np.ndarray:
        """The sum of -ln p up to each token, (token,)."""
        return self.nats.cumsum()

    def nats_from(self, first: int) -> float:
        """Returns the sum of -ln p over the scored tokens from the one at `first`, from 0, to the last."""
        return float(self.nats[first:].sum())

    @property
    def worst(self) -> int:
        """The scored token, from 0, that was least expected; of equal ones the first."""
        return int(self.nats.argmax())


def score(logits: np.ndarray, ids: Sequence[int]) -> Scored:
    """Scores each token of a text by the logits (position, vocab) of a model that writes.

    Raises ShapeError for a text of one token, and where logits and text do not fit together.

    >>> found = score(np.log([[0.5, 0.5], [0.25, 0.75]]), [0, 1])
    >>> found.p.round(6).tolist(), round(found.likelihood.perplexity, 6), found.product[1]
    ([0.5], 2.0, -1)
    """
    if len(ids) < 2:
        raise ShapeError("a text of one token has nothing to be scored after")
    if len(logits) != len(ids):
        raise ShapeError(f"{len(logits)} rows of logits do not belong to {len(ids)} tokens")
    rows = torch.tensor(logits[:-1], dtype=torch.float64).log_softmax(-1).numpy()
    log_p = rows[np.arange(len(rows)), list(ids[1:])]
    total = float(log_p.sum())
    return Scored(np.exp(log_p), -log_p, Likelihood(len(log_p), total), math.log(logits.shape[1]))


def pair_nats(corpus: Corpus, ids: Sequence[int]) -> float:
    """Returns the sum of -ln p in nats of all tokens after the first, each predicted from the one before by
    pairs counted on the training split of `corpus`, with add-one smoothing.
    """
    of_text = replace(corpus, validation=torch.tensor(ids, dtype=torch.int64))
    return of_text.baselines["bigram"] * (len(ids) - 1)


@dataclass(frozen=True)
class Rung:
    """A model of Tiny Shakespeare's 65 characters by its perplexity: published, of a training's loss, and
    ours, over the validation split; None where there is none.
    """

    name: str
    published: float | None
    ours: float | None


# A lecture's ladder of models (training loss after 10,000 steps of Adam, characters): e^4.17 ... e^0.92.
PUBLISHED = {"guessing": 65.0, "pairs": 11.6, "4 layers": 3.5, "8 layers": 2.5}


def ladder(ours: dict[str, float]) -> list[Rung]:
    """Returns the published perplexities beside ours, which are made of validation losses in nats by the same
    names.

    >>> [(r.name, r.published, r.ours) for r in ladder({"guessing": math.log(65)})][:2]
    [('guessing', 65.0, 65.0), ('pairs', 11.6, None)]
    """
    return [
        Rung(name, value, round(perplexity(ours[name]), 6) if name in ours else None)
        for name, value in PUBLISHED.items()
    ]
