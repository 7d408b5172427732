"""Sentences of the page about cross-attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.experiments.masks_swapped import (
    HEALTHY,
    SOURCE,
    SWAPPED,
    Swapped,
)
from engine.measure.families.cross_attention import (
    AlignmentHits,
    AlignmentScore,
    Look,
)
from engine.measure.families.written_target import Change, WrittenTarget
from ui.page_frame import Words
from ui.text.markdown import safe

ASK_ALIGNMENT = "Which source symbols does the decoder attend to?"
ASK_MASKS = "Which mask goes where?"
NONE = "No trained encoder-decoder came with this copy of the app: `checkpoints/paired` is empty."
NOT_YET = (
    ":material/info: That run has nothing to look into yet, or is not on this server (any more), or does not"
    " learn from pairs: a shipped model is shown."
)
EXAMPLES = {
    "dates": "the 21st of November 2026",
    "numbers": "three hundred and five",
    "number_words": "3 0 5",
    "reverse": "feedback",
    "sort": "feedback",
    "language": "the small dog that the king loves does not see a river today",
}


ASKED = "translate English to German: The house is wonderful."  # of a model that others trained
ASKED_FORM = "what is to be done, and a sentence"
MORE = "A translator trained by others"


def typed(form: str) -> str:
    return f"Source: {form}"


def refused(why: str) -> str:
    return f"This source cannot be read: {why}"


def alt(crossing: WrittenTarget, step: int) -> str:
    return (
        f"Weights of cross-attention: the first {step} of {len(crossing.written)} written symbols down, the"
        f" {len(crossing.source)} symbols of the source across."
    )


def aligned(written: str, target: str, seen: AlignmentHits | None) -> str:
    """Says whether the target is right, and whether attention fell where its symbols come from (Markdown)."""
    if seen is None:
        return (
            f"It writes “{safe(written)}”, but **“{safe(target)}” would be right**: the source of these"
            " symbols is not known."
        )
    return (
        f"It writes “{safe(written)}”, which is right. For **{seen.right} of the {seen.counted} symbols**"
        f" from the source it attends most to where they come from (rings); by chance, {seen.chance:.1f}."
    )


def ends(symbols: Sequence[str], written: int) -> str:
    """Returns the symbols for which it looks at no symbol of the source (Markdown)."""
    if not symbols:
        return ""
    named = "”, “".join(safe(symbol.strip() or symbol) for symbol in dict.fromkeys(symbols))
    return (
        f" For **{len(symbols)} of the {written}** it wrote (“{named}”) it attends most to the source's end"
        " token, not to a symbol."
    )


def not_a_source(written: str, form: str) -> str:
    return f"It writes “{safe(written)}”. What is right is not known: this is not {form}."


def formed(step: int, targets: int, score: AlignmentScore) -> str:
    """Says where attention falls after a step of a training (Markdown)."""
    best = score.best
    return (
        f"After **{step:,}** steps of training, on {targets} held-out targets: all heads together attend to a"
        f" true position for **{score.together:.0%}** of {score.symbols:,} symbols, head"
        f" {best.layer}.{best.head} for **{best.value:.0%}**; by chance it would be {score.chance:.0%}."
    )


def grown_alt(steps: Sequence[int]) -> str:
    return f"Share of symbols whose source position is attended to, at {len(steps)} steps of the training."


def unmarked(crossing: WrittenTarget, look: Look | None) -> str:
    """Says what a model that others trained wrote, and where its attention was sharpest (Markdown)."""
    wrote = f"It writes “{safe(crossing.text)}”"
    if not crossing.ended:
        wrote += f", stopped after {len(crossing.written)} tokens"
    if look is None:
        return f"{wrote}. The source has no words to attend to."
    here, there = (
        safe(one[at].strip()) for one, at in ((crossing.written, look.query), (crossing.source, look.key))
    )
    return (
        f"{wrote}. Its sharpest attention: “{here}” gives **{look.weight:.0%}** of its weight to “{there}”,"
        " the end token aside. No reference alignment exists, so there are no rings."
    )


_DONE: dict[Change, str] = {
    "cut": "**With its memory cut** it writes without any source",
    "shuffled": "**With the source shuffled** it reads the same symbols in another order",
    "swapped": "**With its two masks swapped** self-attention sees ahead, cross-attention part of the source",
}


def changed(change: Change, before: str, after: str, apart: int) -> str:
    """Says what one of the switches does to the text (Markdown)."""
    if not apart:
        return f"{_DONE[change]}; 0 symbols change here: “{safe(before)}”."
    many = "1 symbol is" if apart == 1 else f"{apart} symbols are"
    return f"{_DONE[change]}: “{safe(after)}” in the place of “{safe(before)}”, **{many} different**."


ALIGNMENT = Words(
    see=(
        "A row for each symbol written, a column for each source symbol: bright where the decoder attended"
        " when it wrote the symbol. Rings mark where it truly comes from, by the task's rule."
    ),
    why=(
        "Cross-attention is the only path from the source to the output. The model was never told which"
        " symbol belongs to which: this *soft alignment* is learned only from pairs (Bahdanau et al. 2014)."
    ),
    attempt=(
        "Move the step and watch the alignment form. Then cut the memory: it still writes something that"
        " looks right. Why? And type a source of your own."
    ),
)
BY_HAND = (
    "The same attention, with two texts: $q = x W_Q$ from what is being written, $k = m W_K$ and $v = m W_V$"
    " from the memory $m$, the encoder's last vectors. $\\mathrm{softmax}(q k^\\top/\\sqrt{d_{head}} +"
    " M_{pad})\\, v\\, W_O$ is added to the stream. The pattern has a row for each symbol written, (target,"
    " source): it need not be square.\n\nThe memory is made once and never changes. A cache keeps its keys"
    " and values, so that a step costs one row.\n\nNot only texts are read this way: in Stable Diffusion the"
    " queries come from the image that is being made, keys and values from the encoded prompt (Rombach et al."
    " 2022)."
)

# The two masks ----------------------------------------------------------------------------------

BATCH = (("two", "kittens", "[end]"), ("the", "cat", "sat", "down", "[end]"))
BATCH_NAMES = ("a short source", "the longest one")
TARGET = ("[begin]", "zwei", "kleine", "Katzen")
CURVES_ALT = "Two runs over their steps: with the masks in their places, and swapped."


def mask_title(which: int, shape: tuple[int, ...]) -> str:
    name = ("on its own text", "on the source")[which]
    return f"{name}:<br>a mask of shape {shape}"


def masks_alt(swap: bool, self_pairs: int, across: int) -> str:
    return (
        f"The decoder's two masks{', swapped' if swap else ''}: {self_pairs} pairs of its own text and"
        f" {across} pairs of text and source may be looked at."
    )


def wrote(swap: bool, text: str) -> str:
    return f"{'Swapped' if swap else 'In place'}: “{SOURCE}” → “{text}”"


def opened(hidden: int, ahead: int) -> str:
    """Says what two masks do in each other's place (Markdown)."""
    if not (hidden or ahead):
        return (
            "The causal mask is for what is written: **0 pairs** look ahead. The padding mask is for the"
            " source: **0 pairs** hide a word of it."
        )
    return (
        f"Swapped, **{ahead} pairs** look ahead at what is not written yet, and **{hidden} pairs** hide a"
        " word of the source."
    )


