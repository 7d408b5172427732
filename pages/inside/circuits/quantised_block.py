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
from pages.inside.circuits import words_weights as words
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.models import model_of
from ui.players.plot import plot
from ui.training_step import NEWEST


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
    row = widgets.whole(words.ROW, 0, rows - 1, 0, "bits_row", container=a)
    index = widgets.whole(words.INDEX, 0, (columns - 1) // BLOCK, 0, "bits_index", container=b)
    opened = opened_of(subject)
    stored = None if opened is None else block_at(opened, name, row, index)
    source = words.COMPUTED if opened is None else words.OTHER_FORMAT
    if stored is not None:
        source = words.read_from_file(stored)
    block = stored or made(matrix.detach(), row, index)
    number = widgets.whole(words.NUMBER, 0, len(block.q) - 1, 0, "bits_number", container=c)
    plot(
        figures.block_of_numbers(block, number),
        key="bits_of_block",
        height=300,
        name="block",
        data=_table(block),
        alt=words.block_alt(block),
    )
    explain.answer(words.block_answer(block, number))
    explain.measure_it(_all_of_it, block, source)


def _all_of_it(block: QuantisedBlock, source: str) -> None:
    """All its numbers, and its bytes."""
    st.caption(source)
    st.dataframe(pd.DataFrame(_table(block)), hide_index=True, height=300)
    if block.raw:
        st.code(block.raw.hex(" "), language=None, wrap_lines=True)


def _table(block: QuantisedBlock) -> dict[str, Any]:
    table: dict[str, Any] = {"number": np.arange(len(block.q)), "q": block.q, "d q + m": block.numbers}
    return table if block.original is None else table | {"weight": block.original}
