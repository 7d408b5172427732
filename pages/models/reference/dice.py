"""A small model of a known family, drawn by chance, in both programs."""

from __future__ import annotations

import random
from typing import Any

import streamlit as st

from engine.lab.reference import dice
from engine.lab.reference.compare import Comparison, compare
from engine.lab.reference.dice import Rolled
from engine.ledger import parameter_formula
from engine.measure.recording import record
from pages.models.reference.shared import (
    Wrong,
    choose_mistake,
    draw_activations,
    draw_figure,
    verdict,
    wrong,
)
from ui import explain, widgets
from ui.fields import show as written

SEED = "reference_seed"


def draw_dice() -> None:
    said = st.container()
    left, right = st.columns([3, 7], gap="medium")
    with left:
        kinds = {name: kind.title for name, kind in dice.KINDS.items()}
        family = widgets.select("Family", kinds, "reference_family", kind="list")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            hint = "Another number: other sizes, weights and tokens."
            seed = widgets.whole("Dice", 0, dice.MOST, 0, SEED, hint=hint, width=130)
            # Streamlit's own: a button that puts a number into the field, which holds the value.
            st.button("Roll", icon=":material/casino:", on_click=_roll, key="reference_roll")
        name = choose_mistake("reference_mistake")
    rolled = _rolled(family, seed)
    c = rolled.model.config
    chosen = wrong(name, c)
    found = _compared(family, seed, chosen.name, chosen)
    with said:
        explain.answer(verdict(found, chosen))
    with left:
        heads = f"{c.n_heads} heads" + (f" on {c.n_kv_heads} key heads" if c.n_kv_heads < c.n_heads else "")
        st.caption(
            f"{c.n_layers} blocks, {heads} of {c.d_head}, width {c.d_model}, {parameter_formula(c):,}"
            f" parameters, {len(rolled.ids)} tokens."
        )
    with right:
        draw_figure(found, "reference_dice", 380)
    explain.measure_it(_measured, found, c.to_dict())


def _measured(comparison: Comparison, values: dict[str, Any]) -> None:
    """Every activation, and the configuration that was drawn."""
    draw_activations(comparison)
    st.subheader("The configuration that was drawn", anchor=False)
    st.dataframe(
        {"field": list(values), "value": [written(value) for value in values.values()]}, hide_index=True
    )


def _roll() -> None:
    st.session_state[SEED] = random.randint(0, dice.MOST)


@st.cache_resource(max_entries=32, show_spinner=False)
def _rolled(family: str, seed: int) -> Rolled:
    return dice.roll(family, seed)


@st.cache_resource(max_entries=64, show_spinner=False)
def _compared(family: str, seed: int, mistake: str, _chosen: Wrong) -> Comparison:
    rolled = _rolled(family, seed)
    return compare(rolled.model, record(rolled.model, rolled.ids), _chosen.choices)
