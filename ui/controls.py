"""Draws the controls of `ui.fields` in groups -> frozen configs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.config import MIN_BPE, bpe_size
from engine.presets import Preset
from ui import session
from ui.fields import (
    CONTROLS,
    DATA,
    FIRST,
    FIRST_VOCABULARY,
    GROUPS,
    HINTS,
    ICONS,
    KINDS,
    TRAINABLE,
    VOCABULARY,
    Control,
    Values,
    from_widget,
    preset_values,
    to_widget,
)


def preset_picker() -> Preset:
    """Draws the presets as buttons. Choosing one fills in every other control."""
    # Streamlit's own: a preset fills in all other controls when it changes, also from Continue and from Home.
    name = st.segmented_control(
        "Preset",
        list(TRAINABLE),
        default=FIRST,
        required=True,
        key="preset",
        bind="query-params",
        on_change=lambda: fill_in(st.session_state.get("preset")),
        wrap=True,
        label_visibility="collapsed",
    )
    return TRAINABLE.get(str(name), TRAINABLE[FIRST])


def fill(values: Mapping[str, Any]) -> None:
    """Puts config values into the controls of the next run. For callbacks: a widget cannot be set once it is
    drawn.
    """
    for name, value in values.items():
        if name in CONTROLS:
            st.session_state[name] = to_widget(name, value)
        if name == "tokenizer" and (size := bpe_size(value)):
            st.session_state[VOCABULARY] = size


def fill_in(preset: object) -> None:
    """Puts a preset's values into the controls of the next run; nothing where no preset has this name."""
    if isinstance(preset, str) and preset in TRAINABLE:
        for name, value in preset_values(TRAINABLE[preset]).items():
            st.session_state[name] = value


def tokenizer_control() -> str:
    """Draws what the text is cut into. Returns TrainConfig.tokenizer, not yet validated."""
    _part_tokenizer()
    session.drop_endless()
    (control,) = DATA
    # Streamlit's own: `fill` puts values in from a config, and a foreign one is said, not dropped.
    kind = st.segmented_control(
        control.label,
        KINDS,
        default=KINDS[0],
        required=True,
        key=control.field,
        bind="query-params",
        width="stretch",
        help=f"{control.help} `{control.field}`",
    )
    if kind != "bpe":
        return kind if kind in KINDS else KINDS[0]
    size = st.number_input(
        "Vocabulary",
        value=FIRST_VOCABULARY,
        step=256,
        key=VOCABULARY,
        bind="query-params",
        help=(
            f"Vocabulary size, at least {MIN_BPE}: the 256 bytes plus one entry per merge. A larger one makes"
            " texts shorter and the embedding larger."
        ),
    )
    return f"bpe:{FIRST_VOCABULARY if size is None else size}"


def _part_tokenizer() -> None:
    """A link may say tokenizer=bpe:512, as configs and the command line do: its two widgets want
    tokenizer=bpe and vocabulary=512.
    """
    (control,) = DATA
    match = re.fullmatch(r"bpe:([0-9]{1,9})", st.query_params.get(control.field, ""))
    if match and control.field not in st.session_state:  # a widget that is there already has read the link
        st.query_params.update({control.field: "bpe", VOCABULARY: match[1]})
        st.rerun()  # widgets read the address as it was when the run began


def control_groups(preset: Preset) -> tuple[Values, dict[str, DeltaGenerator]]:
    """Draws every group. Returns the fields' values and, by field, the container in which a sentence about it
    belongs.
    """
    defaults = preset_values(preset)
    held = {name: st.session_state.get(name, value) for name, value in defaults.items()}
    values, containers = {}, {}
    for title, group in GROUPS.items():
        with st.expander(title, icon=f":material/{ICONS[title]}:"):
            grid = st.grid("auto", min_column_width=190, gap="small")
            for control in group:
                containers[control.field] = grid.cell()
                with containers[control.field]:
                    held[control.field] = _widget(
                        control, defaults[control.field], disabled=not control.matters(held)
                    )
                    values[control.field] = from_widget(control.field, held[control.field])
            containers[title] = st.container()
    return values, containers


def _widget(control: Control, default: Any, *, disabled: bool) -> Any:
    """The widget that suits a field's type. The bounds are the configs' own, so that what is wrong is said,
    not refused.
    """
    # Streamlit's own: `fill` puts values in from a config, and what is out of bounds is said, not clamped.
    hint, label = HINTS[control.field], control.label
    shared: dict[str, Any] = {
        "key": control.field,
        "help": f"{control.help} `{control.field}`",
        "bind": "query-params",
        "disabled": disabled,
    }
    if get_origin(hint) is Literal:
        options = list(get_args(hint))
        value = st.selectbox(label, options, index=options.index(default), **shared)
        return value if value in options else default
    if hint is bool:
        return st.toggle(label, value=default, **shared)
    if hint is str:
        return st.text_input(label, value=default, max_chars=200, **shared)
    if hint is float:
        number = st.number_input(label, value=float(default), step=float(control.step), format="%g", **shared)
    else:
        number = st.number_input(label, value=int(default), step=int(control.step), **shared)
    return default if number is None else number  # None: the field was emptied
