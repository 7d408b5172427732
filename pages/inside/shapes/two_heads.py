"""By hand: one query, two keys, and heads that share out the numbers."""

from __future__ import annotations

import streamlit as st

from engine.errors import ShapeError
from engine.measure.byhand import HandExample, multi_head, one_weight
from pages.inside.shapes.notation import matrix, number, numbers, signed
from ui import explain, widgets
from ui.text.markdown import safe

ROWS = {"q": "1, 2, 3, 4", "k1": "5, 6, 7, 8", "k2": "9, 0, 1, 2", "v1": "1, 0, 0, 1", "v2": "0, 1, 1, 0"}
HIDDEN: dict[str, tuple[int, ...]] = {"none": (), "k1": (0,), "k2": (1,)}
BOLD = 0.95  # of a head's weight on one key: the scores are far apart


def draw_heads() -> None:
    st.markdown(
        "One query **q** looks at two keys **k1**, **k2** and takes from their values **v1**, **v2**. Change"
        " any number."
    )
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
        st.error(
            "All five rows must have the same number of numbers: "
            + ", ".join(f"{name} has {len(row)}" for name, row in rows.items())
            + "."
        )
        return
    width = len(rows["q"])
    left, right = st.columns([1, 1])
    with left:
        fitting = [n for n in range(1, width + 1) if width % n == 0]
        heads = widgets.one_of("Heads", fitting, "shapes_heads", first=2 if width % 2 == 0 else 1)
    with right:
        hidden = HIDDEN[widgets.one_of("Hide a key", list(HIDDEN), "shapes_hide")]
    example = multi_head([rows["q"]], [rows["k1"], rows["k2"]], [rows["v1"], rows["v2"]], heads, hidden)
    _stages(example)
    _cell(example)
    st.latex(
        rf"\text{{output}} = [{', '.join(f'z^{{({h + 1})}}' for h in range(heads))}] ="
        rf" {matrix(example.out, 3)}"
    )
    explain.takeaway(
        f"Each head sees its own {example.d_head} of the {width} numbers, so each looks where it likes."
        f" Dividing by $\\sqrt{{d_{{head}}}} = \\sqrt{{{example.d_head}}}$ keeps wide heads from answering"
        " with a plain yes or no."
        + (
            f" Here the scores are so far apart that every head still gives {example.most:.1%} or more to one"
            " key."
            if example.most > BOLD
            else ""
        )
    )


def _stages(example: HandExample) -> None:
    """Every stage of every head, as matrices."""
    count = len(example.q)
    per_row = min(count, 2)
    for start in range(0, count, per_row):
        for column, h in zip(
            st.columns(per_row, border=True), range(start, min(start + per_row, count)), strict=False
        ):
            with column:
                first, last = h * example.d_head + 1, (h + 1) * example.d_head
                st.markdown(
                    f"**Head {h + 1}** · "
                    + (f"numbers {first} to {last}" if last > first else f"number {first}")
                    + " of each row"
                )
                root = rf"\sqrt{{{example.d_head}}}"
                lines = [
                    ("q", matrix(example.q[h])),
                    ("k", matrix(example.k[h])),
                    ("v", matrix(example.v[h])),
                    (r"q\,k^\top", matrix(example.raw[h])),
                    (rf"q\,k^\top / {root}", matrix(example.scaled[h])),
                    (r"+\ \text{mask}", matrix(example.masked[h])),
                    (r"\text{softmax}", matrix(example.pattern[h], 3)),
                    (r"z = \text{softmax} \cdot v", matrix(example.z[h], 3)),
                ]
                body = r" \\[8pt] ".join(rf"{name} &= {value}" for name, value in lines)
                st.latex(rf"\begin{{aligned}} {body} \end{{aligned}}")


def _cell(example: HandExample) -> None:
    st.markdown("**One number, written out**")
    left, right = st.columns(2)
    with left:
        head = widgets.one_of("of head", range(1, len(example.q) + 1), "shapes_cell_head") - 1
    with right:
        key = widgets.one_of("for key", (1, 2), "shapes_cell_key") - 1
    found = one_weight(example, head, key)
    raw, scaled = number(found.raw), number(found.scaled)
    products = " + ".join(rf"{signed(a)} \cdot {signed(b)}" for a, b in found.pairs)
    st.latex(
        rf"q \cdot k_{key + 1} = {products} = {raw} \qquad"
        rf" \frac{{{raw}}}{{\sqrt{{{example.d_head}}}}} = {scaled}"
    )
    if found.hidden:
        st.latex(r"\text{masked: } e^{-\infty} = 0, \text{ so its weight is } 0")
        return
    terms = " + ".join(rf"e^{{{number(x)}}}" for x in found.seen)
    st.latex(rf"\frac{{e^{{{scaled}}}}}{{{terms}}} = {number(found.weight, 4)}")
