"""By hand: the mask before the softmax, and after it."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ShapeError
from engine.measure.shapes.attention_by_hand import MaskExample, masking
from pages.inside.shapes import words
from pages.inside.shapes.figures import weight_bars
from pages.inside.shapes.notation import number, numbers, plain
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe

SCORES = "1.0, 2.5, 0.5, 3.0"


def draw_mask(line: DeltaGenerator) -> None:
    with line:
        text = st.text_input(
            "Scores of one query", SCORES, key="shapes_scores", max_chars=80, width=260, **widgets.KEPT
        )
    try:
        scores = numbers(text or "")
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    keys = [f"key {i + 1}" for i in range(len(scores))]
    chosen = widgets.select_several("Hidden keys", keys, "shapes_hidden", first=keys[-1:], container=line)
    hidden = [keys.index(name) for name in chosen]
    try:
        example = masking(scores, hidden)
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    explain.answer(words.masked(example, len(hidden)))
    alt = (
        f"Weights of {len(keys)} keys with the mask before the softmax, summing to 1, and after it, summing"
        f" to {example.late_sum:.2f}."
    )
    table = pd.DataFrame(
        {"key": keys, "mask before softmax": example.weights, "mask after softmax": example.masked_after}
    )
    plot(
        weight_bars(keys, example),
        key="shapes_mask",
        alt=alt,
        height=340,
        data=table,
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
    st.table(pd.DataFrame(body | {"sum": sums}, index=list(stages)))
    if example.lost:
        st.markdown(words.late(example))
