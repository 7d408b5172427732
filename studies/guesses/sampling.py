"""Guesses about one row of logits: the tokens that top-p keeps, the effect of a lower temperature, and what a
grammar takes; and about longer drafts.
"""

from __future__ import annotations

import numpy as np

from engine.config import SampleConfig
from engine.sample import stages
from studies.generation.drafts import Length, expected
from studies.guesses import Truth, closest

NUCLEUS = 0.9
COLD = 0.5  # half of the temperature 1
QUARTERS = (0.25, 0.75)
LEVEL = 1.1  # a favourite not that many times as likely as the second: no power of it is told from it


def nucleus(logits: np.ndarray) -> Truth | None:
    """Counts the tokens that top-p 0.9 leaves of logits (vocab,) at temperature 1.

    Offered beside it: "each", those that have a probability of 0.1 or more; "share", 90% of the vocabulary;
    "below", those whose sum is still below 0.9, one too few.
    """
    first, *_, last = stages(logits, SampleConfig(temperature=1.0, top_p=NUCLEUS), ())
    guesses = {
        "sum": float(last.remaining),
        "each": float((first.probabilities >= 1 - NUCLEUS).sum()),
        "share": float(round(NUCLEUS * len(logits))),
        "below": float(last.remaining - 1),
    }
    result = closest(last.remaining, {name: n for name, n in guesses.items() if n > 0}, within=0.0)
    if result is None:
        return None
    mass = float(np.sort(first.probabilities)[::-1][: last.remaining].sum(dtype=np.float64))
    return Truth(result.right, result.offered, dict(result.numbers) | {"mass": mass})


def colder(logits: np.ndarray) -> Truth | None:
    """Compares the odds of the favourite of logits (vocab,) over the second at temperature 0.5 with its odds
    r at 1: "squared" r^2 is right, "doubled" would be 2 r, "same" r. None where r is hardly above 1.
    """
    second, first = np.sort(logits.astype(np.float64))[-2:]
    ratio = float(np.exp(first - second))
    if not LEVEL <= ratio < 1e4:
        return None
    guesses = {"squared": ratio**2, "doubled": ratio / COLD, "same": ratio}
    return closest(float(np.exp((first - second) / COLD)), guesses, within=0.1)


def first_taken(left: float) -> Truth | None:
    """Compares the share of the first token's probability that a grammar takes, 1 - `left`: "little", up to
    a quarter, "half", up to three, or "most" of it. None near the limits.
    """
    taken = 1 - left
    if min(abs(taken - limit) for limit in QUARTERS) < 0.02:
        return None
    right = "little" if taken < QUARTERS[0] else "half" if taken < QUARTERS[1] else "most"
    return Truth(right, ("little", "half", "most"), {"taken": taken})


def longer_drafts(per_pass: float, rate: float, ahead: int, longer: Length) -> Truth | None:
    """Compares the tokens per pass of `longer` drafts with those of drafts of `ahead` tokens now: "same"
    as now, as the "formula" gives for the acceptance `rate`, or "proportional" to the tokens that a pass
    reads. None where none of them comes near.
    """
    guesses = {
        "same": per_pass,
        "formula": expected(rate, longer.ahead),
        "proportional": per_pass * (longer.ahead + 1) / (ahead + 1),
    }
    return closest(longer.per_pass, guesses, within=0.15)
