"""The guesses before the view Backpropagation: about one weight, and about one step."""

from __future__ import annotations

from engine.lab.guesses import backward
from engine.measure.shapes.backward import Nudges
from engine.measure.shapes.optimiser_step import SingleStep
from pages.inside.shapes.words_backward import RULE_NAMES, amount, multiple, three
from ui.guess import Choice, Guess, offered

NUDGED = {
    "same": Choice(
        "Just about that",
        "A gradient is the slope at the weight's current value; this far away the loss has left its tangent.",
    ),
    "more": Choice(
        "Clearly more",
        "The slope would have to grow along the way; here it does not.",
    ),
    "less": Choice(
        "Clearly less, or the opposite sign",
        "The slope would have to shrink or change sign; here it does not.",
    ),
}
HOLDS = {
    "same": "Even this far away the loss is nearly linear in this weight.",
    "more": "The slope grows along the way: a gradient holds for small changes only.",
    "less": "The slope shrinks along the way: a gradient holds for small changes only.",
}


def nudge(nudges: Nudges, at: int, control: str) -> Guess | None:
    """Makes a guess about the largest nudge; a choice sets it, in the `control`."""
    truth = backward.nudge(nudges, at)
    if truth is None:
        return None
    choices, right = offered(truth, NUDGED, HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        f"Add {amount(n['amount'])} to this weight. The gradient predicts"
        f" {three(n['predicted'], signed=True)} nats. What does the forward pass give?",
        choices,
        right,
        f"Predicted {three(n['predicted'], signed=True)} nats, measured {three(n['measured'], signed=True)}."
        " The nudge is now set to this amount: compare the two marks.",
        {control: float(nudges.amounts[at])},
    )


OVERSHOOTS = {
    "sgd": Choice(RULE_NAMES["sgd"], "Its step shrinks with the gradient, so most weights hardly move."),
    "adamw": Choice(
        RULE_NAMES["adamw"], "It moves every weight by about the learning rate, but here others fail first."
    ),
    "muon": Choice(
        RULE_NAMES["muon"], "No direction dominates its update, so it tolerates a larger multiple here."
    ),
}
FIRST = {
    "sgd": "Its step grows with the gradient: where the loss is steep it goes furthest.",
    "adamw": "It moves every weight by about the learning rate, however small the gradient.",
    "muon": "It moves as far in rare directions as in frequent ones.",
}


def overshoots(taken: SingleStep, control: str) -> Guess | None:
    """Makes a guess about the learning rate at which a step first raises the loss; a choice sets it, in the
    `control`.
    """
    truth = backward.overshoots(taken)
    if truth is None:
        return None
    choices, right = offered(truth, OVERSHOOTS, FIRST[truth.right])
    n = truth.numbers
    losses = ", ".join(f"{name} {three(n[rule])}" for rule, name in RULE_NAMES.items())
    return Guess(
        "Raise every optimiser's learning rate from its default. Whose step is the first to raise the loss?",
        choices,
        right,
        f"Before the step {three(n['before'])} nats; at {multiple(n['scale'])} times the default {losses}."
        " The slider is now set there: which curves have crossed the dashed line?",
        {control: n["scale"]},
    )
