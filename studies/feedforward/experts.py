"""Where the router of a mixture of experts sends a text, and how much of that the character alone tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.model import Transformer
from engine.probe import Recorder

READ, EXCERPT, WINDOW = 16_384, 256, 64  # characters: counted, stored, read together


@dataclass(frozen=True, eq=False)
class Routing:
    """One layer's routing of READ characters. `shares` (expert,) sum to 1; `counts` (expert, token) says how
    often an expert had the larger weight for a token; `first` (EXCERPT,) is that expert, by position.
    """

    shares: np.ndarray
    counts: np.ndarray
    first: np.ndarray

    @property
    def unused(self) -> int:
        """Experts with less than a tenth of their fair share."""
        return int((self.shares * len(self.shares) < 0.1).sum())

    @property
    def predictable(self) -> float:
        """The share of characters whose expert is the usual one of that character."""
        return float(self.counts.max(0).sum() / self.counts.sum())

    def shuffled(self, seed: int = 0) -> float:
        """Returns `predictable` after the experts were dealt anew to all positions: what chance gives."""
        experts, tokens = (int(n) for n in self.counts.shape)
        counts = self.counts.astype(np.int64)
        dealt = np.repeat(np.arange(experts), counts.sum(1))
        np.random.default_rng(seed).shuffle(dealt)
        token = np.repeat(np.arange(tokens), counts.sum(0))
        table = np.zeros((experts, tokens), dtype=np.int64)
        np.add.at(table, (dealt, token), 1)
        return float(table.max(0).sum() / table.sum())

    def class_shares(self, classes: np.ndarray, count: int) -> np.ndarray:
        """Returns the share of each class in the text, (class,), of the `classes` (token,) of tokens."""
        found = np.bincount(classes, self.counts.sum(0), count)
        return found / found.sum()

    def lift(self, classes: np.ndarray, count: int) -> np.ndarray:
        """Returns how much oftener than by chance an expert has a class, (expert, class): 1 is chance, NaN
        where the class or the expert does not occur. `classes` (token,) are each token's.
        """
        by_class = np.stack([self.counts[:, classes == i].sum(1) for i in range(count)], 1)  # (expert, class)
        chance = by_class.sum(1, keepdims=True) * by_class.sum(0, keepdims=True) / by_class.sum()
        return np.divide(by_class, chance, out=np.full(by_class.shape, np.nan), where=chance > 0)


@torch.inference_mode()
def routing(model: Transformer, tokens: Tensor) -> tuple[Routing, ...]:
    """Reads the first READ of `tokens` (token,) in windows, and returns the routing of each layer."""
    whole = tokens[: min(READ, len(tokens)) // WINDOW * WINDOW].view(-1, WINDOW)
    recorder = Recorder(only=["routing"])
    model(whole, recorder)
    found = []
    for layer in range(model.config.n_layers):
        weights = recorder[f"blocks.{layer}.routing"].flatten(0, 1)  # (token, expert)
        used, first = (weights > 0).sum(0).numpy(), weights.argmax(1)
        counts = torch.zeros(weights.shape[1], model.config.vocab_size, dtype=torch.int64)
        counts.index_put_((first, whole.flatten()), torch.ones_like(first), accumulate=True)
        found.append(Routing(used / used.sum(), counts.numpy(), first[:EXCERPT].numpy()))
    return tuple(found)
