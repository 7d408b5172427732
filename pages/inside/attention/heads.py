"""The view "Heads": all patterns at once, sorted by what they do, and one enlarged; or one number of each."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.ledger.growth import by_heads
from engine.measure.attention.head_patterns import (
    Habit,
    clearest,
    counts,
    grouped,
    habit_of_each,
    least_bar,
    measured_habits,
    ranked,
)
from engine.measure.attention.heads import HeadNumbers
from pages.inside.attention import words
from pages.inside.attention.figures import read_pattern
from pages.inside.attention.habits import NAMES, numbers_of
from pages.inside.attention.numbers import draw_measure
from pages.inside.attention.shared import TOPIC, arcs, head_grid
from ui import explain, widgets
from ui.figures.patterns import heatmap_height, pattern_table
from ui.model_bar import Subject
from ui.players.plot import plot

KIND, LAYERS = "kind", "layer"
RESORTED = (
    "attention_resorted"  # in the session: somebody sorted anew, and the strongest head is not known yet
)
MANY = 64  # heads: of so many a few of each kind are shown first
OF_A_KIND = 3


def draw_heads(subject: Subject) -> None:
    config = subject.config
    numbers = numbers_of(subject)
    titles = words.shown_titles()
    if (measure := words.shown()) != words.PATTERNS:
        widgets.select(words.SHOWN, titles, "attention_number", kind="list", width=220)
        draw_measure(subject, numbers, measure)
        return
    patterns = subject.recording().stacked("pattern")
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):  # two in a row on a phone
        widgets.select(words.SHOWN, titles, "attention_number", kind="list", width=170)
        by, order = _sorted(numbers, config.n_heads)
        layer, head = widgets.head(config, TOPIC)
    head_grid(subject, patterns, numbers, (layer, head), order=order, by=by)
    if numbers.choice:
        habit = habit_of_each(numbers)[layer * config.n_heads + head]
        explain.answer(words.specialities(counts(numbers), (layer, head), habit))
    else:
        explain.answer(words.ONE_TOKEN)
    explain.measure_it(_more, subject, patterns[layer], layer, head)


def _sorted(numbers: HeadNumbers, heads: int) -> tuple[Habit | None, list[int] | None]:
    """The habit that heads are sorted by, and those that are shown; None for all, layer by layer. With
    another habit the strongest head is chosen.
    """
    options: dict[str, str] = {KIND: words.HEAD_TYPE, LAYERS: words.BLOCK}
    options |= {str(habit): name for habit, name in NAMES.items()}
    sort = widgets.select(words.SORT, options, "attention_sort", kind="list", width=170, on_change=_resort)
    strong = widgets.switch(words.STRONG_ONLY, False, "attention_strong", hint=words.STRONG_HINT)
    by = next((habit for habit in NAMES if habit == sort), None)
    most = OF_A_KIND if numbers.entropy.size > MANY else numbers.entropy.size
    order = grouped(numbers, most, strong) if sort == KIND else ranked(numbers, by, strong)
    if not order:
        st.caption(f":material/info: {words.none_strong(least_bar(numbers, by))}")
        order = ranked(numbers, by)
    known = by is None or by in measured_habits(numbers)
    _follow(sort, known, divmod(clearest(numbers) if sort == KIND else order[0], heads))
    return by, None if sort == LAYERS and not strong else order


def _follow(sort: str, known: bool, strongest: tuple[int, int]) -> None:
    """Chooses the strongest head where somebody has sorted the heads by another habit, or nobody has chosen
    one yet. A measurement under way is followed when it is `known`. An address that says which head it shows
    is followed in any case.
    """
    keys = (f"{TOPIC}_layer", f"{TOPIC}_head")
    if widgets.unsaid(keys):
        _resort()
    elif widgets.went_back():
        st.session_state[RESORTED] = False
    if known and st.session_state.get(RESORTED):
        st.session_state[RESORTED] = False
        if sort != LAYERS:
            for key, index in zip(keys, strongest, strict=True):
                widgets.put(key, index)


def _resort() -> None:
    st.session_state[RESORTED] = True


def _more(subject: Subject, patterns: np.ndarray, layer: int, head: int) -> None:
    """The chosen head of a layer's patterns (head, query, key) as a figure that can be saved, and what
    several heads cost.
    """
    if widgets.select(words.SHOW_AS, words.FORMS, "attention_as") == words.ARCS:
        arcs(subject, patterns, layer, head)
    else:
        weights = patterns[head]
        plot(
            read_pattern(weights, subject.labels, subject.config.causal),
            key="attention_pattern",
            alt=words.pattern_alt(layer, head),
            height=heatmap_height(len(weights)),
            data=pattern_table(weights, subject.labels),
            name=f"pattern-layer-{layer}-head-{head}",
        )
    st.caption(words.where_recorded(layer, head, len(subject.ids)))
    st.markdown(words.SEVERAL_HEADS)
    c = subject.config
    st.table(words.cost_table(by_heads(c, c.context, subject.model.parts), c.context))
    st.markdown(words.PUBLISHED_HEADS)
