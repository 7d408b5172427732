"""A part of "Map": how much of the matrix the picture holds, and how much of it is frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from pages.input.embeddings.looks import class_look
from pages.input.embeddings.vocabulary import DRAWN, Vocabulary
from studies.embeddings.table import random_shares
from studies.embeddings.token_map import TokenMap, frequency_links
from ui import content, memo
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.players.plot import plot

TEXT = content.beside(__file__)
COMPONENTS = 10  # whose shares are drawn


def draw_trust(known: Vocabulary, matrix: np.ndarray, token_map: TokenMap) -> None:
    """Draws the shares of the components, and what the best of them has to do with frequency."""
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_shares(len(known.met), matrix.shape[1], token_map)
    with right:
        if known.frequency is None:
            st.info(TEXT["no frequency"])
        else:
            _draw_frequency(known, matrix, token_map.scores, known.frequency)


@memo.measured(copied=True)
def chance_shares(rows: int, width: int) -> np.ndarray:
    """Returns the shares of random numbers of that shape."""
    return random_shares(rows, width)


def _draw_shares(rows: int, width: int, token_map: TokenMap) -> None:
    shares = token_map.principal.shares[:COMPONENTS]
    random = chance_shares(rows, width)[: len(shares)]
    st.markdown(TEXT["variance"])
    plot(
        share_bars(shares, random),
        key="embed_shares",
        height=300,
        name="explained-variance",
        data={
            "component": np.arange(1, len(shares) + 1),
            "share": shares,
            "random_numbers": random,
        },
        alt=TEXT["alt variance"],
    )
    st.caption(TEXT("components", rows=rows, width=width))


def _draw_frequency(known: Vocabulary, matrix: np.ndarray, scores: np.ndarray, frequency: np.ndarray) -> None:
    links = frequency_links(matrix, scores, frequency, known.met)
    st.markdown(TEXT("against frequency", number=links.best + 1))
    plot(
        frequency_scatter(
            frequency,
            scores[:, links.best],
            known.words,
            known.names,
            known.classes,
            known.drawn(DRAWN),
            TEXT("component", number=links.best + 1),
        ),
        key="embed_frequency",
        height=300,
        name="component-and-frequency",
        data={"token": known.words, "count": known.counts, "score": scores[:, links.best]},
        alt=TEXT("alt frequency", number=links.best + 1),
    )
    each = [TEXT("correlation", number=i, r=r) for i, r in enumerate(links.components, 1) if np.isfinite(r)]
    components = content.Filled(", ".join(each)) or TEXT["none vary"]
    st.caption(TEXT("linked", components=components, norm=links.lengths))


def share_bars(shares: np.ndarray, random: np.ndarray) -> go.Figure:
    """Draws share of the variance by principal component, beside those of a random cloud of as many points
    and dimensions.
    """
    at = np.arange(1, len(shares) + 1)
    traces = [
        go.Bar(
            x=at,
            y=shares.astype(np.float32),
            name=TEXT["this"],
            marker={"color": colour("embedding")},
            hovertemplate=TEXT("hover share", name=TEXT["this"]),
        ),
        go.Scatter(
            mode="lines+markers",
            x=at,
            y=random.astype(np.float32),
            name=TEXT["random"],
            line={"color": colour("quiet"), "dash": "dot", "width": 1.5},
            marker={"size": 5},
            hovertemplate=TEXT("hover share", name=TEXT["random"]),
        ),
    ]
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 30, "b": 40},
        xaxis=go.axis(TEXT["principal"], dtick=1),
        yaxis=go.axis(TEXT["share"], showgrid=True, rangemode="tozero", tickformat=".1%", nticks=5),
    )


def frequency_scatter(
    frequency: np.ndarray,
    score: np.ndarray,
    words: Sequence[str],
    names: Sequence[str],
    classes: np.ndarray,
    ids: np.ndarray,
    y: str,
) -> go.Figure:
    """Draws one principal component against log10(1 + count), (vocab,) each; `ids` are the tokens drawn."""
    traces = []
    for index, name in enumerate(names):
        members = ids[classes[ids] == index]
        if len(members):
            shade, symbol = class_look(name)
            traces.append(
                go.Scatter(
                    mode="markers",
                    name=name,
                    x=frequency[members].astype(np.float32),
                    y=score[members],
                    customdata=members.astype(np.int32),
                    hovertext=[plain(words[i]) for i in members],
                    marker={"color": colour(shade), "symbol": symbol, "size": 8},
                    hovertemplate=TEXT["hover token"],
                )
            )
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 12, "b": 40},
        showlegend=False,
        xaxis={"title": {"text": TEXT["frequency"]}},
        yaxis={"title": {"text": y}},
    )
