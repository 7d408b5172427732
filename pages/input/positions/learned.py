"""The view "Learned": a trained table of position vectors, beside the sinusoidal one of
the same size.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from engine.measure.positions.position_table import (
    PositionTable,
    alike,
    learned_table,
    measured,
    sinusoidal,
)
from engine.model import Transformer
from pages.input.positions import figures_learned as figures
from pages.input.positions import words_measured
from pages.input.positions.maps import cosine_map, table_map
from pages.input.positions.words_answers import learned_sentence
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.snapshot_measure import draw_over_snapshots, steps_of

MOST = 512  # positions that are drawn
LEARNED, SINUSOIDAL = "learned", "sinusoidal"


@memo.measured()
def _learned(key: tuple[str, int], _table: np.ndarray) -> PositionTable:
    return measured(_table)


@memo.measured()
def _sinusoidal(length: int, d_model: int) -> PositionTable:
    return measured(sinusoidal(length, d_model))


def draw_learned(subject: Subject) -> None:
    """Draws both tables beside each other, in one of three pictures."""
    table = learned_table(subject.model)
    assert table is not None
    if len(table) < 3:
        st.info(words_measured.too_short(len(table)))
        return
    left, right = st.columns([1, 2], vertical_alignment="center")
    titles = {name: title for name, (title, _) in PICTURES.items()}
    picture = widgets.select("Picture", titles, "learned_picture", hidden=True, container=left)
    if len(table) > MOST:
        right.caption(f":material/info: The first {MOST} of {len(table):,} positions are shown.")
        table = table[:MOST]
    pair = {LEARNED: _learned(subject.key, table), SINUSOIDAL: _sinusoidal(*table.shape)}
    _draw_pair(picture, pair)
    explain.answer(learned_sentence(picture, *pair.values()))
    explain.measure_it(_draw_measured, subject, pair)


def _draw_pair(picture: str, pair: dict[str, PositionTable]) -> None:
    """On a phone, too, the two stand next to each other: one below the other."""
    length, width = pair[LEARNED].table.shape
    for column, name in zip(st.columns(2, gap="medium"), pair, strict=True):
        with column:
            PICTURES[picture][1](name, pair[name], length, width)


def _draw_measured(subject: Subject, pair: dict[str, PositionTable]) -> None:
    """How alike and how long by distance and position, and over a training."""
    for column, (name, table) in zip(st.columns(2), pair.items(), strict=True):
        value = table.alike.correlation
        column.metric(
            f"{name.capitalize()}: correlation of the cosine with −distance",
            f"{value:+.3f}" if np.isfinite(value) else "not defined",
        )
    _draw_lines(pair)
    steps = steps_of(subject)
    if steps:
        st.markdown(words_measured.OVER_TRAINING)
        draw = partial(
            _draw_course, level=pair[SINUSOIDAL].alike.correlation, shown=subject.key[1], end=steps[-1]
        )
        draw_over_snapshots("positions", subject.key[0], steps, _correlation, draw)


def _draw_table(name: str, position_table: PositionTable, length: int, width: int) -> None:
    title = (
        f"Learned: {length} × {width} = {length * width:,} parameters"
        if name == LEARNED
        else "Sinusoidal, same size: no parameters"
    )
    st.markdown(f"**{title}**")
    columns = [f"d{i}" for i in range(width)]
    plot(
        table_map(position_table.table, "dimension"),
        key=f"learned_table_{name}",
        height=360,
        name=f"{name}-positions",
        data={"position": np.arange(length), **dict(zip(columns, position_table.table.T, strict=True))},
        alt=f"Heatmap: the {name} vectors of {length} positions (down) over {width} dimensions (across).",
    )


def _draw_path(name: str, position_table: PositionTable, length: int, width: int) -> None:
    st.markdown(f"**{name.capitalize()}**: path on two principal components")
    plot(
        figures.path(position_table.path, position_table.variance_shares),
        key=f"learned_path_{name}",
        height=360,
        name=f"{name}-path",
        data={
            "position": np.arange(length),
            "pc1": position_table.path[:, 0],
            "pc2": position_table.path[:, 1],
        },
        alt=f"The {name} positions as a path on two principal components, joined in order.",
    )


def _draw_alike(name: str, position_table: PositionTable, length: int, width: int) -> None:
    st.markdown(f"**{name.capitalize()}**: cosine similarity of every pair of positions")
    plot(
        cosine_map(position_table.alike.cosines),
        key=f"learned_alike_{name}",
        height=360,
        name=f"{name}-cosines",
        data={
            "position": np.arange(length),
            **{f"p{i}": column for i, column in enumerate(position_table.alike.cosines.T)},
        },
        alt=f"Heatmap of the cosine between every pair of {name} position vectors, from −1 to 1.",
    )


def _draw_lines(pair: dict[str, PositionTable]) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Similarity by distance**")
        curves = [(name, table.alike.by_distance[1:], table.alike.spread[1:]) for name, table in pair.items()]
        columns = {f"{name}_mean": mean for name, mean, _ in curves} | {
            f"{name}_sd": spread for name, _, spread in curves
        }
        plot(
            figures.two_lines(curves, "distance between two positions", "mean cosine", first=1),
            key="learned_distance",
            height=300,
            name="cosine-by-distance",
            data={"distance": np.arange(1, len(curves[0][1]) + 1)} | columns,
            alt=(
                "Lines: mean cosine of two positions against their distance, learned and sinusoidal; the band"
                " is one standard deviation."
            ),
        )
        st.caption(words_measured.BAND)
    with right:
        st.markdown("**Norm by position**")
        lines = [(name, table.alike.norms, None) for name, table in pair.items()]
        plot(
            figures.two_lines(lines, "position", "norm of the vector"),
            key="learned_norms",
            height=300,
            name="position-norms",
            data={"position": np.arange(len(lines[0][1]))} | {name: values for name, values, _ in lines},
            alt="Lines: Euclidean norm of each position's vector, learned and sinusoidal.",
        )
        st.caption(words_measured.same_norm(pair[SINUSOIDAL].alike.norms[0]))


def _correlation(model: Transformer) -> float | None:
    table = learned_table(model)
    return None if table is None else alike(table[:MOST]).correlation


def _draw_course(points: dict[int, float], level: float, shown: int, end: int) -> None:
    values = np.array(list(points.values()))
    plot(
        figures.rising(np.asarray(list(points)), values, level, shown, float(end)),
        key="learned_course",
        height=280,
        name="nearness-over-training",
        data={"step": list(points), "correlation": values},
        alt=(
            "Line: correlation between cosine and nearness of the learned positions at each snapshot; dotted:"
            " the sinusoidal table's."
        ),
    )


PICTURES = {
    "alike": ("Similarity", _draw_alike),
    "path": ("Path", _draw_path),
    "table": ("Table", _draw_table),
}
