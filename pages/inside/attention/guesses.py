"""Guesses before the views of Attention."""

from __future__ import annotations

from engine.lab.guesses import attention
from engine.measure.attention.ablation import UnmaskedReading
from engine.measure.attention.scaling import SampleQuery
from ui import explain
from ui.guess import Choice, Guess, offered
from ui.model_bar import Subject

WIDTH = {
    "sharper": Choice(
        "One key takes even more",
        "A score is a sum of d_k products: more terms widen its spread, fewer terms narrow it.",
    ),
    "flatter": Choice(
        "The weights become more even",
        "More terms do not average out: a score is a sum, not a mean, so its spread grows like √d_k.",
    ),
    "same": Choice(
        "They stay the same",
        "Each entry keeps its variance of 1, but the score sums d_k products, so its spread changes.",
    ),
}
HOLDS = (
    "A score is a sum of d_k products, so its spread grows like √d_k, and with it the sharpness of the"
    " softmax."
)
UNMASKED = {
    "nothing": Choice(
        "It falls to almost nothing: the model can see the answer",
        "It sees the next token, but the weights never learned to copy from there; trained without the mask,"
        " they would.",
    ),
    "same": Choice(
        "It stays about the same",
        (
            "The weights are unchanged, but each query now also attends to later keys and so receives other"
            " values."
        ),
    ),
    "higher": Choice(
        "It rises",
        "Later keys might be expected to disturb what the heads learned, but here they do not.",
    ),
}
UNMASKED_HOLDS = {
    "nothing": "The next token is visible, and this model uses it.",
    "same": "The later tokens hardly ever contain what the heads learned to attend to.",
    "higher": "The heads never saw later tokens in training: these now take weight and add unwanted vectors.",
}
PARTS = {
    "mask": Choice(
        "The mask",
        "Without the mask every query meets keys it never saw in training, but another part matters more.",
    ),
    "scale": Choice(
        "The scale 1/√d_k",
        "Without the scale every softmax is sharper than it was in training, but another part matters more.",
    ),
    "position": Choice(
        "The positions",
        "Without positions only the mask conveys order, but here another part matters more.",
    ),
}


def width(query: SampleQuery, seed: int) -> Guess:
    """Makes a guess about heads of another width, in the view √d_k."""
    other, truth = attention.other_width(query.width), attention.width(query.width, seed)
    choices, right = offered(truth, WIDTH, HOLDS)
    n = truth.numbers
    return Guess(
        f"d_k goes from {query.width} to {other}. What happens to the unscaled weights (left)?",
        choices,
        right,
        f"Unscaled, the best key goes from {n['before']:.0%} to {n['after']:.0%}; scaled, from"
        f" {n['divided_before']:.0%} to {n['divided_after']:.0%}. d_k is now {other}: look at the bars.",
        {"attention_dk": other},
    )


def unmasked(unmasked: UnmaskedReading) -> Guess | None:
    """Makes a guess about the loss of the model above without its mask, in the view Mask."""
    truth = attention.unmasked(unmasked)
    if truth is None:
        return None
    choices, right = offered(truth, UNMASKED, UNMASKED_HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        "This model was trained with its mask. Remove the mask now and keep the weights: what happens to its"
        " loss on this text?",
        choices,
        right,
        f"With the mask {n['before']:.2f} nats per token, without it {n['after']:.2f}. “Measure it” below"
        " shows every token.",
        {explain.MEASURE: True},
    )


def parts(subject: Subject) -> Guess | None:
    """Makes a guess about the three switches of the view Ablation."""
    truth = attention.dearest_part(subject.model, subject.recording())
    if truth is None:
        return None
    names = {"mask": "the mask", "scale": "the scale", "position": "positions"}
    choices, right = offered(truth, PARTS, "On this text it matters most.")
    n = truth.numbers
    losses = ", ".join(f"{n[part]:.2f} without {names[part]}" for part in truth.offered)
    keys = {"mask": "attention_mask", "scale": "attention_scaled", "position": "attention_position"}
    on = {key: part != truth.right for part, key in keys.items()}
    return Guess(
        "All heads are on and one switch is off. Which switch raises the loss on this text most?",
        choices,
        right,
        (
            f"The loss is {n['whole']:.2f} nats with everything on; {losses}. That switch is now off, and"
            " every head is on."
        ),
        {"attention_off": []} | on,
    )
