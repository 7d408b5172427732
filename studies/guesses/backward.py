"""Guesses about a backward pass: what a weight's nudge does, beside what its gradient predicts, and which
optimiser's step overshoots first.
"""

from __future__ import annotations

import numpy as np

from studies.guesses import Truth
from studies.shapes.backward import Nudges
from studies.shapes.optimiser_step import RULES, SingleStep

NEAR = 0.15  # of the predicted change: about as predicted


def nudge(nudges: Nudges, at: int) -> Truth | None:
    """Compares a nudge's measured change with the predicted: "same", "more", "less"; None without."""
    predicted, measured = float(nudges.predicted[at]), float(nudges.measured[at])
    if not predicted:
        return None
    ratio = measured / predicted
    right = "more" if ratio > 1 + NEAR else "less" if ratio < 1 - NEAR else "same"
    numbers = {"amount": float(nudges.amounts[at]), "predicted": predicted, "measured": measured}
    return Truth(right, ("same", "more", "less"), numbers)


def overshoots(taken: SingleStep) -> Truth | None:
    """Names the rule whose loss is the first to exceed that before the step, as the learning rate rises, on
    straight lines between the scales; `scale` is the first one beyond. None where no step overshoots.
    """
    first = {rule: _crossing(taken.after[rule] - taken.before) for rule in RULES}
    right = min(RULES, key=lambda rule: first[rule])
    if np.isinf(first[right]):
        return None
    at = int(np.ceil(first[right]))
    losses: dict[str, float] = {rule: float(taken.after[rule][at]) for rule in RULES}
    return Truth(right, RULES, {**losses, "scale": float(taken.scales[at]), "before": taken.before})


def _crossing(gains: np.ndarray) -> float:
    """Returns the index, between whole ones too, at which gains in loss become positive; infinity if never.
    A loss that is no number has overshot.
    """
    gains = np.nan_to_num(gains, nan=np.inf)
    above = np.flatnonzero(gains > 0)
    if not len(above):
        return float("inf")
    at = int(above[0])
    return at - float(gains[at] / (gains[at] - gains[at - 1])) if at and np.isfinite(gains[at]) else float(at)
