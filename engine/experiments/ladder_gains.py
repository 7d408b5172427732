"""The results of a race of the ladder: the gain of each idea, and the lead of the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from engine.experiments.race_table import Standing, standing
from engine.presets.ladder import LADDER
from engine.service.state import RunView

CLEAR = 0.02  # nats: a smaller difference may be that of two seeds
EXPLODED = 6.0  # nats: knowing nothing of 65 letters is 4.2, of 255 is 5.5; what is above is lost
NEAR_COUNTING = 0.15  # nats: no further below the unigram line, a model has learned how often letters come
Verdict = Literal["better", "worse", "alike", "exploded"]


@dataclass(frozen=True)
class Idea:
    """A rung and the one below it after the same training: losses on unseen text, nats per token."""

    name: str
    before: float
    after: float
    others: tuple[float, ...] = ()  # the same difference with other seeds, where it was measured

    @property
    def seeds(self) -> int:
        """The number of trainings of both that agree on which is better; 0 where they do not, or there was a
        single one.
        """
        alike = self.others and all((other > 0) == (self.saved > 0) for other in self.others)
        return len(self.others) + 1 if alike else 0

    @property
    def saved(self) -> float:
        return self.before - self.after

    @property
    def verdict(self) -> Verdict:
        if self.after > EXPLODED:
            return "exploded"
        if abs(self.saved) < CLEAR:
            return "alike"
        return "better" if self.saved > 0 else "worse"


def losses(views: Sequence[RunView]) -> dict[str, float]:
    """Maps each rung among the runs (by their names) to its newest loss on unseen text."""
    named = {rung.title: name for name, rung in LADDER.items()}
    newest = {named[v.given or v.name]: standing(v).loss for v in views if (v.given or v.name) in named}
    return {name: newest[name] for name in LADDER if name in newest and math.isfinite(newest[name])}


def idea(
    name: str, losses: Mapping[str, float], seeds: Callable[[str], Sequence[float]] = lambda rung: ()
) -> Idea | None:
    """Returns the gain of a rung; None for the lowest, and where one of the two is missing. `seeds` gives the
    losses of a rung with several seeds, the first of which is that of `losses`.
    """
    below = LADDER[name].below
    if below is None or below not in losses or name not in losses:
        return None
    others = tuple(b - a for b, a in zip(seeds(below)[1:], seeds(name)[1:], strict=False))
    return Idea(name, losses[below], losses[name], others)


@dataclass(frozen=True)
class Finish:
    """The present order of a race, the lowest loss first. `unit` is nats per token, or bits per letter where
    the tokenizers differ.
    """

    order: tuple[Standing, ...]
    unit: Literal["nats", "bits"]
    unigram: float | None = None
    bigram: float | None = None

    def loss(self, line: Standing) -> float:
        return line.bits if self.unit == "bits" else line.loss

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
        return self.apart >= CLEAR

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
    def stalled(self) -> tuple[Standing, ...]:
        """The runs that have learned little more than the frequencies of letters, and have not diverged."""
        if self.unigram is None:
            return ()
        low, high = self.unigram - NEAR_COUNTING, self.unigram + 1
        return tuple(line for line in self.order if low <= self.loss(line) <= high)


def finish(
    lines: Sequence[Standing],
    unit: Literal["nats", "bits"] = "nats",
    baselines: Mapping[str, float] | None = None,
) -> Finish | None:
    """Returns the order of a race; None where fewer than two have learned anything: before the first step, no
    loss says which is better.
    """
    looked = [line for line in lines if line.looked > 0]
    known = [line for line in looked if math.isfinite(line.bits if unit == "bits" else line.loss)]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda line: line.bits if unit == "bits" else line.loss)
    counted = baselines or {}
    return Finish(tuple(ordered), unit, counted.get("unigram"), counted.get("bigram"))
