"""The guesses before the view Chain of thought, one for each of its modes."""

from __future__ import annotations

from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import accuracies
from engine.lab.guesses import after
from engine.measure.tasks.attempts import MOST, SEEDS, Attempts
from ui.guess import Choice, Guess, offered

WITH_DOTS = {
    "aloud": Choice("As well as with its steps", "The dots give as much time, but nothing to read."),
    "between": Choice(
        "Better than at once, worse than with its steps", "More positions to compute in might help a little."
    ),
    "coin": Choice("No better than at once", "The dots give as many positions to compute in as the steps."),
}
HOLDS = {
    "aloud": "The positions alone were enough here.",
    "between": "The positions help, and so does what is written in them.",
    "coin": "What helps is a partial result that the next step can read.",
}

VERIFIED = {
    "more": Choice("More sums than before", "Each answer is better, but they are more alike."),
    "same": Choice("About as many", "Temperature also changes how much the answers differ."),
    "fewer": Choice("Fewer sums", "Each answer is worse, but they differ more."),
}
WHY_VERIFIED = {
    "more": "Answers differ more, and a verifier needs only one that is right.",
    "same": "Better answers and more varied ones roughly balance out here.",
    "fewer": "Answers are more alike: where the likeliest is wrong, more tries repeat it.",
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


def verified(now: Attempts, then: Attempts, control: str) -> Guess | None:
    """Makes a guess about a verifier's share at the temperature of `then`; a choice sets it, in the
    `control`.
    """
    truth = after.verified(now, then)
    if truth is None:
        return None
    choices, right = offered(truth, VERIFIED, WHY_VERIFIED[truth.right])
    n, turn = truth.numbers, "Lower" if then.temperature < now.temperature else "Raise"
    return Guess(
        f"{turn} the temperature to {then.temperature:g}: a single answer is right for"
        f" {n['single_after']:.0%} of sums, not {n['single']:.0%}. And at least one of {MOST} answers?",
        choices,
        right,
        f"At least one of {MOST} is right for {n['before']:.1%} at temperature {now.temperature:g},"
        f" {n['after']:.1%} at {then.temperature:g} (medians of {len(SEEDS)} seeds). Look at the curve.",
        {control: then.temperature},
    )
