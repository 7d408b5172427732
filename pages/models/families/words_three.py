"""Sentences of the view of the three families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.measure.families.visibility import (
    DONE,
    HIDDEN,
    LATER,
    NOW,
    Flow,
)
from ui.page_frame import Words

QUESTION = "Encoder, decoder or both?"
FAMILIES = {"encoder": "Encoder", "decoder": "Decoder", "both": "Encoder-decoder"}
SHOWN = {"drawing": "what it is made of", "masks": "who attends to whom"}
SIZES = {
    "4-128-4": "4 layers, 128 wide",
    "12-768-12": "12 layers, 768 wide",
    "24-1024-16": "24 layers, 1,024 wide",
}
ROW_NAMES = ("trained to", "good for", "models", "parameters")
ROWS = {
    "encoder": ("fill blanks, from both sides", "labels, search, embeddings", "BERT, RoBERTa"),
    "decoder": ("say what comes next", "writing, chat, code", "GPT, LLaMA, Mistral"),
    "both": (
        "write a second text from the first",
        "translation, summaries, speech",
        "the original, T5, BART, Whisper",
    ),
}
GIVEN = ("the", "cat", "sat", "down")
BLANKED = ("the", "cat", "[MASK]", "down")
WRITTEN = ("le", "chat", "s'est", "assis")
CONTINUED = ("and", "fell", "asleep", ".")
MATRICES = {
    "self": "its own text",
    "encoder": "source",
    "decoder": "target so far",
    "cross": "cross-attention",
}
STATES = {HIDDEN: "never", LATER: "later", DONE: "done", NOW: "now"}


def axes(family: str, matrix: str) -> tuple[Sequence[str], Sequence[str]]:
    """Returns (tokens of the queries, of the keys)."""
    read = ("begin", *WRITTEN[:-1])
    if family == "encoder":
        return BLANKED, BLANKED
    if family == "decoder":
        whole = (*GIVEN, *CONTINUED[:-1])
        return whole, whole
    return {"encoder": (GIVEN, GIVEN), "decoder": (read, read), "cross": (read, GIVEN)}[matrix]


def flow(step: int, flows: Mapping[str, Sequence[Flow]]) -> str:
    """Says what is attended to at this step (Markdown)."""
    encoder, decoder = flows["encoder"][0], flows["decoder"][0]
    source, target, cross = flows["both"]
    if step == 1:
        return (
            f"Step 1: the encoder attends to all **{encoder.now} pairs** at once, and is done; the decoder"
            f" reads the given words, back only: **{decoder.now} pairs**; the third reads the source whole"
            f" (**{source.now}**) and begins to write ({target.now} and {cross.now})."
        )
    return (
        f"Step {step}: the encoder is done since step 1. The decoder adds a row of **{decoder.now}"
        f" pairs**; the third keeps its source as it is and adds **{target.now}** to what it wrote and"
        f" **{cross.now}** to the"
        " source: the memory."
    )


def sizes(counts: Mapping[str, int]) -> str:
    """Says what the three hold at equal sizes (Markdown)."""
    return (
        f"At equal sizes encoder and decoder are **the same machine**, {counts['decoder']:,} parameters:"
        f" only the mask and the output differ. The third is both of them and cross-attention:"
        f" **{counts['both']:,}**."
    )


def drawn_alt(family: str, boxes: Sequence[str]) -> str:
    return f"{FAMILIES[family]}, from top to bottom: {'; '.join(b.replace('<br>', ', ') for b in boxes)}."


def masks_alt(family: str, made: Sequence[Flow]) -> str:
    told = (f"{MATRICES[f.name]}, {f.seen} of {f.allowed} pairs looked at, {f.now} of them now" for f in made)
    return f"Which token attends to which in the {FAMILIES[family].lower()}: {'; '.join(told)}."


THREE = Words(
    see=(
        "The same parts three times. A row of a mask is the word that looks, a column the word that is"
        " looked at. Bright: looked at in this step; pale: later; grey: never."
    ),
    why=(
        "Which words may be seen decides what a model can do. Who sees both sides cannot write, since the"
        " next word is not there yet; a decoder sees only the past, so it can predict the next word at every"
        " position."
    ),
    attempt=(
        "Show who sees whom, and move the step: see when each of the five matrices is filled, and which of"
        " them never changes once the source is read."
    ),
)
BY_HAND = (
    "With $S$ words given and $T$ to be written: an encoder attends to $S^2$ pairs, in one go. A decoder"
    " attends to $n(n+1)/2$ with $n = S + T - 1$. Both together: $S^2 + T(T+1)/2 + T \\cdot S$.\n\n"
    "The two masks of an encoder-decoder are different things. The **causal** one, $(T, T)$, is the same"
    " triangle for every text. The **padding** one, (batch, 1, 1, S), hides the filling behind shorter"
    " sources, and is new for every batch."
    "\n\n**Taken away from a decoder**, the causal mask opens the [whole"
    " square](/families?families_view=square): what is predicted then, and by a model that was trained so."
    " One head of your model without its mask"
    " stands in [Attention, its mask](/attention?attention_view=mask);"
    " what becomes of a prediction in [Attention, switched"
    " off](/attention?attention_view=switches&attention_mask=false). What the third attends to across is in"
    " [Cross-attention](/crossattention)."
)
