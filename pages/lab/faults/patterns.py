"""Attention patterns of both models, beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.errors import GlassformerError
from engine.experiments.bug_races import Bug, Patterns, patterns
from engine.service.state import RunView
from pages.lab.faults import words
from ui import widgets
from ui.figures.patterns import pattern_heatmap
from ui.models import RUN, model_after
from ui.players.plot import plot
from ui.text.tokens import show_characters

HEIGHT = 340


def draw_patterns(views: Sequence[RunView], bug: Bug | None) -> None:
    """Draws the patterns of the newest weights of a live race, else of those that came with the app."""
    if any(view.race for view in views):
        both = tuple(_live(view) for view in views)
    else:
        both = bug.patterns if bug else ()
    first = next((each for each in both if each is not None), None)
    if first is None:
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer = widgets.select("Block", list(first.layers), "fault_layer", kind="list", width=110)
        head = widgets.select(
            "Head", list(range(first.weights.shape[1])), "fault_head", kind="list", width=110
        )
    st.caption(words.patterns(layer, head))
    for column, each, broken in zip(st.columns(2), both, (False, True), strict=True):
        with column:
            if each is None or layer not in each.layers:
                st.info(words.no_pattern(broken))
                continue
            weights = each.weights[each.layers.index(layer), head]
            labels = [show_characters(token) for token in each.tokens]
            plot(
                pattern_heatmap(weights, labels, most=16),
                key=f"fault_pattern_{broken}",
                alt=words.pattern_alt(broken, layer, head),
                height=HEIGHT,
            )


def _live(view: RunView) -> Patterns | None:
    if not view.snapshots:
        return None
    try:
        snapshot = model_after(RUN + view.id, view.snapshots[-1])
        return patterns(snapshot.model, snapshot.tokenizer)
    except GlassformerError:
        return None
