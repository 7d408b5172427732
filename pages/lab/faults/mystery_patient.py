"""The view "Mystery patient": curves, writing and tests that cost minutes; the bug is named last.

The fault stays on the server until somebody has named a diagnosis: nothing that is sent before depends on it
but what its curves, its texts and the tests that were ordered say.
"""

from __future__ import annotations

import random

import pandas as pd
import streamlit as st

from pages.lab.faults import loss_lines
from pages.lab.faults.diagnose import MARKS
from studies.lab.doctor.check import Check
from studies.lab.doctor.checks import CHECKS
from studies.lab.doctor.over_training import what_it_writes
from studies.lab.doctor.patient import BUDGET, MOST, Patient, affordable, cost, patient_of
from studies.lab.doctor.table import Chart, case_of, shipped, subject_of
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe

TEXT = content.beside(__file__)
SEED, TESTS, GUESS, NAMED = "patient", "patient_tests", "patient_guess", "patient_named"


def draw() -> None:
    """Draws curves and writing, the tests and what they found, a diagnosis; then the truth."""
    charts = shipped()
    left, right = st.columns([3, 2], gap="medium")
    with right, st.container(horizontal=True, vertical_alignment="bottom"):
        number = widgets.whole(TEXT["patient"], 0, MOST, 1, SEED, hint=TEXT["same patient"], width=130)
        # Streamlit's own: a button that puts another number into the field, which holds the value.
        st.button(TEXT["next"], icon=":material/casino:", on_click=_another, key="patient_next")
    patient = patient_of(number, charts)
    if widgets.outdated(TESTS, number):
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
    explain.answer(_answer(patient, named, titles[patient.name], cost(done)))
    if done:
        _results(patient, done)
    if named is not None and patient.chart.caught_by:
        explain.measure_it(_truth, patient)


def _answer(patient: Patient, named: str | None, title: str, spent: int) -> str:
    """Says what can be seen without a test; once a diagnosis is named, whether it is right, and the truth."""
    if named is not None:
        return TEXT("right" if named == patient.name else "wrong", spent=spent, title=title)
    loss = patient.chart.evaluations[-1].validation_loss
    return TEXT("before", loss=loss, unigram=patient.chart.counting, left=patient.budget - spent)


def _curves(patient: Patient) -> None:
    chart = patient.chart
    plot(
        curves(chart),
        key="patient_curves",
        height=300,
        name="patient",
        data={"step": chart.steps, "loss": chart.losses},
        alt=TEXT(
            "alt",
            steps=int(chart.steps[-1]),
            training=chart.losses[-1],
            validation=chart.evaluations[-1].validation_loss,
            unigram=chart.counting,
        ),
    )


def _writing(patient: Patient) -> None:
    """The last text that it wrote."""
    last = patient.chart.samples[-1]
    written = (last.prompt + last.text).replace("\n", "⏎\n")  # so that blank lines are seen
    st.code(written, language=None, wrap_lines=True, height=108)


def _order(done: tuple[str, ...]) -> None:
    """The tests that can still be paid for. An order stays."""
    left = BUDGET - cost(done)
    open_to = {
        offered(check): name for name, check in CHECKS.items() if name not in done and check.minutes <= left
    }
    # Streamlit's own: choosing one orders it, and the link holds what was ordered.
    st.selectbox(
        TEXT["order"],
        [TEXT["not yet"], *open_to],
        key="patient_order",
        on_change=_ordered,
        args=(done, open_to),
    )


def offered(check: Check) -> str:
    """Returns a test that can be ordered, with what it costs."""
    return TEXT("offer", title=check.title, minutes=check.minutes)


def _diagnose(titles: dict[str, str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        guess = widgets.select(TEXT["diagnosis"], {"": TEXT["not yet"]} | titles, GUESS, kind="list")
        # Streamlit's own: a diagnosis counts when it is named.
        st.button(TEXT["submit"], key="patient_name_it", type="primary", on_click=_name_it, args=(guess,))
    if guess:
        # The symptoms of the bug that is chosen, whatever the patient has.
        symptom = content.Filled(subject_of(guess).symptom)
        st.caption(TEXT("symptom" if symptom else "no symptom", symptom=symptom))


def _results(patient: Patient, done: tuple[str, ...]) -> None:
    """Draws what the tests found, the newest first."""
    findings = patient.chart.findings
    rows = [
        {
            "": MARKS[findings[name].verdict],
            TEXT["test column"]: CHECKS[name].title,
            TEXT["result column"]: findings[name].sentence,
        }
        for name in done[::-1]
        if name in findings
    ]
    columns = ["", TEXT["test column"], TEXT["result column"]]
    with st.container(key="patient_results"):
        st.table(pd.DataFrame(rows, columns=columns).set_index(""), border="horizontal")


def _lines(patient: Patient) -> None:
    """The lines that were wrong."""
    if patient.chart.caught_by:
        diff = subject_of(patient.name).diff
        st.caption(safe(diff.location))
        st.code(diff.text, language="diff", wrap_lines=True, height="content")
    st.caption(_enough(patient.chart))


def _enough(chart: Chart) -> str:
    """Names the least that would have found it."""
    caught = chart.caught_by
    if not caught:
        return TEXT["no test"]
    quickest = CHECKS[min(caught, key=lambda name: CHECKS[name].minutes)]
    return TEXT("quickest", title=quickest.title, minutes=quickest.minutes, count=len(caught))


def _truth(patient: Patient) -> None:
    """Reveals the fault: the story and the fix."""
    fault = subject_of(patient.name)
    symptom, story, fix = map(content.Filled, (fault.symptom, fault.story, fault.fix))  # Markdown of ours
    st.markdown(TEXT("truth", symptom=symptom, story=story, fix=fix))


def _another() -> None:
    st.session_state[SEED] = random.randint(0, MOST)
    _forget()


def _forget() -> None:
    """Another patient: nothing is ordered yet, nothing chosen, and nothing named."""
    for name in (TESTS, NAMED):
        widgets.keep_in_url(name, None)
    widgets.put(GUESS, "")


def _ordered(done: tuple[str, ...], open_to: dict[str, str]) -> None:
    name = open_to.get(st.session_state.get("patient_order", TEXT["not yet"]))
    if name is not None:
        widgets.keep_in_url(TESTS, "-".join((*done, name)))
    st.session_state["patient_order"] = TEXT["not yet"]


def _name_it(guess: str) -> None:
    if guess:
        widgets.keep_in_url(NAMED, guess)
        widgets.write_url(GUESS, None)


def curves(chart: Chart) -> go.Figure:
    """Draws training and validation loss over the steps, with the line of counting letters."""
    looks = chart.evaluations
    steps, losses = [look.step for look in looks], [look.validation_loss for look in looks]
    traces = [
        loss_lines.line(chart.steps, chart.losses, TEXT["training"], "training"),
        loss_lines.line(steps, losses, TEXT["validation"], "validation"),
    ]
    return loss_lines.losses(traces, chart.counting, TEXT["unigram"])


VIEW = View("patient", TEXT, draw, code=(what_it_writes, case_of), needs_model=False)
