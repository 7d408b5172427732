"""Wrong shapes: a mistake is chosen and run, and what comes back is told in plain words."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.shapes import shape_mistakes
from pages.inside.shapes import words
from pages.inside.shapes.words import Explanation
from ui import explain, widgets

Size = tuple[str, int, int, int, str]  # label, least, largest, first, key
MISTAKES = {
    "heads": "d_model not divisible by heads",
    "unembedding": "A transposed unembedding",
    "mask": "A mask of the wrong size",
}


def draw_mistakes() -> None:
    """Draws the mistake, its two sizes, the line that is run, and what comes back."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        kind = widgets.select("Mistake", MISTAKES, "shapes_mistake", kind="list")
    mistakes = {"heads": _heads_mistake, "unembedding": _unembedding_mistake, "mask": _mask_mistake}
    explanation = mistakes[kind](right)
    explain.answer(words.outcome(explanation))
    _result(explanation)
    explain.measure_it(_all_errors, explanation)


def _heads_mistake(container: DeltaGenerator) -> Explanation:
    d_model, n_heads = _sizes(
        container, ("d_model", 1, 1024, 128, "shapes_d_model"), ("n_heads", 1, 64, 3, "shapes_n_heads")
    )
    attempt, found = shape_mistakes.split_heads(d_model, n_heads), shape_mistakes.division(d_model, n_heads)
    st.code(
        f"x.unflatten(-1, (n_heads, d_model // n_heads))  # (1, 6, {d_model}) -> (1, 6, {n_heads},"
        f" {found.each})",
        language="python",
    )
    each, rest = found.each, found.rest
    return Explanation(
        attempt,
        expected=f"{n_heads} heads of the same width, {n_heads} × d_head = {d_model}.",
        came=(
            f"{d_model} = {n_heads} × {each} + {rest}: **{rest} dimension{'s are' if rest != 1 else ' is'}"
            f" left over** and fit{'' if rest != 1 else 's'} no head."
            if each
            else f"{n_heads} heads for {d_model} numbers: some heads would get none."
        ),
        fix=(
            f"Choose a number of heads that divides {d_model}, such as"
            f" {', '.join(str(n) for n in found.near)}, or set d_head yourself: then W_Q, W_K and W_V"
            " produce n_heads × d_head numbers, and W_O maps them back to d_model."
        ),
        fine=f"{d_model} = {n_heads} × {each}: every head gets {each} numbers.",
    )


def _unembedding_mistake(container: DeltaGenerator) -> Explanation:
    d_model, vocab = _sizes(
        container, ("d_model", 1, 1024, 128, "shapes_d_model"), ("vocab_size", 1, 2000, 65, "shapes_vocab")
    )
    st.code(
        f"F.linear(x, embedding.T)  # embedding: ({vocab}, {d_model}); F.linear transposes again",
        language="python",
    )
    attempt = shape_mistakes.transposed_unembedding(d_model, vocab)
    return Explanation(
        attempt,
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


def _mask_mistake(container: DeltaGenerator) -> Explanation:
    length, size = _sizes(
        container,
        ("Tokens in the text", 2, 64, 6, "shapes_length"),
        ("Size of the mask", 1, 64, 5, "shapes_mask_size"),
    )
    st.code(
        f"scores + causal_mask({size})  # scores (1, 4, {length}, {length}), mask ({size}, {size})",
        language="python",
    )
    attempt = shape_mistakes.wrong_mask(length, size)
    return Explanation(
        attempt,
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


def _sizes(container: DeltaGenerator, first: Size, second: Size) -> tuple[int, int]:
    """Two whole numbers, side by side."""
    left, right = container.columns(2)
    return widgets.whole(*first, container=left), widgets.whole(*second, container=right)


def _result(explanation: Explanation) -> None:
    """Draws the result in PyTorch's words, and how to mend it."""
    attempt = explanation.attempt
    st.table(
        pd.DataFrame(
            [(name, f"{shape}") for name, shape in attempt.shapes]
            + [("output", "none: an error" if attempt.errors else f"{attempt.made}")],
            columns=["tensor", "shape"],
        ).set_index("tensor"),
        border="horizontal",
    )
    if not attempt.errors:
        (st.success if explanation.good else st.warning)(f"Output: {attempt.made}.")
        return
    who, said = attempt.errors[-1]
    st.error(words.raised(who))
    st.code(said, language="text", wrap_lines=True)
    st.markdown(f"**How to fix it.** {explanation.fix}")


def _all_errors(explanation: Explanation) -> None:
    """Draws what was expected, what came, and every error on the way."""
    st.markdown(f"**Expected.** {explanation.expected}")
    if explanation.attempt.errors:
        st.markdown(f"**What arrived.** {explanation.came}")
    for who, said in explanation.attempt.errors[:-1]:
        st.error(words.raised(who))
        st.code(said, language="text", wrap_lines=True)
