"""Two trainings compared, and the probability of a text that a mean loss stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.training.records import Evaluation


@dataclass(frozen=True)
class Comparison:
    """Validation losses of two trainings after the same step (nats per token). `complete`: both are at their
    end and read the whole split, perhaps after different steps.
    """

    steps: tuple[int, int]
    losses: tuple[float, float]
    complete: bool

    @property
    def difference(self) -> float:
        """The second loss minus the first."""
        return self.losses[1] - self.losses[0]


def compare(first: Sequence[Evaluation], second: Sequence[Evaluation]) -> Comparison | None:
    """Compares the final evaluations where both trainings have read the whole split, else the last quick ones
    after a step that both share; None where there is neither, or a loss is not finite.
    """
    ends = [[e for e in looks if e.complete][-1:] for looks in (first, second)]
    if all(ends):
        both: tuple[Evaluation, Evaluation] | None = ends[0][0], ends[1][0]
    else:
        at = {e.step: e for e in first if not e.complete}
        pairs = [(at[e.step], e) for e in second if not e.complete and e.step in at]
        both = pairs[-1] if pairs else None
    if both is None or not all(math.isfinite(e.validation_loss) for e in both):
        return None
    first_look, second_look = both
    return Comparison(
        (first_look.step, second_look.step),
        (first_look.validation_loss, second_look.validation_loss),
        first_look.complete and second_look.complete,
    )


@dataclass(frozen=True)
class MeanLoss:
    """The mean loss of a text of `tokens` tokens. By the chain rule, p(text) = product over t of p(x_t |
    x_<t) = e^(-tokens * nats).
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
        """The geometric mean of the tokens' probabilities: e^-nats."""
        return math.exp(-self.nats)
