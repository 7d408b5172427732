"""Sentences of the view of the switches."""

from __future__ import annotations

from engine.measure.attention.ablation import Comparison, Consequence, Switches, changes_nothing
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import nats

QUESTION = "What breaks without each part?"
MASK_HINT = "Off: every token also sees the ones after it."
NO_MASK_HINT = "This model is an encoder: it has no causal mask."
SCALE_HINT = "Off: the scores are the unscaled products q·k."
ALL_HINT = "Switches every head off."
NONE_HINT = "Switches every head back on."


def question(causal: bool, token: str) -> str:
    return f"**What comes after {token}?**" if causal else f"**Which token is at {token}?**"


FIRST = "As an example, the heads of block 0 are ablated. “None” switches every head back on."


def _heads(found: tuple[tuple[int, int], ...], layers: int, heads: int) -> str:
    """Some heads, in words."""
    if len(found) == layers * heads:
        return "any head"
    of = {layer for layer, _ in found}
    if len(of) == 1 and len(found) == heads > 1:
        return f"the heads of block {min(of)}"
    if len(found) == 1:
        return f"head {found[0][0]}.{found[0][1]}"
    return f"{len(found)} heads"


def without(switches: Switches, layers: int, heads: int) -> str:
    """Names what is off.

    >>> without(Switches(mask=False, heads_off=((1, 3),)), 4, 4)
    'Without the mask and head 1.3'
    """
    parts = [
        name
        for name, on in (
            ("the mask", switches.mask),
            ("the scale", switches.scale),
            ("positions", switches.position),
        )
        if not on
    ]
    if switches.heads_off:
        parts.append(_heads(switches.heads_off, layers, heads))
    moved = {"shuffled": "earlier tokens shuffled", "reversed": "earlier tokens reversed"}.get(switches.order)
    if not parts:
        return f"With {moved}" if moved else "With everything on"
    named = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"Without {named}" + (f", and with {moved}" if moved else "")


def switched(
    subject: Subject, switches: Switches, comparison: Comparison, read: Consequence, position: int
) -> str:
    """Says what the model lost (Markdown)."""
    (first, p), (then, q) = read.first_before, read.first_after
    token, one, other = (
        safe(word) for word in (subject.labels[position], subject.vocabulary[first], subject.vocabulary[then])
    )
    here = f"after “{token}”" if subject.config.causal else f"at “{token}”"
    if changes_nothing(switches):
        return f"Nothing is ablated: {here} the model expects “{one}” (**{p:.0%}**). Switch something off."
    guess = (
        f"{here} the top prediction changes from “{one}” (**{p:.0%}**) to “{other}” (**{q:.0%}**)"
        if first != then
        else f"{here} the model still expects “{one}”, with **{q:.0%}** instead of **{p:.0%}**"
    )
    off = without(switches, subject.config.n_layers, subject.config.n_heads)
    if comparison.loss_before is None or comparison.loss_after is None:
        return f"{off}, {guess}."
    noun = "token" if subject.is_pretrained else "character"
    of = f"from position {comparison.start} onwards" if comparison.start else "on this text"
    return (
        f"{off}, the loss {of} goes from **{comparison.loss_before:.2f}** to"
        f" **{nats(comparison.loss_after, noun)}**, and {guess}."
    )


SWITCHES = Words(
    see=(
        "*Ablation*: remove a part and see what changes. Right, the likeliest tokens before and after. Under"
        " *Measure it*, how far the prediction moves at each position: KL(before ‖ after) in nats, where 0"
        " means no change."
    ),
    why="A pattern shows where a head attends. Only an intervention shows whether the model *needs* it.",
    attempt=(
        "Ablate one head at a time until you find one that this text does not need. Then remove positions:"
        " does the prediction survive?"
    ),
)
