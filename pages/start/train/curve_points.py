"""The table behind a loss curve, and which of many points are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from runs.history import History


def curve_table(history: History) -> pd.DataFrame:
    """Returns one row for each kept step and each evaluation, ordered by step: what the CSV holds. Empty
    cells where a quantity was not measured.
    """
    steps = pd.DataFrame(
        {
            "step": np.asarray(history.steps),
            "seconds": history.seconds,
            "tokens": history.tokens,
            "batch_loss": history.losses,
            "batch_bits_per_character": history.bits,
            "grad_norm": history.grad_norms,
            "learning_rate": history.learning_rates,
        }
    )
    looked = pd.DataFrame(
        [
            (e.step, e.train_loss, e.validation_loss, e.train_bits, e.validation_bits, e.complete)
            for e in history.evaluations
        ],
        columns=[
            "step",
            "train_loss",
            "validation_loss",
            "train_bits_per_character",
            "validation_bits_per_character",
            "validation_complete",
        ],
    ).drop_duplicates("step", keep="last")
    return steps.merge(looked, on="step", how="outer").sort_values("step", ignore_index=True)


def spread(count: int, points: int) -> np.ndarray:
    """Indices of at most `points` of `count` entries, spread evenly, the first and the last among them; all
    when points is 0.

    >>> spread(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return (
        np.arange(count)
        if not points or count <= points
        else np.linspace(0, count - 1, points).astype(np.int64)
    )
