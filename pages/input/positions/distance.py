"""The part "Distance" of "RoPE": the score against the distance between query and key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions.rotated_head import BASES, WIDTHS, RotatedHead, near, near_base, rotated_head
from studies.positions.rope import Decay, decay, mean_score, score_curve, some_distances
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
REACHES = (64, 128, 256, 512, 1_024, 4_096, 16_384)


def draw(subject: Subject) -> None:
    """Draws the score of the mean vectors of a head, or of ones, with one base and with another."""
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = rotated_head(subject)
        kind = widgets.select(TEXT["vectors"], (TEXT["mean"], TEXT["ones"]), "rope_vectors", wrap=True)
        written = "{:,}".format
        base = widgets.slide_over(TEXT["base"], BASES, near_base(turned.base), "rope_base", written=written)
        start = min((r for r in REACHES if r >= subject.config.context), default=REACHES[-1])
        reach = widgets.slide_over(TEXT["reach"], REACHES, start, "rope_reach", written=written)
        q, k, width, rotary = turned.q, turned.k, turned.width, turned.rotary
        if kind == TEXT["ones"]:
            first = near(turned.rotary, WIDTHS)
            width = rotary = widgets.slide_over(TEXT["width"], WIDTHS, first, "rope_width", written=written)
            q = k = np.ones((1, width))
    distances = some_distances(reach)
    other = next(b for b in (turned.base, 10_000.0, 100.0) if b != base)
    curves: dict[str, np.ndarray] = {
        TEXT("own curve" if b == turned.base else "curve", base=b): mean_score(q, k, b, distances, rotary)
        for b in (float(base), other)
    }
    with figure:
        plot(
            score_curves(distances, curves, subject.config.context),
            key="rope_curve",
            height=380,
            name="rope-score-against-distance",
            data=pd.DataFrame(
                {"distance": distances}
                | {name.replace(" ", "_").replace(",", ""): v for name, v in curves.items()}
            ),
            alt=TEXT("alt", width=width, kind=kind, base=base),
        )
    falling = decay(distances, next(iter(curves.values())))
    explain.answer(_answer(falling, base))
    explain.by_hand(_say_how, falling, turned, kind, width, len(subject.ids))


def _answer(decay: Decay, base: float) -> str:
    if not decay.falls:
        case = "peaks"
    elif decay.below_half is None:
        case = "above half"
    else:
        case = "stays below" if decay.stays else "oscillates"
    (low, low_at), (high, high_at) = decay.lowest, decay.highest
    ends = TEXT(
        "ends",
        base=base,
        start=decay.start,
        reach=decay.reach,
        last=decay.last,
        low=low,
        low_at=low_at,
        high=high,
        high_at=high_at,
    )
    return f"{TEXT(case, half=decay.below_half, reach=decay.reach)} {ends}"


def _say_how(decay: Decay, turned: RotatedHead, kind: str, width: int, tokens: int) -> None:
    """How the curve is computed."""
    if kind == TEXT["ones"]:
        case = "how of ones" if width > 2 else "how of one"
        st.markdown(TEXT(case, pairs=width // 2, width=width, start=decay.start))
    else:
        st.markdown(TEXT("how of means", tokens=tokens, head=turned.words))


def score_curves(distances: np.ndarray, curves: Mapping[str, np.ndarray], context: int) -> go.Figure:
    """Draws q.k against the distance (distance,), the first curve thick; the end of the context is marked
    where it is in the picture.
    """
    traces = []
    for i, (name, values) in enumerate(curves.items()):
        line = (
            {"color": colour("position"), "width": 2.5}
            if i == 0
            else {"color": colour("quiet"), "width": 1.5, "dash": "dash"}
        )
        traces.append(
            go.Scatter(
                mode="lines",
                name=name,
                x=distances.astype(np.float32),
                y=values.astype(np.float32),
                line=line,
                hovertemplate=f"{TEXT['hover']}<extra>{name}</extra>",
            )
        )
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    if context < distances[-1]:
        dotted = {"color": colour("quiet"), "dash": "dot", "width": 1.2}
        shapes.append(go.rule(x=context, line=dotted))
        text = {
            "text": TEXT("context", context=context),
            "font": {"color": colour("quiet"), "size": 12},
            "showarrow": False,
        }
        notes.append(
            {"x": context, "yref": "paper", "y": 1, "xanchor": "left", "yanchor": "top", "xshift": 4} | text
        )
    return go.figure(
        traces,
        margin={"l": 60, "r": 12, "t": 34, "b": 44},
        shapes=shapes,
        annotations=notes,
        xaxis=go.axis(TEXT["distance"], zeroline=False, range=[0, float(distances[-1])]),
        yaxis={"title": {"text": TEXT["score"]}, "zeroline": True},
    )


PART = View("distance", TEXT, draw, (Rope, rotate_half_pairs, score_curve))
