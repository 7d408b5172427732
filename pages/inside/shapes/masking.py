"""By hand: the mask before the softmax, and after it."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ShapeError
from engine.measure.shapes.attention_by_hand import MaskExample, masking
from pages.inside.shapes import words
from pages.inside.shapes.figures import weight_bars
from pages.inside.shapes.notation import number, numbers
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe

SCORES = "1.0, 2.5, 0.5, 3.0"


def draw_mask(line: DeltaGenerator) -> None:
    with line:
        text = st.text_input(
            words.SCORES, SCORES, key="shapes_scores", max_chars=80, width=260, **widgets.KEPT
        )
    try:
        scores = numbers(text or "")
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    keys = [f"key {i + 1}" for i in range(len(scores))]
    chosen = widgets.select_several(words.HIDDEN_KEYS, keys, "shapes_hidden", first=keys[-1:], container=line)
    hidden = [keys.index(name) for name in chosen]
    try:
        example = masking(scores, hidden)
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    explain.answer(words.masked(example, len(hidden)))
    plot(
        weight_bars(keys, example),
        key="shapes_mask",
        alt=words.masking_alt(example),
        height=340,
        data={
            "key": keys,
            "mask before softmax": example.weights,
            "mask after softmax": example.masked_after,
        },
        name="masking",
    )
    explain.measure_it(_mask_table, example, keys)
    explain.by_hand(_one_weight, example)


def _one_weight(example: MaskExample) -> None:
    """The weight of the first key that is seen, written out."""
    powers, first = [number(power) for power in example.exponents], example.visible[0]
    terms = " + ".join(rf"e^{{{power}}}" for power in powers)
    weight = number(float(example.weights[first]), 2)
    share = (
        rf"\frac{{e^{{{powers[0]}}}}}{{{terms}}} ="
        rf" \frac{{{number(float(example.exponentials[first]), 3)}}}{{{number(example.total, 3)}}}"
    )
    if example.shift:
        st.caption(words.too_large(number(example.shift)))
    st.latex(rf"w_{{{first + 1}}} = {share} = {weight}")


def _mask_table(example: MaskExample, keys: list[str]) -> None:
    st.table(words.mask_table(example, keys))
    if example.lost:
        st.markdown(words.late(example))
