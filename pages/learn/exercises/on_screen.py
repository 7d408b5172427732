"""The part "on screen" of the view "Practise": an exercise, an answer, and what is said of it."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitPageNotFoundError

from studies.exercises.catalogue import LARGEST_SEED, SETS, TASKS, make
from studies.exercises.exercise import Exercise, Verdict, check
from studies.exercises.forms import Choice, Order, Pick
from ui import content, explain, returns, site, widgets
from ui.page_frame import View
from ui.players.component import mounted

TEXT = content.beside(__file__)
SET, TASK, SEED = "set", "exercise", "set_seed"
DOTS, GIVEN, SHOWN, ABOUT = "exercise_dots", "exercise_given", "exercise_shown", "exercise_about"
OPENED = "exercise_opened"  # the exercises whose solution was in sight, each with its seed
MOST_OPENED = 500


@dataclass(frozen=True)
class Given:
    """An answer as it was given: to which exercise, and whether its solution had been in sight. The browser
    notes each `token` once.
    """

    task: str
    seed: int
    answer: Any
    helped: bool
    token: str


def draw(line: DeltaGenerator) -> None:
    """Draws an exercise; which it is, is chosen in a `line`."""
    _follow(widgets.picked(DOTS, "chosen"))
    with line:
        sets = {id_: one.title for id_, one in SETS.items()}
        name = widgets.select(TEXT["set"], sets, SET, kind="list", width=200)
        tasks = {id_: title for id_, (title, _) in SETS[name].tasks.items()}
        task = widgets.select(TEXT["exercise"], tasks, TASK, kind="list", width=280)
        seed = choose_seed()
        if st.session_state.get(ABOUT) != (task, seed):  # however one came to it
            st.session_state.update({ABOUT: (task, seed), SHOWN: False})
        # Streamlit's own: a link to an exercise must not open its answer.
        shown = st.toggle(TEXT["show"], key=SHOWN, help=TEXT["shows"])
        if shown and (task, seed) not in _opened():
            st.session_state[OPENED] = (*_opened(), (task, seed))[-MOST_OPENED:]
    exercise = make(task, seed)
    left, right = st.columns([5, 3], gap="large")
    with left:
        _asked(exercise, list(tasks))
        if shown:
            with st.container(border=True):
                st.markdown("\n".join(f"{place}. {step}" for place, step in enumerate(exercise.steps, 1)))
        returns.draw_progress(returns=True)
    with right:
        _dots(exercise)
        _onward(exercise)


def _opened() -> tuple[tuple[str, int], ...]:
    opened: tuple[tuple[str, int], ...] = st.session_state.get(OPENED, ())
    return opened


def choose_seed() -> int:
    return widgets.whole(TEXT["seed"], 0, LARGEST_SEED, 1, SEED, width=130, hint=TEXT["another seed"])


def _follow(chosen: Any) -> None:
    """A dot was pressed."""
    if isinstance(chosen, str) and chosen in TASKS:  # a forged message may hold anything
        _go(chosen)


def _go(task: str) -> None:
    name = next(name for name, one in SETS.items() if task in one.tasks)
    st.session_state.update({SET: name, TASK: task})


def _asked(exercise: Exercise, tasks: list[str]) -> None:
    with st.container(key="exercise_statement"):
        st.markdown(exercise.statement)
    key = f"exercise_answer_{exercise.id}_{exercise.seed}"
    with st.form(f"exercise_form_{exercise.id}_{exercise.seed}", border=False):
        line = not isinstance(exercise.form, Choice | Pick)
        with st.container(horizontal=line, vertical_alignment="bottom"):
            given = _input(exercise, key)
            if st.form_submit_button(TEXT["check"], type="primary", key="exercise_check"):
                helped = (exercise.id, exercise.seed) in _opened()
                st.session_state[GIVEN] = Given(exercise.id, exercise.seed, given, helped, uuid.uuid4().hex)
    if verdict := _verdict(exercise):
        hint = content.Filled(verdict.hint)  # Markdown of ours
        explain.answer(TEXT("right" if verdict.right else "wrong", hint=hint))
    else:
        number = tasks.index(exercise.id) + 1
        explain.answer(TEXT("unanswered", number=number, count=len(tasks), seed=exercise.seed))


def _verdict(exercise: Exercise) -> Verdict | None:
    """Returns the verdict on the last answer, if it was to this exercise."""
    given = _given(exercise)
    return check(exercise, given.answer) if given else None


def _given(exercise: Exercise) -> Given | None:
    given: Given | None = st.session_state.get(GIVEN)
    return given if given and (given.task, given.seed) == (exercise.id, exercise.seed) else None


def _input(exercise: Exercise, key: str) -> Any:
    form = exercise.form
    label = TEXT("answer", ask=form.ask)
    # Streamlit's own: an answer begins empty and never goes into the link.
    if isinstance(form, Choice):
        return st.radio(label, form.options, index=None, key=key)
    if isinstance(form, Pick):
        st.caption(label)
        with st.container(gap="xxsmall"):
            return [
                option
                for place, option in enumerate(form.options)
                if st.checkbox(option, key=f"{key}_{place}")
            ]
    return st.text_input(label, key=key, max_chars=2000, autocomplete="off")


def _dots(exercise: Exercise) -> None:
    """Which exercises are solved: the browser keeps it, and gets the verdict to note."""
    given, verdict = _given(exercise), _verdict(exercise)
    groups = [
        {
            "id": id_,
            "title": one.title,
            "tasks": [{"id": t, "title": name} for t, (name, _) in one.tasks.items()],
        }
        for id_, one in SETS.items()
    ]
    mounted("solved", styles=("solved",))(
        key=DOTS,
        data={
            "groups": groups,
            "now": exercise.id,
            "kin": returns.kin(exercise.id),
            "answer": {
                "id": exercise.id,
                "seed": exercise.seed,
                "right": verdict.right,
                "helped": given.helped,
                "token": given.token,
            }
            if given and verdict and verdict.read
            else None,
        },
        on_chosen_change=lambda: None,
    )


def _onward(exercise: Exercise) -> None:
    proof = isinstance(exercise.form, Order)  # has no numbers
    with st.container(horizontal=True, key="exercise_onward"):
        st.button(
            TEXT["new order" if proof else "new numbers"],
            key="exercise_again",
            on_click=_again,
            args=(exercise.seed,),
            icon=":material/refresh:",
        )
        st.button(
            TEXT["next"],
            key="exercise_next",
            on_click=_next,
            args=(exercise.id,),
            icon=":material/arrow_forward:",
        )
    entry = site.entry_of(exercise.see.page)
    if entry is not None:
        with suppress(StreamlitPageNotFoundError):  # this page is run alone, without app.py
            st.page_link(
                entry.path,
                label=TEXT("see it", page=entry.title),
                icon=":material/visibility:",
                query_params=dict(exercise.see.query),
            )


def _again(seed: int) -> None:
    st.session_state[SEED] = seed % LARGEST_SEED + 1


def _next(task: str) -> None:
    order = list(TASKS)
    _go(order[(order.index(task) + 1) % len(order)])


PART = View("screen", TEXT, draw, code=(check,))
