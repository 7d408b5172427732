"""The view "Overview": encoder, decoder, and both, beside each other: their parts, and who sees whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.ledger import Ledger
from engine.ledger.model_choices import Size, three
from engine.measure.families.visibility import DONE, HIDDEN, LATER, NOW, Flow, flows
from pages.models.families import words_three as words
from pages.models.families.drawing import figure, part_names
from ui import explain, widgets
from ui.figures.masks import HIDDEN_SHADE, Mask, masks_figure
from ui.figures.theme import colour
from ui.players.plot import plot

HEIGHT = 236
SHADES = {
    HIDDEN: HIDDEN_SHADE,
    LATER: colour("attention", 14),
    DONE: colour("attention", 48),
    NOW: colour("attention"),
}
SIZES = {"4-128-4": Size(4, 128, 4), "12-768-12": Size(12, 768, 12), "24-1024-16": Size(24, 1024, 16)}


def draw_architecture(beside: DeltaGenerator) -> None:
    with beside:
        counted = three(SIZES[_size()])
    for column, family in _columns():
        with column:
            _drawn(family, counted[family])
    _table(counted)
    explain.answer(words.sizes({family: each.total for family, each in counted.items()}))
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def draw_masks(beside: DeltaGenerator) -> None:
    with beside:
        step = widgets.slide("Writing step", 1, len(words.WRITTEN), 2, "families_step", width=300)
        counted = three(SIZES[_size()])
    now = flows(len(words.GIVEN), len(words.WRITTEN), step)
    for column, family in _columns():
        with column:
            _masks(family, now[family])
    _table(counted)
    explain.answer(words.flow(step, now))
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _size() -> str:
    return widgets.select(
        "Sizes", words.SIZES, "families_three", first="12-768-12", kind="list", hidden=True, width=250
    )


def _columns() -> Iterator[tuple[DeltaGenerator, str]]:
    """Yields a column for each family, below its name."""
    for column, family in zip(st.columns([4, 4, 6], gap="small"), words.FAMILIES, strict=True):
        column.markdown(f"**{words.FAMILIES[family]}**")
        yield column, family


def _table(counted: Mapping[str, Ledger]) -> None:
    columns = {
        words.FAMILIES[family]: [*cells, f"{counted[family].total:,}"] for family, cells in words.ROWS.items()
    }
    with st.container(key="whole_words"):
        st.table(pd.DataFrame(columns, index=list(words.ROW_NAMES)), border="horizontal")


def _drawn(family: str, counted: Ledger) -> None:
    plot(
        figure(counted, HEIGHT, small=True),
        key=f"families_drawn_{family}",
        alt=words.drawn_alt(family, part_names(counted)),
        height=HEIGHT,
        name=family,
        data={"part": [row.name for row in counted.rows], "parameters": [r.parameters for r in counted.rows]},
    )


def _masks(family: str, family_flows: tuple[Flow, ...]) -> None:
    masks = [
        Mask(words.MATRICES[flow.name], flow.cells, *words.axes(family, flow.name)) for flow in family_flows
    ]
    plot(
        masks_figure(masks, [*SHADES.values()]),
        key=f"families_masks_{family}",
        alt=words.masks_alt(family, family_flows),
        height=HEIGHT,
        name=f"{family}-masks",
        data={
            "matrix": [flow.name for flow in family_flows for _ in flow.cells.ravel()],
            "state": [words.STATES[cell] for flow in family_flows for cell in flow.cells.ravel()],
        },
    )
