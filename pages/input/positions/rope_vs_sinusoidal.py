"""The part "RoPE vs sinusoidal" of "RoPE": one pair of letters, always equally far apart, is moved through
the text, in a model of either kind.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint
from pages.input.positions.maps import signed_map
from pages.input.positions.schemes import example
from studies.positions.position_scores import DistanceScores, PositionScores, entrances, position_scores
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
KINDS = ("sinusoidal", "rope")
FARTHEST, FIRST_DISTANCE = 32, 3
BOTTOM, TOP = 1.06, 1.15  # of the strip of blocks, in heights of the plot
EMBEDDING = 0.3  # of the strip's width


def draw(_: Subject) -> None:
    """Draws two panels on one scale."""
    models = {name: checkpoint for name in KINDS if (checkpoint := example(name)) is not None}
    if len(models) < len(KINDS):
        st.info(TEXT["no models"])
        return
    picture, controls = st.columns([3, 1], gap="medium")
    with controls:
        letters, head, distance = _choose(models)
    scores = {name: _scores(name, *letters, head, each) for name, each in models.items()}
    rows = {name: each.apart(distance) for name, each in scores.items()}
    added, rotated = rows["sinusoidal"], rows["rope"]
    reach = min(added.lowest, rotated.lowest), max(added.highest, rotated.highest)
    with picture:
        for column, name in zip(st.columns(2, gap="small"), KINDS, strict=True):
            with column:
                _draw_row(name, models[name], rows[name], reach, distance)
    explain.answer(
        TEXT(
            "answer",
            query=letters[0],
            key=letters[1],
            distance=distance,
            rotated=rotated.mean,
            lowest=added.lowest,
            highest=added.highest,
        )
    )
    explain.measure_it(_draw_places, scores, letters)


def _choose(models: dict[str, Checkpoint]) -> tuple[tuple[str, str], int, int]:
    """((query, key), head, distance)."""
    known = [c for c in string.ascii_lowercase if all(not m.tokenizer.unknown(c) for m in models.values())]
    left, right = st.columns(2, gap="small")
    query = widgets.select(TEXT["query"], known, "against_query", first="e", kind="list", container=left)
    key = widgets.select(TEXT["key"], known, "against_key", first="h", kind="list", container=right)
    hint = TEXT["distance hint"]
    distance = widgets.slide(TEXT["distance"], 0, FARTHEST, FIRST_DISTANCE, "against_distance", hint=hint)
    heads = min(m.config.n_heads for m in models.values())
    return (query, key), widgets.index(TEXT["head"], heads, "against_head"), distance


@memo.measured()
def _scores(name: str, query: str, key: str, head: int, _found: Checkpoint) -> PositionScores:
    q, k = (_found.tokenizer.encode(letter)[0] for letter in (query, key))
    return position_scores(_found.model, q, k, head, _found.config.context)


def _draw_row(
    name: str, model: Checkpoint, row: DistanceScores, reach: tuple[float, float], distance: int
) -> None:
    title = TEXT[f"title {name}"]
    plot(
        moved_pair(title, entrances(model.model), row, reach, distance),
        key=f"against_{name}",
        height=370,
        name=f"{name}-moved-pair",
        data=pd.DataFrame({"query_position": row.positions, "score": row.scores}),
        alt=TEXT("alt", title=title, distance=distance, lowest=row.lowest, highest=row.highest),
    )


def _draw_places(every: dict[str, PositionScores], letters: tuple[str, str]) -> None:
    """The score at every two places."""
    reach = max(float(np.abs(each.scores).max()) for each in every.values())
    for column, (name, each) in zip(st.columns(2, gap="medium"), every.items(), strict=True):
        with column:
            title, scores = TEXT[f"title {name}"], each.scores
            st.markdown(f"**{title}**")
            plot(
                signed_map(scores, TEXT["key position"], TEXT["query position"], TEXT["hover pairs"], reach),
                key=f"against_places_{name}",
                height=400,
                name=f"{name}-every-two-positions",
                data=pd.DataFrame(scores, columns=[f"key at {n}" for n in range(len(scores))]),
                alt=TEXT("alt pairs", title=title),
            )
    st.caption(TEXT("all pairs", query=letters[0], key=letters[1]))


def moved_pair(
    title: str,
    entrances: Sequence[tuple[str, bool]],
    row: DistanceScores,
    reach: tuple[float, float],
    distance: int,
) -> go.Figure:
    """Draws the score of a pair as it moves through the text, on an axis that holds `reach`; above it, where
    positions enter.
    """
    line = go.Scatter(
        x=row.positions,
        y=row.scores.astype(np.float32),
        mode="lines+markers",
        line={"color": colour("position"), "width": 3},
        marker={"size": 5},
        customdata=row.positions - distance,
        hovertemplate=f"{TEXT['hover']}<extra></extra>",
    )
    low, high = reach
    room = 0.08 * max(high - low, 0.1)
    boxes, names = _strip(entrances)
    named = go.note(
        f"<b>{title}</b>",
        0,
        1.2,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        font={"size": 14},
    )
    return go.figure(
        [line],
        margin={"l": 44, "r": 8, "t": 84, "b": 42},
        showlegend=False,
        shapes=boxes,
        annotations=[*names, named],
        xaxis=go.axis(TEXT["query position"], zeroline=False),
        yaxis={"title": {"text": TEXT["score"]}, "range": [low - room, high + room], "zeroline": True},
    )


def _strip(entrances: Sequence[tuple[str, bool]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A box for the embedding and for each block, filled where positions enter."""
    width = (1 - EMBEDDING) / max(len(entrances) - 1, 1)
    edges = [0.0, *(EMBEDDING + i * width for i in range(len(entrances)))]
    boxes, names = [], []
    for (name, lit), left, right in zip(entrances, edges, edges[1:], strict=False):
        boxes.append(
            {
                "type": "rect",
                "xref": "paper",
                "yref": "paper",
                "x0": left + 0.005,
                "x1": right - 0.005,
                "y0": BOTTOM,
                "y1": TOP,
                "line": {"color": colour("position" if lit else "quiet"), "width": 1.5},
                "fillcolor": colour("position", 40) if lit else "rgba(0,0,0,0)",
            }
        )
        names.append(
            go.note(
                name,
                (left + right) / 2,
                (BOTTOM + TOP) / 2,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="middle",
                font={"size": 11},
            )
        )
    return boxes, names


PART = View("added", TEXT, draw, code=(position_scores, entrances))
