"""The view "Learned": a trained table of position vectors, beside the sinusoidal one of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.model import Transformer
from engine.parts.positions import Learned
from pages.input.positions.maps import cosine_map, table_map
from studies.positions.position_table import PositionTable, alike, learned_table, measured, sinusoidal
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import SEQUENTIAL, colour
from ui.model_bar import Subject
from ui.model_needs import POSITION_TABLE
from ui.page_frame import View
from ui.players.plot import plot
from ui.snapshot_measure import draw_over_snapshots, steps_of

TEXT = content.beside(__file__)
MOST = 512  # positions that are drawn
PICTURES = {"alike": "cosines", "path": "path", "table": "positions"}  # name of what is saved
LEARNED, SINUSOIDAL = "learned", "sinusoidal"


def draw(subject: Subject) -> None:
    """Draws both tables beside each other, in one of three pictures."""
    table = learned_table(subject.model)
    assert table is not None
    if len(table) < 3:
        st.info(TEXT("too short", positions=len(table)))
        return
    left, right = st.columns([1, 2], vertical_alignment="center")
    titles = {name: TEXT[f"picture {name}"] for name in PICTURES}
    picture = widgets.select(TEXT["picture"], titles, "learned_picture", hidden=True, container=left)
    if len(table) > MOST:
        right.caption(TEXT("first positions", most=MOST, positions=len(table)))
        table = table[:MOST]
    pair = {LEARNED: _learned(subject.key, table), SINUSOIDAL: _sinusoidal(*table.shape)}
    _draw_pair(picture, pair)
    explain.answer(_answer(picture, *pair.values()))
    explain.measure_it(_draw_measured, subject, pair)


@memo.measured()
def _learned(key: tuple[str, int], _table: np.ndarray) -> PositionTable:
    return measured(_table)


@memo.measured()
def _sinusoidal(length: int, d_model: int) -> PositionTable:
    return measured(sinusoidal(length, d_model))


def _answer(picture: str, learned: PositionTable, waves: PositionTable) -> str:
    """Says what training has taught the table, for one of the pictures."""
    length, width = learned.table.shape
    if picture == "table":
        parameters, ratio = length * width, learned.first_to_median
        return TEXT("answer table", length=length, width=width, parameters=parameters, ratio=ratio)
    if picture == "path":
        return TEXT("answer path", learned=learned.shown_variance, waves=waves.shown_variance)
    near, half = learned.alike.by_distance[1], learned.alike.by_distance[length // 2]
    known = "answer near" if learned.knows_near else "answer unordered"
    return TEXT(known, near=near, apart=length // 2, half=half)


def _draw_pair(picture: str, pair: dict[str, PositionTable]) -> None:
    """On a phone, too, the two stand next to each other: one below the other."""
    for column, (name, table) in zip(st.columns(2, gap="medium"), pair.items(), strict=True):
        with column:
            _draw_picture(picture, name, table)


def _draw_picture(picture: str, name: str, of: PositionTable) -> None:
    """One of the two tables, in one of the pictures, below its heading."""
    length, width = of.table.shape
    columns: dict[str, np.ndarray]
    if picture == "table":
        figure = table_map(of.table, TEXT["dimension"])
        columns = {f"d{i}": column for i, column in enumerate(of.table.T)}
    elif picture == "path":
        figure, columns = path(of.path, of.variance_shares), {"pc1": of.path[:, 0], "pc2": of.path[:, 1]}
    else:
        figure = cosine_map(of.alike.cosines)
        columns = {f"p{i}": column for i, column in enumerate(of.alike.cosines.T)}
    st.markdown(TEXT(f"{picture} of {name}", length=length, width=width, parameters=length * width))
    plot(
        figure,
        key=f"learned_{picture}_{name}",
        height=360,
        name=f"{name}-{PICTURES[picture]}",
        data={"position": np.arange(length)} | columns,
        alt=TEXT(f"alt {picture}", name=name, positions=length, dimensions=width),
    )


def _draw_measured(subject: Subject, pair: dict[str, PositionTable]) -> None:
    """How alike and how long by distance and position, and over a training."""
    for column, (name, table) in zip(st.columns(2), pair.items(), strict=True):
        value = table.alike.correlation
        column.metric(
            TEXT[f"correlation of {name}"],
            f"{value:+.3f}" if np.isfinite(value) else TEXT["not defined"],
        )
    _draw_lines(pair)
    steps = steps_of(subject)
    if steps:
        st.markdown(TEXT["over training"])
        draw = partial(
            _draw_course, level=pair[SINUSOIDAL].alike.correlation, shown=subject.key[1], end=steps[-1]
        )
        draw_over_snapshots("positions", subject.key[0], steps, _correlation, draw)


def _draw_lines(pair: dict[str, PositionTable]) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(TEXT["by distance"])
        curves = [(name, table.alike.by_distance[1:], table.alike.spread[1:]) for name, table in pair.items()]
        columns = {f"{name}_mean": mean for name, mean, _ in curves} | {
            f"{name}_sd": spread for name, _, spread in curves
        }
        plot(
            two_lines(curves, TEXT["distance"], TEXT["mean cosine"], first=1),
            key="learned_distance",
            height=300,
            name="cosine-by-distance",
            data={"distance": np.arange(1, len(curves[0][1]) + 1)} | columns,
            alt=TEXT["alt distance"],
        )
        st.caption(TEXT["band"])
    with right:
        st.markdown(TEXT["by position"])
        lines = [(name, table.alike.norms, None) for name, table in pair.items()]
        plot(
            two_lines(lines, TEXT["position"], TEXT["norm"]),
            key="learned_norms",
            height=300,
            name="position-norms",
            data={"position": np.arange(len(lines[0][1]))} | {name: values for name, values, _ in lines},
            alt=TEXT["alt norms"],
        )
        st.caption(TEXT("same norm", norm=pair[SINUSOIDAL].alike.norms[0]))


def _correlation(model: Transformer) -> float | None:
    table = learned_table(model)
    return None if table is None else alike(table[:MOST]).correlation


def _draw_course(points: dict[int, float], level: float, shown: int, end: int) -> None:
    values = np.array(list(points.values()))
    plot(
        rising(np.asarray(list(points)), values, level, shown, float(end)),
        key="learned_course",
        height=280,
        name="nearness-over-training",
        data={"step": list(points), "correlation": values},
        alt=TEXT["alt course"],
    )


# Figures ------------------------------------------------------------------------------------------


def path(scores: np.ndarray, share: np.ndarray) -> go.Figure:
    """Draws positions on two principal components (position, 2), joined in order and coloured by position."""
    at = np.arange(len(scores))
    scale = [[i / 5, stop[1]] for i, stop in enumerate(SEQUENTIAL[1:])]  # without the page's own colour
    marker = {
        "size": 8,
        "color": at.astype(np.float32),
        "colorscale": scale,
        "showscale": True,
        "line": {"width": 1, "color": colour("position")},
    }
    trace = go.Scatter(
        mode="lines+markers+text",
        x=scores[:, 0],
        y=scores[:, 1],
        line={"color": colour("position", 40), "width": 1.5},
        marker=marker | {"colorbar": go.scale(TEXT["position"])},
        text=_names(scores),
        textposition=_outside(scores),
        hovertemplate=f"{TEXT['hover path']}<extra></extra>",
        customdata=at.astype(np.int32),
        cliponaxis=False,
    )
    return go.figure(
        [trace],
        margin={"l": 52, "r": 8, "t": 20, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": TEXT("component", number=1, share=share[0])}},
        yaxis={"title": {"text": TEXT("component", number=2, share=share[1])}},
    )


def _names(scores: np.ndarray, apart: float = 0.08) -> list[str]:
    """The first, the last and some positions between, of those that are not too near each other to be read;
    the others are nameless.
    """
    flat, last = _flat(scores), len(scores) - 1
    named: list[int] = []
    for i in [0, last, *range(0, last, max(1, len(scores) // 8))]:
        if i not in named and (i in (0, last) or all(np.abs(flat[i] - flat[j]).max() > apart for j in named)):
            named.append(i)
    return [str(i) if i in named else "" for i in range(len(scores))]


def _flat(scores: np.ndarray) -> np.ndarray:
    """Scales the picture so that both axes are equally long."""
    flat: np.ndarray = (scores - scores.mean(0)) / np.maximum(np.ptp(scores, axis=0), 1e-12)
    return flat


def _outside(scores: np.ndarray) -> list[str]:
    """Where the name of each point stands: beside the path, on the side away from its middle."""
    flat = _flat(scores)
    along = np.roll(flat, -2, axis=0) - np.roll(flat, 2, axis=0)
    along[:2], along[-2:] = flat[2] - flat[0], flat[-1] - flat[-3]
    across = np.stack((-along[:, 1], along[:, 0]), axis=1)
    across *= np.where((across * flat).sum(1, keepdims=True) < 0, -1.0, 1.0) / np.maximum(
        np.linalg.norm(across, axis=1, keepdims=True), 1e-12
    )
    sides = [
        (
            "left" if x < -0.5 else "right" if x > 0.5 else "center",
            "bottom" if y < -0.5 else "top" if y > 0.5 else "middle",
        )
        for x, y in across
    ]
    return [f"{'top' if (x, y) == ('center', 'middle') else y} {x}" for x, y in sides]


def two_lines(
    curves: Sequence[tuple[str, np.ndarray, np.ndarray | None]], x: str, y: str, *, first: int = 0
) -> go.Figure:
    """Draws (name, values (n,), spread (n,) or None): the learned table first, drawn full, then the
    sinusoidal one, dashed. x counts from `first`.
    """
    traces: list[dict[str, Any]] = []
    for (name, values, spread), shade, dash in zip(
        curves, ("position", "validation"), ("solid", "dash"), strict=False
    ):
        at = np.arange(first, first + len(values))
        if spread is not None and spread.max() > 1e-5:
            traces.append(go.band(at, values + spread, values - spread, shade, showlegend=False))
        traces.append(
            go.Scatter(
                mode="lines",
                x=at,
                y=values.astype(np.float32),
                name=name,
                line={"color": colour(shade), "width": 2.5, "dash": dash},
                hovertemplate="%{y:.4f}",
            )
        )
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 30, "b": 44},
        hovermode="x unified",
        xaxis=go.axis(x),
        yaxis={"title": {"text": y}, "zeroline": True, "zerolinecolor": colour("quiet")},
    )


def rising(steps: np.ndarray, values: np.ndarray, level: float, shown: int, end: float) -> go.Figure:
    """Draws the learned table's correlation (step,); a dotted line at the sinusoidal one's `level`; a dashed
    one marks the step that is `shown`.
    """
    trace = go.Scatter(
        mode="lines+markers",
        x=steps,
        y=values.astype(np.float32),
        marker={"size": 7},
        line={"color": colour("position"), "width": 3},
        hovertemplate=f"{TEXT['hover course']}<extra></extra>",
    )
    still = go.rule(y=level, line={"color": colour("validation"), "dash": "dot"})
    here = go.rule(x=shown, line={"color": colour("attention"), "width": 1.5, "dash": "dash"})
    name = go.note(
        TEXT("sinusoidal level", level=level), 1, level, xref="paper", xanchor="right", yanchor="bottom"
    )
    return go.figure(
        [trace],
        margin={"l": 52, "r": 12, "t": 12, "b": 44},
        showlegend=False,
        shapes=[still, here],
        annotations=[name | {"font": {"color": colour("validation")}}],
        xaxis=go.axis(TEXT["step"], range=[-0.02 * end, 1.02 * end]),
        yaxis=go.axis(
            TEXT["correlation"],
            showgrid=True,
            zeroline=True,
            zerolinecolor=colour("quiet"),
            range=[min(-0.15, float(values.min()) - 0.05), 1.08],
        ),
    )


VIEW = View(
    "learned", TEXT, draw, code=(Learned, alike, sinusoidal), takes=(POSITION_TABLE,), figures_only=True
)
