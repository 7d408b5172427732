"""Guesses about two stored trainings."""

from __future__ import annotations

from engine.experiments.bug_races import Comparison
from engine.experiments.no_residual import Pair
from engine.lab.guesses import Truth

TOLD = 0.1  # nats per character by which two losses differ that an eye tells apart


def without_residuals(pair: Pair) -> Truth:
    """Classifies the model without residual connections: "level", "stuck" at counting, or "behind"."""
    gap = pair.replaced.loss - pair.added.loss
    stuck = pair.learned in ("nothing", "counts")
    right = "level" if gap < TOLD else "stuck" if stuck else "behind"
    numbers = {"with": pair.added.loss, "without": pair.replaced.loss, "counting": pair.counting}
    return Truth(right, ("level", "behind", "stuck"), numbers)


RESULT = {"dies": "worse", "costs": "worse", "hides": "same", "flatters": "better"}


def mistake(finding: Comparison) -> Truth | None:
    """Classifies a bug's effect on the loss: "better", "worse" or the "same"; None where not trained."""
    if finding.kind not in RESULT:
        return None
    numbers = {"healthy": finding.healthy.loss, "broken": finding.broken.loss}
    return Truth(RESULT[finding.kind], ("better", "worse", "same"), numbers)
