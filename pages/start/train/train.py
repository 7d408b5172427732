"""The page "Train": the settings in one line, the run below it, earlier runs folded."""

from __future__ import annotations

import streamlit as st

from engine.presets import Preset
from pages.start.train import copying_heads
from pages.start.train.data import data_group, examples
from pages.start.train.run_kinds import kind_of, pair_preset
from pages.start.train.run_panel import run_panel
from pages.start.train.runs_table import runs_table
from pages.start.train.saved_model import saved_model
from pages.start.train.setup import (
    Setup,
    changes_note,
    derived,
    in_short,
    mark_problems,
    obstacles,
    preset_notes,
    setup,
    summary,
)
from pages.start.train.shown_runs import selected, start, start_beside, start_comparison, trained_already
from pages.start.train.what_if import WHAT_IFS
from runs import kinds
from runs.state import RunView
from ui import content, explain, session, widgets
from ui.controls import control_groups, preset_picker
from ui.fields import Values
from ui.figures.losses import loss_curves
from ui.page_frame import View, boundary, header, question_line
from ui.players.plot import plot
from ui.players.served import ASSETS
from ui.requests import refusal
from ui.run_text import corpus_of
from ui.text.markdown import whole

TEXT = content.beside(__file__)
TALL = 420  # of the empty chart: there is nothing else yet
WINDOWS = 12  # that stand there instead, where they repeat themselves
READ = 900  # characters of the text it reads, before the first run


def draw() -> None:
    with boundary():
        _desk()


def _desk() -> None:
    """Draws all of it. A fault in one part leaves the others."""
    run = session.manager().view(selected() or "")
    busy = run is not None and run.active and session.manager().may_control(run.id, session.owner())
    preset = header(TEXT.title, (lambda: None) if busy else preset_picker)
    st.html(ASSETS / "panel.css")
    with question_line() as question:
        if not busy:
            drawer = st.popover(TEXT["settings"], icon=":material/tune:")
    with st.container(
        key="train_desk"
    ):  # on a phone a run stands before what starts the next one (panel.css)
        controls = st.container(key="train_controls")
        panel = st.container(key="train_run")
    if busy:  # nothing but the run: what starts another one is folded below it
        controls = drawer = st.popover(TEXT["another run"], icon=":material/add:", width="stretch")
        with drawer:
            preset = preset_picker()
    assert preset is not None
    with controls:
        chosen = _controls(preset, drawer)
    repeats = preset.train is not None and preset.train.repeat > 0
    own = TEXT["question copying"] if repeats else TEXT.question
    question.header(kind_of(chosen.spec).question or own, anchor=False)
    shown = selected()
    with panel, boundary():
        if shown is None:
            _before(chosen)
        else:
            run_panel(shown)
    with boundary():
        runs_table()
    with boundary():
        saved_model()


def _controls(preset: Preset, drawer: st.delta_generator.DeltaGenerator) -> Setup:
    """Train, and what if; what will be trained is set in the drawer."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="train_line")
    with drawer:
        summed_up = st.empty()
        data = data_group(session.profile())
        chosen_values, containers = control_groups(preset)
        values: Values = {"tokenizer": data.tokenizer, **chosen_values}
    if data.paired is not None:
        values["context"] = kinds.longest(data.paired)
        preset = pair_preset(data.name)  # what these settings are compared with
    summed_up.caption(preset.summary)
    chosen = setup(preset, values, data)
    mark_problems(chosen.problems, containers)
    derived(chosen.spec, chosen.problems, containers)
    with drawer:
        if misfit := kind_of(chosen.spec).misfit:
            st.caption(f":material/info: {misfit}")
        summary(chosen, last_finished())
        changes_note(preset, values)
        with st.expander(TEXT["preset uses"], icon=":material/lightbulb:"):
            preset_notes(preset)
    with line:
        _start_line(chosen)
        in_short(chosen, last_finished())
    obstacles(chosen)
    return chosen


def _start_line(chosen: Setup) -> None:
    impossible = bool(chosen.problems)
    pressed = st.button(
        TEXT["train"],
        type="primary",
        icon=":material/play_arrow:",
        disabled=impossible,
        key="train",
        width=120,
    )
    senseless = kind_of(chosen.spec).senseless
    labels = {n: TEXT("compare with", change=w.label) for n, w in WHAT_IFS.items() if n not in senseless}
    name = widgets.select(TEXT["compare"], labels, "what_if", kind="list", hidden=True, width=275)
    other, done = WHAT_IFS[name].applied(chosen.spec), trained_already(chosen.spec)
    both = st.button(
        TEXT["train both"],
        icon=":material/compare_arrows:",
        disabled=impossible or other.same_recipe(chosen.spec),
        key="train_both",
        help=TEXT("both hint trained", name=done.name) if done else TEXT["both hint"],
    )
    asked_for = st.session_state.pop("start_at_once", False)  # by the button on Home
    if impossible:
        return
    if both:
        if done is None:
            start_comparison(chosen.spec, other)
        else:
            start_beside(done, other)
    elif pressed or asked_for:
        start(chosen.spec)
    if both or pressed or asked_for:
        st.rerun()  # the page of a run is another one


def last_finished() -> RunView | None:
    """Returns this browser's last run that did enough steps to tell its speed."""
    runs = [view for view in session.manager().runs(session.owner()) if view.step >= 20 and not view.active]
    return runs[-1] if runs else None


def _before(chosen: Setup) -> None:
    """Draws the place of the run: the chart that it has to get through, empty, and the text that it is going
    to read.
    """
    refusal()
    if chosen.problems:
        return
    spec, kind = chosen.spec, kind_of(chosen.spec)
    lines = kind.baselines()
    lapse = copying_heads.shipped() if kind.repeats and not kind.answers else None
    left, right = st.columns(2 if lapse is None else [8, 5], gap="medium")
    growth = None
    with left:
        if lapse is not None:
            growth = copying_heads.went(lapse, TALL - 50)
        else:
            plot(
                loss_curves(None, lines, kind.choices, end=float(spec.train.steps), token=kind.noun),
                key="empty_chart",
                height=TALL,
                alt=TEXT["alt"],
            )
    with right:
        st.markdown(kind.reads)
        with st.container(height=TALL - 50, border=False):
            st.code(whole(_read(chosen)), language=None, wrap_lines=not kind.repeats)
    if growth is not None:
        explain.answer(copying_heads.before_another(growth, spec.train.repeat, spec.train.steps))
    elif "uniform" in lines:
        explain.answer(kind.before(lines["uniform"]))


def _read(chosen: Setup) -> str:
    """Returns the beginning of what it learns from."""
    if chosen.paired is not None:
        return examples(chosen.paired)
    corpus = corpus_of(chosen.spec)
    if corpus is None:
        return ""
    return (
        copying_heads.windows(chosen.spec, corpus, WINDOWS)
        if chosen.spec.train.repeat
        else corpus.text[:READ]
    )


VIEW = View(
    "train",
    TEXT,
    draw,
    needs_model=False,
    variants={"copying": (("preset", "induction"),)},
    shows=(
        "train a model",
        "my own model",
        "loss curve",
        "perplexity",
        "baselines",
        "learning rate",
        "training",
        "overfitting",
    ),
)
