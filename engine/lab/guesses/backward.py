"""Guesses about a backward pass: what a weight's nudge does, beside what its gradient predicts."""

from __future__ import annotations

from engine.lab.guesses import Truth
from engine.measure.shapes.backward import Nudges

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
