"""The view "Lookup": ids pick rows of E, the rows become the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.embeddings.looks import token_rows
from pages.input.embeddings.vocabulary import Vocabulary, finite_matrix, vocabulary_of
from studies.embeddings.table import Lookup, lookup, reach, readout
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.layout import link_to
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import minus, number

TEXT = content.beside(__file__)
FIRST = 4  # position that is followed until another is chosen
ALL_ROWS = 140  # a larger vocabulary is drawn with the rows of the text only
SHOWN = 6  # dimensions in numbers
HEIGHT = 400
NAMED = 22  # rows that carry their token
LISTED_IDS = 24  # ids in the sentence


def draw(subject: Subject) -> None:
    """Draws the tokens, the row of E that one of them takes, and the input matrix."""
    matrix = finite_matrix(subject)
    if matrix is None:
        return
    known, looked_up = vocabulary_of(subject), _lookup(subject.key, subject.ids, subject)
    position = _choose_position(subject)
    row, count = looked_up.ids[position], looked_up.occurrences(position)
    read = TEXT("row read", token=subject.labels[position], row=row, width=subject.config.d_model)
    times = "once" if count == 1 else "twice" if count == 2 else "several times"
    explain.answer(f"{read} {TEXT(times, count=count)}")
    _draw_rows(subject, known, looked_up, matrix, position)
    explain.measure_it(_measured, subject, looked_up, matrix, position)
    explain.by_hand(_draw_product, looked_up)


@memo.measured()
def _lookup(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> Lookup:
    return lookup(_subject.model, _subject.recording())


def _measured(subject: Subject, lookup: Lookup, matrix: np.ndarray, position: int) -> None:
    """The ids, one row in numbers, and what is added to it."""
    st.caption(_legend(subject, lookup, matrix))
    _draw_numbers(subject, lookup, position)
    st.markdown(_table_and_text(subject, lookup))
    if lookup.added is not None:
        read = readout(matrix * (subject.model.embedding_scale or 1.0), lookup.added)
        if read is not None:
            shares = {"tokens": read.tokens, "positions": read.positions, "cosine": read.cosine}
            st.markdown(TEXT("separability", sums=read.sums, **shares))


def _legend(subject: Subject, lookup: Lookup, matrix: np.ndarray) -> str:
    """Lists the ids; says what the colours of the drawn rows mean, and how many rows are not drawn."""
    rows, ids = _shown_rows(subject, matrix)
    listed = TEXT(
        "first ids" if len(ids) > LISTED_IDS else "all ids",
        ids=", ".join(map(str, ids[:LISTED_IDS])),
        count=len(ids),
    )
    said = [TEXT("ids", ids=listed), TEXT("scale", end=reach(matrix[rows])), TEXT["same row"]]
    if len(rows) < len(matrix):
        said.insert(2, TEXT("other rows", others=lookup.vocab_size - lookup.different))
    return " ".join(said)


def _table_and_text(subject: Subject, lookup: Lookup) -> str:
    """Says how large the table is, how much of it the text takes, and whether it serves twice."""
    rows, parameters = len(lookup.ids), lookup.parameters
    said = [
        TEXT("size", rows=lookup.vocab_size, width=subject.config.d_model, parameters=parameters),
        TEXT("fetches distinct" if rows > 1 else "fetches", rows=rows, distinct=lookup.different),
    ]
    if lookup.mean_lengths is not None:
        row, position = lookup.mean_lengths
        said.append(TEXT("mean norms", row=row, position=position))
    tied = "tied" if subject.config.tie_embeddings else "not tied"
    return " ".join([*said, TEXT(tied, parameters=parameters)])


def _shown_rows(subject: Subject, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of E that are drawn, ids of the text)"""
    ids = np.asarray(subject.ids)
    return np.arange(len(matrix)) if len(matrix) <= ALL_ROWS else np.unique(ids), ids


def _choose_position(subject: Subject) -> int:
    named = zip(subject.labels, subject.ids, strict=True)
    hints = [TEXT("position hint", position=i, token=token, id=n) for i, (token, n) in enumerate(named)]
    return token_strip(
        subject.labels,
        key="embed_position",
        chosen=min(FIRST, len(subject.ids) - 1),
        label=TEXT["position"],
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
        alt=TEXT("alt", shown=len(rows), rows=len(matrix), tokens=len(ids)),
    )


def _draw_numbers(subject: Subject, lookup: Lookup, position: int) -> None:
    width = lookup.rows.shape[1]
    shown = min(SHOWN, width)
    names: list[str] = [
        TEXT("row of E", id=subject.ids[position]),
        TEXT("row of position", position=position),
        TEXT["row of input"],
    ]
    parts = lookup.at(position)
    table = pd.DataFrame(
        [vector[:shown] for vector, _ in parts],
        index=names[: len(parts)],
        columns=[TEXT("dimension of", number=i) for i in range(shown)],
    ).assign(**{TEXT["norm"]: [length for _, length in parts]})
    st.markdown(TEXT("row in numbers", shown=shown, width=width))
    st.dataframe(table.style.format(lambda value: minus(f"{value:+.4f}")), width="stretch")
    st.caption(_position_added(subject.config.position, lookup))
    link_to("positions", TEXT["to positions"])


