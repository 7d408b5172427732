"""Sentences of the page about cross-attention."""

from __future__ import annotations

from collections import Counter
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
    SharpestWeight,
)
from engine.measure.families.written_target import Change, WrittenTarget
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted

ASK_ALIGNMENT = "Which source symbols does the decoder attend to?"
ASK_MASKS = "Which mask goes where?"
NONE = "No trained encoder-decoder came with this copy of the app: `checkpoints/paired` is empty."
NOT_YET = (
    ":material/info: That run has no snapshot yet, is no longer on this server, or does not learn from pairs,"
    " so a shipped model is shown."
)


def not_yours(name: str) -> str:
    return (
        f":material/info: The run “{safe(name)}” is a single stack, which has no cross-attention; a shipped"
        " encoder-decoder is shown."
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
ASKED_FORM = "an instruction and a sentence"
MORE = "A published translator"


def typed(form: str) -> str:
    return f"Source: {form}"


def refused(why: str) -> str:
    return f"This source cannot be read: {why}"


def alt(crossing: WrittenTarget, step: int) -> str:
    return (
        f"Weights of cross-attention: the first {step} of {len(crossing.written)} written symbols down, the"
        f" {counted(len(crossing.source), 'symbol')} of the source across."
    )


def aligned(written: str, target: str, hits: AlignmentHits | None) -> str:
    """Says whether the target is right, and whether attention fell where its symbols come from (Markdown)."""
    if hits is None:
        return (
            f"It writes “{safe(written)}”, but **“{safe(target)}” would be right**, so its symbols have no"
            " known source positions."
        )
    return (
        f"It writes “{safe(written)}”, which is right. For **{hits.right} of the {hits.counted} symbols**"
        " taken from the source it attends most to their true position (rings); chance would give"
        f" {hits.chance:.1f}."
    )


def ends(symbols: Sequence[str], written: int) -> str:
    """Returns the symbols for which it looks at no symbol of the source (Markdown)."""
    if not symbols:
        return ""
    times = Counter(safe(symbol.strip() or symbol) for symbol in symbols)
    named = ", ".join(
        f"“{symbol}”" + (f" {many} times" if many > 1 else "") for symbol, many in times.items()
    )
    return (
        f" For **{len(symbols)} of the {written}** symbols it wrote ({named}) it attends most to the"
        " source's end token, not to a symbol."
    )


def not_a_source(written: str, form: str) -> str:
    return f"It writes “{safe(written)}”; whether that is right is unknown, because the source is not {form}."


def formed(step: int, targets: int, score: AlignmentScore) -> str:
    """Says where attention falls after a step of a training (Markdown)."""
    best = score.best
    return (
        f"After {counted(step, 'step', bold=True)} of training, on {targets} held-out targets, all heads"
        " together attend to a"
        f" correct position for **{score.together:.0%}** of {counted(score.symbols, 'symbol')}, head"
        f" {best.layer}.{best.head} for **{best.value:.0%}**; by chance it would be {score.chance:.0%}."
    )


def grown_alt(steps: Sequence[int]) -> str:
    return f"Share of symbols whose source position is attended to, at {len(steps)} training steps."


def unmarked(crossing: WrittenTarget, look: SharpestWeight | None) -> str:
    """Says what a model that others trained wrote, and where its attention was sharpest (Markdown)."""
    wrote = f"It writes “{safe(crossing.text)}”"
    if not crossing.ended:
        wrote += f", cut off after {counted(len(crossing.written), 'token')}"
    if look is None:
        return f"{wrote}. The source has no words to attend to."
    here, there = (
        safe(tokens[at].strip())
        for tokens, at in ((crossing.written, look.query), (crossing.source, look.key))
    )
    return (
        f"{wrote}. Its sharpest attention is from “{here}” to “{there}” (**{look.weight:.0%}** of the"
        " weight), the end token aside. No reference alignment exists, so there are no rings."
    )


_DONE: dict[Change, str] = {
    "cut": "**With its memory removed** it writes without any source",
    "shuffled": "**With the source shuffled** it reads the same symbols in another order",
    "swapped": "**With its two masks swapped** self-attention sees ahead, cross-attention part of the source",
}


def changed(change: Change, before: str, after: str, apart: int) -> str:
    """Says what one of the switches does to the text (Markdown)."""
    if not apart:
        return f"{_DONE[change]}; here nothing changes: “{safe(before)}”."
    many = "1 symbol differs" if apart == 1 else f"{apart} symbols differ"
    return f"{_DONE[change]}: “{safe(after)}” instead of “{safe(before)}” (**{many}**)."


ALIGNMENT = Words(
    see=(
        "A row for each symbol written, a column for each source symbol: the colour shows how strongly the"
        " decoder attended there when it wrote the symbol. Rings mark the symbol's true position in the"
        " source, by the task's rule."
    ),
    why=(
        "Cross-attention is the only path from the source to the output. The model was never told which"
        " symbols correspond: this *soft alignment* is learned only from pairs (Bahdanau et al. 2014)."
    ),
    attempt=(
        "Move the step slider and watch the alignment form. Then remove the memory: it still writes"
        " something that looks right. Why? Then type a source of your own."
    ),
)
BY_HAND = (
    "The same attention, with two texts: $q = x W_Q$ from what is being written, $k = m W_K$ and $v = m"
    " W_V$ from the memory $m$, the encoder's final vectors. $\\mathrm{softmax}(q k^\\top/\\sqrt{d_{head}} +"
    " M_{pad})\\, v\\, W_O$ is added to the stream. The pattern has a row for each symbol written, (target,"
    " source): it need not be square.\n\nThe memory is computed once and never changes. A cache keeps its"
    " keys and values, so each step computes only one new row.\n\nIt is not limited to text: in Stable"
    " Diffusion the queries come from the image being generated, the keys and values from the encoded"
    " prompt (Rombach et al. 2022)."
)

# The two masks ----------------------------------------------------------------------------------

BATCH = (("two", "kittens", "[end]"), ("the", "cat", "sat", "down", "[end]"))
BATCH_NAMES = ("short source", "longest source")
TARGET = ("[begin]", "zwei", "kleine", "Katzen")
CURVES_ALT = "Two runs over their steps: with the masks unswapped and swapped."


def mask_title(which: int, shape: tuple[int, ...]) -> str:
    name = ("self-attention", "cross-attention")[which]
    return f"{name}:<br>mask of shape {shape}"


def masks_alt(swap: bool, self_pairs: int, across: int) -> str:
    return (
        f"The decoder's two masks{', swapped' if swap else ''}: {self_pairs} pairs within its own text and"
        f" {across} pairs of text and source are visible."
    )


def wrote(swap: bool, text: str) -> str:
    return f"{'Swapped' if swap else 'Unswapped'}: “{SOURCE}” → “{text}”"


def opened(hidden: int, ahead: int) -> str:
    """Says what two masks do in each other's place (Markdown)."""
    if not (hidden or ahead):
        return (
            "The causal mask belongs to self-attention, so **no pair** looks ahead. The padding mask belongs"
            " to cross-attention and hides **no word** of the source."
        )
    return (
        f"Swapped, **{ahead} pairs** look ahead to symbols not written yet, and **{hidden} pairs** with a"
        " source word are hidden."
    )


def trained(both: Mapping[str, Swapped], at: int) -> str:
    """Says what a training with the masks swapped comes to (Markdown)."""
    good, bad = both[HEALTHY], both[SWAPPED]
    step = good.steps[at]
    return (
        "The causal mask belongs to self-attention, the padding mask to cross-attention. Swapping them"
        f" raises no error: after {step} steps the loss is **{bad.losses[at]:.3f}** (unswapped:"
        f" {good.losses[at]:.3f}), but in generation the model gets only **{bad.right[at]:.1%}** right"
        f" (unswapped: {good.right[at]:.1%})."
    )


MASKS = Words(
    see=(
        "Left, what the decoder's two attention layers may attend to, for a batch of two sources. Right,"
        " two training runs on the date task with one seed, which differ only in where the two masks go."
    ),
    why=(
        "Both are called masks, and both are added to the scores. With the masks swapped, the decoder sees"
        " the symbol it should predict, so the loss looks superb; in generation that symbol is not there yet."
    ),
    attempt=(
        "Swap them and see which cells open. Then compare the loss with how often the model is right in"
        " generation."
    ),
)
MASKS_BY_HAND = (
    "**Causal**, (query, key): $0$ where key $\\le$ query, $-\\infty$ above; the same for every text."
    " **Padding**, (batch, 1, 1, source): $-\\infty$ where a shorter source was padded. The axes of size 1"
    " are broadcast over heads and queries.\n\n"
    "The engine checks the shapes and refuses the swap; in code without checks, with sources and targets of"
    " equal length, no error is raised. The curves ship with the app (`engine/experiments/masks_swapped.py`"
    " repeats the runs)."
)
