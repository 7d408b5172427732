"""Wrong shapes: a mistake is chosen and run, and what comes back is told in plain words."""

from __future__ import annotations

import streamlit as st

from engine.measure import mistakes
from engine.measure.mistakes import Attempt
from ui import widgets

Size = tuple[str, int, int, int, str]  # label, least, largest, first, key
MISTAKES = {
    "heads": "Heads that do not divide",
    "unembedding": "A transposed unembedding",
    "mask": "A mask of the wrong size",
}


def draw_mistakes() -> None:
    st.markdown(
        "Choose a mistake. It is run for real, and what comes back is the engine's and PyTorch's own words."
    )
    kind = widgets.one_of("Mistake", MISTAKES, "shapes_mistake", hidden=True)
    {"heads": _heads_mistake, "unembedding": _unembedding_mistake, "mask": _mask_mistake}[kind]()


def _heads_mistake() -> None:
    d_model, n_heads = _sizes(
        ("d_model", 1, 1024, 128, "shapes_d_model"), ("n_heads", 1, 64, 3, "shapes_n_heads")
    )
    attempt, found = mistakes.split_heads(d_model, n_heads), mistakes.division(d_model, n_heads)
    st.code(
        f"x.unflatten(-1, (n_heads, d_model // n_heads))  # (1, 6, {d_model}) -> (1, 6, {n_heads},"
        f" {found.each})",
        language="python",
    )
    each, rest = found.each, found.rest
    _told(
        attempt,
        expected=f"{n_heads} heads of the same width, {n_heads} × d_head = {d_model}.",
        came=(
            f"{d_model} = {n_heads} × {each} + {rest}: {rest} number{'s are' if rest != 1 else ' is'} left"
            " over, and no head may have them."
            if each
            else f"{n_heads} heads for {d_model} numbers: some heads would get none."
        ),
        fix=(
            f"Take a number of heads that divides {d_model}, such as"
            f" {', '.join(str(n) for n in found.near)}, or set d_head yourself: then W_Q, W_K and W_V make"
            " n_heads × d_head numbers, and W_O brings them back to d_model."
        ),
        fine=f"{d_model} = {n_heads} × {each}: every head gets {each} numbers.",
    )


def _unembedding_mistake() -> None:
    d_model, vocab = _sizes(
        ("d_model", 1, 1024, 128, "shapes_d_model"), ("vocab_size", 1, 2000, 65, "shapes_vocab")
    )
    st.code(
        f"F.linear(x, embedding.T)  # embedding: ({vocab}, {d_model}); F.linear transposes again",
        language="python",
    )
    attempt = mistakes.transposed_unembedding(d_model, vocab)
    _told(
        attempt,
        expected=(
            f"x (1, 6, {d_model}) times W_U ({d_model}, {vocab}). `F.linear(x, W)` computes x Wᵀ, so W must"
            f" be (vocab, d_model) = ({vocab}, {d_model})."
        ),
        came=(
            f"W of shape ({d_model}, {vocab}). PyTorch folds (1, 6) into 6 rows and transposes W: 6×{d_model}"
            f" times {vocab}×{d_model}. The inner sizes, {d_model} and {vocab}, are not the same."
        ),
        fix="Leave the transpose out: the tied matrix is the embedding itself, `F.linear(x, embedding)`.",
        fine=(
            f"**No error, and still wrong.** vocab_size = d_model = {d_model}, so the transposed matrix fits."
            f" The logits are off by up to {attempt.harm or 0:.2f}. Shapes alone cannot catch this; a"
            " reference with other sizes, or with known weights, can."
        ),
        good=d_model == vocab == 1,
    )


def _mask_mistake() -> None:
    length, size = _sizes(
        ("tokens in the text", 2, 64, 6, "shapes_length"), ("size of the mask", 1, 64, 5, "shapes_mask_size")
    )
    st.code(
        f"scores + causal_mask({size})  # scores (1, 4, {length}, {length}), mask ({size}, {size})",
        language="python",
    )
    attempt = mistakes.wrong_mask(length, size)
    _told(
        attempt,
        expected=(
            f"A mask of (query, key) = ({length}, {length}): one row for each token that looks, one column"
            " for each that is looked at."
        ),
        came=(
            f"({size}, {size}). PyTorch compares sizes from the right: “dimension 3” is key, {length} against"
            f" {size}. Only a size of 1 stretches."
        ),
        fix=(
            "Make the mask for the length at hand, `causal_mask(length, scores)`, or cut a larger one:"
            " `mask[:length, :length]`."
        ),
        fine=(
            "The mask fits: a row for each query, a column for each key."
            if size == length
            else (
                "**No error, and still wrong.** A (1, 1) mask stretches over everything, and its one number"
                f" is 0: nothing is hidden. With equal scores, the first token puts {attempt.harm or 0:.0%}"
                " of its attention on the future. Training loss would look lovely, and the text would be"
                " poor."
            )
        ),
        good=size == length,
    )


def _sizes(first: Size, second: Size) -> tuple[int, int]:
    """Two whole numbers, side by side."""
    left, right = st.columns(2)
    return widgets.whole(*first, place=left), widgets.whole(*second, place=right)


def _told(attempt: Attempt, *, expected: str, came: str, fix: str, fine: str, good: bool = True) -> None:
    """What happened, in the machine's words and then in plain ones."""
    if not attempt.errors:
        (st.success if good else st.warning)(f"{fine} Output: {attempt.made}.")
        return
    for who, words in attempt.errors:
        early = who == "ConfigError"
        where = "of the engine, before anything is built" if early else "of PyTorch, in the middle of the run"
        st.error(f"**{who}** {where}")
        st.code(words, language="text", wrap_lines=True)
    for column, title, text in zip(
        st.columns(3), ("Expected", "What came", "How to fix it"), (expected, came, fix), strict=True
    ):
        with column:
            st.markdown(f"**{title}**")
            st.markdown(text)
