"""Sentences of the views of Shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from engine.measure.shapes.attention_by_hand import HandExample, MaskExample
from engine.measure.shapes.op_trace import TraceStep
from engine.measure.shapes.shape_mistakes import Attempt, Division
from pages.inside.shapes.notation import plain
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import counted, flop, gigabytes

ASK_PASS = "What shape is each tensor?"
ASK_HAND = {
    "heads": "How do two heads compute their output?",
    "mask": "Why must the mask come before the softmax?",
}
EXAMPLE, SCORES, HIDDEN_KEYS = "Example", "Scores of one query", "Hidden keys"
HEADS_OF, HIDE, HEAD, KEY = "Heads", "Hide a key", "Head", "Key"
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
    output = step.output
    axes = " × ".join(f"{axis} {size:,}" for axis, size in zip(output.axes, output.sizes, strict=True))
    grows = {1: "the same number", 2: "twice as many"}.get(output.doubled, f"{output.doubled} times as many")
    return (
        f"`{step.bare}` has shape **{axes}**: {counted(output.numbers, 'number')}. A text twice as long"
        f" gives {grows}."
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
    each = ", ".join(f"{name} has {length}" for name, length in lengths.items())
    return f"All five rows must have the same length: {each}."


def of_head(head: int, example: HandExample) -> str:
    """Names a head: `head` counts from 0; on the screen from 1."""
    first, last = head * example.d_head + 1, (head + 1) * example.d_head
    which = f"dimensions {first} to {last}" if last > first else f"dimension {first}"
    return f"**Head {head + 1}**: {which}"


def bars_of_heads(example: HandExample) -> str:
    text = ", ".join(f"head {head} mostly k{key}" for head, (key, _) in enumerate(example.first, 1))
    return f"Bars of the weights that each of {counted(len(example.q), 'head')} gives to two keys: {text}."


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


def masking_alt(example: MaskExample) -> str:
    return (
        f"Weights of {len(example.scores)} keys with the mask before the softmax, summing to 1, and after it,"
        f" summing to {example.late_sum:.2f}."
    )


def mask_table(example: MaskExample, keys: Sequence[str]) -> pd.DataFrame:
    """Returns a row for each stage, a column for each key, and their sum."""
    stages = {
        "scores": example.scores,
        "scores + mask": example.masked,
        "e^(…)": example.exponentials,
        "weights: mask, then softmax": example.weights,
        "softmax over all": example.unmasked,
        "wrong: softmax, then mask": example.masked_after,
    }
    # neither the scores nor the masked ones are summed
    sums = ["", "", *(f"{number:.2f}" for number in (example.total, *example.sums))]
    body = {key: [plain(float(values[i])) for values in stages.values()] for i, key in enumerate(keys)}
    return pd.DataFrame(body | {"sum": sums}, index=list(stages))


def late(example: MaskExample) -> str:
    return (
        "The mask must come **before** the softmax. If weights are set to zero after it, the row sums to"
        f" **{example.late_sum:.2f}**: the hidden keys have already taken their share of {example.lost:.2f},"
        " so their scores leak into the remaining weights, and the output shrinks."
    )


# Wrong shapes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """A mistake that was run, the line that makes it, and in sentences what was expected, what came, how to
    fix it, and what it means where nothing was raised: `good` where that is no mistake.
    """

    attempt: Attempt
    code: str
    expected: str
    came: str
    fix: str
    fine: str
    good: bool = True


MISTAKE, LENGTH, MASK_SIZE = "Mistake", "Tokens in the text", "Size of the mask"
MISTAKES = {
    "heads": "d_model not divisible by heads",
    "unembedding": "A transposed unembedding",
    "mask": "A mask of the wrong size",
}
OUTPUT_OF = "Output: {attempt.made}."
FIX_OF = "**How to fix it.** {explanation.fix}"


def unequal_heads(attempt: Attempt, division: Division, d_model: int, n_heads: int) -> Explanation:
    """Explains a width that may not divide into heads."""
    each, rest = division.each, division.rest
    left_over = (
        "1 dimension is left over** and fits" if rest == 1 else f"{rest} dimensions are left over** and fit"
    )
    return Explanation(
        attempt,
        code=(
            f"x.unflatten(-1, (n_heads, d_model // n_heads))  # (1, 6, {d_model}) -> (1, 6, {n_heads},"
            f" {each})"
        ),
        expected=f"{counted(n_heads, 'head')} of the same width, {n_heads} × d_head = {d_model}.",
        came=(
            f"{d_model} = {n_heads} × {each} + {rest}: **{left_over} no head."
            if each
            else f"{counted(n_heads, 'head')} for {counted(d_model, 'number')}: some heads would get none."
        ),
        fix=(
            f"Choose a number of heads that divides {d_model}, such as {', '.join(map(str, division.near))},"
            " or set d_head yourself: then W_Q, W_K and W_V produce n_heads × d_head numbers, and W_O maps"
            " them back to d_model."
        ),
        fine=f"{d_model} = {n_heads} × {each}: every head gets {each} numbers.",
    )


def transposed(attempt: Attempt, d_model: int, vocab: int) -> Explanation:
    """Explains an unembedding that is transposed twice."""
    return Explanation(
        attempt,
        code=f"F.linear(x, embedding.T)  # embedding: ({vocab}, {d_model}); F.linear transposes again",
        expected=(
            f"x (1, 6, {d_model}) times W_U ({d_model}, {vocab}). `F.linear(x, W)` computes x Wᵀ, so W must"
            f" be (vocab, d_model) = ({vocab}, {d_model})."
        ),
        came=(
            f"W of shape ({d_model}, {vocab}). PyTorch flattens (1, 6) to 6 rows and transposes W:"
            f" 6×{d_model} times {vocab}×{d_model}. The inner dimensions, {d_model} and {vocab}, differ."
        ),
        fix="Drop the transpose: the tied matrix is the embedding itself, `F.linear(x, embedding)`.",
        fine=(
            f"**No error, and still wrong.** vocab_size = d_model = {d_model}, so the transposed matrix fits."
            f" The logits are off by up to {attempt.harm or 0:.2f}. Shapes alone cannot catch this; a test"
            " with different sizes, or with known weights, can."
        ),
        good=d_model == vocab == 1,
    )


def other_mask(attempt: Attempt, length: int, size: int) -> Explanation:
    """Explains a mask that was made for another length."""
    return Explanation(
        attempt,
        code=f"scores + causal_mask({size})  # scores (1, 4, {length}, {length}), mask ({size}, {size})",
        expected=(
            f"A mask of (query, key) = ({length}, {length}): one row for each query, one column for each key."
        ),
        came=(
            f"({size}, {size}). PyTorch compares sizes from the right: “dimension 3” is the key axis,"
            f" {length} against {size}. Only a size of 1 is broadcast."
        ),
        fix=(
            "Build the mask for the actual length, `causal_mask(length, scores)`, or slice a larger one:"
            " `mask[:length, :length]`."
        ),
        fine=(
            "The mask fits: a row for each query, a column for each key."
            if size == length
            else (
                "**No error, and still wrong.** A (1, 1) mask is broadcast over everything, and its only"
                " entry is 0, so nothing is hidden. With equal scores, the first token puts"
                f" {attempt.harm or 0:.0%} of its attention on the future. The training loss would look"
                " superb, but the generated text would be poor."
            )
        ),
        good=size == length,
    )


def shapes_table(attempt: Attempt) -> pd.DataFrame:
    """Returns the shape of each tensor, the output's last."""
    output = "none: an error" if attempt.errors else f"{attempt.made}"
    rows = [*((name, f"{shape}") for name, shape in attempt.shapes), ("output", output)]
    return pd.DataFrame(rows, columns=["tensor", "shape"]).set_index("tensor")


