"""Sentences (Markdown) about a run that learns from pairs or from labels, from values that they are given."""

from __future__ import annotations

import math

from engine.training.records import Evaluation

RIGHT, WRONG, OPEN = "✓ right", "✗ wrong", "? not known"  # signs and words, for whoever sees no colours
SPEAKERS = "Who speaks?"
SPEAKERS_RULE = (
    "Reads a stretch of Shakespeare, one line to eight, and says which of eight characters speaks it."
)
READS = "**What it learns from: source → target**"
SETTLE = "Settings that learn it"
SETTLE_HELP = (
    "Puts a small model and a training that learn this into the controls; on two cores about half a minute."
)
BLANKS = "Settings that fill blanks"
BLANKS_HELP = (
    "An encoder: it reads both ways, and guesses hidden characters from both sides. Puts its model and its"
    " training into the controls; on two cores about a minute."
)
LENGTHS = "Its lengths and its vocabulary are those of the data, whatever the context says."
BY_HAND = (
    "A target is as likely as its symbols, each after the right ones before it and given the source $s$:"
    r" $p(y \mid s) = \prod_t p(y_t \mid y_{<t}, s)$. The loss is the mean of $-\ln p(y_t \mid y_{<t}, s)$"
    " over all symbols and ends. To be right alone is harder: then it reads what it wrote itself, and one"
    " wrong symbol spoils the whole."
)
LABELS_BY_HAND = (
    r"The loss is the mean of $-\ln p(\text{speaker} \mid \text{text})$ over the texts; right is a text"
    " whose likeliest speaker is the true one. Whole speeches are held out. Whoever counts words knows much"
    " already: [Families](/families?families_view=speaks&measure=true) has the scores beside each other."
)


def question(title: str, labels: bool) -> str:
    return title if labels else f"{title}: when can it do it alone?"


def described(train: int, held_out: int, vocabulary: int, labels: bool) -> str:
    """Returns the sentence below the choice of a task."""
    what = "stretches of speeches" if labels else "pairs"
    return (
        f"**{train:,}** {what} to learn from and **{held_out:,}** others, held out; **{vocabulary:,}**"
        f" symbols and signs. {LENGTHS}"
    )


def before(chance: float, noun: str, outcomes: int, steps: int) -> str:
    """Returns the sentence before the first run."""
    return (
        f"Before it learns, it guesses among **{outcomes:,}** {noun}s: a loss of {chance:.2f} nats. Press"
        f" **Train**: can it do it alone after {steps:,} steps?"
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
        f"After **{look.step:,}** steps it {does}. Its loss is **{look.validation_loss:.3f}** nats; a"
        f" uniform guess would cost {chance:.2f}."
    )


def written(source: str, target: str, right: bool | None) -> str:
    """Returns a sample: a source and what was made of it, with a sign and a word."""
    sign = OPEN if right is None else RIGHT if right else WRONG
    return f"\n{sign}  {target}\n← {source}"


def alt(title: str, look: Evaluation | None) -> str:
    if look is None or look.task is None:
        return f"Share of {title} answered right by step: nothing measured yet."
    return (
        f"Share of {title} answered right by step: {look.task.validation:.0%} of what is held out and"
        f" {look.task.train:.0%} of what it learned from after step {look.step}."
    )
