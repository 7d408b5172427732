"""The view "Mystery patient": curves, writing and tests that cost minutes; the bug is named last.

The fault stays on the server until somebody has named a diagnosis: nothing that is sent before depends on it
but what its curves, its texts and the tests that were ordered say.
"""

from __future__ import annotations

import random

import pandas as pd
import streamlit as st

from engine.lab.doctor.checks import CHECKS
from engine.lab.doctor.patient import (
    BUDGET,
    MOST,
    Patient,
    affordable,
    cost,
    patient_of,
)
from engine.lab.doctor.table import shipped, subject_of
from pages.lab.faults import words_doctor as words
from pages.lab.faults.figures_doctor import curves
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe

SEED, TESTS, NAMED = "patient", "patient_tests", "patient_named"


def draw_patient() -> None:
    """Draws curves and writing, the tests and what they found, a diagnosis; then the truth."""
    charts = shipped()
    left, right = st.columns([3, 2], gap="medium")
    with right, st.container(horizontal=True, vertical_alignment="bottom"):
        number = widgets.whole(words.SEED, 0, MOST, 1, SEED, hint=words.SEED_HINT, width=130)
        # Streamlit's own: a button that puts another number into the field, which holds the value.
        st.button(words.NEXT, icon=":material/casino:", on_click=_another, key="patient_next")
    patient = patient_of(number, charts)
    if st.session_state.setdefault("patient_seen", number) != number:
        st.session_state["patient_seen"] = number
        _forget()
    done = affordable(widgets.read_url(TESTS).split("-"))
    titles = {name: subject_of(name).title for name in sorted(charts)}
    named = next((name for name in titles if name == widgets.read_url(NAMED)), None)
    with left:
        _curves(patient)
    with right:
        _writing(patient)
        if named is None:
            _order(done)
            _diagnose(titles)
        else:
            _lines(patient)
    if named is None:
        explain.answer(words.before(patient, cost(done)))
    else:
        explain.answer(words.diagnosis(patient, named, titles[patient.name], cost(done)))
    if done:
        _results(patient, done)
    if named is not None and patient.chart.caught_by:
        explain.measure_it(_truth, patient)


def _curves(patient: Patient) -> None:
    chart = patient.chart
    plot(
        curves(patient, words.CURVE),
        key="patient_curves",
        height=300,
        name="patient",
        data={"step": chart.steps, "loss": chart.losses},
        alt=words.patient_alt(patient),
    )


def _writing(patient: Patient) -> None:
    """The last text that it wrote."""
    last = patient.chart.samples[-1]
    st.code(words.as_written(last.prompt + last.text), language=None, wrap_lines=True, height=108)


def _order(done: tuple[str, ...]) -> None:
    """The tests that can still be paid for. An order stays."""
    left = BUDGET - cost(done)
    open_to = {
        words.offered(check): name
        for name, check in CHECKS.items()
        if name not in done and check.minutes <= left
    }
    # Streamlit's own: choosing one orders it, and the link holds what was ordered.
    st.selectbox(
        words.ORDER,
        [words.NOT_YET, *open_to],
        key="patient_order",
        on_change=_ordered,
        args=(done, open_to),
    )


def _diagnose(titles: dict[str, str]) -> None:
    named = {title: name for name, title in titles.items()}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # Streamlit's own: a diagnosis counts when it is named, and only then stands in the link.
        guess = st.selectbox(words.DIAGNOSIS, [words.NOT_YET, *named], key="patient_guess")
        # Streamlit's own: it commits what the list holds.
        st.button(
            words.NAME_IT, key="patient_name_it", type="primary", on_click=_name_it, args=(named.get(guess),)
        )
    if guess in named:
        st.caption(words.would_show(subject_of(named[guess])))


def _results(patient: Patient, done: tuple[str, ...]) -> None:
    findings = patient.chart.findings
    newest_first = [words.result(CHECKS[name], findings[name]) for name in done[::-1] if name in findings]
    with st.container(key="patient_results"):
        st.table(
            pd.DataFrame(newest_first, columns=["", "test", "result"]).set_index(""), border="horizontal"
        )


def _lines(patient: Patient) -> None:
    """The lines that were wrong."""
    if patient.chart.caught_by:
        diff = subject_of(patient.name).diff
        st.caption(safe(diff.location))
        st.code(diff.text, language="diff", wrap_lines=True, height="content")
    st.caption(words.enough(patient.chart, CHECKS))


def _truth(patient: Patient) -> None:
    """Reveals the fault: the story and the fix."""
    st.markdown(words.reveal(subject_of(patient.name)))


def _another() -> None:
    st.session_state[SEED] = random.randint(0, MOST)
    _forget()


def _forget() -> None:
    """Another patient: nothing is ordered yet, and nothing named."""
    for name in (TESTS, NAMED):
        widgets.keep_in_url(name, None)


def _ordered(done: tuple[str, ...], open_to: dict[str, str]) -> None:
    name = open_to.get(st.session_state.get("patient_order", words.NOT_YET))
    if name is not None:
        widgets.keep_in_url(TESTS, "-".join((*done, name)))
    st.session_state["patient_order"] = words.NOT_YET


def _name_it(guess: str | None) -> None:
    if guess is not None:
        widgets.keep_in_url(NAMED, guess)
