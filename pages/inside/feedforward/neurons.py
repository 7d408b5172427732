"""The neurons of the subject's feed-forward networks, on its text and in its corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.feedforward import neurons
from engine.measure.slices import extent
from engine.parts.feedforward import FeedForward, GatedFeedForward
from pages.inside.feedforward import figures, words
from pages.inside.feedforward.contexts import Seen
from pages.inside.feedforward.neuron import draw_neuron, norm_choice, on_the_text
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.page_frame import Code
from ui.players.plot import Table, plot

MOST = 32
LONG = 10_000  # neurons of which each has a row in the saved table; of more, each layer has a column
GO = "feedforward_go"  # (layer, neuron) that was clicked in the last run


def draw_neurons(subject: Subject) -> None:
    recording = subject.recording()
    post = _stacked(subject.key, subject.ids, recording)  # (layer, query, d_ff)
    kind = subject.model.parts.feedforward(subject.config)
    is_signed = kind.gated  # the gated kinds go far below zero as well; GELU stays above -0.17
    skip = _skipped(subject, post)
    values, _ = neurons.strongest(post, skip)
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    layer, neuron = _choose(values, controls)
    along = post[layer, :, neuron]
    top_contexts = draw_neuron(subject, along, layer, neuron, is_signed, controls)
    explain.measure_it(_more, subject, post, values, layer, neuron, skip, top_contexts)


def _more(
    subject: Subject,
    post: np.ndarray,
    values: np.ndarray,
    layer: int,
    neuron: int,
    skip: int,
    top_contexts: Seen | None,
) -> None:
    """How the places were found; the neuron on the text; all neurons of its layer, and of the model."""
    kind = subject.model.parts.feedforward(subject.config)
    how = st.empty()  # kept while a corpus is read: the pictures below would move up, and be drawn anew
    if top_contexts is not None:
        how.caption(words.how_read(top_contexts.total, top_contexts.window, top_contexts.positive))
    norm_choice(subject, kind.gated)
    on_the_text(subject, post[layer, :, neuron], layer, neuron)
    diverging = not kind.exact_zeros
    every = widgets.select(words.ROWS, words.shown_rows(MOST), "feedforward_rows") == words.EVERY
    _layer(subject, post[layer], values[layer], layer, neuron, every, skip, diverging)
    _whole_model(subject, post[:, skip:], values, (layer, neuron), diverging)


def code_of_neurons(subject: Subject) -> Code:
    """Returns the network that this model has, and what is measured of it."""
    kind = subject.model.parts.feedforward(subject.config)
    network = GatedFeedForward if kind.gated else FeedForward
    measured = (neurons.strongest, neurons.quiet_share, neurons.token_scores, neurons.scan)
    return (network, *measured)


def _skipped(subject: Subject, post: np.ndarray) -> int:
    """Tokens at the beginning that do not count: the first, where it drowns all others."""
    if not neurons.first_is_massive(post):
        return 0
    label = words.leave_out(subject.labels[0])
    return int(widgets.switch(label, True, "feedforward_apart", hint=words.MASSIVE))


@memo.measured()
def _stacked(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> np.ndarray:
    return _recording.stacked("ffn_post")


def _choose(values: np.ndarray, container: Any) -> tuple[int, int]:
    """(layer, neuron) from a click, the widgets or the URL; where nothing was asked for, the most active
    neuron there is.
    """
    layers, width = values.shape
    go = st.session_state.pop(GO, None)
    if go is not None:
        st.session_state["feedforward_layer"], st.session_state["feedforward_neuron"] = go
    loudest = neurons.loudest(values)[0]
    layer = _number(words.BLOCK, "feedforward_layer", loudest, layers, words.BLOCK_HINT, container)
    first = neurons.loudest(values[layer])[0]
    hint = words.NEURON_HINT.format(width=width)
    return layer, _number(words.NEURON, "feedforward_neuron", first, width, hint, container)


def _number(label: str, key: str, default: int, count: int, hint: str, container: Any) -> int:
    """An index below `count`: what is kept if it fits, else the URL's, else `default`. It is always in the
    URL: the default moves with the text.
    """
    # Streamlit's own: the default moves with the text, so that the URL always holds the number.
    held = st.session_state.get(key)
    if held is None:
        held = widgets.url_index(key, count, default)
    if not isinstance(held, int) or not 0 <= held < count:
        held = default
    if st.session_state.get(key) != held:
        st.session_state[key] = held
    typed = container.number_input(
        label, 0, count - 1, key=key, help=hint, persist_state="session", width=140
    )
    value = widgets.clamped(typed, 0, count - 1, default)
    widgets.put_index(key, value)
    return value


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
    layer, neuron = divmod(code or 0, figures.CODE)
    return None if code is None or layer >= layers or neuron >= width else (layer, neuron)


def _whole_model(
    subject: Subject, post: np.ndarray, values: np.ndarray, now: tuple[int, int], diverging: bool
) -> None:
    layers, width = values.shape
    st.subheader(words.WHOLE_MODEL, anchor=False)
    left, right = st.columns([7, 3], gap="medium")
    height = min(90 + 34 * layers, 520)
    with left:
        top, beyond = neurons.scale_end(values)
        st.caption(words.strongest_of(layers, width, top if beyond else None))
        table: Table = {"neuron": np.arange(width), **{f"layer_{i}": row for i, row in enumerate(values)}}
        if values.size <= LONG:
            table = {
                "layer": np.repeat(np.arange(layers), width),
                "neuron": np.tile(np.arange(width), layers),
                "strongest": values.ravel(),
            }
        clicked = plot(
            figures.overview(values, now, top, signed=diverging),
            key="feedforward_overview",
            alt=words.OVERVIEW_ALT.format(
                layers=layers, width=width, largest=abs(values[neurons.loudest(values)])
            ),
            height=height,
            data=table,
            name="neurons",
        )
        _go(clicked_neuron(clicked, layers, width), now)
    with right:
        exact = subject.model.parts.feedforward(subject.config).exact_zeros
        shares = neurons.quiet_share(post, exact)
        st.caption(words.sparsity(exact))
        plot(
            figures.share_bars(shares),
            key="feedforward_sparsity",
            alt=words.sparsity_alt(shares),
            height=height,
            data={"layer": range(layers), "quiet": shares},
            name="sparsity",
        )


def _layer(
    subject: Subject,
    post: np.ndarray,
    values: np.ndarray,
    layer: int,
    neuron: int,
    every: bool,
    skip: int,
    diverging: bool,
) -> None:
    """post (query, d_ff), values (d_ff,)"""
    st.subheader(words.BLOCK_TITLE.format(layer=layer), anchor=False)
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
            st.caption(words.SCALE_ENDS.format(end=top))
        least, most = extent(post)
        clicked = plot(
            figures.layer_map(post, order, subject.labels, layer, neuron, top, signed=diverging),
            key="feedforward_map",
            alt=words.LAYER_ALT.format(
                rows=len(order), layer=layer, tokens=len(post), least=least, most=most
            ),
            height=620 if every else 90 + 15 * len(order),
            data=table,
            name=f"layer-{layer}",
        )
        where = clicked_neuron(clicked, layer + 1, width)
        _go(where if where is not None and where[0] == layer else None, (layer, neuron))
    with right:
        _table(subject, layer, neuron, skip)


def _table(subject: Subject, layer: int, neuron: int, skip: int) -> None:
    st.caption(words.MOST_ACTIVE)
    post = _stacked(subject.key, subject.ids, subject.recording())
    peaks = neurons.most_active(post, 40, skip)
    frame = pd.DataFrame(
        {
            "layer": [p.layer for p in peaks],
            "neuron": [p.neuron for p in peaks],
            "activation": np.array([p.value for p in peaks], dtype=np.float32),
            "at token": [f"{subject.labels[p.position]}  ({p.position})" for p in peaks],
        }
    )
    picked = st.dataframe(
        frame,
        hide_index=True,
        height=500,
        key="feedforward_table",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn(words.BLOCK.lower(), width=50),
            "neuron": st.column_config.NumberColumn(width=64),
            "activation": st.column_config.NumberColumn("value", format="%.2f", width=60),
            "at token": st.column_config.TextColumn("at", width=96 if subject.is_pretrained else 64),
        },
    )
    rows = picked.selection.rows if picked is not None else []
    before = st.session_state.get("feedforward_picked")
    st.session_state["feedforward_picked"] = list(
        rows
    )  # a row stays picked while the model or the text changes, and then chooses nothing
    if rows and rows[0] < len(peaks) and before != list(rows):
        _go((peaks[rows[0]].layer, peaks[rows[0]].neuron), (layer, neuron))
