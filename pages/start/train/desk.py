"""Layout of the training page: the settings in one line, the run below it, earlier runs folded."""

from __future__ import annotations

import streamlit as st

from engine.presets import Preset
from engine.service.state import RunView
from engine.training import kinds
from pages.start.train import heads, pairs, tasks, words, words_heads, words_pairs, words_tasks
from pages.start.train.asking import selected, start, start_beside, start_comparison
from pages.start.train.beside import trained_already
from pages.start.train.curves import loss_curves
from pages.start.train.data import data_group
from pages.start.train.losses import baselines, vocabulary
from pages.start.train.run import run_panel
from pages.start.train.saved import saved_model
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
from pages.start.train.table import runs_table
from pages.start.train.whatif import WHAT_IFS
from ui import explain, session, widgets
from ui.controls import control_groups, preset_picker
from ui.fields import Values
from ui.page_frame import boundary, header, question_line
from ui.players.plot import plot
from ui.players.served import ASSETS
from ui.requests import refusal
from ui.run_text import corpus_of
from ui.text.markdown import whole

TALL = 420  # of the empty chart: there is nothing else yet
WINDOWS = 12  # that stand there instead, where they repeat themselves
READ = 900  # characters of the text it reads, before the first run


def draw_desk() -> None:
    """Draws all of it. A fault in one part leaves the others."""
    run = session.manager().view(selected() or "")
    busy = run is not None and run.active and session.manager().may_control(run.id, session.owner())
    preset = header("Train", (lambda: None) if busy else preset_picker)
    st.html(ASSETS / "panel.css")
    with question_line() as question:
        if not busy:
            drawer = st.popover("Settings", icon=":material/tune:")
    with st.container(
        key="train_desk"
    ):  # on a phone a run stands before what starts the next one (panel.css)
        controls = st.container(key="train_controls")
        panel = st.container(key="train_run")
    if busy:  # nothing but the run: what starts another one is folded below it
        controls = drawer = st.popover(words.ANOTHER_RUN, icon=":material/add:", width="stretch")
        with drawer:
            preset = preset_picker()
    assert preset is not None
    with controls:
        chosen = _controls(preset, drawer)
    task = tasks.task_of(chosen.spec)
    paired = pairs.paired_of(chosen.spec.corpus)
    headline = words_tasks.question(task) if task else heads.question(preset)
    headline = pairs.question(paired) if paired else headline
    question.header(headline or words.QUESTION, anchor=False)
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
    paired = pairs.paired_of(data.name)
    if data.paired is not None:
        values["context"] = kinds.longest(data.paired)
    preset = paired.preset if paired and data.paired else preset  # what these settings are compared with
    summed_up.caption(preset.summary)
    chosen = setup(preset, values, data)
    mark_problems(chosen.problems, containers)
    derived(chosen.spec, chosen.problems, containers)
    task = tasks.task_of(chosen.spec)
    with drawer:
        if task and (misfit := words_tasks.fits(task, chosen.spec.model.context)):
            st.caption(f":material/info: {misfit}")
        summary(chosen, last_finished())
        changes_note(preset, values)
        with st.expander(words.PRESET_USES, icon=":material/lightbulb:"):
            preset_notes(preset)
    with line:
        _start_line(chosen)
        in_short(chosen, last_finished())
    obstacles(chosen)
    return chosen


def _start_line(chosen: Setup) -> None:
    impossible = bool(chosen.problems)
    pressed = st.button(
        "Train",
        type="primary",
        icon=":material/play_arrow:",
        disabled=impossible,
        key="train",
        width=120,
    )
    senseless = pairs.NO_WHAT_IFS.get(chosen.spec.kind.name, ())
    labels = {n: words.compare_with(what.label) for n, what in WHAT_IFS.items() if n not in senseless}
    name = widgets.select(words.COMPARE, labels, "what_if", kind="list", hidden=True, width=275)
    other, done = WHAT_IFS[name].applied(chosen.spec), trained_already(chosen.spec)
    both = st.button(
        words.TRAIN_BOTH,
        icon=":material/compare_arrows:",
        disabled=impossible or other.same_recipe(chosen.spec),
        key="train_both",
        help=words.both(done.name if done else ""),
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
    spec = chosen.spec
    noun, lines = pairs.noun_of(spec), baselines(spec)
    repeats, task, paired = spec.train.repeat > 0, tasks.task_of(spec), pairs.paired_of(spec.corpus)
    lapse = heads.shipped() if repeats and task is None else None
    left, right = st.columns(2 if lapse is None else [8, 5], gap="medium")
    growth = None
    with left:
        if lapse is not None:
            growth = heads.went(lapse, TALL - 50)
        else:
            plot(
                loss_curves(None, lines, vocabulary(spec), end=float(spec.train.steps), token=noun),
                key="empty_chart",
                height=TALL,
                alt=words.EMPTY_ALT,
            )
    with right:
        what = words_pairs.READS if paired else words.READS
        st.markdown(words_heads.READS if repeats else what)
        corpus = corpus_of(spec)
        read = (heads.windows(spec, corpus, WINDOWS) if repeats else corpus.text[:READ]) if corpus else ""
        read = pairs.examples(chosen.paired) if chosen.paired is not None else read
        with st.container(height=TALL - 50, border=False):
            st.code(whole(read), language=None, wrap_lines=not repeats)
    if paired is not None:
        explain.answer(pairs.before(spec, paired))
    elif growth is not None:
        explain.answer(words_heads.before_another(growth, spec.train.repeat, spec.train.steps))
    elif "uniform" in lines and task is not None:
        floor = task.floor(spec.model.context)
        explain.answer(words_tasks.before(task, floor, lines["uniform"], spec.train.steps))
    elif "uniform" in lines:
        explain.answer(
            words_heads.before(spec.train.repeat, lines["uniform"], spec.train.steps)
            if repeats
            else words.before(vocabulary(spec), lines["uniform"], noun, spec.train.steps)
        )
