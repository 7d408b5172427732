"""Dropout on a trained model: what it does to a sum of many terms, and to a prediction.

Srivastava et al. 2014. Each entry is zeroed with probability p, and the others are divided by 1 - p, so that
the mean of a sum stays what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.data.progress import Progress, Steps
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.output import ScaledOutput
from engine.recording import Recording, softmax
from studies.residual.attribution import agree, through_norm

MASKS, PASSES = 4_000, 32  # random masks of a sum; forward passes
TOKENS_AT_ONCE = 512  # of the texts that are read side by side, with other masks each


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


@torch.no_grad()
def logit_terms(model: Transformer, recording: Recording, position: int, target: int) -> np.ndarray:
    """Returns the products whose sum the last feed-forward network contributes to the logit of `target`,
    (d_model,) float64: its write times a direction, entry by entry.

    The direction is the row of the unembedding, taken back through the norm between them with its divisor
    held (studies.residual.attribution). Raises ConfigError where the way to the logit is not linear.
    """
    last = f"blocks.{model.config.n_layers - 1}."
    u = model.output_matrix[target].double().cpu()  # (d_model,)
    if isinstance(model.output, ScaledOutput):
        u = u * len(u) ** -0.5
    elif not model.output.linear:
        raise ConfigError("output_head", model.config.output_head, "makes no logit that is a product")
    norm = model.blocks[-1].norm2 if model.parts.wiring(model.config).ends_normed else model.norm_final
    x = torch.tensor(recording[last + "resid_post"][position]).double()
    through = through_norm(norm, x, u)
    parts, logit = through.direction * x, float(recording.logits[position, target])
    agree(float(parts.sum()) + through.constant, logit, float(parts.abs().sum()), "wiring", model.blocks[-1])
    return recording[last + "ffn_out"][position].astype(np.float64) * through.direction.numpy()


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


@torch.no_grad()
def passes(
    model: Transformer,
    recording: Recording,
    position: int,
    share: float,
    most: int,
    count: int = PASSES,
    seed: int = 0,
) -> Steps[PassSpread]:
    """Reads the recorded text in `count` forward passes, each with its own masks, and returns the
    probabilities of the `most` tokens that are likeliest at a position without dropout.

    A few passes run side by side, and only that position is unembedded.
    """
    exact = softmax(recording.logits[position].astype(np.float64))  # (vocab,)
    top = np.argsort(-exact, kind="stable")[:most]
    read = recording.ids[: position + 1] if model.config.causal else recording.ids
    tokens = torch.tensor(read, device=model.embedding.device)[None]  # (1, position)
    drop, rows = Dropper(share, seed), max(1, TOKENS_AT_ONCE // len(read))

    def probe(name: str, x: Tensor) -> Tensor:
        return x[:, position : position + 1] if name == "norm_final" else drop(name, x)

    spread: list[np.ndarray] = []
    while len(spread) < count:
        yield Progress(len(spread), count)
        batch = tokens.repeat(min(rows, count - len(spread)), 1)  # (pass, position)
        logits = model(batch, probe)[:, 0]  # (pass, vocab)
        spread.extend(torch.softmax(logits.double(), -1)[:, top.tolist()].cpu().numpy())
    return PassSpread(tuple(top.tolist()), exact[top], np.stack(spread))
