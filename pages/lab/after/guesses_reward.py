"""The guesses before the view Reward, one for each of its modes."""

from __future__ import annotations

from collections.abc import Sequence

from engine.lab.guesses import reward
from engine.training.post_training.preferences import Plan, PreferenceEvaluation
from engine.training.post_training.reward import RewardEvaluation
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
    "same": "Its sums survived the reward.",
    "half": "Some sums survive: the penalty keeps the model near where it began.",
    "none": "It learned what is rewarded, not what was meant: reward hacking.",
}
HELD = {
    "farther": "With a small beta it takes a large change in the probabilities to produce a margin.",
    "same": "Here the frozen model hardly matters.",
    "nearer": "With a large beta a small change in the probabilities produces a margin.",
}
REACHES = {
    "farther": Choice("Farther", "The frozen model holds it back less."),
    "same": Choice("About as far", "Beta would only scale the loss."),
    "nearer": Choice("Less far", "A small change is already a large margin."),
}


def hacked(runs: Sequence[Sequence[RewardEvaluation]], control: str) -> Guess | None:
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


def beta(
    plan: Plan,
    other: float,
    now: Sequence[Sequence[PreferenceEvaluation]],
    then: Sequence[Sequence[PreferenceEvaluation]],
) -> Guess | None:
    """Makes a guess about the stored runs `then`, with `other` as beta; a choice sets it."""
    truth = reward.beta(now, then)
    if truth is None:
        return None
    choices, right = offered(truth, REACHES, HELD[truth.right])
    read = "{:.0%} with the word" if plan.taste.of_word else "{:.0f} characters"
    before, here, there = (read.format(truth.numbers[name]) for name in ("before", "now", "then"))
    return Guess(
        f"Samples went from {before} to {here}. How far do they go with beta {other:g}?",
        choices,
        right,
        f"To {there}: medians of {len(then)} stored runs. Look at the curves.",
        {"preferred_beta": other},
    )
