"""The causal mask taken away from a model that was trained with it: what its heads look at then, and what it
predicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.measure.attention.ablation import Switches, edits_for
from engine.measure.recording import Recording, next_token_losses, record
from engine.model import Transformer


@dataclass(frozen=True, eq=False)
class Unmasked:
    """`patterns` (layer, head, query, key) without the mask. `future` (layer, head): the mean weight on
    tokens that come later, of the queries that have any; `following`: on the very next one, which a
    prediction is about. Losses in nats by position, (query - 1,), with the mask and without.
    """

    patterns: np.ndarray = field(repr=False)
    future: np.ndarray
    following: np.ndarray
    loss_with: np.ndarray
    loss_without: np.ndarray

    @property
    def mean_with(self) -> float:
        """Nats per token."""
        return float(self.loss_with.mean())

    @property
    def mean_without(self) -> float:
        """Nats per token."""
        return float(self.loss_without.mean())


def without_mask(model: Transformer, before: Recording) -> Unmasked:
    """Runs the text of `before`, of two tokens or more, again without its mask. Weights stay as they are."""
    after = record(
        model, before.ids, edits=edits_for(model, Switches(mask=False)), only={"pattern", "logits"}
    )
    patterns = after.stacked("pattern")
    later = np.triu(np.ones(patterns.shape[-2:], dtype=bool), 1)
    future = np.where(later, patterns, 0).sum(-1, dtype=np.float64)[..., :-1].mean(-1)
    following = np.diagonal(patterns, 1, -2, -1).mean(-1, dtype=np.float64)
    return Unmasked(patterns, future, following, next_token_losses(before), next_token_losses(after))
