"""The view "Cross-check": the same weights in the engine and in a second program that may have a mistake."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.lab.reference import random_configs
from engine.lab.reference.compare import TOLERANCE, Comparison, compare
from engine.lab.reference.mistakes import MISTAKES, Mistake
from engine.lab.reference.random_configs import Rolled
from engine.lab.reference.second import RIGHT, Choices
from engine.measure.recording import Recording, record
from engine.model import Transformer
from pages.models.reference import figures, words
from ui import explain, memo, widgets
from ui.fields import show as written
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import number, scientific

ABOVE, SEED, NONE = "model", "reference_seed", "none"
HEIGHT = 380
# (its name for a cache, the model, its forward pass)
Given = tuple[Hashable, Transformer, Callable[[], Recording]]


@dataclass(frozen=True)
class Wrong:
    """The mistake that was chosen: `name` is NONE where nothing is put in, be it that it changes nothing."""

    name: str
    mistake: Mistake | None = None
    idle: str | None = None

    @property
    def choices(self) -> Choices:
        return MISTAKES[self.name].choices if self.name in MISTAKES else RIGHT


def draw_two(subject: Subject) -> None:
    """Draws where along the stream the two programs differ, on the model of the bar or on weights drawn by
    chance; every activation is folded.
    """
    answer = st.container()
    left, right = st.columns([3, 7], gap="medium")
    with left:
        kinds = {ABOVE: words.ABOVE} | {
            name: words.drawn(kind.title) for name, kind in random_configs.KINDS.items()
        }
        family = widgets.select(words.WEIGHTS, kinds, "reference_family", kind="list")
        key, model, ours = _given(subject) if family == ABOVE else _dice(family)
        chosen = wrong(_mistake(), model.config)
    with right:
        try:
            comparison = _compared(key, chosen.name, model, ours, chosen.choices)
        except ConfigError as error:
            st.info(words.cannot_run(safe(str(error))))
            return
        _draw(comparison)
    with answer:
        explain.answer(verdict(comparison, chosen))
    explain.measure_it(_measured, comparison, None if family == ABOVE else model.config)


def _given(subject: Subject) -> Given:
    """The model of the bar on its text."""
    if subject.model.parts.name != "healthy":
        st.caption(words.made_wrong(subject.model.parts.name))
    return (subject.key, subject.ids), subject.model, subject.recording


def _dice(family: str) -> Given:
    """Draws the seed of a small model of a family, and says what came of it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = widgets.whole("Seed", 0, random_configs.MOST, 0, SEED, hint=words.DICE_HINT, width=130)
        # Streamlit's own: a button that puts a number into the field, which holds the value.
        st.button("Roll", icon=":material/casino:", on_click=_roll, key="reference_roll")
    rolled = _rolled(family, seed)
    st.caption(words.rolled(rolled.model.config, len(rolled.ids)))
    return (family, seed), rolled.model, partial(record, rolled.model, rolled.ids)


def _roll() -> None:
    st.session_state[SEED] = random.randint(0, random_configs.MOST)


def _mistake() -> str:
    """Draws the choice of a mistake for the second program; returns its name, or NONE."""
    options = {NONE: "none"} | {name: mistake.title for name, mistake in MISTAKES.items()}
    name = widgets.select(words.MISTAKE, options, "reference_mistake", kind="list", hint=words.MISTAKE_HINT)
    if name in MISTAKES:
        st.caption(MISTAKES[name].sentence)
    return name


def wrong(name: str, config: ResolvedConfig) -> Wrong:
    """Returns the mistake of a name, in a model of a configuration."""
    mistake = MISTAKES.get(name)
    idle = None if mistake is None else mistake.idle(config)
    return Wrong(NONE if idle is not None else name, mistake, idle)


def _draw(comparison: Comparison) -> None:
    states = comparison.states
    plot(
        figures.along(comparison),
        key="reference_two",
        height=HEIGHT,
        name="differences",
        data={
            "activation": [row.name for row in states],
            "difference": np.array([row.largest for row in states]),
            "largest_number": np.array([row.size for row in states]),
            "relative": np.array([row.relative for row in states]),
        },
        alt=words.along_alt(number(comparison.worst.relative), TOLERANCE),
    )


def verdict(comparison: Comparison, chosen: Wrong) -> str:
    """Says whether the programs agree, by how much, and where a difference begins."""
    if comparison.begins is not None:
        return words.differ(comparison, comparison.begins)
    reach = words.reach(number(comparison.worst.relative), TOLERANCE)
    if chosen.idle is not None:
        return f"{words.harmless(chosen.idle)} {reach}"
    return words.UNSEEN.format(reach=reach) if chosen.mistake is not None else words.AGREE.format(reach=reach)


def _measured(comparison: Comparison, config: ResolvedConfig | None) -> None:
    """Every activation that both have, and the configuration where it was drawn."""
    st.dataframe(
        {
            "activation": [row.name for row in comparison.rows],
            "agrees": [row.close for row in comparison.rows],
            "largest difference": [scientific(row.largest) for row in comparison.rows],
            "largest number": [row.size for row in comparison.rows],
        },
        hide_index=True,
        height=320,
    )
    if config is None:
        return
    values = config.to_dict()
    st.subheader(words.DRAWN, anchor=False)
    st.dataframe(
        {"field": list(values), "value": [written(value) for value in values.values()]}, hide_index=True
    )


@memo.loaded()
def _rolled(family: str, seed: int) -> Rolled:
    return random_configs.roll(family, seed)


@memo.measured("Running both …")
def _compared(
    key: Hashable, mistake: str, _model: Transformer, _ours: Callable[[], Recording], _choices: Choices
) -> Comparison:
    return compare(_model, _ours(), _choices)
