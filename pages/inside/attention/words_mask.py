"""Sentences of the view of the causal mask."""

from __future__ import annotations

from engine.experiments.no_causal_mask import PROMPT, STEPS
from engine.measure.attention.ablation import UnmaskedReading
from ui.page_frame import Words

QUESTION = "What does the causal mask do?"
TRAINED_FOR = "Training step (right)"
WITH, WITHOUT = "with the mask", "without the mask"
STORED = "Two stored models (preset “fast”, one seed)"
ONE_TOKEN = "The text has only one token, so there is nothing for a mask to hide."
CURVES_ALT = "Two curves of loss over the steps of a run: with the causal mask, and without it."
LOSSES_ALT = "The loss of each token of the text, with the causal mask and without it, in the model above."
RECIPE = (
    f"The curves ship with the app. They show the validation loss of the preset “fast”, trained for {STEPS}"
    " steps on Tiny Shakespeare with the same seed, with the mask and without. Texts are sampled at"
    f" temperature 0.8 after “{PROMPT}” (`engine/experiments/no_causal_mask.py` repeats the runs)."
)


def pattern_alt(layer: int, head: int, mask: bool) -> str:
    if mask:
        return f"Head {layer}.{head}: weights with the causal mask, none above the diagonal (grey)."
    return (
        f"Head {layer}.{head}: weights from the same scores without the mask, some of them on later tokens."
    )


def wrote(name: str, text: str) -> str:
    return f"Trained {name}, it writes: {PROMPT} {text}"


def masked(future: float, loss_with: float, loss_without: float, step: int) -> str:
    """Says what the mask hides, and what becomes of a training without it (Markdown)."""
    first = f"It hides the future: without it this head puts **{future:.0%}** of its weight on later tokens."
    if step == 0:
        return f"{first} Before training, both models only guess: move the step slider."
    return (
        f"{first} A model *trained* without it copies the very character it should predict (loss"
        f" **{loss_without:.2f}** against **{loss_with:.2f}** nats after {step} steps) and cannot write."
    )


def not_learned(unmasked: UnmaskedReading) -> str:
    """Says what removing the mask does to a model that was trained with it (Markdown)."""
    return (
        "Without the mask, the model above (trained *with* it) goes from a loss of"
        f" **{unmasked.mean_with:.2f}** to **{unmasked.mean_without:.2f}** nats: it sees the answers, but"
        " never learned to use them, and its heads now mix in tokens they never saw in training."
    )


BY_HAND = (
    "The mask is added to the scores before the softmax: 0 where the key is not later than the query, and"
    " $-\\infty$ where it is. $e^{-\\infty} = 0$, so later tokens get exactly no weight, and the rest of the"
    " row still sums to 1: $p_{ij} = e^{s_{ij}} / \\sum_{k \\le i} e^{s_{ik}}$.\n\nThe first token sees only"
    " itself, with weight 1. The loss at position $i$ scores the prediction of token $i + 1$: without the"
    " mask that token is one of the keys, and attention can fetch it. In “The quick brown fox ___” the row of"
    " “fox” predicts the missing word: it may see four words, not the fifth."
)
MASK = Words(
    see=(
        "Left, one head of the model above: with its mask, and the same scores without. Right, two runs that"
        " differ only in the mask."
    ),
    why=(
        "A model is trained on whole texts at once: every position predicts its next token. The mask keeps"
        " each from seeing its answer, so one text gives as many training signals as it has tokens."
    ),
    attempt=(
        "Move the step slider: without the mask the loss falls within 40 steps, but the text it writes"
        " becomes gibberish. You can repeat this on “Train”."
    ),
)
