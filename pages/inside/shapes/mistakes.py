"""Wrong shapes: a mistake is chosen and run, and what comes back is told in plain words."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine.measure.shapes import shape_mistakes
from pages.inside.shapes import words
from pages.inside.shapes.words import Explanation
from ui import explain, widgets

Size = tuple[str, int, int, int, str]  # label, least, largest, first, key


def _heads(d_model: int, n_heads: int) -> Explanation:
    division = shape_mistakes.division(d_model, n_heads)
    return words.unequal_heads(shape_mistakes.split_heads(d_model, n_heads), division, d_model, n_heads)


def _unembedding(d_model: int, vocab: int) -> Explanation:
    return words.transposed(shape_mistakes.transposed_unembedding(d_model, vocab), d_model, vocab)


def _mask(length: int, size: int) -> Explanation:
    return words.other_mask(shape_mistakes.wrong_mask(length, size), length, size)


MISTAKES: dict[str, tuple[Size, Size, Callable[[int, int], Explanation]]] = {
    "heads": (
        ("d_model", 1, 1024, 128, "shapes_d_model"),
        ("n_heads", 1, 64, 3, "shapes_n_heads"),
        _heads,
    ),
    "unembedding": (
        ("d_model", 1, 1024, 128, "shapes_d_model"),
        ("vocab_size", 1, 2000, 65, "shapes_vocab"),
        _unembedding,
    ),
    "mask": (
        (words.LENGTH, 2, 64, 6, "shapes_length"),
        (words.MASK_SIZE, 1, 64, 5, "shapes_mask_size"),
        _mask,
    ),
}


def draw_mistakes() -> None:
    """Draws the mistake, its two sizes, the line that is run, and what comes back."""
    left, right = st.columns([2, 3], gap="large")
    kind = widgets.select(words.MISTAKE, words.MISTAKES, "shapes_mistake", kind="list", container=left)
    first, second, run = MISTAKES[kind]
    a, b = right.columns(2)
    explanation = run(widgets.whole(*first, container=a), widgets.whole(*second, container=b))
    st.code(explanation.code, language="python")
    explain.answer(words.outcome(explanation))
    _result(explanation)
    explain.measure_it(_all_errors, explanation)


def _result(explanation: Explanation) -> None:
    """Draws the shapes, the result in PyTorch's words, and how to fix it."""
    attempt = explanation.attempt
    st.table(words.shapes_table(attempt), border="horizontal")
    if not attempt.errors:
        (st.success if explanation.good else st.warning)(words.OUTPUT_OF.format(attempt=attempt))
        return
    _raised(*attempt.errors[-1])
    st.markdown(words.FIX_OF.format(explanation=explanation))


def _all_errors(explanation: Explanation) -> None:
    """Draws what was expected, what came, and every error on the way."""
    st.markdown(words.expected_of(explanation))
    for error in explanation.attempt.errors[:-1]:
        _raised(*error)


def _raised(error: str, message: str) -> None:
    st.error(words.raised(error))
    st.code(message, language="text", wrap_lines=True)
