"""Guesses about a training by reward: what becomes of right answers when something else is rewarded."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from engine.lab.guesses.truth import Truth
from engine.training.reward import RewardLook

HALF, FEW = 0.5, 0.1  # of the share that was right before: half of it, and hardly any of it


def hacked(runs: Sequence[Sequence[RewardLook]]) -> Truth | None:
    """Compares the share of right first tries after the runs with the share before: "same" (at least half of
    it), "half", or "none" (less than a tenth). Medians over the runs; None without one.
    """
    if not runs:
        return None
    before, after = (median(run[at].first_try for run in runs) for at in (0, -1))
    if not before:
        return None
    left = after / before
    right = "none" if left < FEW else "half" if left < HALF else "same"
    reward = median(run[-1].reward for run in runs)
    return Truth(right, ("same", "half", "none"), {"before": before, "after": after, "reward": reward})