def expected_of(explanation: Explanation) -> str:
    """Says what was expected and, where it was refused, what arrived."""
    arrived = f"\n\n**What arrived.** {explanation.came}" if explanation.attempt.errors else ""
    return f"**Expected.** {explanation.expected}{arrived}"


def outcome(explanation: Explanation) -> str:
    return explanation.came if explanation.attempt.errors else explanation.fine


def raised(who: str) -> str:
    if who == "ConfigError":
        return f"**{who}**, raised by the engine before anything is built"
    return f"**{who}**, raised by PyTorch during the forward pass"


# Forward pass -----------------------------------------------------------------------------------

PARTS = {
    "embedding": "embed",
    "position": "position",
    "attention": "attention",
    "feedforward": "feed-forward",
    "norm": "norm",
    "residual": "+",
    "output": "output",
}
TRACE, LINES = "Trace", "**The lines that just ran**"
THIS_MODEL, READER, WRITER = "This model", "This model: encoder", "This model: decoder"
SHAPES_ONLY = (
    ":material/grid_off: Shapes only: this model is traced without weights, so it takes no memory. Choose"
    " *This model* to see tensors."
)
NOT_RECORDED = ":material/grid_off: A table computed once for all blocks; its numbers are not recorded."
NOTHING_RAN = "Nothing runs here: these are the ids that the tokenizer produced from the text."


def tensor_alt(step: TraceStep, axes: Sequence[str], shape: Sequence[int], limit: float) -> str:
    return (
        f"Heatmap of {step.name}: {' by '.join(axes)}, {' by '.join(map(str, shape))} numbers, largest"
        f" magnitude {limit:.3g}."
    )


def tensor_title(name: str, axis: str) -> str:
    return f"**The tensor** `{name}`" + (f", {axis}" if axis else "")


def bar_note(title: str, tokens: int) -> str:
    return f"{safe(title)}, on the {counted(tokens, 'token')} of the text above."


def writer_note(title: str, written: int, tokens: int) -> str:
    return (
        f"{safe(title)}: the decoder, on the {counted(written, 'token')} it writes from the"
        f" {counted(tokens, 'token')} of the text"
        " above."
    )


def totals(sums: Mapping[str, int]) -> str:
    """Says what a pass takes: parameters, FLOPs and bytes."""
    return (
        f"**{sums['parameters']:,} parameters · {flop(sums['products'])} in matrix products +"
        f" {flop(sums['elementwise'])} elementwise · {gigabytes(sums['bytes'])}** of activations in float32,"
        " if every tensor were kept."
    )


SHAPES_OF_THE_WRITER = (
    ":material/grid_off: Shapes only: the decoder's tensors are not recorded here. Its attention to the"
    " source is shown in [Cross-attention](/crossattention)."
)
