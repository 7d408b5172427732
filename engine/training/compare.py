"""Two trainings held against each other, and what a loss says of a whole text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.training.records import Evaluation


@dataclass(frozen=True)
class Compared:
    """Validation losses of two trainings after the same step, measured alike (nats per token). `complete`:
    on the whole split, which may be of different steps: both are at their end.
    """

    steps: tuple[int, int]
    losses: tuple[float, float]
    complete: bool

    @property
    def difference(self) -> float:
        """The second's loss less the first's."""
        return self.losses[1] - self.losses[0]


def compared(first: Sequence[Evaluation], second: Sequence[Evaluation]) -> Compared | None:
    """Both at their ends where both have read the whole split, else the last quick look that both took after
    the same step; None where there is neither, or a loss is no number.
    """
    ends = [[e for e in looks if e.complete][-1:] for looks in (first, second)]
    if all(ends):
        found: tuple[Evaluation, Evaluation] | None = ends[0][0], ends[1][0]
    else:
        at = {e.step: e for e in first if not e.complete}
        pairs = [(at[e.step], e) for e in second if not e.complete and e.step in at]
        found = pairs[-1] if pairs else None
    if found is None or not all(math.isfinite(e.validation_loss) for e in found):
        return None
    one, other = found
    return Compared(
        (one.step, other.step), (one.validation_loss, other.validation_loss), one.complete and other.complete
    )


@dataclass(frozen=True)
class MeanLoss:
    """What a mean loss says of a text of so many tokens: p(text) = product over t of p(x_t | x_<t) =
    e^(-tokens * nats) (the chain rule), of which the loss is -log p, a token's share of it.
    """

    nats: float
    tokens: int

    @property
    def sum(self) -> float:
        """-log p of the whole text, in nats."""
        return self.nats * self.tokens

    @property
    def power_of_ten(self) -> float:
        """log10 of p."""
        return -self.sum / math.log(10)

    @property
    def mean_probability(self) -> float:
        """The geometric mean of the probabilities of the tokens that came: e^-nats."""
        return math.exp(-self.nats)
