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
MASKS_QUESTION = "Which tokens does each attend to?"
FAMILIES = {"encoder": "Encoder", "decoder": "Decoder", "both": "Encoder-decoder"}
SIZES = {
    "4-128-4": "4 layers, 128 wide",
    "12-768-12": "12 layers, 768 wide",
    "24-1024-16": "24 layers, 1,024 wide",
}
ROW_NAMES = ("trained to", "good for", "models", "parameters")
ROWS = {
    "encoder": ("fill masked positions", "labels, search, embeddings", "BERT, RoBERTa"),
    "decoder": ("predict the next token", "writing, chat, code", "GPT, LLaMA, Mistral"),
    "both": (
        "generate a target from a source",
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
            f"Step 1: the encoder attends over all **{encoder.now} pairs** at once and is done. The decoder"
            f" reads the given words causally: **{decoder.now} pairs**. The encoder-decoder reads the whole"
            f" source (**{source.now}**) and starts writing ({target.now} and {cross.now})."
        )
    return (
        f"Step {step}: the encoder has been done since step 1. The decoder adds a row of **{decoder.now}"
        f" pairs**. The encoder-decoder keeps its encoded source and adds **{target.now}** pairs with its"
        f" own text and **{cross.now}** with the source."
    )


def sizes(counts: Mapping[str, int]) -> str:
    """Says what the three hold at equal sizes (Markdown)."""
    return (
        f"At equal sizes encoder and decoder are **the same network** of {counts['decoder']:,} parameters:"
        " only the mask and the output differ. An encoder-decoder is both, plus cross-attention:"
        f" **{counts['both']:,}**."
    )


def drawn_alt(family: str, boxes: Sequence[str]) -> str:
    return f"{FAMILIES[family]}, from top to bottom: {'; '.join(b.replace('<br>', ', ') for b in boxes)}."


def masks_alt(family: str, flows: Sequence[Flow]) -> str:
    counts = (
        f"{MATRICES[f.name]}, {f.seen} of {f.allowed} pairs attended to, {f.now} of them now" for f in flows
    )
    return f"Which token attends to which in the {FAMILIES[family].lower()}: {'; '.join(counts)}."


THREE = Words(
    see=(
        "The same parts, put together in three ways. A row of a mask is the query, a column the key. Full"
        " colour: attended to in this step; faint: later; grey: never."
    ),
    why=(
        "The mask limits what a model can do. A bidirectional model is not trained to continue a text,"
        " since it sees what follows; a decoder sees only the past, so it can be trained to predict the"
        " next token at every position."
    ),
    attempt=(
        "Show the attention masks, and move the step slider: see when each of the five matrices is filled,"
        " and which of them never changes once the source is read."
    ),
)
BY_HAND = (
    "With $S$ words given and $T$ to be written: an encoder attends to $S^2$ pairs, in one go. A decoder"
    " attends to $n(n+1)/2$ with $n = S + T - 1$. Both together: $S^2 + T(T+1)/2 + T \\cdot S$.\n\nThe two"
    " masks of an encoder-decoder are different things. The **causal** one, $(T, T)$, is the same triangle"
    " for every text. The **padding** one, (batch, 1, 1, S), hides the padding after shorter sources, and is"
    " new for every batch.\n\n**Without its causal mask** a decoder attends to [every"
    " position](/families?families_view=why&families_why=unmasked): that view shows its predictions, and"
    " those of a model trained that way. One head of your model without its mask is in [Attention,"
    " Mask](/attention?attention_view=mask), the effect on a prediction in [Attention,"
    " Ablation](/attention?attention_view=switches&attention_mask=false). What a decoder attends to in the"
    " source is in [Cross-attention](/crossattention)."
)
