"""The guesses before the view Chain of thought, one for each of its modes."""

from __future__ import annotations

from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import accuracies
from engine.lab.guesses import after
from ui.guess import Choice, Guess, offered

WITH_DOTS = {
    "aloud": Choice("As well as with its steps", "The dots give as much time, but nothing to read."),
    "between": Choice(
        "Better than at once, worse than aloud", "More positions to compute in might help a little."
    ),
    "coin": Choice("No better than at once", "The dots give as many positions to compute in as the steps."),
}
HOLDS = {
    "aloud": "The positions alone were enough here.",
    "between": "The positions help, and so does what is written in them.",
    "coin": "What helps is a partial result that the next step can read.",
}


def dots(stored: Stored | None) -> Guess | None:
    """Makes a guess about the stored runs that write dots in place of their steps; None without them."""
    scores = accuracies(stored.runs, stored) if stored else []
    truth = after.dots(scores)
    if truth is None:
        return None
    choices, right = offered(truth, WITH_DOTS, HOLDS[truth.right])
    at_once, with_dots, aloud = (truth.numbers[name] for name in scores[0].problem.ways)
    return Guess(
        "Replace every step by a dot: as many positions, nothing to read. How well does the model do?",
        choices,
        right,
        f"In the end it solves {with_dots:.0%} of new problems with dots, {aloud:.0%} with steps,"
        f" {at_once:.0%} at once. Look at the curves.",
    )
