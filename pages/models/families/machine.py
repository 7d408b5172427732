"""The view "Architectures": eight choices turn one machine into another model of the table; the drawing and
the
counts follow.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import ConfigError
from engine.ledger import ledger_of
from engine.ledger.model_choices import (
    OFFERED,
    choices_of,
    costs,
    morphed,
    named,
    nearest_model,
    unchanged,
    users,
)
from engine.presets import Preset
from engine.presets.published import BY_YEAR
from pages.models.families import words_machine as words
from pages.models.families.drawing import drawing, figure, parameters
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import short

SIZE, FIRST, HEIGHT = "families_size", "gpt2", 392


def draw_machine() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("Make it", width="content")
        for name, short in words.RECIPES.items():
            st.button(short, key=f"families_make_{name}", on_click=_make, args=(name,))
    left, controls = st.columns([6, 8], gap="medium")
    with left:
        size = widgets.select("Sizes of", words.SIZES, SIZE, first=FIRST, kind="list", hidden=True)
        pictured = st.container()
    with controls, st.container(key="pairs_beside"):
        chosen = {facet: _choice(facet, choices_of(BY_YEAR[FIRST])[facet]) for facet in OFFERED}
    base = BY_YEAR[size]
    try:
        changed = morphed(base, chosen)
    except ConfigError as error:
        explain.answer(words.cannot(str(error)))
        changed = base
    else:
        explain.answer(_told(size, changed, chosen))
    with pictured:
        _picture(changed)
    explain.measure_it(_table)
    explain.by_hand(lambda: st.markdown(words.BY_HAND))


def _told(size: str, changed: Preset, chosen: dict[str, str]) -> str:
    same = named(chosen)
    near = nearest_model(chosen)
    return words.choices_sentence(size, same, near, costs(BY_YEAR[size]), costs(changed))


def _make(name: str) -> None:
    """All eight switches go to a model's choices."""
    for facet, value in choices_of(BY_YEAR[name]).items():
        st.session_state[_key(facet)] = value


def _key(facet: str) -> str:
    return f"families_{facet}"


def _choice(facet: str, first: str) -> str:
    """One of the eight: its control, and who else chose so."""
    left, right = st.columns([6, 7], gap="small", vertical_alignment="center")
    options = {value: words.CHOICES[value] for value in OFFERED[facet]}
    with left:
        chosen = widgets.select(
            words.FACETS[facet], options, _key(facet), first=first, kind="list", hidden=True
        )
    right.caption(words.used(facet, users(facet, chosen)))
    return chosen


def _picture(preset: Preset) -> None:
    counted = ledger_of(preset)
    counts = parameters(counted)
    boxes = drawing(counted).boxes
    plot(
        figure(counted, HEIGHT - 10),
        key="families_machine",
        alt=words.alt(counted.config.n_layers, [box.text for box in boxes]),
        height=HEIGHT,
        name="machine",
        data={
            "stack": [box.stack for box in boxes],
            "part": [box.text.replace("<br>", ", ") for box in boxes],
            "parameters": [counts.get((box.stack, box.component), 0) for box in boxes],
        },
    )


def _table() -> None:
    """Every model of the table at each of the eight, with a dot where it is as in 2017, its counts, and where
    they are published.
    """
    choices = {name: choices_of(preset) for name, preset in BY_YEAR.items()}
    counted = {name: costs(preset) for name, preset in BY_YEAR.items()}
    columns = {
        words.HEADS[facet]: [words.choice(choices[name][facet], facet in unchanged(name)) for name in BY_YEAR]
        for facet in OFFERED
    }
    columns["as in 2017"] = [f"{len(unchanged(name))} of {len(OFFERED)}" for name in BY_YEAR]
    columns["parameters"] = [f"{counted[name].parameters:,}" for name in BY_YEAR]
    columns["FLOPs per token"] = [short(counted[name].flops) for name in BY_YEAR]
    with st.container(key="whole_words"), st.container(key="models_table"):
        st.table(pd.DataFrame(columns, index=list(words.TITLES.values())), border="horizontal")
    st.markdown(words.sources({name: safe(preset.source or "") for name, preset in BY_YEAR.items()}))
    st.markdown(words.REASONS)
    st.markdown(words.READING)
