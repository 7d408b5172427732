"""Sentences (Markdown) of the bug lab, from values that they are given."""

from __future__ import annotations

import math

from engine.experiments.bug_races import Comparison, Side
from engine.lab.faults import Fault
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus
from ui.text.tokens import show_characters

QUESTIONS = {"cost": "What does this bug cost?"}
ELSEWHERE = (
    "Swapping the causal and the padding mask is a bug too, but only in a model that has both: see"
    " [Cross-attention](/crossattention?cross_view=masks). A coding lab's printed `generate` returns inside"
    " its loop, after one token: its training is healthy, so there is nothing to race. *A whole GPT*"
    " under [Notebooks](/exercises?exercises_view=code&notebook=gpt) finds it."
)
QUOTED = 24  # letters of what a model writes, in a sentence


def answer(finding: Comparison) -> str:
    """Says what the loss and the texts tell about the mistake."""
    healthy, broken = finding.healthy, finding.broken
    if finding.kind == "unknown":
        return "Neither run has been evaluated yet."
    if finding.kind == "dies":
        return (
            f"With the bug, training **diverges at step {broken.died:,}**: the loss is NaN. The healthy twin"
            f" is at **{finding.typical[0]:.2f}** and writes {quoted(healthy)}."
        )
    loss = "median loss" if finding.repeats else "loss"
    losses = f"**{finding.typical[1]:.2f}** with the bug, **{finding.typical[0]:.2f}** healthy"
    return f"{_verdict(finding)}{_spread(finding)}: {loss} {losses}. {_texts(finding)}"


def _verdict(finding: Comparison) -> str:
    if finding.kind == "varies":
        return "Whether this bug costs anything depends on the **seed**"
    if finding.kind == "hides":
        return "The loss does not show this bug"
    if finding.kind == "flatters":
        return "The bug makes the loss look **better**"
    return f"The bug costs **{finding.cost:.2f} nats**"


def _spread(finding: Comparison) -> str:
    """Says by how much the cost varies between seeds."""
    low, high = min(finding.costs), max(finding.costs)
    if not finding.repeats or not math.isfinite(low + high):
        return ""
    return f" ({minus(f'{low:+.2f}')} to {minus(f'{high:+.2f}')} over {len(finding.costs)} seeds)"


def _texts(finding: Comparison) -> str:
    """Quotes both runs; of several seeds, only the first is stored with what it wrote."""
    healthy, broken = finding.healthy, finding.broken
    writes = "With the first seed it writes" if finding.repeats else "It writes"
    return (
        f"{writes} {quoted(broken)} (**{broken.words:.0%}** real words), the healthy twin"
        f" {quoted(healthy)} (**{healthy.words:.0%}**)."
    )


def quoted(side: Side) -> str:
    """Returns the beginning of what it writes; of blanks alone, as signs that can be seen."""
    text = " ".join(side.text.split()) or show_characters(side.text)
    return f"“{safe(text[:QUOTED])}…”" if text else "nothing yet"


def shown(text: str) -> str:
    """Returns a text without its empty lines: the whole of it stands in the fold."""
    return "\n".join(line for line in text.splitlines() if line.strip()) or show_characters(text)


def written(side: Side, broken: bool) -> str:
    """Returns the heading of what one of the two writes."""
    who = "With the bug" if broken else "Healthy"
    return f"**{who}**: {side.words:.0%} of its text consists of real words"


def explained(fault: Fault) -> Words:
    """Returns the symptom, its cause, its fix, and what texts say otherwise."""
    return Words(fault.symptom, fault.story, f"**The fix.** {fault.fix}", fault.texts)


def where(fault: Fault) -> str:
    return f"The code is in `{fault.diff.location}`."


def recipe(fault: Fault) -> str:
    """Returns the settings that both are trained with."""
    model, train, _ = fault.healthy()
    depth = "1 block" if model.n_layers == 1 else f"{model.n_layers} blocks"
    text = (
        f"the first {fault.characters:,} characters of Tiny Shakespeare"
        if fault.characters
        else "Tiny Shakespeare"
    )
    return (
        f"Both: {depth} of width {model.d_model}, {counted(model.n_heads, 'head')},"
        f" {counted(train.steps, 'step')} on {text}, each"
        f" with {train.batch_size} windows of {model.context} characters; the same seed."
    )


def patterns(layer: int, head: int) -> str:
    return f"What head {layer}.{head} attends to: the healthy model, then the one with the bug."


def pattern_alt(broken: bool, layer: int, head: int) -> str:
    who = "the model with the bug" if broken else "the healthy model"
    return f"Attention pattern of head {layer}.{head} of {who}: queries down, keys across"


def no_pattern(broken: bool) -> str:
    who = "the model with the bug" if broken else "the healthy model"
    return f"The attention weights of {who} are not finite, so there is nothing to draw."
