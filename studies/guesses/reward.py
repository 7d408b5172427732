"""Guesses about a training by reward: what becomes of right answers when something else is rewarded; and by
preferences: how far beta lets it go.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from studies.after.preferences import PreferenceEvaluation
from studies.after.reward import RewardEvaluation
from studies.guesses import Truth

HALF, FEW = 0.5, 0.1  # of the share that was right before: half of it, and hardly any of it
CLEAR = 0.1  # a change that differs from another by a smaller share is as large


def hacked(runs: Sequence[Sequence[RewardEvaluation]]) -> Truth | None:
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


def beta(
    now: Sequence[Sequence[PreferenceEvaluation]], then: Sequence[Sequence[PreferenceEvaluation]]
) -> Truth | None:
    """Compares how far the runs with another beta, `then`, change what the model writes with how far those of
    `now` do: "farther", "same" or "nearer". Medians over the runs; None without one, or without a change.
    """
    if not now or not then:
        return None
    before, *after = (
        median(run[at].measured for run in runs) for runs, at in ((now, 0), (now, -1), (then, -1))
    )
    changes = [abs(value - before) for value in after]
    if not changes[0]:
        return None
    grows = changes[1] / changes[0] - 1
    right = "same" if abs(grows) < CLEAR else "farther" if grows > 0 else "nearer"
    numbers = {"before": before, "now": after[0], "then": after[1]}
    return Truth(right, ("farther", "same", "nearer"), numbers)
