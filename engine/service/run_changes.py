"""Changes that a person made to a run by hand, and the run's name after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.config import TrainConfig


@dataclass(frozen=True)
class Change:
    """A change made to a run by hand while it trained, or after it: from `step` on it differs from what its
    settings alone would have made of it.

    learning_rate: `value` is the new peak. steps: `value` further steps after the last snapshot.
    """

    step: int
    seconds: float  # of training by then
    what: Literal["learning_rate", "steps"]
    value: float

    @property
    def words(self) -> str:
        """
        >>> Change(40, 0.9, "learning_rate", 0.003).words, Change(200, 4.1, "steps", 1000).words
        ('learning rate 0.003 from step 40', '1,000 further steps from step 200')
        """
        return f"{self.brief} from step {self.step:,}"

    @property
    def brief(self) -> str:
        """Without the step, for a place that shows it.

        >>> Change(40, 0.9, "learning_rate", 0.003).brief
        'learning rate 0.003'
        """
        if self.what == "learning_rate":
            return f"learning rate {self.value:g}"
        return f"{self.value:,.0f} further steps"


def budget(train: TrainConfig, steps: int, changes: Sequence[Change]) -> TrainConfig:
    """Returns the settings of a run with the steps that it has by now. Whom somebody lets go on by hand, no
    clock stops any more.
    """
    by_hand = any(change.what == "steps" for change in changes)
    return replace(train, steps=steps, seconds=0.0 if by_hand else train.seconds)


def changed_name(given: str, changes: Sequence[Change]) -> str:
    """Returns the name of a run with what was done to it by hand, so that no list of runs hides it.

    >>> changed_name("fast", []), changed_name("fast", [Change(40, 0.9, "learning_rate", 0.003)])
    ('fast', 'fast (by hand: learning rate 0.003 from step 40)')
    """
    if not changes:
        return given
    words = changes[0].words if len(changes) == 1 else f"{len(changes)} changes"
    return f"{given} (by hand: {words})"
