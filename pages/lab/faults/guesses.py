"""Guesses before the views of the Bug lab."""

from __future__ import annotations

import math

from engine.experiments.bug_races import Comparison
from engine.lab.faults import Fault
from engine.lab.guesses import training
from ui.guess import Choice, Guess, offered

SAID = {
    "better": Choice(
        "It looks better than the healthy one",
        "A bug lowers the loss if it lets the model see the answer; this one does not.",
    ),
    "same": Choice(
        "The same: the bug does not show",
        "Training compensates for many bugs, but not fully for this one.",
    ),
    "worse": Choice(
        "It is worse",
        "Not every bug raises the loss: training compensates for some, and some even lower it.",
    ),
}
HOLDS = {
    "better": "The loss is misleading: the task became easier, but the model did not get better.",
    "same": "The loss alone would not have found it.",
    "worse": "The loss shows it.",
}


def next_mistake(fault: Fault, finding: Comparison) -> Guess | None:
    """Makes a guess about the loss of another bug than the one that is shown."""
    truth = training.mistake(finding)
    if truth is None:
        return None
    choices, right = offered(truth, SAID, HOLDS[truth.right])
    broken = truth.numbers["broken"]
    with_bug = f"{broken:.2f}" if math.isfinite(broken) else "NaN: it diverges"
    return Guess(
        f"The next bug: “{fault.title}”. What does the loss look like?",
        choices,
        right,
        f"Healthy: {truth.numbers['healthy']:.2f} nats; with the bug: {with_bug}. This bug is shown now.",
        {"fault": fault.name},
    )
