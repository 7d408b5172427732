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
        "A bug lowers the loss where it lets the model see the answer; this one gives nothing away.",
    ),
    "same": Choice(
        "It does not show",
        "Training finds its way round many mistakes, but not round this one, or not without a trace.",
    ),
    "worse": Choice(
        "It is worse",
        "Not every mistake costs loss: some are learned round, some even flatter the loss.",
    ),
}
HOLDS = {
    "better": "The loss flatters: what is measured has become easier, not the model better.",
    "same": "The loss alone would not have found it.",
    "worse": "The loss tells.",
}


def next_mistake(fault: Fault, finding: Comparison) -> Guess | None:
    """Makes a guess about the loss of another bug than the one that is shown."""
    truth = training.mistake(finding)
    if truth is None:
        return None
    choices, right = offered(truth, SAID, HOLDS[truth.right])
    broken = truth.numbers["broken"]
    with_bug = f"{broken:.2f}" if math.isfinite(broken) else "it becomes NaN"
    return Guess(
        f"The next mistake: “{fault.title}”. What does the loss look like?",
        choices,
        right,
        f"Healthy {truth.numbers['healthy']:.2f} nats, with the bug {with_bug}. It is the mistake shown now.",
        {"fault": fault.name},
    )
