"""The view "RoPE against sinusoidal": one pair of letters, always equally far apart, moved through the text,
in a model of either kind.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field

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
from pages.input.positions import figures_rope_against as figures
from pages.input.positions import words_measured
from pages.input.positions.schemes import example
from pages.input.positions.words_answers import against_sentence
from ui import explain, memo, widgets
from ui.players.plot import plot
from ui.text.markdown import safe

KINDS = {"sinusoidal": "Sinusoidal: added once, at the bottom", "rope": "RoPE: rotated at every comparison"}
FARTHEST, FIRST_DISTANCE = 32, 3


@dataclass(frozen=True, eq=False)
class Panel:
    """A model, and what it makes of the pair."""

    name: str
    title: str
    model: Checkpoint = field(repr=False)
    scores: PositionScores
    row: DistanceScores


def draw_against() -> None:
    """Draws two panels on one scale."""
    models = {name: checkpoint for name in KINDS if (checkpoint := example(name)) is not None}
    if len(models) < len(KINDS):
        st.info(words_measured.NO_PAIR_OF_MODELS)
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
    shown = (safe(letters[0]), safe(letters[1]))
    explain.answer(against_sentence(panels[0].row, panels[1].row, shown, distance))
    explain.measure_it(_draw_places, panels, letters)


def _choose(models: dict[str, Checkpoint]) -> tuple[tuple[str, str], int, int]:
    """((query, key), head, distance)."""
    known = [c for c in string.ascii_lowercase if all(not m.tokenizer.unknown(c) for m in models.values())]
    left, right = st.columns(2, gap="small")
    query = widgets.select("Query", known, "against_query", first="e", kind="list", container=left)
    key = widgets.select("Key", known, "against_key", first="h", kind="list", container=right)
    hint = "How many positions before the query the key is."
    distance = widgets.slide("Distance", 0, FARTHEST, FIRST_DISTANCE, "against_distance", hint=hint)
    heads = min(m.config.n_heads for m in models.values())
    return (query, key), widgets.index("Head of the first block", heads, "against_head"), distance


def _panel(name: str, checkpoint: Checkpoint, letters: tuple[str, str], head: int, distance: int) -> Panel:
    scores = _scores(name, *letters, head, checkpoint)
    return Panel(name, KINDS[name], checkpoint, scores, scores.apart(distance))


@memo.measured()
def _scores(name: str, query: str, key: str, head: int, _found: Checkpoint) -> PositionScores:
    q, k = (_found.tokenizer.encode(letter)[0] for letter in (query, key))
    return position_scores(_found.model, q, k, head, _found.config.context)


def _draw_row(panel: Panel, reach: tuple[float, float], distance: int) -> None:
    plot(
        figures.moved_pair(panel.title, entrances(panel.model.model), panel.row, reach, distance),
        key=f"against_{panel.name}",
        height=370,
        name=f"{panel.name}-moved-pair",
        data=pd.DataFrame({"query_position": panel.row.positions, "score": panel.row.scores}),
        alt=(
            f"{panel.title}. The score of the two characters, {distance} positions apart, by the position of"
            f" the query: from {panel.row.lowest:.2f} to {panel.row.highest:.2f}."
        ),
    )


def _draw_places(panels: list[Panel], letters: tuple[str, str]) -> None:
    """The score at every two places."""
    reach = max(float(np.abs(panel.scores.scores).max()) for panel in panels)
    for column, panel in zip(st.columns(2, gap="medium"), panels, strict=True):
        with column:
            st.markdown(f"**{panel.title}**")
            plot(
                figures.every_two_positions(panel.scores, reach),
                key=f"against_places_{panel.name}",
                height=400,
                name=f"{panel.name}-every-two-positions",
                data=pd.DataFrame(panel.scores.scores, columns=[f"key at {n}" for n in _places(panel)]),
                alt=f"Heatmap, {panel.title}: the score of the two characters at every pair of positions.",
            )
    st.caption(words_measured.position_pairs(letters))


def _places(panel: Panel) -> range:
    return range(len(panel.scores.scores))
