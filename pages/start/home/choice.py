"""Which preset the map is drawn of, and the way from there to a training of it."""

from __future__ import annotations

import streamlit as st

from engine.ledger import ledger_of
from engine.presets import ENCODER_DECODERS, PRESETS, Preset
from pages.start.home import words
from ui import controls, widgets
from ui.fields import recipe

DRAWN = PRESETS | ENCODER_DECODERS


def prepare_training(name: str) -> None:
    """Puts every control of the training page where the preset has it."""
    if st.session_state.get("preset") != name:
        st.session_state["preset"] = name
    controls.fill(recipe(PRESETS[name]))


def choose_preset() -> Preset:
    """Draws one line: the models as a list, the button that trains one, and a summary of the chosen one."""
    choice, action, about = st.columns([2, 1.2, 4.5], vertical_alignment="center", gap="small")
    titles = {name: preset.title.removesuffix(" (published)") for name, preset in DRAWN.items()}
    with choice:
        name = widgets.select("Model", titles, "preset", kind="list", hidden=True)
    with action:
        _train(name)
    about.markdown(words.about(DRAWN[name], ledger_of(DRAWN[name])))
    return DRAWN[name]


def _train(name: str) -> None:
    target = name if DRAWN[name].trainable else next(iter(PRESETS))
    wanted = st.button(
        "Train one now",
        type="primary",
        key="train_now",
        width="stretch",
        help=f"Starts training the preset {target} and shows it.",
        on_click=prepare_training,
        args=(target,),
    )
    if wanted:
        st.session_state["start_at_once"] = True
        # {}: without it, Streamlit refuses to leave a page that has bound widgets
        st.switch_page("pages/start/train/page.py", query_params={})