def _position_added(scheme: str, lookup: Lookup) -> str:
    """Says what a scheme adds to the row, or where positions enter instead."""
    if lookup.added is None:
        return TEXT[f"enters {scheme if f'enters {scheme}' in TEXT else 'another'}"]
    how = "added learned" if scheme == "learned" else "added sinusoids"
    return TEXT(how, difference=lookup.sum_difference)


def _draw_product(lookup: Lookup) -> None:
    """The lookup as a product with one-hot rows."""
    (length, width), vocab = lookup.rows.shape, lookup.vocab_size
    left, right = st.columns(2, gap="medium")
    with left:
        product = TEXT("product", length=length, vocab=vocab, width=width)
        explain.worked(TEXT["one-hot"], number(lookup.onehot_difference), product)
    with right:
        saved = TEXT("saved", length=length, vocab=vocab, width=width)
        explain.worked(TEXT["multiplications"], f"{lookup.multiplications:,}", saved)


def lookup_figure(
    table: np.ndarray,
    table_labels: Sequence[str],
    rows: np.ndarray,
    labels: Sequence[str],
    picked: np.ndarray,
    chosen: int,
    reach: float,
) -> go.Figure:
    """Draws e (row, d_model) on the left, the text's rows of it (query, d_model) on the right; a line from
    each row to the places it is copied to.

    `picked` (query,) is the row of `table` that each position takes; `chosen` is the position that stands
    out; `reach` the end of the colour scale.
    """
    height, length, width = len(table), len(rows), table.shape[1]
    bar = {
        "orientation": "h",
        "x": 0.49,
        "xanchor": "center",
        "y": 0,
        "yanchor": "top",
        "len": 0.11,
        "thickness": 10,
        "ypad": 8,
    }
    bar |= dict(tickvals=[-reach, 0, reach], ticktext=["−", "0", "+"], tickangle=0, tickfont={"size": 11})
    traces: list[dict[str, Any]] = [
        go.signed(
            table,
            reach,
            showscale=False,
            hovertemplate=TEXT["hover E"],
        ),
        go.signed(
            rows,
            reach,
            xaxis="x3",
            yaxis="y3",
            hovertemplate=TEXT["hover input"],
            colorbar=bar,
        ),
    ]
    left, right = (picked + 0.5) / height, (np.arange(length) + 0.5) / length
    others = np.arange(length) != chosen
    for some, shade, thick in ((others, colour("embedding", 40), 1.0), (~others, colour("attention"), 3.0)):
        x = np.tile([0.0, 1.0, np.nan], np.count_nonzero(some))
        y = np.stack([left[some], right[some], np.full(np.count_nonzero(some), np.nan)], axis=1).ravel()
        traces.append(
            go.Scatter(
                mode="lines",
                x=x,
                y=y,
                xaxis="x2",
                yaxis="y2",
                hoverinfo="skip",
                showlegend=False,
                line={"color": shade, "width": thick},
            )
        )
    box = dict(type="rect", line={"color": colour("attention"), "width": 2.5}, x0=-0.5, x1=width - 0.5)
    shapes = [
        box | {"xref": "x", "yref": "y", "y0": picked[chosen] - 0.5, "y1": picked[chosen] + 0.5},
        box | {"xref": "x3", "yref": "y3", "y0": chosen - 0.5, "y1": chosen + 0.5},
    ]
    title = {"xref": "paper", "yref": "paper", "y": 1.0, "yanchor": "bottom", "showarrow": False, "yshift": 4}
    dimension = go.axis(TEXT["dimension"], zeroline=False)
    hidden = {"visible": False, "fixedrange": True}
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        showlegend=False,
        shapes=shapes,
        uirevision=f"lookup-{height}-{length}",
        annotations=[
            title | {"text": TEXT("title E", rows=height), "x": 0.0, "xanchor": "left"},
            title | {"text": TEXT("title input", rows=length), "x": 0.56, "xanchor": "left"},
        ],
        xaxis=dimension | {"domain": [0, 0.42], "anchor": "y"},
        yaxis=token_rows(table_labels, NAMED, int(picked[chosen])),
        xaxis2=hidden | {"domain": [0.425, 0.555], "range": [0, 1], "anchor": "y2"},
        yaxis2=hidden | {"range": [1, 0], "anchor": "x2"},
        xaxis3=dimension | {"domain": [0.56, 1], "anchor": "y3"},
        yaxis3=token_rows(labels, NAMED, chosen, side="right", anchor="x3"),
    )


VIEW = View("lookup", TEXT, draw, code=(lookup,), figures_only=True)
