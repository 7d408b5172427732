"""Sentences (Markdown) about a run that trains on a synthetic task, from values that they are given."""

from __future__ import annotations

import math

from engine.data.tasks.task import Task
from engine.training.records import Evaluation
from ui.text.numbers import counted

RIGHT, WRONG = "✓ right", "✗ wrong"  # a sign and a word, for whoever sees no colours


def question(task: Task) -> str:
    return f"When does it find the rule? {task.rule}"


def settings(task: Task) -> str:
    """Returns the label of the button."""
    long = "a few minutes: it generalises long after it memorises" if task.answers_only else "about a minute"
    return (
        f"Fills the controls with a small model and settings that solve {task.title}; on two cores this takes"
        f" {long}."
    )


def described(task: Task, train: int, validation: int) -> str:
    """Returns the sentence below the choice of a task: how many problems, of a stream letters, there are of
    both kinds.
    """
    if task.stream:
        return (
            f"{counted(train, 'character', bold=True)} to train on and **{validation:,}** held out, from a"
            " source whose"
            f" entropy rate is **{task.entropies[-1]:.3f}** nats per character."
        )
    return (
        f"**{train:,}** problems to train on and **{validation:,}** held out, of"
        f" {counted(task.length, 'character', bold=True)}"
        " each, line break included."
    )


def fits(task: Task, context: int) -> str:
    """Says what follows where a window is not as long as a problem; '' where it fits."""
    if task.stream or context == task.length:
        return ""
    short = context < task.length
    cut = "contains no complete problem" if short else "ends in the middle of the next problem"
    return (
        f"A problem of {task.title} has **{task.length}** characters; a window of {context} {cut}. *Settings"
        " that solve it* makes it fit."
    )


def before(task: Task, floor: float, uniform: float, steps: int) -> str:
    """Returns the sentence before the first run."""
    why = (
        "the source itself is random"
        if task.stream
        else "the answer follows from the question"
        if task.answers_only
        else "the question is random, and only the answer follows from it"
    )
    return (
        f"It begins at {uniform:.2f} nats, and no model can get below **{floor:.2f}**: {why}. Press"
        f" **Train**: does it find the rule in {counted(steps, 'step')}?"
    )


def after(task: Task, look: Evaluation, floor: float) -> str:
    """Says how many were solved at the last validation."""
    if look.task is None or not math.isfinite(look.validation_loss):
        return f"At step **{look.step:,}** its loss is NaN: training diverged."
    solved = (
        f"predicts the most likely next character at **{look.task.validation:.0%}** of the positions"
        if task.stream
        else f"solves **{look.task.validation:.0%}** of the held-out problems"
        f" ({look.task.train:.0%} of those it trained on)"
    )
    return (
        f"After {counted(look.step, 'step', bold=True)} it {solved}. Its loss is"
        f" **{look.validation_loss:.3f}** nats; no"
        f" model gets below {floor:.3f}."
    )


def marks(lines: list[tuple[str, bool]]) -> str:
    """Lists what it wrote, each line with a sign and a word."""
    return "\n".join(f"{RIGHT if good else WRONG}  {line}" for line, good in lines)


def alt(task: Task, look: Evaluation | None) -> str:
    if look is None or look.task is None:
        return f"Share of {task.title} solved by step: nothing measured yet."
    return (
        f"Share of {task.title} solved by step: {look.task.validation:.0%} of held-out problems and"
        f" {look.task.train:.0%} of those trained on after step {look.step}."
    )
