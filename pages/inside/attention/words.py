"""Sentences of the views of Attention."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.attention.single_head import WrittenOut
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, minus

# Step by step -----------------------------------------------------------------------------------

STEPS_QUESTION = "How does a head turn tokens into weights?"
LOOKS = "Query token"


def step_by_step(labels: Sequence[str], w: WrittenOut, query: int, key: int) -> str:
    """Says how one weight comes about (Markdown)."""
    looks, there = safe(labels[query]), safe(labels[key])
    product, score = (minus(f"{value:.2f}") for value in (w.raw, w.masked))
    return (
        f"“{looks}” gives “{there}” **{w.weight:.0%}** of its weight: their dot product q·k is **{product}**,"
        f" the score **{score}**, and a softmax over the {counted(w.seen, 'visible token')} does the rest."
    )


STEPS = Words(
    see="One stage of one head, for the whole text; under *By hand*, every number of the chosen row.",
    why=(
        "Attention is nothing but matrix products and a softmax. Everything a head has learned is in its four"
        " matrices."
    ),
    attempt=(
        "Go from “÷ √d” to “softmax”: small differences in score become large differences in weight. Then"
        " choose a token early in the text: with few keys, each gets a large weight."
    ),
)
