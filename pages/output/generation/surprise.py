"""How surprising each token of a written text was to the model that wrote it: bars, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.sample.branches import Written
from engine.sample.surprise import Surprise, surprise
from pages.output.generation import words
from ui import explain
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe


def draw_surprise(subject: Subject, path: Sequence[Written], shown: int) -> None:
    """Draws the tokens of a branch in numbers: in the answer those that are `shown`, in the fold all."""
    if not path:
        return
    whole = surprise(path, subject.config.vocab_size)
    if not whole.finite:
        st.info(words.DIVERGED)
        return
    labels = [subject.vocabulary[node.token] for node in path]
    written = surprise(path[:shown], subject.config.vocab_size)
    explain.answer(words.surprised(written, subject.config.vocab_size))
    explain.measure_it(_every_token, subject, labels, path, whole)


def _every_token(subject: Subject, labels: list[str], path: Sequence[Written], surprise: Surprise) -> None:
    st.markdown("**Surprisal of each token**")
    plot(
        surprise_bars(labels, surprise),
        key="generation_surprise",
        height=280,
        name="generation",
        data=_table(labels, path, surprise, len(subject.ids)),
        alt=words.surprise_alt(surprise),
    )
    worst, least = safe(labels[surprise.worst]), words.chance(path[surprise.worst].log_p)
    st.markdown(words.least_expected(surprise, worst, least))


def _table(labels: Sequence[str], path: Sequence[Written], surprise: Surprise, prompt: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_written": surprise.depth,
            "position": surprise.positions(prompt),
            "id": [n.token for n in path],
            "token": labels,
            "p": surprise.p,
            "nats": surprise.nats,
            "nats_so_far": surprise.mean,
            "q_with_settings": [n.q for n in path],
            "drawn_id": [n.drawn for n in path],
            "picked": surprise.picked,
            "sees_from_position": [n.begin for n in path],
        }
    )


def surprise_bars(labels: Sequence[str], surprise: Surprise) -> go.Figure:
    """Draws a bar for each token, -ln p in nats, in the colours of the text; over them the mean so far.
    labels (token,).
    """
    count, depth = len(labels), surprise.depth
    words = [plain(label) for label in labels]
    bars = go.Bar(
        x=depth,
        y=surprise.nats.astype(np.float32),
        name="this token",
        customdata=surprise.p.astype(np.float32),
        hovertext=words,
        marker={
            "color": surprise.p.astype(np.float32),
            "colorscale": SEQUENTIAL,
            "cmin": 0,
            "cmax": 1,
            "line": {"width": 0.8 if count <= 400 else 0, "color": colour("quiet", 50)},
        },
        hovertemplate=(
            "token %{x}: %{hovertext}<br>p = %{customdata:.4f}, −ln p = %{y:.3f} nats<extra></extra>"
        ),
    )
    traces: list[go.Trace] = [
        bars,
        go.Scatter(
            x=depth,
            y=surprise.mean.astype(np.float32),
            mode="lines",
            name="mean so far",
            line={"color": colour("output"), "width": 2.5},
            hovertemplate="first %{x} tokens: %{y:.3f} nats per token<extra></extra>",
        ),
    ]
    if surprise.picked.any():
        traces.append(
            go.Scatter(
                x=depth[surprise.picked],
                y=surprise.nats[surprise.picked].astype(np.float32),
                mode="markers",
                name="picked by you",
                hoverinfo="skip",
                marker={"symbol": "diamond", "size": 10, "color": colour("attention")},
            )
        )
    few = count <= 40
    axis: dict[str, object] = {}
    if few:  # single characters stand upright side by side even on a phone; longer tokens may be turned
        axis = {"tickvals": depth, "ticktext": words, "tickfont": {"family": "monospace"}} | (
            {"tickangle": 0} if max(map(len, labels)) == 1 else {}
        )
    return go.figure(
        traces,
        xaxis={"title": {"text": "token written"}, "range": [0.4, count + 0.6], **axis},
        yaxis={"title": {"text": "surprisal −ln p (nats)"}, "rangemode": "tozero"},
        bargap=0.0 if count > 150 else 0.15,
        shapes=[go.rule(y=surprise.guessing, line={"color": colour("quiet"), "dash": "dot", "width": 1.5})],
        annotations=[
            go.note(
                f"uniform guess: ln V = {surprise.guessing:.2f}",
                1,
                surprise.guessing,
                xref="paper",
                xanchor="right",
                yanchor="bottom",
            )
        ],
    )
