"""The view "Overview": encoder, decoder, and both, beside each other: their parts, and who sees whom; or
three trained models with one text (trained_models.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.models.families import trained_models
from pages.models.families.drawing import figure, part_names
from studies.costs.ledger import Ledger
from studies.costs.model_choices import Size, three
from studies.families.visibility import DONE, HIDDEN, LATER, NOW, Flow, flows
from studies.pairs.seq2seq import Seq2Seq
from ui import content, explain, widgets
from ui.figures.masks import HIDDEN_SHADE, Mask, masks_figure
from ui.figures.theme import colour
from ui.page_frame import Code, Parts, View
from ui.players.plot import plot

TEXT = content.beside(__file__)
HEIGHT = 236
FAMILIES = ("encoder", "decoder", "both")
SIZES = {"4-128-4": Size(4, 128, 4), "12-768-12": Size(12, 768, 12), "24-1024-16": Size(24, 1024, 16)}
SHADES = {
    HIDDEN: HIDDEN_SHADE,
    LATER: colour("attention", 14),
    DONE: colour("attention", 48),
    NOW: colour("attention"),
}
STATES = {HIDDEN: "hidden", LATER: "later", DONE: "done", NOW: "now"}
CODE: Code = (flows, Seq2Seq.forward, Seq2Seq.encode, Seq2Seq.decode)


def draw_architecture(beside: DeltaGenerator) -> None:
    with beside:
        counted = three(SIZES[_size()])
    for column, family in _columns():
        with column:
            _drawn(family, counted[family])
    _table(counted)
    totals = {family: each.total for family, each in counted.items()}
    explain.answer(TEXT("sizes", decoder=totals["decoder"], both=totals["both"]))
    explain.by_hand(st.markdown, TEXT["by hand"])


def draw_masks(beside: DeltaGenerator) -> None:
    given, written = _words("given"), _words("written")
    with beside:
        step = widgets.slide(TEXT["step of writing"], 1, len(written), 2, "families_step", width=300)
        counted = three(SIZES[_size()])
    now = flows(len(given), len(written), step)
    for column, family in _columns():
        with column:
            _masks(family, now[family])
    _table(counted)
    source, target, cross = now["both"]
    explain.answer(
        TEXT(
            "first step" if step == 1 else "step",
            step=step,
            encoder=now["encoder"][0].now,
            decoder=now["decoder"][0].now,
            source=source.now,
            target=target.now,
            cross=cross.now,
        )
    )
    explain.by_hand(st.markdown, TEXT["by hand"])


def _words(name: str) -> list[str]:
    """Returns the words of an example."""
    return TEXT(f"example {name}").split()


def _size() -> str:
    sizes = {size: TEXT(f"size {size}") for size in SIZES}
    return widgets.select(
        TEXT["sizes of all"],
        sizes,
        "families_three",
        first="12-768-12",
        kind="list",
        hidden=True,
        width=250,
    )


def _family(family: str) -> str:
    return TEXT(f"family {family}")


def _columns() -> Iterator[tuple[DeltaGenerator, str]]:
    """Yields a column for each family, below its name."""
    for column, family in zip(st.columns([4, 4, 6], gap="small"), FAMILIES, strict=True):
        column.markdown(TEXT("family", family=_family(family)))
        yield column, family


def _table(counted: Mapping[str, Ledger]) -> None:
    about = ("trained", "good", "models")
    columns = {
        _family(family): [
            TEXT(f"trained {family}"),
            TEXT(f"good {family}"),
            TEXT(f"models {family}"),
            f"{counted[family].total:,}",
        ]
        for family in FAMILIES
    }
    rows = [TEXT(f"row {row}") for row in (*about, "parameters")]
    with st.container(key="whole_words"):
        st.table(pd.DataFrame(columns, index=rows), border="horizontal")


def _drawn(family: str, counted: Ledger) -> None:
    plot(
        figure(counted, HEIGHT, small=True),
        key=f"families_drawn_{family}",
        alt=TEXT("alt drawing", family=_family(family), parts="; ".join(part_names(counted))),
        height=HEIGHT,
        name=family,
        data={"part": [row.name for row in counted.rows], "parameters": [r.parameters for r in counted.rows]},
    )


def _masks(family: str, family_flows: tuple[Flow, ...]) -> None:
    titles = [TEXT(f"mask {flow.name}") for flow in family_flows]
    masks = [
        Mask(title, flow.cells, *_axes(family, flow.name))
        for title, flow in zip(titles, family_flows, strict=True)
    ]
    said = [
        TEXT("alt mask", mask=title, seen=flow.seen, allowed=flow.allowed, now=flow.now)
        for title, flow in zip(titles, family_flows, strict=True)
    ]
    plot(
        masks_figure(masks, [*SHADES.values()]),
        key=f"families_masks_{family}",
        alt=TEXT("alt masks", family=_family(family).lower(), masks="; ".join(said)),
        height=HEIGHT,
        name=f"{family}-masks",
        data={
            "matrix": [flow.name for flow in family_flows for _ in flow.cells.ravel()],
            "state": [TEXT(f"state {STATES[cell]}") for flow in family_flows for cell in flow.cells.ravel()],
        },
    )


def _axes(family: str, matrix: str) -> tuple[Sequence[str], Sequence[str]]:
    """Returns (tokens of the queries, of the keys)."""
    given = _words("given")
    if family == "encoder":
        return _words("blanked"), _words("blanked")
    if family == "decoder":
        whole = [*given, *_words("continued")[:-1]]
        return whole, whole
    read = [TEXT["begin"], *_words("written")[:-1]]
    return {"encoder": (given, given), "decoder": (read, read), "cross": (read, given)}[matrix]


DRAWING = View("drawing", TEXT, draw_architecture, CODE, name=TEXT["architecture"])
MASKS = View("masks", TEXT, draw_masks, CODE, name=TEXT["masks"], variant="masks")
VIEW = View(
    "three",
    TEXT,
    needs_model=False,
    parts=Parts("families_show", (DRAWING, MASKS, trained_models.PART), label=TEXT["show"]),
)
