"""The maps below "Neurons": a layer and the whole model on the text, and the most active in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.slices import extent
from studies.feedforward import neurons
from studies.feedforward.neurons import QUIET
from ui import content, widgets
from ui.figures import specs as go
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour
from ui.model_bar import Subject
from ui.players.plot import Table, plot

TEXT = content.beside(__file__)
MOST = 32
LONG = 10_000  # neurons of which each has a row in the saved table; of more, each layer has a column
GO = "feedforward_go"  # (layer, neuron) that was clicked in the last run
CODE = 1_000_000  # layer * CODE + neuron is what a click on a cell sends
READ = 16  # bars that are high enough to be written on
ROOM = 400  # pixels across, at least


def draw_maps(
    subject: Subject, post: np.ndarray, values: np.ndarray, layer: int, neuron: int, skip: int
) -> None:
    """Draws all neurons of a layer, and of the model: post (layer, query, d_ff), values (layer, d_ff)."""
    diverging = not subject.model.parts.feedforward(subject.config).exact_zeros
    shown = (TEXT("some", most=MOST), TEXT["every"])
    every = widgets.select(TEXT["rows"], shown, "feedforward_rows") == shown[1]
    _layer(subject, post, values[layer], layer, neuron, every, skip, diverging)
    _whole_model(subject, post[:, skip:], values, (layer, neuron), diverging)


def _go(where: tuple[int, int] | None, now: tuple[int, int]) -> None:
    """Runs the page again with another neuron chosen."""
    if where is not None and where != now:
        st.session_state[GO] = where
        st.rerun()


def clicked_neuron(clicked: str | None, layers: int, width: int) -> tuple[int, int] | None:
    """Returns (layer, neuron) of a cell that was clicked; None for what is not in the model.

    >>> clicked_neuron("2000017", 4, 512), clicked_neuron("2000017", 2, 512), clicked_neuron("x", 4, 512)
    ((2, 17), None, None)
    """
    code = widgets.number_of(clicked)
    layer, neuron = divmod(code or 0, CODE)
    return None if code is None or layer >= layers or neuron >= width else (layer, neuron)


def _whole_model(
    subject: Subject, post: np.ndarray, values: np.ndarray, now: tuple[int, int], diverging: bool
) -> None:
    layers, width = values.shape
    st.subheader(TEXT["whole"], anchor=False)
    left, right = st.columns([7, 3], gap="medium")
    height = min(90 + 34 * layers, 520)
    with left:
        top, beyond = neurons.scale_end(values)
        st.caption(strongest_of(layers, width, top if beyond else None))
        table: Table = {"neuron": np.arange(width), **{f"layer_{i}": row for i, row in enumerate(values)}}
        if values.size <= LONG:
            table = {
                "layer": np.repeat(np.arange(layers), width),
                "neuron": np.tile(np.arange(width), layers),
                "strongest": values.ravel(),
            }
        clicked = plot(
            overview(values, now, top, signed=diverging),
            key="feedforward_overview",
            alt=TEXT(
                "alt overview", layers=layers, width=width, largest=abs(values[neurons.loudest(values)])
            ),
            height=height,
            data=table,
            name="neurons",
        )
        _go(clicked_neuron(clicked, layers, width), now)
    with right:
        exact = subject.model.parts.feedforward(subject.config).exact_zeros
        shares = neurons.quiet_share(post, exact)
        each = (TEXT("share of block", number=i, share=share) for i, share in enumerate(shares))
        st.caption(TEXT["sparsity exact"] if exact else TEXT("sparsity small", quiet=QUIET))
        plot(
            share_bars(shares),
            key="feedforward_sparsity",
            alt=TEXT("alt sparsity", shares=", ".join(each)),
            height=height,
            data={"layer": range(layers), "quiet": shares},
            name="sparsity",
        )


def strongest_of(layers: int, width: int, end: float | None) -> str:
    """Says what the map of the whole model shows; its colour scale may `end` below a few values."""
    ends = [] if end is None else [TEXT("strongest ends", end=end)]
    return " ".join([TEXT("strongest of", layers=layers, width=width), *ends])


def _layer(
    subject: Subject,
    every_post: np.ndarray,
    values: np.ndarray,
    layer: int,
    neuron: int,
    every: bool,
    skip: int,
    diverging: bool,
) -> None:
    """every_post (layer, query, d_ff), values (d_ff,)"""
    post = every_post[layer]
    st.subheader(TEXT("block title", layer=layer), anchor=False)
    width = len(values)
    order = neurons.by_size(values, None if every else MOST)
    left, right = st.columns([16, 9], gap="small")
    with left:
        many, length = len(order), len(post)
        table: Table = {
            "neuron": np.repeat(order, length),
            "position": np.tile(np.arange(length), many),
            "activation": post[:, order].T.ravel(),
        }
        if not every:
            table = {**table, "token": subject.labels * many}
        top, beyond = neurons.scale_end(post[skip:])
        if beyond or skip:
            st.caption(TEXT("scale ends", end=top))
        least, most = extent(post)
        clicked = plot(
            layer_map(post, order, subject.labels, layer, neuron, top, signed=diverging),
            key="feedforward_map",
            alt=TEXT("alt layer", rows=len(order), layer=layer, tokens=len(post), least=least, most=most),
            height=620 if every else 90 + 15 * len(order),
            data=table,
            name=f"layer-{layer}",
        )
        where = clicked_neuron(clicked, layer + 1, width)
        _go(where if where is not None and where[0] == layer else None, (layer, neuron))
    with right:
        _table(subject, every_post, layer, neuron, skip)


def _table(subject: Subject, post: np.ndarray, layer: int, neuron: int, skip: int) -> None:
    st.caption(TEXT["most active"])
    peaks = neurons.most_active(post, 40, skip)
    frame = pd.DataFrame(
        {
            "layer": [p.layer for p in peaks],
            "neuron": [p.neuron for p in peaks],
            "activation": np.array([p.value for p in peaks], dtype=np.float32),
            "at token": [f"{subject.labels[p.position]}  ({p.position})" for p in peaks],
        }
    )
    wide = 96 if subject.is_pretrained else 64
    picked = st.dataframe(
        frame,
        hide_index=True,
        height=500,
        key="feedforward_table",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn(TEXT["column layer"], width=50),
            "neuron": st.column_config.NumberColumn(width=64),
            "activation": st.column_config.NumberColumn(TEXT["column value"], format="%.2f", width=60),
            "at token": st.column_config.TextColumn(TEXT["column at"], width=wide),
        },
    )
    rows = picked.selection.rows if picked is not None else []
    before = st.session_state.get("feedforward_picked")
    # A row stays picked while the model or the text changes, and then chooses nothing.
    st.session_state["feedforward_picked"] = list(rows)
    if rows and rows[0] < len(peaks) and before != list(rows):
        _go((peaks[rows[0]].layer, peaks[rows[0]].neuron), (layer, neuron))


# Figures ------------------------------------------------------------------------------------------


def distinct(labels: Sequence[str]) -> list[str]:
    """Returns the labels, made different from each other by characters without width: an axis of categories
    then has a place for each.
    """
    return [
        plain(short(label, MOST_LETTERS)) + "".join("\u200b\u200c"[bit == "1"] for bit in f"{i:b}")
        for i, label in enumerate(labels)
    ]


def tokens_axis(labels: Sequence[str], **rest: Any) -> dict[str, Any]:
    """Returns an axis of categories that are tokens, turned where they do not fit side by side."""
    return {
        "type": "category",
        "showgrid": False,
        "tickfont": {"size": 12},
        "tickangle": -90 if crowded(labels, ROOM) else 0,
    } | rest


def _heatmap(values: np.ndarray, top: float, signed: bool, **properties: Any) -> go.Trace:
    """Returns a heatmap of activations in colours that end at `top`; `signed` ones lie around zero."""
    scale = {} if signed else {"colorscale": SEQUENTIAL, "zmin": 0.0}
    return go.signed(values, max(top, 1e-9), colorbar={"thickness": 12, "nticks": 5}, **scale, **properties)


def overview(values: np.ndarray, chosen: tuple[int, int], top: float, *, signed: bool) -> go.Figure:
    """Draws every neuron of the model: values (layer, d_ff), its strongest activation on the text, in colours
    that end at `top`. A click on a cell names the neuron.
    """
    layers, width = values.shape
    codes = (np.arange(layers, dtype=np.int32)[:, None] * CODE + np.arange(width, dtype=np.int32)).astype(
        np.int32
    )
    cells = _heatmap(
        values,
        top,
        signed,
        customdata=codes,
        y=[TEXT("block", number=i) for i in range(layers)],
        hovertemplate=TEXT["hover overview"],
        ygap=2,
    )
    return go.figure(
        [cells],
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.axis(TEXT["neuron"]),
        yaxis={"autorange": "reversed", "showgrid": False},
        shapes=[go.box(chosen[1], chosen[0], "output", 2)],
    )


def layer_map(
    post: np.ndarray,
    neurons: np.ndarray,
    labels: Sequence[str],
    layer: int,
    chosen: int,
    top: float,
    *,
    signed: bool,
) -> go.Figure:
    """Draws neurons down, tokens across: post (query, d_ff) of one layer, `neurons` which of them, in the
    order of the rows; the colours end at `top`.
    """
    values = np.ascontiguousarray(post[:, neurons].T)
    codes = np.broadcast_to((layer * CODE + neurons.astype(np.int32))[:, None], values.shape).astype(np.int32)
    cells = _heatmap(
        values,
        top,
        signed,
        x=distinct(labels),
        y=[f"{n}" for n in neurons],
        customdata=codes,
        hovertemplate=TEXT["hover layer"],
    )
    at = np.flatnonzero(neurons == chosen)
    across = {"xref": "paper", "x0": 0, "x1": 1}
    frames = [go.box(0, int(at[0]), "output", 2) | across] if len(at) else []
    return go.figure(
        [cells],
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        shapes=frames,
        xaxis=tokens_axis(labels, title={"text": TEXT["token"]}),
        yaxis=go.axis(TEXT["neuron"], type="category", autorange="reversed", tickfont={"size": 12}),
    )


def share_bars(shares: np.ndarray) -> go.Figure:
    """Draws a share in [0, 1] for each layer: shares (layer,)."""
    bars = go.Bar(
        orientation="h",
        x=shares.astype(np.float32),
        y=[TEXT("block", number=i) for i in range(len(shares))],
        marker={"color": colour("feedforward")},
        text=[f"{s:.1%}" if len(shares) <= READ else "" for s in shares],
        textposition="auto",
        hovertemplate=TEXT["hover share"],
    )
    return go.figure(
        [bars],
        margin={"l": 60, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"range": [0, 1], "tickformat": ".0%", "title": {"text": TEXT["sparsity"]}},
        yaxis={"autorange": "reversed"},
    )
