"""The view "The lookup": ids pick rows of E, the rows become the input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.embeddings import Lookup, lookup
from pages.input.embeddings import figures
from pages.input.embeddings.shared import Vocabulary, matrix_of, vocabulary_of
from ui import explain
from ui.layout import scrolled
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.site import built
from ui.subject import Subject
from ui.text.markdown import safe
from ui.text.numbers import minus, number

POSITION = "embed_position"
ALL_ROWS = 140  # a larger vocabulary is drawn with the rows of the text only
SHOWN = 6  # dimensions in numbers
ENTERS = {
    "none": (
        "This model is told nothing about positions: what the lookup gives is what the first block reads."
    ),
    "rope": (
        "With RoPE nothing is added here: queries and keys are turned by position inside every attention."
    ),
    "alibi": "With ALiBi nothing is added here: a penalty for distance goes on the attention scores.",
    "t5": (
        "With T5's relative bias nothing is added here: a learned number for each distance goes on the"
        " attention scores."
    ),
}


@st.cache_resource(max_entries=32, show_spinner=False)
def _lookup(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lookup:
    return lookup(_subject.model, _subject.recording())


def draw_lookup(subject: Subject) -> None:
    """Tokens, ids, rows of E, the input matrix; one row in numbers, and the matrix product that it stands
    for.
    """
    known, found, matrix = (
        vocabulary_of(subject),
        _lookup(subject.key, subject.ids, subject),
        matrix_of(subject),
    )
    hints = [
        f"position {i}: “{label}” is id {n}"
        for i, (label, n) in enumerate(zip(subject.labels, subject.ids, strict=True))
    ]
    position = token_strip(
        subject.labels,
        key=POSITION,
        chosen=min(4, len(subject.ids) - 1),
        label="Position whose row is followed",
        hints=hints,
    )
    token = subject.ids[position]
    st.caption(
        f"ids = {_listed(subject.ids)}. Position {position}: “{safe(subject.labels[position])}” is id"
        f" **{token}**, so it takes row {token} of $E$."
    )
    _draw_rows(subject, known, found, matrix, position)
    _draw_numbers(subject, found, position)
    _draw_product(subject, found)
    explain.takeaway(_summary(subject, found))


def _listed(ids: tuple[int, ...], most: int = 24) -> str:
    return "[" + ", ".join(map(str, ids[:most])) + (f", … {len(ids)} in all]" if len(ids) > most else "]")


def _draw_rows(subject: Subject, known: Vocabulary, found: Lookup, matrix: np.ndarray, position: int) -> None:
    ids = np.asarray(subject.ids)
    rows = np.arange(len(matrix)) if len(matrix) <= ALL_ROWS else np.unique(ids)
    reach = float(np.quantile(np.abs(matrix[rows]), 0.995)) or 1.0
    figure = figures.lookup_figure(
        matrix[rows],
        [known.words[i] for i in rows],
        found.rows,
        subject.labels,
        np.searchsorted(rows, ids),
        position,
        reach,
    )
    with st.container(key="embed_lookup_box"):
        scrolled("embed_lookup_box", 640)
        plot(
            figure,
            key="embed_lookup",
            height=min(800, max(360, 11 * max(len(rows), len(ids)) + 110)),
            name="embedding-lookup",
            data=pd.DataFrame(found.rows, columns=[f"d{i}" for i in range(found.rows.shape[1])]).assign(
                token=subject.labels, id=ids
            ),
            alt=(
                f"Left: the embedding matrix, {len(rows)} of its {len(matrix)} rows. Right: the input,"
                f" {len(ids)} rows, each copied from the row of its token; lines join each row to its copies."
            ),
        )
    left_out = (
        ""
        if len(rows) == len(matrix)
        else f" The other {len(matrix) - len(rows):,} rows of $E$ are not drawn: this text does not use them."
    )
    st.caption(
        f"Blue below zero, orange above; the scale ends at ±{reach:.3f}, which 99.5% of the entries keep"
        f" to.{left_out} The same token always brings the same row, wherever it stands."
    )


def _draw_numbers(subject: Subject, found: Lookup, position: int) -> None:
    token, width = subject.ids[position], found.rows.shape[1]
    rows = {f"E[{token}]": found.rows[position]}
    if found.added is not None:
        rows[f"+ position {position}"] = found.added[position]
        rows["= what block 0 reads"] = found.entered[position]
    shown = min(SHOWN, width)
    table = pd.DataFrame(
        [values[:shown] for values in rows.values()],
        index=list(rows),
        columns=[f"dim {i}" for i in range(shown)],
    )
    lengths = [float(np.linalg.norm(values)) for values in rows.values()]
    st.markdown(
        f"**The row in numbers**: the first {shown} of {width} dimensions, and the length of the whole"
        " vector."
    )
    st.dataframe(
        table.assign(length=lengths).style.format(lambda value: minus(f"{value:+.4f}")), width="stretch"
    )
    if found.added is None:
        st.caption(ENTERS.get(subject.config.position, "Nothing is added here for the position."))
    else:
        kind = (
            "a trained vector for each position"
            if subject.config.position == "learned"
            else "sines and cosines of the position"
        )
        st.caption(
            f"Then the position is added: {kind}. Largest difference between the sum and what block 0 reads:"
            f" {number(found.sum_difference)}."
        )
    entry = next((e for e in built() if e.file == "input/positions.py"), None)
    if entry is not None and st.button(
        "Positions: how the order is told", icon=entry.icon, key="embed_to_positions"
    ):
        st.switch_page(entry.path)


def _draw_product(subject: Subject, found: Lookup) -> None:
    length, (vocab, width) = len(subject.ids), (subject.config.vocab_size, found.rows.shape[1])
    left, right = st.columns(2, gap="medium")
    with left:
        explain.worked(
            "Lookup minus one-hot product",
            number(found.one_hot_difference),
            f"The largest difference from $\\text{{one-hot}}(ids)\\,E$: ({length} × {vocab:,}) · ({vocab:,} ×"
            f" {width}) → ({length} × {width}). Each row of the left matrix is zero but for a single 1, so"
            " the product copies a row.",
        )
    with right:
        explain.worked(
            "Multiplications saved",
            f"{length * vocab * width:,}",
            f"$T \\cdot V \\cdot d = {length} \\cdot {vocab:,} \\cdot {width}$ for the product; copying rows"
            " needs none. The gradient is as sparse: only the rows of the tokens in a batch are taught by"
            " the lookup.",
        )


def _summary(subject: Subject, found: Lookup) -> str:
    c = subject.config
    different, length = len(set(subject.ids)), len(subject.ids)
    size = (
        f"$E$ has {c.vocab_size:,} rows of {c.d_model} numbers: **{c.vocab_size * c.d_model:,} parameters**."
    )
    text = f"This text takes {length} rows, {different} of them different."
    tied = (
        "The embedding is *tied* here: the same matrix, transposed, reads out the logits at the other end,"
        " $logits = norm(x)\\,E^T$ (Press and Wolf 2017). So its rows serve twice, and every step teaches all"
        " of them."
        if c.tie_embeddings
        else (
            "It is not tied here: the logits are read out by another matrix of the same shape, with"
            f" {c.vocab_size * c.d_model:,} parameters of its own."
        )
    )
    ratio = ""
    if found.added is not None:
        a, b = (float(np.linalg.norm(x, axis=1).mean()) for x in (found.rows, found.added))
        ratio = f" In this text a token's vector is {a:.2f} long on average, a position's {b:.2f}."
    return f"{size} {text}{ratio} {tied}"
