"""A part of "Extrapolation": what each scheme knows of distance before training, and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.extrapolation import TIMES
from engine.measure.positions.schemes import Similarity, similarity
from engine.model import build
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.schemes import COLOURS, TITLES
from ui import content, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour
from ui.layout import scrolled
from ui.players.plot import plot

TEXT = content.beside(__file__)
Similarities = dict[Position, tuple[Similarity, Similarity]]  # (untrained, trained)


@memo.measured()
def _similarities(_models: dict[Position, Checkpoint]) -> Similarities:
    """Measures similarity by distance for each scheme, as far as the texts below are long."""
    result = {}
    for scheme, checkpoint in _models.items():
        reach, seed = TIMES * checkpoint.config.context, int(checkpoint.metrics["train"]["seed"])
        fresh = build(checkpoint.config, seed).requires_grad_(False).eval()
        result[scheme] = similarity(fresh, reach), similarity(checkpoint.model, reach)
    return result


def draw_sensitivity(models: dict[Position, Checkpoint]) -> None:
    """Draws a panel for each scheme, and a sentence of what they make of near and far."""
    st.markdown(TEXT["heading"])
    context = next(iter(models.values())).config.context
    trained = widgets.switch(TEXT["trained"], False, "bench_trained")
    similarities = _similarities(models)
    with st.container(key="bench_panels"):
        scrolled("bench_panels", 700)
        plot(
            similarity_panels(similarities, trained, context, TIMES * context),
            key="bench_similarity",
            height=430,
            name="similarity-by-distance",
            data=_similarity_rows(similarities),
            alt=TEXT["alt"],
        )
    st.caption(" ".join([TEXT("quantities", context=context), *_untrained(similarities)]))


def _untrained(similarities: Similarities) -> list[str]:
    """Says what the untrained schemes make of near and far, in numbers."""
    each = []
    names: tuple[Position, ...] = ("sinusoidal", "rope")
    for name in names:
        if name in similarities:
            fresh, _ = similarities[name]
            near, far = fresh.range_at(1)[0], fresh.range_at(16)[0]
            each.append(TEXT("near and far", title=TITLES[name], near=near, far=far))
    if "alibi" in similarities:
        low, high = similarities["alibi"][0].range_at(16)
        each.append(TEXT("far in ALiBi", low=low, high=high))
    said: list[str] = [TEXT("differ", each=content.Filled("; ".join(each)))] if each else []
    if "learned" in similarities:
        low, high = similarities["learned"][0].range_apart
        said.append(TEXT("untrained table", low=low, high=high))
    return said


def _similarity_rows(similarities: Similarities) -> pd.DataFrame:
    """A row for each distance, a column for each line."""
    columns = {
        f"{TITLES[scheme]}, {name}, {when}": pd.Series(values.astype(np.float32), index=s.distance)
        for scheme, (fresh, trained) in similarities.items()
        for when, s in (("untrained", fresh), ("trained", trained))
        for name, values in zip(s.lines, s.values, strict=True)
    }
    return pd.DataFrame(columns).rename_axis("distance").reset_index()


def similarity_panels(panels: Similarities, both: bool, context: int, reach: int) -> go.Figure:
    """Draws a panel for each scheme, three in a row, all on one axis from 0 to `reach`: untrained, and after
    training where it is `both`.
    """
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes, shapes = [], []
    rows = max(1, -(-len(panels) // 3))
    for i, (scheme, (fresh, trained)) in enumerate(panels.items()):
        axis, column, row = "" if i == 0 else str(i + 1), i % 3, i // 3
        left, top = column * 0.35, 1 - 0.09 - row * 1.09 / rows
        bottom = max(0.0, top - 1 / rows + 0.19)
        shade = COLOURS[scheme]
        traces += _panel_lines(trained, "trained", shade, axis) if both else []
        traces += _panel_lines(fresh, "untrained", shade, axis)
        lowest = row == rows - 1 or i + 3 >= len(panels)
        axes[f"xaxis{axis}"] = {
            "domain": [left, left + 0.3],
            "range": [0, reach],
            "anchor": f"y{axis}",
            "showgrid": False,
            "zeroline": False,
            "tickvals": [0, context, 2 * context, 4 * context],
            "title": {"text": TEXT["distance"] if lowest else "", "standoff": 4},
        }
        axes[f"yaxis{axis}"] = dict(
            domain=[bottom, top], range=[-0.35, 1.12], anchor=f"x{axis}", tickvals=[0, 0.5, 1]
        )
        where = {
            "xref": "paper",
            "yref": "paper",
            "x": left,
            "y": top + 0.01,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
        }
        notes.append({"text": f"<b>{TITLES[scheme]}</b> · {fresh.quantity}", "font": {"size": 13}} | where)
        shapes.append(
            {
                "type": "line",
                "xref": f"x{axis}",
                "yref": f"y{axis} domain",
                "x0": context,
                "x1": context,
                "y0": 0,
                "y1": 1,
                "line": {"color": colour("quiet"), "width": 1, "dash": "dot"},
            }
        )
    layout = base_layout(
        margin={"l": 36, "r": 8, "t": 4, "b": 40}, showlegend=False, annotations=notes, shapes=shapes
    )
    return go.Figure({"data": traces, "layout": layout | axes})


def _panel_lines(similarity: Similarity, when: str, shade: str, axis: str) -> list[dict[str, Any]]:
    fresh = when == "untrained"
    return [
        go.Scatter(
            mode="lines",
            x=similarity.distance,
            y=values.astype(np.float32),
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            name=name,
            line=dict(color=colour(shade), width=2 if fresh else 1.5, dash="solid" if fresh else "dot"),
            opacity=1 if fresh else 0.9,
            hovertemplate=TEXT(f"hover {when}", name=name),
        )
        for name, values in zip(similarity.lines, similarity.values, strict=True)
    ]
