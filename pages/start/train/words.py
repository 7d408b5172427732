"""Sentences (Markdown) of the training page, from values that they are given."""

from __future__ import annotations

from engine.measure.shapes.batch_example import ShiftedBatch
from engine.training.compare import Comparison, MeanLoss
from engine.training.numerics import perplexity
from ui.text.markdown import safe
from ui.text.numbers import nats

QUESTION = "Can it learn to write?"
CLEAR = 0.02  # nats: a smaller difference between two runs may be their seeds'
SHIFTED = "Inputs x and targets y, the same text one position on: y[t] = x[t + 1]."
HARDLY = "They hardly differ: another seed could reverse the order."
IN_BITS = "These runs cut the text into different tokens, so their losses are drawn in bits per character."
GONE = (
    "The run in this link is not on this server: it was removed, or the server was restarted, or the link is"
    " incomplete. **Train** starts the recipe that the link describes."
)
STRANGER = (
    "This run belongs to another browser: you can watch it, but only that browser can control it. You can"
    " train the same recipe yourself."
)


def before(vocabulary: int, loss: float, noun: str, steps: int) -> str:
    """Returns the sentence before the first run."""
    return (
        f"Untrained, it guesses uniformly among **{vocabulary:,}** {noun}s: a loss of {loss:.2f} nats."
        f" Press **Train** and watch {steps:,} steps change that."
    )


def both(done: str) -> str:
    """Says what Train both does. `done`: the run that has trained the unchanged recipe already, if any."""
    if done:
        return (
            f"Your recipe has been trained already ({done}). This trains only the version with this one"
            " change, and shows it beside that run."
        )
    return "Trains two runs side by side: your recipe, and the same recipe with this one change."


def in_short(parameters: int, steps: int, long: str) -> str:
    """Says how much is trained, and how long one run takes; `long` is empty where nobody knows yet."""
    text = f"**{parameters:,}** parameters · **{steps:,}** steps"
    return f"{text} · one run: about **{long}**" if long else text


def of_which(name: str) -> str:
    """Returns the heading above what is measured of one of two runs."""
    return f"**{safe(name)}**"


def starting(noun: str) -> str:
    """Describes a run that has not been looked at yet."""
    return f"Training is about to begin: at step **0**, every {noun} is a random guess."


def after(step: int, loss: float, bits: str, noun: str, vocabulary: int) -> str:
    """Describes a run as last validated."""
    if step == 0:
        return (
            f"Before the first step: **{nats(loss, noun)}**. So far it can only guess among {vocabulary:,}"
            f" {noun}s."
        )
    return (
        f"After **{step:,}** steps: **{nats(loss, noun)}** on held-out text ({bits} bits per character); a"
        f" uniform guess has perplexity {vocabulary:,}."
    )


def diverged(step: int) -> str:
    """Says that a loss is no number."""
    return f"At step **{step:,}** the loss is NaN: training diverged."


def pair(first: str, second: str, comparison: Comparison, noun: str, leaks: bool) -> str:
    """Compares two runs. `leaks`: the second has no mask, and sees what it should guess."""
    one, other = (f"{nats(loss, noun)}" for loss in comparison.losses)
    return (
        f"After **{comparison.steps[1]:,}** steps: {safe(first)} **{one}**; {safe(second)} **{other}**."
        f" {verdict(comparison, leaks, noun)}"
    )


def verdict(comparison: Comparison, leaks: bool, noun: str) -> str:
    """Says what the difference of two runs means."""
    if leaks and comparison.difference < -CLEAR:
        return (
            f"That is not progress: without the mask it sees the {noun} that it should predict. When it"
            " writes, it has nothing to copy."
        )
    if leaks:
        return f"Without the mask it could copy the next {noun}, but it has not learned to yet."
    if abs(comparison.difference) < CLEAR:
        return HARDLY
    worse = "worse" if comparison.difference > 0 else "better"
    return f"With the change: **{abs(comparison.difference):.2f}** nats {worse}."


def pair_waits(first: str, second: str) -> str:
    """Returns the sentence before both have been validated at the same step."""
    return (
        f"{safe(first)} and {safe(second)} train side by side; they are compared once both are past step"
        " **0**."
    )


def changed_by_hand(name: str, changes: str) -> str:
    """Describes a run whose curve is not of its settings alone."""
    return (
        f"**{safe(name)}** was changed by hand ({changes}), so its settings alone do not explain its curve."
    )


def batch(batch: ShiftedBatch, noun: str) -> str:
    """Describes the batch of one step."""
    return (
        f"Step {batch.step:,} reads **{batch.rows}** windows of **{batch.positions}** {noun}s. Each starts at"
        f" a random position below **{batch.bound:,}** (= {batch.tokens:,} − {batch.positions}, so that the"
        f" last target exists). y[i, t] = x[i, t + 1] holds for **{batch.shifted:,}** of {batch.pairs:,}"
        " pairs."
    )


def likelihood(mean: MeanLoss, noun: str) -> str:
    """Leads from the probability of a text to the loss, and on to perplexity."""
    return (
        f"By the chain rule, a text's probability is the product over its {noun}s, each given those before: "
        r"$p(x) = \prod_t p(x_t \mid x_{<t})$, so $\;-\tfrac{1}{T}\ln p(x) = -\tfrac{1}{T}\sum_t \ln"
        r" p(x_t \mid x_{<t})$ is the loss."
        f"\n\nHere the loss is {mean.nats:.3f}. So, on (geometric) average, the {noun} that came next had"
        f" probability $e^{{-{mean.nats:.3f}}}$ = **{mean.mean_probability:.3f}**. The perplexity is"
        f" $e^{{{mean.nats:.3f}}}$ = **{perplexity(mean.nats):,.2f}**, and {mean.tokens:,} such {noun}s in"
        f" a row have probability $10^{{{mean.power_of_ten:,.0f}}}$."
    )
