"""The guess before the view Reward."""

from __future__ import annotations

from collections.abc import Sequence

from engine.lab.guesses import reward
from engine.training.reward import RewardLook
from ui.guess import Choice, Guess, offered

HACKED = {
    "same": Choice(
        "About as many as before", "That would need a reason to stay right, and the reward gives none."
    ),
    "half": Choice(
        "Less than half as many",
        "Sums that end in 0 can be right; but any answer that ends in 0 pays as much.",
    ),
    "none": Choice("Hardly any", "A reward for one digit says nothing about the others."),
}
HOLDS = {
    "same": "The reward did not cost it its sums.",
    "half": "Some sums survive: the penalty keeps the model near where it began.",
    "none": "It learned what is rewarded, not what was meant: reward hacking.",
}


def hacked(runs: Sequence[Sequence[RewardLook]], control: str) -> Guess | None:
    """Makes a guess about a reward for sums that end in 0; a choice sets it, in the `control`."""
    truth = reward.hacked(runs)
    if truth is None:
        return None
    choices, right = offered(truth, HACKED, HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        "Reward every answer that ends in 0, right or not. How many sums are right in the end?",
        choices,
        right,
        f"{n['reward']:.0%} of the answers end in 0; {n['after']:.0%} are right, {n['before']:.0%} before."
        f" Medians of {len(runs)} stored runs: look at the curves.",
        {control: "ends in 0"},
    )
