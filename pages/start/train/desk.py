"""What stands on the training page: what to train on the left, the run on the right, earlier runs below."""

from __future__ import annotations

import streamlit as st

from engine.presets import Preset
from engine.service.state import RunView
from pages.start.train.curves import loss_curves
from pages.start.train.data import data_group
from pages.start.train.losses import baselines, vocabulary
from pages.start.train.run import refusal, run_panel, selected, start
from pages.start.train.saved import saved_model
from pages.start.train.setup import (
    Setup,
    changes_note,
    derived,
    mark_problems,
    preset_notes,
    setup,
    summary,
)
from pages.start.train.table import runs_table
from ui import state
from ui.controls import control_groups, preset_picker
from ui.look import boundary
from ui.players.plot import plot
from ui.text.markdown import token_word


def left() -> tuple[Preset, Setup]:
    """Preset, summary and button first, so that a phone shows them without scrolling; every control below."""
    preset = preset_picker()
    st.caption(preset.summary)
    top = st.container()
    with st.container(gap="xsmall"):
        data = data_group(state.profile())
        values, places = control_groups(preset)
        values = {"tokenizer": data.tokenizer} | values
    chosen = setup(preset, values, data)
    mark_problems(chosen.problems, places)
    derived(chosen.spec, chosen.problems, places)
    with top:
        pressed = st.button(
            "Train",
            type="primary",
            icon=":material/play_arrow:",
            width="stretch",
            disabled=bool(chosen.problems),
            key="train",
        )
        asked_for = st.session_state.pop("start_at_once", False)  # by the button on Home
        if (pressed or asked_for) and not chosen.problems:
            start(chosen.spec)
        summary(chosen, last_finished())
        changes_note(preset, values)
    return preset, chosen


def last_finished() -> RunView | None:
    """This browser's last run that did enough steps to tell its speed."""
    runs = [view for view in state.manager().runs(state.owner()) if view.step >= 20 and not view.active]
    return runs[-1] if runs else None


def before(preset: Preset, chosen: Setup) -> None:
    """What stands where the run will be: the chart that it has to get through, empty, and what the preset is
    made of.
    """
    refusal()
    st.markdown(
        "Press **Train** and watch the loss fall through these lines, while what it writes turns from noise"
        " into something like the text it reads."
    )
    if not chosen.problems:
        spec = chosen.spec
        figure = loss_curves(
            None,
            baselines(spec),
            vocabulary(spec),
            end=float(spec.train.steps),
            token=token_word(spec.train.tokenizer),
        )
        plot(
            figure,
            key="empty_chart",
            height=300,
            alt="An empty chart of loss against step, with lines for what predictors without a network reach",
        )
    st.subheader("What this preset uses, and why", anchor=False)
    preset_notes(preset)


def draw_desk() -> None:
    """All of it. A fault in one part leaves the others."""
    controls, run = st.columns([3, 5], gap="medium")
    with controls:
        preset, chosen = left()
    shown = selected()
    if shown is not None:
        with controls, st.expander("What this preset uses, and why", icon=":material/lightbulb:"):
            preset_notes(preset)
    overlaid: list[str] = []
    with st.container():
        with boundary():
            overlaid = runs_table()
        with boundary():
            saved_model()
    with run, boundary():
        if shown is None:
            before(preset, chosen)
        else:
            run_panel(shown, overlaid)
