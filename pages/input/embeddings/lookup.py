"""The view "Lookup": ids pick rows of E, the rows become the input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.embeddings.table import Lookup, lookup, reach, readout
from pages.input.embeddings import words
from pages.input.embeddings.figures_lookup import lookup_figure
from pages.input.embeddings.shared import POSITION, Vocabulary, matrix_of, vocabulary_of
from ui import explain, memo
from ui.layout import link_to
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import minus

FIRST = 4  # position that is followed until another is chosen
ALL_ROWS = 140  # a larger vocabulary is drawn with the rows of the text only
SHOWN = 6  # dimensions in numbers
HEIGHT = 400


@memo.measured()
def _lookup(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lookup:
    return lookup(_subject.model, _subject.recording())


def draw_lookup(subject: Subject) -> None:
    """Draws the tokens, the row of E that one of them takes, and the input matrix."""
    matrix = matrix_of(subject)
    if not np.isfinite(matrix).all():
        st.info(words.NOT_FINITE)
        return
    known, looked_up = vocabulary_of(subject), _lookup(subject.key, subject.ids, subject)
    position = _choose_position(subject)
    explain.answer(words.row_read(looked_up, subject.labels[position], position, subject.config.d_model))
    _draw_rows(subject, known, looked_up, matrix, position)
    explain.measure_it(_measured, subject, looked_up, matrix, position)
    explain.by_hand(_draw_product, looked_up)


def _measured(subject: Subject, lookup: Lookup, matrix: np.ndarray, position: int) -> None:
    """The ids, one row in numbers, and what is added to it."""
    rows, _ = _shown_rows(subject, matrix)
    st.caption(f"ids = {words.listed_ids(subject.ids)}. {words.scale_note(lookup, matrix, rows)}")
    _draw_numbers(subject, lookup, position)
    st.markdown(words.looked_up(subject.config, lookup))
    if lookup.added is not None:
        separable = readout(matrix * (subject.model.embedding_scale or 1.0), lookup.added)
        if separable is not None:
            st.markdown(words.separability(separable))


def _shown_rows(subject: Subject, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of E that are drawn, ids of the text)"""
    ids = np.asarray(subject.ids)
    return np.arange(len(matrix)) if len(matrix) <= ALL_ROWS else np.unique(ids), ids


def _choose_position(subject: Subject) -> int:
    named = zip(subject.labels, subject.ids, strict=True)
    hints = [f"position {i}: “{label}” is id {n}" for i, (label, n) in enumerate(named)]
    return token_strip(
        subject.labels,
        key=POSITION,
        chosen=min(FIRST, len(subject.ids) - 1),
        label="Position to follow",
        hints=hints,
    )


def _draw_rows(
    subject: Subject, known: Vocabulary, lookup: Lookup, matrix: np.ndarray, position: int
) -> None:
    rows, ids = _shown_rows(subject, matrix)
    figure = lookup_figure(
        matrix[rows],
        [known.words[i] for i in rows],
        lookup.rows,
        subject.labels,
        np.searchsorted(rows, ids),
        position,
        reach(matrix[rows]),
    )
    plot(
        figure,
        key="embed_lookup",
        height=HEIGHT,
        name="embedding-lookup",
        data=pd.DataFrame(lookup.rows, columns=[f"d{i}" for i in range(lookup.rows.shape[1])]).assign(
            token=subject.labels, id=ids
        ),
        alt=words.lookup_alt(len(rows), len(matrix), len(ids)),
    )


def _draw_numbers(subject: Subject, lookup: Lookup, position: int) -> None:
    width = lookup.rows.shape[1]
    shown = min(SHOWN, width)
    names = (f"E[{subject.ids[position]}]", f"+ position {position}", "= input to block 0")
    parts = lookup.at(position)
    table = pd.DataFrame(
        [vector[:shown] for vector, _ in parts],
        index=list(names[: len(parts)]),
        columns=[f"dim {i}" for i in range(shown)],
    ).assign(norm=[length for _, length in parts])
    st.markdown(words.row_in_numbers(shown, width))
    st.dataframe(table.style.format(lambda value: minus(f"{value:+.4f}")), width="stretch")
    st.caption(words.position_added(subject.config.position, lookup))
    link_to("positions", words.TO_POSITIONS)


def _draw_product(lookup: Lookup) -> None:
    for column, card in zip(st.columns(2, gap="medium"), words.as_product(lookup), strict=True):
        with column:
            explain.worked(*card)
