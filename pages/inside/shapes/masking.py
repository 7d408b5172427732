"""The part "Masking": the mask before the softmax, and after it, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ShapeError
from engine.recording import softmax
from pages.inside.shapes.notation import number, numbers, plain
from studies.shapes.attention_by_hand import MaskExample, masking
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
SCORES = "1.0, 2.5, 0.5, 3.0"


def draw(line: DeltaGenerator) -> None:
    with line:
        text = st.text_input(
            TEXT["scores"], SCORES, key="shapes_scores", max_chars=80, width=260, **widgets.KEPT
        )
    try:
        scores = numbers(text or "")
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    keys = [TEXT("key", number=i + 1) for i in range(len(scores))]
    chosen = widgets.select_several(
        TEXT["hidden keys"], keys, "shapes_hidden", first=keys[-1:], container=line
    )
    hidden = [keys.index(name) for name in chosen]
    try:
        example = masking(scores, hidden)
    except ShapeError as error:
        st.error(safe(str(error)))
        return
    case = "weight lost" if hidden else "nothing hidden"
    explain.answer(TEXT(case, sum=example.late_sum, lost=example.lost))
    plot(
        weight_bars(keys, example),
        key="shapes_mask",
        alt=TEXT("alt", keys=len(example.scores), sum=example.late_sum),
        height=340,
        data={
            "key": keys,
            TEXT["before"]: example.weights,
            TEXT["after"]: example.masked_after,
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
        st.caption(TEXT("largest subtracted", shift=content.Filled(number(example.shift))))
    st.latex(rf"w_{{{first + 1}}} = {share} = {weight}")


def _mask_table(example: MaskExample, keys: list[str]) -> None:
    """A row for each stage, a column for each key, and their sum."""
    stages = {
        "scores": example.scores,
        "scores + mask": example.masked,
        "e^(…)": example.exponentials,
        TEXT["row weights"]: example.weights,
        "softmax over all": example.unmasked,
        TEXT["row wrong"]: example.masked_after,
    }
    # neither the scores nor the masked ones are summed
    sums = ["", "", *(f"{number:.2f}" for number in (example.total, *example.sums))]
    body = {key: [plain(float(values[i])) for values in stages.values()] for i, key in enumerate(keys)}
    st.table(pd.DataFrame(body | {"sum": sums}, index=list(stages)))
    if example.lost:
        st.markdown(TEXT("before the softmax", sum=example.late_sum, lost=example.lost))


def weight_bars(keys: Sequence[str], example: MaskExample) -> go.Figure:
    """Draws weights of one query over its keys: masked before the softmax, and after it."""
    right, _, late = example.sums
    bars = [
        go.Bar(
            x=list(keys),
            y=values,
            name=TEXT("bar", name=name, sum=total),
            marker={"color": colour(part)},
            text=[f"{v:.2f}" for v in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.4f}<extra>" + name + "</extra>",
        )
        for name, values, total, part in (
            (TEXT["before"], example.weights, right, "attention"),
            (TEXT["after"], example.masked_after, late, "quiet"),
        )
    ]
    return go.figure(
        bars,
        barmode="group",
        yaxis={"title": {"text": "weight"}, "range": [0, 1.1]},
        xaxis={"title": {"text": "key"}},
        bargap=0.3,
    )


PART = View("mask", TEXT, draw, code=(masking, softmax))
