"""The view "Heads": all patterns at once, as they stand or sorted by what they do, and one enlarged."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from engine.measure.habits import STRONG, Habit, measured_habits, ranked
from engine.measure.heads import HeadNumbers
from pages.inside.attention.habits import NAMES, answer, hints, numbers_of
from pages.inside.attention.shared import TOPIC, arcs, has_heads, head_grid
from ui import widgets
from ui.figures.patterns import MOST, heatmap_height, pattern_heatmap, pattern_table
from ui.layout import fewer_labels_on_phones
from ui.players.plot import plot
from ui.subject import Subject

LAYERS = "layer"
SORTED_BEFORE = "attention_sorted_before"
MANY = 64  # heads: then the controls stand beside the enlarged one, to leave room for all
LEAST = 300  # pixels of the enlarged one below so many
NARROW = 32  # words beside each other above it


def draw_heads(subject: Subject) -> None:
    config = subject.config
    if not has_heads(subject):
        return
    patterns = subject.recording().stacked("pattern")
    numbers = numbers_of(subject)
    many = config.n_layers * config.n_heads > MANY
    if many:
        st.markdown(answer(numbers))
    above = st.container()
    if many:
        sorting, below = st.columns([1, 3], gap="medium")
        choosing = sorting
    else:
        row: dict[str, Any] = {"horizontal": True, "gap": "medium", "vertical_alignment": "bottom"}
        sorting, choosing, below = st.container(**row), st.container(**row), st.container()
    with sorting:
        by, order = _sorted(numbers, config.n_heads)
    with choosing:
        layer, head = widgets.head(config, TOPIC)
        kind = widgets.one_of("Drawn as", ("Heatmap", "Arcs"), "attention_as")
    with above:
        head_grid(subject, patterns, numbers, (layer, head), order=order, by=by)
    with below:
        _enlarged(subject, patterns[layer], layer, head, kind, LEAST if many else 0)
    st.caption(
        f"This is `blocks.{layer}.pattern[{head}]`: {len(subject.ids)} × {len(subject.ids)} weights."
        f" {hints(numbers)[layer * config.n_heads + head]}"
    )


def _sorted(numbers: HeadNumbers, heads: int) -> tuple[Habit | None, list[int] | None]:
    """The habit that heads are sorted by, and those that are shown; None for all, layer by layer. With
    another habit the strongest head is chosen.
    """
    options: dict[str, str] = {LAYERS: "layer"} | {str(habit): name for habit, name in NAMES.items()}
    sort = widgets.one_of("Sorted by", options, "attention_sort", kind="list", width=190)
    hint = f"Only heads that give it at least {STRONG:.0%} of their weight; by layer, those with any habit"
    strong = widgets.switch(
        "Only strong", False, "attention_strong", hint=f"{hint} but to rest on the first."
    )
    by = next((habit for habit in NAMES if habit == sort), None)
    order = ranked(numbers, by, strong)
    if strong and not order:
        st.caption(f":material/info: No head gives it {STRONG:.0%}: all are shown.")
        order = ranked(numbers, by)
    _follow(sort, by is None or by in measured_habits(numbers), divmod(order[0], heads))
    return by, None if by is None and not strong else order


def _follow(sort: str, known: bool, strongest: tuple[int, int]) -> None:
    """Chooses the strongest head when heads are sorted by another habit, or nobody has chosen one yet. What
    is still being measured is followed when it is `known`.
    """
    keys = (f"{TOPIC}_layer", f"{TOPIC}_head")
    before = st.session_state.get(SORTED_BEFORE)
    fresh = not any(key in st.session_state or key in st.query_params for key in keys)
    if known:
        st.session_state[SORTED_BEFORE] = sort
        if sort != LAYERS and (fresh or before not in (None, sort)):
            st.session_state.update(zip(keys, strongest, strict=True))
    elif fresh:
        st.session_state[SORTED_BEFORE] = ""


def _enlarged(subject: Subject, patterns: np.ndarray, layer: int, head: int, kind: str, least: int) -> None:
    """One head of a layer's patterns (head, query, key)."""
    if kind == "Arcs":
        arcs(subject, patterns, layer, head)
        return
    weights = patterns[head]
    alt = (
        f"Pattern of layer {layer}, head {head}: the weight that each token (down) gives to each token it"
        " sees (to the right), from 0 to 1."
    )
    fewer_labels_on_phones(len(weights))
    plot(
        pattern_heatmap(weights, subject.labels, NARROW if least else MOST),
        key="attention_pattern",
        alt=alt,
        height=heatmap_height(len(weights), least or 340),
        data=pattern_table(weights, subject.labels),
        name=f"pattern-layer-{layer}-head-{head}",
    )
