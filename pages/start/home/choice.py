"""Which preset the map is drawn of, and the way from there to a training of it."""

from __future__ import annotations

import streamlit as st

from engine.presets import ENCODER_DECODERS, PRESETS, Preset
from ui import controls, widgets
from ui.fields import TRAINABLE

# Models that are a pill; the other published ones are in a list beside them.
FEATURED = (*TRAINABLE, "gpt2", "bert-base", "t5-base", "llama2-70b")
DRAWN = PRESETS | ENCODER_DECODERS
OTHERS = [name for name in DRAWN if name not in FEATURED]


def prepare_training(name: str) -> None:
    """Puts every control of the training page where the preset has it."""
    preset = PRESETS[name]
    assert preset.train is not None
    if st.session_state.get("preset") != name:
        st.session_state["preset"] = name
    controls.fill({**preset.model.to_dict(), **preset.train.to_dict()})


def take_published() -> None:
    """Makes a published model that was chosen one of the pills, and the choice theirs."""
    chosen = st.session_state.get("home_published")
    if chosen in DRAWN:
        st.session_state["preset"] = chosen
    st.session_state["home_published"] = None


def choose_preset() -> Preset:
    """Draws the presets as pills, the other published models as a list, and the button that trains one."""
    choice, more, action = st.columns([5, 1.6, 1.3], vertical_alignment="center", gap="small")
    with choice:
        name = _pills()
    with more:
        _more()
    with action:
        _train(name)
    return DRAWN[name]


def _pills() -> str:
    """The name comes out of the URL as well; one that does not exist falls back to the first. Its key is the
    training page's, which knows other names.
    """
    current = st.session_state.get("preset", widgets.read_url("preset"))
    if current in OTHERS:
        st.session_state["home_other"] = current
    offered = [*FEATURED, *(name for name in OTHERS if name == st.session_state.get("home_other"))]
    first = next(iter(PRESETS))
    # Streamlit's own: the key is the training page's, whose choice `select` would forget here as foreign.
    name = st.pills(
        "Model",
        offered,
        default=first,
        required=True,
        key="preset",
        bind="query-params",
        label_visibility="collapsed",
        wrap=True,
    )
    return name if name in DRAWN else first


def _more() -> None:
    # Streamlit's own: nothing is chosen at first, and what is chosen goes to the pills.
    st.selectbox(
        "More published models",
        OTHERS,
        index=None,
        key="home_published",
        on_change=take_published,
        placeholder="More models",
        label_visibility="collapsed",
        format_func=lambda other: (
            DRAWN[other].title.removesuffix(" (published)") if other in DRAWN else str(other)
        ),
    )


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
