"""Sentences of the views of Shapes."""

from __future__ import annotations

from dataclasses import dataclass

from engine.measure.shapes.attention_by_hand import HandExample, MaskExample
from engine.measure.shapes.op_trace import TraceStep
from engine.measure.shapes.shape_mistakes import Attempt
from ui.page_frame import Words

ASK_PASS = "What shape is each tensor?"
ASK_HAND = {
    "heads": "How do two heads compute their output?",
    "mask": "Why must the mask come before the softmax?",
}
ASK_WRONG = "What happens when shapes don't match?"

FLOPS = (
    "FLOPs: multiplying (m, k) by (k, n) counts as 2·m·k·n FLOPs. Elementwise operations count as 1 per"
    " element, softmax and norms as 5; copies and views as 0. Bytes assume float32; ids take 8 bytes each."
)

PASS = Words(
    see=(
        "Each row is one operation that actually ran, with the shape of its output. Colours mark parts of"
        " the model, chips mark axes. All blocks have the same shapes, so all but the first are collapsed."
    ),
    why=(
        "The shapes show most of the architecture. Only attention's scores and weights have two position"
        " axes, so their cost grows with the square of the sequence length. Queries, keys and values come"
        " from one matrix product: three matrices side by side give the same result as three separate"
        " products."
    ),
    attempt=(
        "Click the list and step through it with the arrow keys, or press ▶. Then choose LLaMA-2 70B and"
        " compare `q` with `k`: 64 query heads share 8 key-value heads."
    ),
)


def by_hand(attempt: str) -> Words:
    return Words(
        see=(
            "Every number from the query to the output. Only the learned projections are skipped: q, k and v"
            " are given."
        ),
        why=(
            "Attention is a handful of dot products and one softmax. Once you have done it by hand, you can"
            " read any implementation."
        ),
        attempt=attempt,
    )


HEADS = by_hand(
    "Divide q by ten (0.1, 0.2, 0.3, 0.4): the weights even out. Then choose one head instead of two: before"
    " scaling, its scores are the sums of the two heads' scores."
)
MASK = by_hand(
    "Hide a key with a low score, then one with a high score: the higher its score, the more weight the wrong"
    " order loses."
)

WRONG = Words(
    see=(
        "The error message as it is raised, and below it what it means: what was expected, what arrived, and"
        " how to fix it."
    ),
    why=(
        "Many bugs in a Transformer are shape errors. Some raise an exception; others run, and learn badly."
    ),
    attempt=(
        "Make the sizes match. Then look for the two settings where PyTorch raises no error and the result is"
        " still wrong."
    ),
)


# Answers ----------------------------------------------------------------------------------------


def shape_of(step: TraceStep) -> str:
    """Returns the shape of what a step makes, and how it grows with the text."""
    made = step.output
    axes = " × ".join(f"{axis} {size:,}" for axis, size in zip(made.axes, made.sizes, strict=True))
    grows = {1: "the same number", 2: "twice as many"}.get(made.doubled, f"{made.doubled} times as many")
    return (
        f"`{step.bare}` has shape **{axes}**: {made.numbers:,} numbers. A text twice as long gives {grows}."
    )


def two_heads(example: HandExample, heads: int) -> str:
    """Says which key each head listens to."""
    text = "; ".join(
        f"head {head} gives k{key} **{share:.1%}** of its weight"
        for head, (key, share) in enumerate(example.first, 1)
    )
    if heads == 1:
        return f"The single head compares all {example.d_head} dimensions: {text}."
    return f"Each head compares only its own {example.d_head} dimensions: {text}."


def masked(example: MaskExample, hidden: int) -> str:
    if not hidden:
        return f"No key is hidden, so both orders agree: the weights sum to **{example.late_sum:.2f}**."
    return (
        f"Masked after the softmax, the weights sum to only **{example.late_sum:.2f}**: the hidden keys have"
        f" already taken their share of {example.lost:.2f}."
    )


# By hand ----------------------------------------------------------------------------------------

BOLD = 0.95  # of a head's weight on one key: the scores are far apart


def other_lengths(lengths: dict[str, int]) -> str:
    found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
    return f"All five rows must have the same length: {found}."


def of_head(head: int, example: HandExample) -> str:
    """Names a head: `head` counts from 0; on the screen from 1."""
    first, last = head * example.d_head + 1, (head + 1) * example.d_head
    which = f"dimensions {first} to {last}" if last > first else f"dimension {first}"
    return f"**Head {head + 1}**: {which}"


def bars_of_heads(example: HandExample) -> str:
    text = ", ".join(f"head {head} mostly k{key}" for head, (key, _) in enumerate(example.first, 1))
    return f"Bars of the weights that each of {len(example.q)} heads gives to two keys: {text}."


def scaled(example: HandExample) -> str:
    text = (
        f"Dividing by $\\sqrt{{d_{{head}}}} = \\sqrt{{{example.d_head}}}$ keeps the softmax of wide heads"
        " from saturating."
    )
    if example.most > BOLD:
        return (
            f"{text} Here the scores are so far apart that every head still gives {example.most:.1%} or more"
            " to one key."
        )
    return text


def too_large(shift: str) -> str:
    return (
        f"The largest visible score, {shift}, is subtracted from all of them first: no weight changes, and no"
        " exponential overflows."
    )


def late(example: MaskExample) -> str:
    return (
        "The mask must come **before** the softmax. If weights are set to zero after it, the row sums to"
        f" **{example.late_sum:.2f}**: the hidden keys have already taken their share of {example.lost:.2f},"
        " so their scores leak into the remaining weights, and the output shrinks."
    )


# Wrong shapes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """A mistake that was run, and in sentences what was expected, what came, how to fix it, and what it
    means where nothing was raised: `good` where that is no mistake.
    """

    attempt: Attempt
    expected: str
    came: str
    fix: str
    fine: str
    good: bool = True


def outcome(explanation: Explanation) -> str:
    return explanation.came if explanation.attempt.errors else explanation.fine


def raised(who: str) -> str:
    if who == "ConfigError":
        return f"**{who}**, raised by the engine before anything is built"
    return f"**{who}**, raised by PyTorch during the forward pass"


SHAPES_OF_THE_WRITER = (
    ":material/grid_off: Shapes only: the decoder's tensors are not recorded here. Its attention to the"
    " source is shown in [Cross-attention](/crossattention)."
)
