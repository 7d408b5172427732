"""The guess before the view Backpropagation."""

from __future__ import annotations

from engine.lab.guesses import backward
from engine.measure.shapes.backward import Nudges
from pages.inside.shapes.words_backward import amount, three
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
