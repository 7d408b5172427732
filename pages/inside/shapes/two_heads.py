"""The part "Two heads": one query, two keys, and heads that share out the numbers, by hand."""

from __future__ import annotations

from functools import partial
from random import Random

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import ShapeError
from engine.recording import softmax
from pages.inside.shapes.notation import matrix, number, numbers, signed
from studies.exercises.worked import attention
from studies.shapes.attention_by_hand import HandExample, multi_head, weight_by_hand
from ui import content, explain, fill_in, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
ROWS = {"q": "1, 2, 3, 4", "k1": "5, 6, 7, 8", "k2": "9, 0, 1, 2", "v1": "1, 0, 0, 1", "v2": "0, 1, 1, 0"}
FEW = 2  # heads whose numbers stand beside the bars: more are folded
BOLD = 0.95  # of a head's weight on one key: the scores are far apart
FILLED = "shapes_hand"  # begins what the address says of the example that the reader fills in
HIDDEN: dict[str, tuple[int, ...]] = {"none": (), "k1": (0,), "k2": (1,)}


def draw(line: DeltaGenerator) -> None:
    """Draws the numbers, every stage of every head, and who looks where."""
    rows: dict[str, list[float]] = {}
    for column, (name, first) in zip(st.columns(5, gap="small"), ROWS.items(), strict=True):
        with column:
            text = st.text_input(name, first, key=f"shapes_{name}", max_chars=60, **widgets.KEPT)
            try:
                rows[name] = numbers(text or "")
            except ShapeError as error:
                st.error(safe(f"{name}: {error}"))
    if len(rows) < len(ROWS):
        return
    if len({len(row) for row in rows.values()}) > 1:
        lengths = ", ".join(TEXT("length", name=name, length=len(row)) for name, row in rows.items())
        st.error(TEXT("other lengths", lengths=content.Filled(lengths)))
        return
    width = len(rows["q"])
    fitting = [n for n in range(1, width + 1) if width % n == 0]
    half = 2 if width % 2 == 0 else 1
    heads = widgets.select(TEXT["heads"], fitting, "shapes_heads", first=half, container=line)
    hidden = HIDDEN[widgets.select(TEXT["hide"], list(HIDDEN), "shapes_hide", container=line)]
    example = multi_head([rows["q"]], [rows["k1"], rows["k2"]], [rows["v1"], rows["v2"]], heads, hidden)
    if fill_in.hides(FILLED):
        explain.answer(TEXT("left to you", d_head=example.d_head))
        explain.by_hand(_filled_in, example)
        return
    shares = "; ".join(
        TEXT("share of head", head=head, key=key, share=share)
        for head, (key, share) in enumerate(example.first, 1)
    )
    case = "one head" if heads == 1 else "several heads"
    explain.answer(TEXT(case, d_head=example.d_head, shares=content.Filled(shares)))
    _results(example)
    explain.measure_it(_stages, example)
    explain.by_hand(_filled_in, example)


def _filled_in(example: HandExample) -> None:
    """Draws the arithmetic of one weight, or all steps for the reader to fill in."""
    fill_in.draw(FILLED, lambda _: attention.two_heads(example), partial(_cell, example), _renew)


def _renew() -> None:
    """Writes other numbers into the boxes: which ones follows from what stands there."""
    before = " ".join(str(st.session_state.get(f"shapes_{name}", first)) for name, first in ROWS.items())
    for name, row in attention.draw(Random(before)).items():
        widgets.put(f"shapes_{name}", ", ".join(map(str, row)))


def _results(example: HandExample) -> None:
    """The weights of each head as bars; beside them its scores, its weights and what it writes."""
    mostly = ", ".join(TEXT("mostly", head=head, key=key) for head, (key, _) in enumerate(example.first, 1))
    with st.container(key="shapes_heads_worked"):
        left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    with left:
        plot(
            head_bars(example),
            key="shapes_two_heads",
            alt=TEXT("alt", heads=len(example.q), mostly=mostly),
            height=290,
            data=pd.DataFrame(example.pattern[:, 0], columns=["k1", "k2"]),
            name="heads",
        )
    few = min(len(example.q), FEW)
    with right:
        for column, h in zip(st.columns(few, border=True), range(few), strict=True):
            with column:
                st.markdown(_title(h, example))
                _lines(
                    (r"q\,k^\top", matrix(example.raw[h])),
                    (rf"\text{{/}}\sqrt{{{example.d_head}}}", matrix(example.scaled[h])),
                    (r"\text{weights}", matrix(example.pattern[h], 3)),
                    ("z", matrix(example.z[h], 3)),
                )
        st.latex(rf"\text{{output}} = {matrix(example.out, 3)}")


