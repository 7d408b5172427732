"""The neurons of the subject's feed-forward networks, on its text and in its corpus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import neurons
from engine.parts.feedforward import FeedForward, GatedFeedForward
from pages.inside.feedforward import figures
from pages.inside.feedforward.contexts import contexts
from ui import explain
from ui.players.plot import Table, plot
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

MOST = 32
SHOWN = (f"{MOST} most active", "all")
GO = "feedforward_go"  # (layer, neuron) that was clicked in the last run


def neurons_view(subject: Subject) -> None:
    if subject.config.ffn == "none":
        st.info(
            "This model has no feed-forward networks (`ffn` is none), so there are no neurons. The other two"
            " views are there all the same."
        )
        return
    recording = subject.recording()
    post = _stacked(subject.key, subject.ids, recording)  # (layer, query, d_ff)
    kind = subject.model.parts.feedforward(subject.config)
    is_signed = kind.gated  # the gated kinds go far below zero as well; GELU stays above -0.17
    diverging = not kind.exact_zeros
    values, _ = neurons.strongest(post)
    layer, neuron, shown = _choose(values)
    _whole_model(subject, post, values, (layer, neuron), diverging)
    _layer(subject, post[layer], values[layer], layer, neuron, shown, diverging)
    _neuron(subject, post[layer, :, neuron], layer, neuron, is_signed)
    explain.reading(
        see=(
            "Each column of the large picture is a token, each row a neuron of the chosen layer; strong"
            " colour means that the neuron answers to that token. Below is one neuron by itself: where it"
            " fires, what it then writes, and the places in the corpus that excite it most."
        ),
        why=(
            "Two thirds of a block's parameters are here. A neuron works like an entry of a memory (Geva et"
            " al. 2021): its row of $W_{in}$ is the key that recognises something, its column of $W_{out}$"
            " the value that is added to the residual stream."
        ),
        attempt=(
            "Click a bright cell and read its contexts: what do they have in common? Then take an untrained"
            " model, where there is nothing to find. With a run of your own, drag the scrubber and watch a"
            " neuron find its task."
        ),
    )
    explain.show_code(
        GatedFeedForward if is_signed else FeedForward,
        neurons.strongest,
        neurons.quiet_share,
        neurons.token_scores,
        neurons.scan,
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _stacked(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> np.ndarray:
    return _recording.stacked("ffn_post")


def _choose(values: np.ndarray) -> tuple[int, int, str]:
    """(layer, neuron, which rows to show): from a click, the widgets or the URL; where nothing was asked for,
    the most active neuron there is.
    """
    layers, width = values.shape
    go = st.session_state.pop(GO, None)
    best = int(np.abs(values).argmax())
    first, second, third = st.columns([2, 2, 3], vertical_alignment="bottom")
    if go is not None:
        st.session_state["feedforward_layer"], st.session_state["feedforward_neuron"] = go
    with first:
        layer = _number(
            "Layer",
            "feedforward_layer",
            best // width,
            layers,
            "0 is the first block, next to the embedding.",
        )
    with second:
        hint = (
            f"One of the {width:,} entries of `ffn_post` in each layer. A click on a picture or in the table"
            " chooses it as well."
        )
        neuron = _number("Neuron", "feedforward_neuron", int(np.abs(values[layer]).argmax()), width, hint)
    with third:
        shown = st.segmented_control(
            "Neurons of the layer that are shown",
            SHOWN,
            default=SHOWN[0],
            required=True,
            key="feedforward_rows",
            bind="query-params",
        )
    return layer, neuron, shown if shown in SHOWN else SHOWN[0]


def _number(label: str, key: str, default: int, count: int, hint: str) -> int:
    """An index below `count`: what is kept if it fits, else the URL's, else `default`. It is always in the
    URL: the default moves with the text.
    """
    held = st.session_state.get(key)
    if held is None:
        named = st.query_params.get(key, "")
        held = int(named) if named.isdecimal() and len(named) < 8 else default
    if not isinstance(held, int) or not 0 <= held < count:
        held = default
    if st.session_state.get(key) != held:
        st.session_state[key] = held
    value = min(
        max(int(st.number_input(label, 0, count - 1, key=key, help=hint, persist_state="session")), 0),
        count - 1,
    )
    if st.query_params.get(key) != str(value):
        st.query_params[key] = str(value)
    return value


def _go(where: tuple[int, int] | None, now: tuple[int, int]) -> None:
    """Runs the page again with another neuron chosen."""
    if where is not None and where != now:
        st.session_state[GO] = where
        st.rerun()


def _fits(where: tuple[int, int] | None, values: np.ndarray) -> tuple[int, int] | None:
    return where if where is not None and where[0] < values.shape[0] and where[1] < values.shape[1] else None


def _whole_model(
    subject: Subject, post: np.ndarray, values: np.ndarray, now: tuple[int, int], diverging: bool
) -> None:
    layers, width = values.shape
    st.subheader("The whole model on this text", anchor=False)
    left, right = st.columns([7, 3], gap="medium")
    height = min(90 + 34 * layers, 520)
    with left:
        st.caption(
            f"The strongest activation of each of the {layers} × {width:,} neurons, anywhere in the text."
        )
        table: Table = {
            "layer": np.repeat(np.arange(layers), width),
            "neuron": np.tile(np.arange(width), layers),
            "strongest": values.ravel(),
        }
        alt = (
            f"Heatmap of {layers} layers by {width} neurons: the strongest activation on the text. The"
            f" largest is {np.abs(values).max():.2f}."
        )
        clicked = plot(
            figures.overview(values, now, signed=diverging),
            key="feedforward_overview",
            alt=alt,
            height=height,
            data=table,
            name="neurons",
        )
        _go(_fits(figures.decode(clicked), values), now)
    with right:
        exact = subject.model.parts.feedforward(subject.config).exact_zeros
        shares = neurons.quiet_share(post, exact)
        what = (
            "exactly 0"
            if exact
            else (
                f"smaller than {neurons.QUIET:g} × their layer's root mean square, since this kind is hardly"
                " ever exactly 0"
            )
        )
        st.caption(f"**Sparsity**: share of the activations that are {what}.")
        alt = (
            "Share of quiet activations by layer: "
            + ", ".join(f"layer {i} {s:.1%}" for i, s in enumerate(shares))
            + "."
        )
        table = {"layer": range(layers), "quiet": shares}
        plot(
            figures.share_bars(shares),
            key="feedforward_sparsity",
            alt=alt,
            height=height,
            data=table,
            name="sparsity",
        )


def _layer(
    subject: Subject,
    post: np.ndarray,
    values: np.ndarray,
    layer: int,
    neuron: int,
    shown: str,
    diverging: bool,
) -> None:
    """post (query, d_ff), values (d_ff,)"""
    st.subheader(f"Layer {layer}", anchor=False)
    width = len(values)
    order = np.argsort(-np.abs(values), kind="stable")[:MOST] if shown != "all" else np.arange(width)
    left, right = st.columns([16, 9], gap="small")
    with left:
        many, length = len(order), len(post)
        table: Table = {
            "neuron": np.repeat(order, length),
            "position": np.tile(np.arange(length), many),
            "activation": post[:, order].T.ravel(),
        }
        if shown != "all":
            table = {**table, "token": subject.labels * many}
        alt = (
            f"Heatmap of {len(order)} neurons of layer {layer} by {len(post)} tokens of the text: their"
            f" activation, {post.min():.2f} to {post.max():.2f}."
        )
        figure = figures.layer_map(post, order, subject.labels, layer, neuron, signed=diverging)
        height = 90 + 15 * len(order) if shown != "all" else 620
        clicked = plot(
            figure, key="feedforward_map", alt=alt, height=height, data=table, name=f"layer-{layer}"
        )
        where = figures.decode(clicked)
        _go(where if where is not None and where[0] == layer and where[1] < width else None, (layer, neuron))
    with right:
        _table(subject, layer, neuron)


def _table(subject: Subject, layer: int, neuron: int) -> None:
    st.caption(
        "**The most active neurons** of all layers. `at` is the token and its position. Click a row to"
        " choose it."
    )
    post = _stacked(subject.key, subject.ids, subject.recording())
    peaks = neurons.most_active(post, 40)
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
            "layer": st.column_config.NumberColumn(width=50),
            "neuron": st.column_config.NumberColumn(width=64),
            "activation": st.column_config.NumberColumn("value", format="%.2f", width=60),
            "at token": st.column_config.TextColumn("at", width=64),
        },
    )
    rows = picked.selection.rows if picked is not None else []
    before = st.session_state.get("feedforward_picked")
    st.session_state["feedforward_picked"] = list(
        rows
    )  # a row stays picked while the model or the text changes, and then chooses nothing
    if rows and rows[0] < len(peaks) and before != list(rows):
        _go((peaks[rows[0]].layer, peaks[rows[0]].neuron), (layer, neuron))


def _neuron(subject: Subject, along: np.ndarray, layer: int, neuron: int, is_signed: bool) -> None:
    """along (query,)"""
    st.subheader(f"Neuron {neuron} of layer {layer}", anchor=False)
    left, right = st.columns([7, 3], gap="medium")
    size = np.abs(along)
    top = max(float(size.max()), 1e-9)
    with left:
        st.caption("Shaded by the size of its activation. Choose a token to read the number.")
        hints = [f"position {i}: {v:.4f}" for i, v in enumerate(along)]
        label = f"The text, shaded by the activation of neuron {neuron}"
        at = token_strip(
            subject.labels,
            key="feedforward_token",
            chosen=int(size.argmax()),
            label=label,
            values=size / top,
            hints=hints,
        )
        where = f"At “{safe(subject.labels[at])}” (position {at}) its activation is **{along[at]:.4f}**"
        st.markdown(f"{where}; on this text it lies between {along.min():.3f} and {along.max():.3f}.")
        table = {"position": range(len(along)), "token": subject.labels, "activation": along}
        alt = (
            f"Activation of neuron {neuron} of layer {layer} at each token; strongest at position"
            f" {int(size.argmax())}, {along[int(size.argmax())]:.3f}."
        )
        plot(
            figures.activation_line(along, subject.labels, at),
            key="feedforward_line",
            alt=alt,
            height=240,
            data=table,
            name=f"neuron-{layer}-{neuron}",
        )
    with right:
        _writes(subject, layer, neuron, is_signed)
    with left:
        contexts(subject, layer, neuron, is_signed)


def _writes(subject: Subject, layer: int, neuron: int, is_signed: bool) -> None:
    st.markdown("**What it writes**")
    hint = "Through the linear part of the final norm. Off: the column of $W_{out}$ as it is."
    through = st.toggle("Through the norm", True, key="feedforward_norm", bind="query-params", help=hint)
    scores = neurons.token_scores(subject.model, layer, neuron, through_norm=through)
    order = np.argsort(-scores, kind="stable")
    words = subject.vocabulary
    alt = (
        f"The tokens promoted most: {' '.join(words[i] for i in order[:8])}; suppressed most:"
        f" {' '.join(words[i] for i in order[::-1][:8])}."
    )
    table = {"token": [words[i] for i in order], "logit_per_unit": scores[order]}
    plot(
        figures.token_bars(scores, words),
        key="feedforward_tokens",
        alt=alt,
        height=400,
        data=table,
        name=f"writes-{layer}-{neuron}",
    )
    how = _norm_words(subject) if through else "No norm is applied."
    both = (
        " When its activation is negative, as a gated neuron's can be, promoted and suppressed change places."
        if is_signed
        else ""
    )
    st.caption(
        f"Its column of $W_{{out}}$ times the unembedding, less the mean over the vocabulary. {how} Left out:"
        f" the norm's division, which depends on the token, and what later layers make of the write.{both}"
    )


def _norm_words(subject: Subject) -> str:
    c = subject.config
    if c.wiring == "post" or c.norm == "none":
        why = (
            "Post-norm models have none at the end; the norms inside the blocks are left out too."
            if c.wiring == "post"
            else "This model has no norms."
        )
        return f"There is no final norm to go through: {why}"
    gain = " and multiplied by its gain" if c.norm_gain else ""
    if c.norm == "layernorm":
        return f"On the way it is centred, as the final LayerNorm does{gain}."
    return (
        "On the way it is multiplied by the final RMSNorm's gain."
        if c.norm_gain
        else "The final RMSNorm has no gain, so nothing changes on the way."
    )