def trained(both: Mapping[str, Swapped], at: int) -> str:
    """Says what a training with the masks swapped comes to (Markdown)."""
    good, bad = both[HEALTHY], both[SWAPPED]
    step = good.steps[at]
    return (
        "The causal mask is for what is written, the padding mask for the source. Swapped, no error is"
        f" raised: after {step} steps the loss is **{bad.losses[at]:.3f}** (in place: {good.losses[at]:.3f}),"
        f" but alone it gets **{bad.right[at]:.1%}** right (in place: {good.right[at]:.1%})."
    )


MASKS = Words(
    see=(
        "Left, what each of the decoder's two attentions may attend to, for a batch of two sources. Right,"
        " two runs on dates that differ only in where the two masks go."
    ),
    why=(
        "Both are called mask, and both are added to scores. Swapped, the decoder sees the symbol to predict,"
        " so the loss looks superb; in generation that symbol is not there yet."
    ),
    attempt=(
        "Swap them and see which cells open. Then compare the loss with how often it is right when it writes"
        " alone."
    ),
)
MASKS_BY_HAND = (
    "**Causal**, (query, key): $0$ where key $\\le$ query, $-\\infty$ above. The same for every text."
    " **Padding**, (batch, 1, 1, source): $-\\infty$ where a shorter source was padded. The ones broadcast"
    " over heads and queries.\n\nThe engine checks the shapes and would refuse this; in code without checks,"
    " with sources and targets of equal length, no error is raised. The curves were measured once and come"
    " with the app (`engine/experiments/masks_swapped.py` does it again)."
)
