"""Guesses about stored trainings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from studies.experiments.bug_races import Comparison
from studies.experiments.dropout_runs import Ends
from studies.experiments.no_residual import Pair
from studies.guesses import Truth

TOLD = 0.1  # nats per character by which two losses differ that an eye tells apart


def without_residuals(pair: Pair) -> Truth:
    """Classifies the model without residual connections: "level", "stuck" at counting, or "behind"."""
    gap = pair.replaced.loss - pair.added.loss
    stuck = pair.learned in ("nothing", "counts")
    right = "level" if gap < TOLD else "stuck" if stuck else "behind"
    numbers = {"with": pair.added.loss, "without": pair.replaced.loss, "counting": pair.counting}
    return Truth(right, ("level", "behind", "stuck"), numbers)


LIMITS, CLEAR = (1 / 3, 0.6), 0.02  # of the share of two experts, and how far from them a guess is asked
RESULT = {"dies": "worse", "costs": "worse", "hides": "same", "flatters": "better"}


def mistake(finding: Comparison) -> Truth | None:
    """Classifies a bug's effect on the loss: "better", "worse" or the "same"; None where not trained."""
    if finding.kind not in RESULT:
        return None
    healthy, broken = finding.typical
    numbers = {"healthy": healthy, "broken": math.nan if finding.kind == "dies" else broken}
    return Truth(RESULT[finding.kind], ("better", "same", "worse"), numbers)


def busiest(share: float) -> Truth | None:
    """Classifies the share of the two busiest experts: "fair", below a third, "half", up to 60%, or "most".
    None near a limit.
    """
    if any(abs(share - limit) < CLEAR for limit in LIMITS):
        return None
    right = ("fair", "half", "most")[sum(share > limit for limit in LIMITS)]
    return Truth(right, ("fair", "half", "most"), {"two": share})


def dropped(finals: Sequence[Ends]) -> Truth | None:
    """Compares the largest share of dropout with none, on held-out text: "helps", "costs", or "nothing" where
    the seeds' ranges overlap. None without both.
    """
    if len(finals) < 2:
        return None
    bare, most = finals[0], finals[-1]
    apart = most.spread[1] < bare.spread[0] or bare.spread[1] < most.spread[0]
    right = "nothing" if not apart else "helps" if most.validation < bare.validation else "costs"
    numbers = {"without": bare.validation, "with": most.validation}
    return Truth(
        right, ("helps", "nothing", "costs"), numbers | {"share": most.dropout, "seeds": float(bare.seeds)}
    )
