"""Guesses before the view In-context learning: the step of a layer, and exchanged answers in a prompt."""

from __future__ import annotations

from dataclasses import replace

from engine.lab.guesses import after
from engine.measure.circuits.examples_in_prompt import COUNTS, FewShot
from engine.measure.circuits.in_context import Regression
from pages.lab.after.prompts import WordTask
from ui.guess import Choice, Guess, offered

STEP = {
    "longer": Choice("It takes a larger step", "More examples make the gradient more certain."),
    "same": Choice("The same step", "The size of the step is learned, and depends on the examples."),
    "shorter": Choice("It takes a smaller step", "Fewer examples make a noisier gradient: caution pays."),
}
EXCHANGED = {
    "same": Choice("About as many as before", "Only if the form of the examples is enough."),
    "half": Choice("Clearly fewer", "The rule matters, but not alone."),
    "few": Choice("Hardly any", "Only if the model needs the rule that links word and answer."),
}
HOLDS = {
    "same": "The form of the examples and their kind of answer are enough here.",
    "half": "The model takes the rule from the examples, and these show a wrong one.",
    "few": "Without the right rule in the examples the model does not find it.",
}


def step(plan: Regression, control: str) -> Guess | None:
    """Makes a guess about a training with more examples, or fewer where there are many; a choice sets the
    `control`.
    """
    other = replace(plan, examples=5 if plan.examples >= 40 else 40)
    truth = after.step_size(plan, other)
    if truth is None:
        return None
    choices, right = offered(truth, STEP)
    n = truth.numbers
    return Guess(
        f"The layer was trained on {plan.examples} examples per prompt. What does it learn with"
        f" {other.examples}?",
        choices,
        right,
        f"The best step size is n/(n + d + 1): {n['before']:.3f} after {plan.examples} examples,"
        f" {n['after']:.3f} after {other.examples}. Look at the diagonal of the matrix.",
        {control: other.examples},
    )


def exchanged(few: FewShot, task: WordTask, control: str) -> Guess | None:
    """Makes a guess about examples with one another's answers; a choice sets the `control`."""
    truth = after.exchanged(few)
    if truth is None:
        return None
    choices, right = offered(truth, EXCHANGED, HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        f"Swap the examples' answers. For how many words does it give {task.answer} after"
        f" {COUNTS[-1]} examples?",
        choices,
        right,
        f"{n['before']:.0%} with their own answers, {n['after']:.0%} with swapped ones: see the curves.",
        {control: "exchanged"},
    )
