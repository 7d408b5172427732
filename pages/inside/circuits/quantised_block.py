"""One block of 32 weights, number by number: what Q4_1 is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.circuits.quantisation import BLOCK, made
from engine.weights.pretrained.blocks import QuantisedBlock, block_at
from engine.weights.pretrained.load import Opened, open_model
from pages.inside.circuits import figures_weights as figures
from ui import explain, widgets
from ui.model_bar import Subject
from ui.models import model_of
from ui.players.plot import plot
from ui.text.numbers import minus
from ui.training_step import NEWEST

MADE = "Computed here as Q4_1 would store it: this model's weights take 32 bits each."


@st.cache_resource(max_entries=2, show_spinner=False)
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
    row = widgets.whole("Row", 0, rows - 1, 0, "bits_row", container=a)
    index = widgets.whole("Block in the row", 0, (columns - 1) // BLOCK, 0, "bits_index", container=b)
    opened = opened_of(subject)
    found = None if opened is None else block_at(opened, name, row, index)
    kept = found is not None
    found = found or made(matrix.detach(), row, index)
    number = widgets.whole("Index in the block", 0, len(found.q) - 1, 0, "bits_number", container=c)
    plot(
        figures.block_of_numbers(found, number),
        key="bits_of_block",
        height=300,
        name="block",
        data=_table(found),
        alt=f"The {len(found.q)} weights of the block, each on one of its {len(found.levels)} levels.",
    )
    explain.answer(_answer(found, number))
    explain.measure_it(_all_of_it, found, _source(found, kept, opened is not None))


def _all_of_it(block: QuantisedBlock, source: str) -> None:
    """All its numbers, and its bytes."""
    st.caption(source)
    st.dataframe(pd.DataFrame(_table(block)), hide_index=True, height=300)
    if block.raw:
        st.code(block.raw.hex(" "), language=None, wrap_lines=True)


def _table(block: QuantisedBlock) -> dict[str, Any]:
    table: dict[str, Any] = {"number": np.arange(len(block.q)), "q": block.q, "d q + m": block.numbers}
    return table if block.original is None else table | {"weight": block.original}


def _source(block: QuantisedBlock, kept: bool, published: bool) -> str:
    if kept:
        return (
            f"Read from the model's file: row {block.row} of `{block.name}`, {len(block.raw)} bytes. The"
            " original weights are lost."
        )
    if published:
        return (
            "The file stores this matrix in another format, which is not decoded here. The block shows its"
            " values as Q4_1 stores them."
        )
    return MADE


def _answer(block: QuantisedBlock, number: int) -> str:
    """Says what the block is, and works out one of its numbers (Markdown)."""
    low, scale, least = minus(str(block.low)), f"{block.scale:.5g}", minus(f"{block.minimum:.5g}")
    offset, plus = (f", minimum m = {least}", f" + ({least})") if block.minimum else ("", "")
    error = (
        f" The largest error in the block is {block.largest_error:.2g}."
        if block.largest_error is not None
        else " The model computes with exactly these numbers."
    )
    q, value = minus(str(block.q[number])), minus(f"{block.numbers[number]:.5f}")
    return (
        f"**{block.kind}**: {len(block.q)} integers q from {low} to {block.high}, one scale d ="
        f" {scale}{offset}: **{block.bits:.1f} bits** for each weight. Weight {number}: {scale} · {q}{plus}"
        f" = **{value}**.{error}"
    )
