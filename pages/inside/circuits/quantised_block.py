"""One block of 32 weights of the view "Quantisation", number by number: what Q4_1 is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.circuits.quantisation import BLOCK, made
from engine.weights.pretrained.blocks import QuantisedBlock, block_at
from engine.weights.pretrained.load import Opened, open_model
from pages.inside.circuits.diamond import diamond
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.models import model_of
from ui.players.plot import plot
from ui.text.numbers import minus
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
MOST_LINES = 32  # levels that are drawn as lines; more would be a grey field


@memo.loaded()
def _opened(path: str) -> Opened:
    return open_model(path)


def opened_of(subject: Subject) -> Opened | None:
    """Returns the file of a published model; None for one that was trained here."""
    if not subject.is_pretrained:
        return None
    path = getattr(model_of(subject.key[0], NEWEST, ()), "path", None)
    return None if path is None else _opened(str(path))


def draw_block(subject: Subject, name: str) -> None:
    """Draws its numbers on their levels, and the arithmetic of one of them."""
    matrix = dict(subject.model.named_parameters())[name]
    rows, columns = matrix.shape
    a, b, c = st.columns(3, gap="small")
    row = widgets.whole(TEXT["row"], 0, rows - 1, 0, "bits_row", container=a)
    index = widgets.whole(TEXT["block"], 0, (columns - 1) // BLOCK, 0, "bits_index", container=b)
    opened = opened_of(subject)
    stored = None if opened is None else block_at(opened, name, row, index)
    block = stored or made(matrix.detach(), row, index)
    number = widgets.whole(TEXT["number"], 0, len(block.q) - 1, 0, "bits_number", container=c)
    plot(
        block_of_numbers(block, number),
        key="bits_of_block",
        height=300,
        name="block",
        data=_table(block),
        alt=TEXT("alt", count=len(block.q), levels=len(block.levels)),
    )
    explain.answer(answer(block, number))
    explain.measure_it(_all_of_it, block, opened is not None)


def _all_of_it(block: QuantisedBlock, published: bool) -> None:
    """All its numbers, and its bytes; `published`: the model has a file."""
    if block.raw:
        name = content.Filled(block.name or "")
        st.caption(TEXT("read from file", row=block.row, name=name, bytes=len(block.raw)))
    else:
        st.caption(TEXT["other format" if published else "computed"])
    st.dataframe(pd.DataFrame(_table(block)), hide_index=True, height=300)
    if block.raw:
        st.code(block.raw.hex(" "), language=None, wrap_lines=True)


def _table(block: QuantisedBlock) -> dict[str, Any]:
    table: dict[str, Any] = {"number": np.arange(len(block.q)), "q": block.q, "d q + m": block.numbers}
    return table if block.original is None else table | {"weight": block.original}


def answer(block: QuantisedBlock, number: int) -> str:
    """Says what the block is, and works out one of its numbers (Markdown)."""
    said = TEXT(
        "asymmetric" if block.minimum else "symmetric",
        kind=content.Filled(block.kind),
        count=len(block.q),
        low=block.low,
        high=block.high,
        scale=block.scale,
        minimum=block.minimum,
        bits=block.bits,
        number=number,
        q=int(block.q[number]),
        value=block.numbers[number],
    )
    largest = block.largest_error
    return f"{said} {TEXT['exact'] if largest is None else TEXT('largest error', error=largest)}"


def block_of_numbers(block: QuantisedBlock, chosen: int) -> go.Figure:
    """Draws the numbers of a block on the levels that they may have, q above each; hollow, what was rounded.

    A diamond on number `chosen`.
    """
    at = np.arange(len(block.q))
    levels = block.levels if len(block.levels) <= MOST_LINES else block.levels[:0]
    lines = [
        go.rule(y=float(level), line={"color": colour("quiet", 40), "width": 1}, layer="below")
        for level in levels
    ]
    traces: list[go.Trace] = []
    if block.original is not None:
        traces.append(
            go.Scatter(
                x=at,
                y=block.original,
                mode="markers",
                name=TEXT["original"],
                marker={"symbol": "circle-open", "size": 11, "color": colour("embedding")},
                hovertemplate=TEXT["hover of a weight"],
            )
        )
    traces.append(
        go.Scatter(
            x=at,
            y=block.numbers,
            mode="markers+text",
            name="d · q + m" if block.minimum else "d · q",
            text=[minus(str(q)) for q in block.q],
            textposition="top center",
            textfont={"size": 12},
            cliponaxis=False,
            marker={"size": 8, "color": colour("output")},
            hovertemplate=TEXT["hover of a level"],
        )
    )
    traces.append(diamond(chosen, float(block.numbers[chosen])))
    return go.figure(
        traces,
        margin={"l": 62, "r": 8, "t": 28, "b": 44},
        xaxis=go.axis(TEXT["index axis"], zeroline=False, dtick=4, range=[-0.8, len(at) - 0.2]),
        yaxis=go.axis(TEXT["weight axis"], zeroline=True, nticks=7),
        shapes=lines,
    )
