"""Sentences about attention without its mask."""

from __future__ import annotations

from collections.abc import Mapping

from ui.page_frame import Words

QUESTION = "Why not let every word see everything?"
FIRST, LONGEST = "O gentle Romeo, if thou", 32
TITLES = {
    "masked": "with the mask",
    "opened": "its mask removed",
    "unmasked": "trained without it",
    "blanks": "trained to fill blanks",
}
ROWS = ("weight ahead", "nats per character", "… at the end", "sample")
TYPED, LAYER, ALL = "A text", "Attention of", "all layers"
SHORT = "Type two characters or more: with fewer there is nothing later to attend to."
NONE = "The 3 models of this view did not come with this copy of the app."


def refused(why: str) -> str:
    return f"These models know 65 characters: {why}"


def alt(name: str, ahead: float) -> str:
    return (
        f"A square of attention weights, each character against each, {TITLES[name]}: {ahead:.0%} of the"
        " weight on later characters. Below it, the probability of each character."
    )


def loss_cell(loss: float | None, hidden: bool = False) -> str:
    """Returns a cell of the table; of an encoder it counts the `hidden` letters alone."""
    return "–" if loss is None else f"{loss:.2f}{' per blank' if hidden else ''}"


def mask_sentence(
    masked: Mapping[str, float], opened: Mapping[str, float], cheat: Mapping[str, float], right: float
) -> str:
    """Says what the mask is for (Markdown)."""
    return (
        "Trained without its mask, a model only copies the next character:"
        f" **{cheat['validation_loss']:.2f}** nats, but **{cheat['end_loss']:.2f}** at the end of a text."
        f" With it, the loss is {masked['validation_loss']:.2f} ({opened['validation_loss']:.2f} once"
        f" it is removed). Masking *inputs* instead, {right:.1%} of the blanks are predicted correctly."
    )


UNMASKED = Words(
    see=(
        "One text in four models, each trained with one seed. A row is a query character, a column a key"
        " character; grey is masked. The strip below shows the probability of each character, stronger for"
        " higher. In the fourth, each character is hidden in turn."
    ),
    why=(
        "Seeing everything is fine unless it includes the answer. So a decoder has a causal mask, and an"
        " encoder, which sees both sides, has to predict tokens that were removed from its input."
    ),
    attempt=(
        "Look at the third model one layer at a time: a strong line one position right of the diagonal"
        " shows the copying. Then read the sample of each."
    ),
)
BY_HAND = (
    "The loss at position $i$ is $-\\ln p(x_{i+1})$. Without a mask $x_{i+1}$ is one of the keys of"
    " query $i$, and a head that attends one position to the right has the answer. At the last position of a"
    " text there is no such key: the loss there shows what the model knows about a character not yet"
    " written.\n\nThe first three share one recipe: the preset “fast”, 200 steps on Tiny Shakespeare, the"
    " same seed; losses on its whole validation split, in windows of 64 (`python -m engine.experiments"
    " no-causal-mask` reproduces them). The fourth is `checkpoints/encoders/blanks`; 15% of the characters"
    " hidden. Samples are drawn at temperature 0.8; the fourth fills a blank at the end.\n\nA head of"
    " *your* model without its mask, and the training step by step, are in [Attention,"
    " Mask](/attention?attention_view=mask)."
)
