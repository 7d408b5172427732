"""Sentences (Markdown) about a run that learns from pairs or from labels, from values that they are given."""

from __future__ import annotations

import math

from engine.training.records import Evaluation
from ui.text.numbers import counted

RIGHT, WRONG, OPEN = "✓ right", "✗ wrong", "? not known"  # signs and words, for whoever sees no colours
SPEAKERS = "Who speaks?"
SPEAKERS_RULE = "Reads one to eight lines of Shakespeare and says which of eight characters speaks them."
READS = "**What it learns from: source → target**"
SETTLE = "Settings that work"
SETTLE_HELP = (
    "Fills the controls with a small model and settings that learn this in about half a minute on two cores."
)
BLANKS = "Settings for masked tokens"
BLANKS_HELP = (
    "An encoder: it reads in both directions and predicts hidden characters from both sides. Fills the"
    " controls with its model and settings; training takes about a minute on two cores."
)
LENGTHS = "The data determine the model's lengths and vocabulary, whatever the context setting says."
BY_HAND = (
    "By the chain rule, a target's probability is the product over its symbols, each given the source $s$ and"
    " the correct symbols before it:"
    r" $p(y \mid s) = \prod_t p(y_t \mid y_{<t}, s)$. The loss is the mean of $-\ln p(y_t \mid y_{<t}, s)$"
    " over all target tokens. Generating freely is harder: the model then reads its own output, and one"
    " wrong symbol spoils the whole target."
)
LABELS_BY_HAND = (
    r"The loss is the mean of $-\ln p(\text{speaker} \mid \text{text})$ over the texts; a text counts as"
    r" right if its most likely speaker is the true one. Whole speeches are held out. A bag of words already"
    r" does well: [Families](/families?families_view=speaks&measure=true) compares the scores."
)


def question(title: str, labels: bool) -> str:
    return title if labels else f"{title}: when does it get whole targets right?"


def described(train: int, held_out: int, vocabulary: int, labels: bool) -> str:
    """Returns the sentence below the choice of a task."""
    what = "excerpts of speeches" if labels else "pairs"
    return (
        f"**{train:,}** {what} to train on and **{held_out:,}** held out; **{vocabulary:,}** symbols, special"
        f" tokens included. {LENGTHS}"
    )


def before(chance: float, noun: str, outcomes: int, steps: int) -> str:
    """Returns the sentence before the first run."""
    return (
        f"Untrained, it guesses among **{outcomes:,}** {noun}s: a loss of {chance:.2f} nats. Press **Train**:"
        f" how many will it get right after {counted(steps, 'step')}?"
    )


def after(look: Evaluation, chance: float, labels: bool) -> str:
    """Says how many were right at the last evaluation."""
    if look.task is None or not math.isfinite(look.validation_loss):
        return f"At step **{look.step:,}** its loss is NaN: training diverged."
    does = (
        "names the speaker of **{:.0%}** of the held-out texts ({:.0%} of the training texts)"
        if labels
        else "writes **{:.0%}** of the held-out targets without an error ({:.0%} of the training targets)"
    ).format(look.task.validation, look.task.train)
    return (
        f"After {counted(look.step, 'step', bold=True)} it {does}. Its loss is"
        f" **{look.validation_loss:.3f}** nats; a uniform"
        f" guess would cost {chance:.2f}."
    )


def written(source: str, target: str, right: bool | None) -> str:
    """Returns a sample: a source and what was made of it, with a sign and a word."""
    sign = OPEN if right is None else RIGHT if right else WRONG
    return f"\n{sign}  {target}\n← {source}"


def alt(title: str, look: Evaluation | None) -> str:
    if look is None or look.task is None:
        return f"Share of {title} answered right by step: nothing measured yet."
    return (
        f"Share of {title} answered right by step: {look.task.validation:.0%} of the held-out ones and"
        f" {look.task.train:.0%} of those trained on after step {look.step}."
    )
