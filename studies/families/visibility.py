"""Visibility by step in all three families: which queries look at which keys. Masks decide it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from engine.parts.attention import causal_mask

HIDDEN, LATER, DONE, NOW = 0, 1, 2, 3  # a cell: never looked at, not yet, looked at before, at this step


@dataclass(frozen=True, eq=False)
class Flow:
    """A matrix of attention at one step: cells (query, key) of int8, one of HIDDEN, LATER, DONE, NOW."""

    name: str  # self, of an only stack; encoder, decoder or cross, where there are two
    cells: np.ndarray

    @property
    def now(self) -> int:
        """Pairs that are looked at now."""
        return int((self.cells == NOW).sum())

    @property
    def seen(self) -> int:
        """Pairs that were looked at so far."""
        return int((self.cells >= DONE).sum())

    @property
    def allowed(self) -> int:
        """Pairs that are ever looked at."""
        return int((self.cells != HIDDEN).sum())


def flows(source: int, target: int, step: int) -> dict[str, tuple[Flow, ...]]:
    """Returns family -> its matrices after `source` given tokens, at token `step` (from 1).

    An encoder fills its blanks at step 1. A decoder reads the prompt at once, then adds one row a step. In an
    encoder-decoder the source is read at step 1, and each step adds a row to two matrices.
    """
    square = np.ones((source, source), dtype=bool)
    first = np.ones(source, dtype=int)  # the step at which each row is made
    both = np.arange(1, target + 1)
    whole = np.concatenate([first, both[1:]])  # the last given token writes the first new one
    return {
        "encoder": (_flow("self", square, first, step),),
        "decoder": (_flow("self", _triangle(len(whole)), whole, step),),
        "both": (
            _flow("encoder", square, first, step),
            _flow("decoder", _triangle(target), both, step),
            _flow("cross", np.ones((target, source), dtype=bool), both, step),
        ),
    }


def _triangle(length: int) -> np.ndarray:
    """Returns what the causal mask lets through: (query, key)."""
    return torch.isfinite(causal_mask(length, torch.zeros(()))).numpy()


def _flow(name: str, allowed: np.ndarray, made: np.ndarray, step: int) -> Flow:
    """Marks the cells; `made` (query,) is the step at which each row is made."""
    when = np.where(made == step, NOW, np.where(made < step, DONE, LATER)).astype(np.int8)
    return Flow(name, np.where(allowed, when[:, None], np.int8(HIDDEN)))
