"""The part "RoPE vs sinusoidal" of "RoPE": one pair of letters, always equally far apart, is moved through
the text, in a model of either kind.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.position_scores import (
    DistanceScores,
    PositionScores,
    entrances,
    position_scores,
)
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.maps import signed_map
from pages.input.positions.schemes import example
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


@dataclass(frozen=True, eq=False)
class Panel:
    """A model, and what it makes of the pair."""

    name: str
    title: str
    model: Checkpoint = field(repr=False)
    scores: PositionScores
    row: DistanceScores


def draw(_: Subject) -> None:
    """Draws two panels on one scale."""
    models = {name: checkpoint for name in KINDS if (checkpoint := example(name)) is not None}
    if len(models) < len(KINDS):
        st.info(TEXT["no models"])
        return
    picture, controls = st.columns([3, 1], gap="medium")
    with controls:
        letters, head, distance = _choose(models)
    panels = [_panel(name, checkpoint, letters, head, distance) for name, checkpoint in models.items()]
    reach = min(p.row.lowest for p in panels), max(p.row.highest for p in panels)
    with picture:
        for column, panel in zip(st.columns(2, gap="small"), panels, strict=True):
            with column:
                _draw_row(panel, reach, distance)
    added, rotated = (panel.row for panel in panels)
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
    explain.measure_it(_draw_places, panels, letters)


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


def _panel(name: str, checkpoint: Checkpoint, letters: tuple[str, str], head: int, distance: int) -> Panel:
    scores = _scores(name, *letters, head, checkpoint)
    return Panel(name, TEXT[f"title {name}"], checkpoint, scores, scores.apart(distance))


@memo.measured()
def _scores(name: str, query: str, key: str, head: int, _found: Checkpoint) -> PositionScores:
    q, k = (_found.tokenizer.encode(letter)[0] for letter in (query, key))
    return position_scores(_found.model, q, k, head, _found.config.context)


def _draw_row(panel: Panel, reach: tuple[float, float], distance: int) -> None:
    plot(
        moved_pair(panel.title, entrances(panel.model.model), panel.row, reach, distance),
        key=f"against_{panel.name}",
        height=370,
        name=f"{panel.name}-moved-pair",
        data=pd.DataFrame({"query_position": panel.row.positions, "score": panel.row.scores}),
        alt=TEXT(
            "alt", title=panel.title, distance=distance, lowest=panel.row.lowest, highest=panel.row.highest
        ),
    )


def _draw_places(panels: list[Panel], letters: tuple[str, str]) -> None:
    """The score at every two places."""
    reach = max(float(np.abs(panel.scores.scores).max()) for panel in panels)
    for column, panel in zip(st.columns(2, gap="medium"), panels, strict=True):
        with column:
            scores = panel.scores.scores
            st.markdown(f"**{panel.title}**")
            plot(
                every_two_positions(panel.scores, reach),
                key=f"against_places_{panel.name}",
                height=400,
                name=f"{panel.name}-every-two-positions",
                data=pd.DataFrame(scores, columns=[f"key at {n}" for n in range(len(scores))]),
                alt=TEXT("alt pairs", title=panel.title),
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


def every_two_positions(scores: PositionScores, reach: float) -> go.Figure:
    """Draws scores (query, key), zero in the middle of the scale."""
    return signed_map(scores.scores, TEXT["key position"], TEXT["query position"], TEXT["hover pairs"], reach)


PART = View("added", TEXT, draw, code=(position_scores, entrances))
