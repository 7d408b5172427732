"""The results of a race of the ladder: the gain of each idea, and the lead of the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from engine.training.numerics import in_bits
from studies.experiments.race_table import Standing
from studies.tasks.rungs import LADDER

CLEAR = 0.05  # nats: where there is a single seed, a smaller difference may be that of two seeds
EXPLODED = 6.0  # nats: knowing nothing of 65 letters is 4.2, of 255 is 5.5; what is above is lost
NEAR_COUNTING = 0.15  # nats: no further below the unigram line, a model has learned how often letters come
Verdict = Literal["better", "worse", "alike", "exploded"]


@dataclass(frozen=True)
class Idea:
    """A rung and the one below it after the same trainings: validation losses (nats per token), by seed."""

    name: str
    below: tuple[float, ...]
    here: tuple[float, ...]

    @property
    def before(self) -> float:
        """The median over seeds of the rung below."""
        return median(self.below)

    @property
    def after(self) -> float:
        """The median over seeds of the rung itself."""
        return median(self.here)

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.here)

    @property
    def verdict(self) -> Verdict:
        if self.after > EXPLODED:
            return "exploded"
        if not separate(self.below, self.here):
            return "alike"
        return "better" if self.after < self.before else "worse"


def separate(these: Sequence[float], those: Sequence[float], clear: float = CLEAR) -> bool:
    """True if two models' losses differ by more than their seeds do: their ranges do not overlap. With a
    single seed, the losses must be `clear` apart.

    >>> separate([2.41, 2.44, 2.43], [2.38, 2.40, 2.39]), separate([2.41, 2.44, 2.43], [2.38, 2.42, 2.39])
    (True, False)
    >>> separate([2.41], [2.38])
    False
    """
    if min(len(these), len(those)) < 2:
        return abs(median(these) - median(those)) >= clear
    return max(these) < min(those) or max(those) < min(these)


def idea(name: str, losses: Mapping[str, tuple[float, ...]]) -> Idea | None:
    """Returns the gain of a rung, or None. `losses`: rung -> validation losses by seed."""
    below = LADDER[name].below
    if below is None or below not in losses or name not in losses:
        return None
    return Idea(name, losses[below], losses[name])


@dataclass(frozen=True)
class Finish:
    """The present order of a race, the lowest loss first. `unit` is nats per token, or bits per character
    where the tokenizers differ. `repeats` (name -> losses) are the same runs with other seeds; where there
    are some, a run's loss is the median over all of its seeds.
    """

    order: tuple[Standing, ...]
    unit: Literal["nats", "bits"]
    unigram: float | None = None
    bigram: float | None = None
    repeats: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def over(self, line: Standing) -> tuple[float, ...]:
        """Returns a run's losses by seed, its own first."""
        return (line.bits if self.unit == "bits" else line.loss, *self.repeats.get(line.name, ()))

    def loss(self, line: Standing) -> float:
        """Returns the median of a run's losses."""
        return median(self.over(line))

    @property
    def seeds(self) -> int:
        """The number of seeds of every run."""
        return min(len(self.over(line)) for line in self.order)

    @property
    def best(self) -> Standing:
        return self.order[0]

    @property
    def worst(self) -> Standing:
        return self.order[-1]

    @property
    def apart(self) -> float:
        """The distance from the best to the worst."""
        return self.loss(self.worst) - self.loss(self.best)

    @property
    def clear(self) -> bool:
        """True if that is more than two seeds may differ by."""
        clear = in_bits(CLEAR) if self.unit == "bits" else CLEAR
        return separate(self.over(self.best), self.over(self.worst), clear)

    @property
    def complete(self) -> bool:
        """True if no run is training any more."""
        return all(line.ended for line in self.order)

    @property
    def early(self) -> tuple[Standing, ...]:
        """The runs that were ended, or failed, before their budget was spent."""
        return tuple(line for line in self.order if line.ended and line.status != "finished")

    @property
    def below_bigram(self) -> tuple[Standing, ...]:
        """The runs that are better than counting pairs of letters."""
        if self.bigram is None:
            return ()
        return tuple(line for line in self.order if self.loss(line) < self.bigram)

    @property
    def stalled(self) -> Mapping[str, int]:
        """The runs that learned little more than letter frequencies: name -> with how many seeds."""
        if self.unigram is None:
            return {}
        low, high = self.unigram - NEAR_COUNTING, self.unigram + 1
        counts = {line.name: sum(low <= loss <= high for loss in self.over(line)) for line in self.order}
        return {name: count for name, count in counts.items() if count}


def finish(
    lines: Sequence[Standing],
    unit: Literal["nats", "bits"] = "nats",
    baselines: Mapping[str, float] | None = None,
    repeats: Sequence[Standing] = (),
) -> Finish | None:
    """Returns the order of a race; None where fewer than two have learned anything: before the first step, no
    loss says which is better. `repeats` are runs of the same names with other seeds.
    """
    looked = [line for line in lines if line.looked > 0]
    known = [line for line in looked if math.isfinite(line.bits if unit == "bits" else line.loss)]
    if len(known) < 2:
        return None
    counted = baselines or {}
    others = {
        line.name: tuple(r.bits if unit == "bits" else r.loss for r in repeats if r.name == line.name)
        for line in known
    }
    result = Finish(tuple(known), unit, counted.get("unigram"), counted.get("bigram"), others)
    return replace(result, order=tuple(sorted(known, key=result.loss)))
