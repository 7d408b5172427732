"""The view "Overview": encoder, decoder, and both, beside each other: of what they are made, who sees"
" whom."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.ledger import Ledger
from engine.ledger.model_choices import Size, three
from engine.measure.families.visibility import Flow, flows
from pages.models.families import words_three as words
from pages.models.families.drawing import drawing, figure
from pages.models.families.figures_mask import masks_figure
from ui import explain, widgets
from ui.players.plot import plot

HEIGHT = 240
SIZES = {"4-128-4": Size(4, 128, 4), "12-768-12": Size(12, 768, 12), "24-1024-16": Size(24, 1024, 16)}


def draw_three() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        shown = widgets.select("Show", words.SHOWN, "families_show", hidden=True)
        step = len(words.WRITTEN)
        if shown == "masks":
            step = widgets.slide("Writing step", 1, step, 2, "families_step", width=300)
        size = widgets.select(
            "Sizes", words.SIZES, "families_three", first="12-768-12", kind="list", hidden=True, width=250
        )
    counted = three(SIZES[size])
    now = flows(len(words.GIVEN), len(words.WRITTEN), step)
    for column, family in zip(st.columns([4, 4, 6], gap="small"), words.FAMILIES, strict=True):
        with column:
            st.markdown(f"**{words.FAMILIES[family]}**")
            if shown == "masks":
                _masks(family, now[family])
            else:
                _drawn(family, counted[family])
    with st.container(key="whole_words"):
        st.table(
            pd.DataFrame(
                {
                    words.FAMILIES[family]: [*told, f"{counted[family].total:,}"]
                    for family, told in words.ROWS.items()
                },
                index=list(words.ROW_NAMES),
            ),
            border="horizontal",
        )
    if shown == "masks":
        explain.answer(words.flow(step, now))
    else:
        explain.answer(words.sizes({family: each.total for family, each in counted.items()}))
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _drawn(family: str, counted: Ledger) -> None:
    plot(
        figure(counted, HEIGHT, small=True),
        key=f"families_drawn_{family}",
        alt=words.drawn_alt(family, [box.text for box in drawing(counted).boxes]),
        height=HEIGHT,
        name=family,
        data={"part": [row.name for row in counted.rows], "parameters": [r.parameters for r in counted.rows]},
    )


def _masks(family: str, made: tuple[Flow, ...]) -> None:
    axes = {flow.name: words.axes(family, flow.name) for flow in made}
    plot(
        masks_figure(made, axes, words.MATRICES, HEIGHT),
        key=f"families_masks_{family}",
        alt=words.masks_alt(family, made),
        height=HEIGHT,
        name=f"{family}-masks",
        data={
            "matrix": [flow.name for flow in made for _ in flow.cells.ravel()],
            "state": [words.STATES[cell] for flow in made for cell in flow.cells.ravel()],
        },
    )
