"""Sentences of the view of the whole square."""

from __future__ import annotations

from collections.abc import Mapping

from ui.page_frame import Words

QUESTION = "Why not let every word see everything?"
FIRST, LONGEST = "O gentle Romeo, if thou", 32
TITLES = {
    "masked": "with the mask",
    "opened": "its mask taken away",
    "unmasked": "trained without it",
    "blanks": "trained on blanks",
}
ROWS = ("weight ahead", "nats per character", "… at the end", "writes alone")
TYPED, LAYER, ALL = "A text", "Attention of", "all layers"
SHORT = "Type two characters or more: there is nothing later to attend to. With 0 or 1 there is no square."
NONE = "The 3 models of this view did not come with this copy of the app."


def refused(why: str) -> str:
    return f"These models know 65 characters: {why}"


def alt(name: str, ahead: float) -> str:
    return (
        f"A square of attention weights, each character against each, {TITLES[name]}: {ahead:.0%} of the"
        f" weight"
        " on later characters. Below it, the probability of each character."
    )


def nats(loss: float | None, hidden: bool = False) -> str:
    """Returns a cell of the table; of an encoder it counts the `hidden` letters alone."""
    return "–" if loss is None else f"{loss:.2f}{' a hidden one' if hidden else ''}"


def mask_sentence(
    masked: Mapping[str, float], opened: Mapping[str, float], cheat: Mapping[str, float], right: float
) -> str:
    """Says what the mask is for (Markdown)."""
    return (
        f"With its mask **{masked['validation_loss']:.2f}** nats per character. Taken away, the same"
        " weights have"
        f" each answer before them, and do worse: **{opened['validation_loss']:.2f}**. Trained without it:"
        f" **{cheat['validation_loss']:.2f}**, copied; but **{cheat['end_loss']:.2f}** at the end of a text,"
        f" where there is nothing to copy. To see all is fair for what is hidden: **{right:.1%}** of blanks"
        " right."
    )


SQUARE = Words(
    see=(
        "One text, four times. A row is a query character, a column a key character; grey is masked."
        " The strip below: the probability of each character, bright is certain. The fourth has each"
        " character hidden in turn."
    ),
    why=(
        "Seeing everything is no fault; being asked for what one sees is. So a decoder has the mask, and an"
        " encoder, which sees both sides, is asked for what was taken out of its text."
    ),
    attempt=(
        "Look at single blocks of the third: a bright line one position right of the diagonal is the copying."
        " Then read what each of them writes alone."
    ),
)
BY_HAND = (
    "The loss at position $i$ is $-\\ln p(x_{i+1})$. In the whole square $x_{i+1}$ is one of the keys of"
    " query"
    " $i$, and a head that attends one position to the right has the answer. At the last position of a text"
    " there is"
    " no such key: the loss there is what the model knows of a letter that is not written yet."
    "\n\nThe first three are one recipe: the preset “fast”, 200 steps on Tiny Shakespeare, the same seed;"
    " losses on its whole validation split, in windows of 64 (`python -m engine.experiments no-causal-mask`"
    " makes them again). The fourth is `checkpoints/encoders/blanks`; 15% of the characters hidden. What each"
    " writes is drawn at temperature 0.8; the fourth fills a blank at the end."
    "\n\nA head of *your* model without its mask, and the training step by step, are in [Attention, its"
    " mask](/attention?attention_view=mask)."
)
