"""What the view of the switches says."""

from __future__ import annotations

from engine.measure.ablation import Comparison, Switches
from engine.measure.consequences import Consequence, changes_nothing
from pages.inside.attention.words import with_heads
from ui.look import Words
from ui.subject import Subject
from ui.text.markdown import safe
from ui.text.numbers import nats

QUESTION = "What does the model lose without a part?"
MASK_HINT = "Off: every token also sees the ones after it."
NO_MASK_HINT = "This model is an encoder: it has no mask."
SCALE_HINT = "Off: the scores are the products q·k as they are."
ALL_HINT = "Switches every head off."


def asked(causal: bool, token: str) -> str:
    return f"**What comes after {token}?**" if causal else f"**What stands at {token}?**"


def switched(subject: Subject, switches: Switches, found: Comparison, read: Consequence, place: int) -> str:
    """What the model lost (Markdown)."""
    (first, p), (then, q) = read.first_before, read.first_after
    token, one, other = (
        safe(word) for word in (subject.labels[place], subject.vocabulary[first], subject.vocabulary[then])
    )
    if changes_nothing(switches):
        return (
            f"Everything is on: after “{token}” the model expects “{one}” (**{p:.0%}**). Switch something"
            f" off."
        )
    guess = (
        f"the likeliest guess at “{token}” goes from “{one}” (**{p:.0%}**) to “{other}” (**{q:.0%}**)"
        if first != then
        else f"at “{token}” it still expects “{one}”, with **{q:.0%}** instead of **{p:.0%}**"
    )
    if found.loss_before is None or found.loss_after is None:
        return f"Without what is off, {guess}."
    noun = "tokens" if subject.is_pretrained else "letters"
    return (
        f"Without what is off, the loss on this text goes from **{found.loss_before:.2f}** to"
        f" **{nats(found.loss_after, noun)}**, and {guess}."
    )


SWITCHES = with_heads(
    Words(
        see=(
            "Left, the candidates before and after. Right, how far apart the two predictions are at each"
            " position: KL(before ‖ after), in nats. 0 means no change."
        ),
        why="A pattern shows where a head looks. Only an intervention shows whether the model *needs* it.",
        attempt=(
            "Switch one head off after the other and find one that this text does not need. Then remove the"
            " position: which heads relied on it?"
        ),
    ),
    None,
)