def _title(head: int, example: HandExample) -> str:
    """Names a head: `head` counts from 0; on the screen from 1."""
    first, last = head * example.d_head + 1, (head + 1) * example.d_head
    case = "head of several" if last > first else "head of one"
    return TEXT(case, head=head + 1, first=first, last=last)


def _lines(*lines: tuple[str, str]) -> None:
    """Equations below each other, aligned at their signs."""
    body = r" \\[8pt] ".join(rf"{name} &= {value}" for name, value in lines)
    st.latex(rf"\begin{{aligned}} {body} \end{{aligned}}")


def _stages(example: HandExample) -> None:
    """Every stage of every head, as matrices."""
    scaled = TEXT("scaled", d_head=example.d_head)
    st.markdown(f"{scaled} {TEXT('far apart', most=example.most)}" if example.most > BOLD else scaled)
    count = len(example.q)
    per_row = min(count, 2)
    for start in range(0, count, per_row):
        for column, h in zip(
            st.columns(per_row, border=True), range(start, min(start + per_row, count)), strict=False
        ):
            with column:
                st.markdown(_title(h, example))
                root = rf"\sqrt{{{example.d_head}}}"
                _lines(
                    ("q", matrix(example.q[h])),
                    ("k", matrix(example.k[h])),
                    ("v", matrix(example.v[h])),
                    (r"q\,k^\top", matrix(example.raw[h])),
                    (rf"q\,k^\top / {root}", matrix(example.scaled[h])),
                    (r"+\ \text{mask}", matrix(example.masked[h])),
                    (r"\text{softmax}", matrix(example.pattern[h], 3)),
                    (r"z = \text{softmax} \cdot v", matrix(example.z[h], 3)),
                )


def _cell(example: HandExample) -> None:
    left, right = st.columns(2)
    with left:
        head = widgets.select(TEXT["head"], range(1, len(example.q) + 1), "shapes_cell_head") - 1
    with right:
        key = widgets.select(TEXT["key"], (1, 2), "shapes_cell_key") - 1
    worked = weight_by_hand(example, head, key)
    raw, scaled = number(worked.raw), number(worked.scaled)
    products = " + ".join(rf"{signed(a)} \cdot {signed(b)}" for a, b in worked.pairs)
    st.latex(
        rf"q \cdot k_{key + 1} = {products} = {raw} \qquad"
        rf" \frac{{{raw}}}{{\sqrt{{{example.d_head}}}}} = {scaled}"
    )
    if worked.hidden:
        st.latex(TEXT["masked"])
        return
    terms = " + ".join(rf"e^{{{number(x)}}}" for x in worked.seen)
    st.latex(rf"\frac{{e^{{{scaled}}}}}{{{terms}}} = {number(worked.weight, 4)}")


def head_bars(example: HandExample) -> go.Figure:
    """Draws the weights that each head's query gives to the keys."""
    keys = [f"k{i + 1}" for i in range(example.k.shape[1])]
    bars = [
        go.Bar(
            x=[TEXT("bar", head=h + 1) for h in range(len(example.q))],
            y=example.pattern[:, 0, i],
            name=TEXT("to", key=key),
            marker={"color": colour("attention" if i == 0 else "quiet")},
            text=[f"{v:.3f}" for v in example.pattern[:, 0, i]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=TEXT("hover", key=key),
        )
        for i, key in enumerate(keys)
    ]
    return go.figure(
        bars,
        barmode="group",
        margin={"l": 52, "r": 8, "t": 34, "b": 34},
        yaxis={"title": {"text": "weight"}, "range": [0, 1.12], "nticks": 6},
        bargap=0.3,
    )


PART = View("heads", TEXT, draw, code=(multi_head, softmax))
