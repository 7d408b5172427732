"""Dropout on a trained model: what it does to a sum of many terms, and to a prediction.

Srivastava et al. 2014. Each entry is zeroed with probability p, and the others are divided by 1 - p, so that
the mean of a sum stays what it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.measure.recording import Recording
from engine.model import Transformer

MASKS, PASSES = 4_000, 32  # random masks of a sum; forward passes


@dataclass(frozen=True, eq=False)
class DroppedSum:
    """A sum of `terms` (term,) under random masks. `scaled` and `plain` (mask,) are its values with the
    remaining terms divided by 1 - `share`, and without that division.
    """

    share: float
    terms: np.ndarray = field(repr=False)
    scaled: np.ndarray = field(repr=False)
    plain: np.ndarray = field(repr=False)

    @property
    def total(self) -> float:
        """The sum of all terms, without dropout."""
        return float(self.terms.sum())

    @property
    def spread(self) -> float:
        """The standard deviation of the scaled sum by theory: sqrt(p / (1 - p) * the sum of squares)."""
        return math.sqrt(self.share / (1 - self.share) * float(np.square(self.terms).sum()))

    @property
    def mean(self) -> float:
        """The mean of the scaled sum over the masks."""
        return float(self.scaled.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation of the scaled sum over the masks."""
        return float(self.scaled.std())

    @property
    def plain_mean(self) -> float:
        """The mean over the masks without the division."""
        return float(self.plain.mean())

    def histograms(self, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns edges (bin + 1,) and the shares of the masks in each bin (bin,): scaled, and plain."""
        edges = np.histogram_bin_edges(np.concatenate((self.scaled, self.plain, [self.total])), bins)
        scaled, plain = (np.histogram(values, edges)[0] / len(values) for values in (self.scaled, self.plain))
        return edges, scaled, plain


def drop_sum(terms: np.ndarray, share: float, masks: int = MASKS, seed: int = 0) -> DroppedSum:
    """Draws masks for a sum of terms (term,). With a share of 0 every value is the sum itself."""
    terms = np.asarray(terms, dtype=np.float64)
    remain = np.random.default_rng(seed).random((masks, len(terms))) >= share
    plain = remain @ terms
    return DroppedSum(share, terms, plain / (1 - share), plain)


def logit_terms(recording: Recording, unembedding: np.ndarray, position: int) -> np.ndarray:
    """Returns the d_model products that the last feed-forward network's write adds to a logit, before the
    final norm: write (d_model,) times a row of the unembedding (d_model,), entry by entry.
    """
    write = recording[f"blocks.{recording.config.n_layers - 1}.ffn_out"][position]
    return write.astype(np.float64) * unembedding


class Dropper:
    """A probe that drops entries where training does: of the first block's input, of attention patterns, and
    of what each sublayer adds to the stream. It draws from its own generator, so two threads never share one.
    """

    def __init__(self, share: float, seed: int) -> None:
        self.share = share
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, name: str, x: Tensor) -> Tensor:
        if not self.share or not (name == "blocks.0.resid_pre" or name.endswith(DROPPED)):
            return x
        remain = torch.rand(x.shape, generator=self.generator) >= self.share
        return x * remain.to(x.device, x.dtype) / (1 - self.share)


DROPPED = (".pattern", ".attn_out", ".ffn_out")  # activations of every block


@dataclass(frozen=True, eq=False)
class PassSpread:
    """Probabilities of the likeliest `tokens` (token,): `exact` (token,) without dropout, `passes` (pass,
    token) with other masks each.
    """

    tokens: tuple[int, ...]
    exact: np.ndarray = field(repr=False)
    passes: np.ndarray = field(repr=False)

    @property
    def lowest(self) -> np.ndarray:
        """The lowest probability of each token in a pass, (token,)."""
        return self.passes.min(0)

    @property
    def highest(self) -> np.ndarray:
        """The highest probability of each token in a pass, (token,)."""
        return self.passes.max(0)


def likeliest_in(passes: np.ndarray, exact: np.ndarray, count: int) -> PassSpread:
    """Picks the tokens that are likeliest without dropout: passes (pass, vocab), exact (vocab,)."""
    top = np.argsort(-exact, kind="stable")[:count]
    return PassSpread(tuple(top.tolist()), exact[top], passes[:, top])


@torch.no_grad()
def passes(
    model: Transformer, ids: tuple[int, ...], position: int, share: float, count: int = PASSES, seed: int = 0
) -> np.ndarray:
    """Returns the next-token probabilities at a position in `count` forward passes, each with its own masks:
    (pass, vocab) float64.
    """
    read = ids[: position + 1] if model.config.causal else ids
    tokens = torch.tensor(read)[None].expand(count, -1)  # (pass, position)
    logits = model(tokens.contiguous(), Dropper(share, seed))[:, position]
    return torch.softmax(logits.double(), -1).numpy()
