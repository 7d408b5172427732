"""The view "Diagnosis": every check on the model of the bar, and on the same with a bug put into it; which
check finds which bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from engine.config import TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CorpusError
from engine.lab.doctor.case import Case, TrainingCurve
from engine.lab.doctor.check import Finding
from engine.lab.doctor.checks import CHECKS, examine
from engine.lab.doctor.parts_swap import fitting, grafted
from engine.lab.doctor.table import HEALTHY, shipped, subject_of
from engine.service.state import RunView
from pages.lab.faults import words_doctor as words
from pages.lab.faults.figures_doctor import grid, verdict
from ui import (
    explain,
    models,
    session,
    widgets,
)
from ui.background_jobs import measured
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

NONE, FAULT = "none", "which_fault"
QUICK = tuple(name for name, check in CHECKS.items() if not check.slow)
SLOW = tuple(name for name, check in CHECKS.items() if check.slow)


def draw_doctor(subject: Subject) -> None:
    """Draws two columns of checks, one by one as they are done, the answer, and one of them in words."""
    left, right = st.columns([3, 1], gap="medium")
    with right:
        bugs = {} if subject.is_pretrained else fitting(subject.model)
        bug = widgets.select(
            words.BUG, {NONE: words.NO_BUG} | bugs, "doctor_bug", kind="list", hint=words.BUG_HINT
        )
        slow = not subject.is_pretrained and widgets.switch(
            words.SLOW, False, "doctor_slow", hint=words.SLOW_HINT
        )
        names = {name: CHECKS[name].title for name in CHECKS}
        chosen = widgets.select(words.CHECK, names, "doctor_check", kind="list")
    with left, st.container(key="doctor_checks"):
        findings = _examined(subject, bug, slow)
        if findings is not None:
            _table(findings)
    if findings is None:
        return
    with right:
        record = next((f for f in findings if f.check == chosen), None)
        if record is not None:
            st.caption(words.of_check(CHECKS[chosen], record))
    explain.answer(words.examined(findings, CHECKS))
    explain.measure_it(_more, findings, bug)


def _examined(subject: Subject, bug: str, slow: bool) -> tuple[Finding, ...] | None:
    """The findings; None while they are being made, with those drawn that are there."""
    case = _case(subject, bug)
    key = ("doctor", subject.key, bug, case.curve is not None and len(case.curve.losses))
    names = CHECKS if slow else QUICK
    result = measured(
        (*key, "quick"),
        lambda: examine(case, QUICK),
        words.EXAMINING,
        lambda some: _so_far(some or (), names),
    )
    if result is None or not slow:
        return result
    more = measured(
        (*key, "slow"),
        lambda: examine(case, SLOW),
        words.EXAMINING,
        lambda some: _so_far((*result, *(some or ())), names),
    )
    return None if more is None else (*result, *more)


def _case(subject: Subject, bug: str) -> Case:
    """Returns the case to examine: the model, its text and its training as far as they are here."""
    name, step = subject.key
    model = grafted(subject.model, bug) if bug != NONE else subject.model
    if name.startswith(models.RUN):
        run = session.manager().view(name.removeprefix(models.RUN))
        if run is not None:
            return Case(model, None, _text_of(run, subject), run.spec.train, _curve(run, step))
    if subject.is_pretrained:
        return Case(model)
    corpus = _text(subject.corpus, "char")
    if corpus is not None and corpus.vocab_size != subject.tokenizer.vocab_size:
        corpus = None
    return Case(model, None, corpus, _settings(name))


def _settings(name: str) -> TrainConfig | None:
    """How a model that comes with the app was trained."""
    known = models.trained_as(name)
    return None if known is None else TrainConfig.from_dict(known)


def _text_of(run: RunView, subject: Subject) -> Corpus | None:
    cut = run.spec.train.tokenizer
    if run.spec.text is not None:
        return corpora.from_text(run.spec.text, tokenizer=cut)
    return _text(subject.corpus, cut)


def _text(name: str | None, cut: str) -> Corpus | None:
    """A text of the house; None, with a sentence, where it cannot be had: what needs it is left out."""
    try:
        return session.corpus(name, cut) if name else None
    except CorpusError as error:
        st.caption(f":material/info: {safe(str(error))}.")
        return None


def _curve(run: RunView, step: int) -> TrainingCurve:
    """How the run went, up to the step that is looked at."""
    history = run.history
    up_to_step = history.steps <= step
    looks = tuple(e for e in history.evaluations if e.step <= step)
    return TrainingCurve(
        history.steps[up_to_step], history.losses[up_to_step].astype("float64"), looks, run.status == "failed"
    )


def _so_far(findings: Sequence[Finding], names: Iterable[str]) -> None:
    """Draws the findings so far, and which checks are still to come."""
    _table(findings, names)
    explain.answer(words.so_far(findings))


def _table(findings: Sequence[Finding], names: Iterable[str] = ()) -> None:
    """Draws a row each in two columns, in the order of all checks; one of the `names` without a finding is
    still to come.
    """
    done = {f.check: f for f in findings}
    shown = [name for name in CHECKS if name in {*done, *names}]
    half = (len(shown) + 1) // 2
    # the longest limit stands on the right
    columns = st.container(key="checks_table").columns([12, 13], gap="small")
    for column, some in zip(columns, (shown[:half], shown[half:]), strict=True):
        rows = [
            {
                "": words.MARKS[done[name].verdict] if name in done else words.PENDING,
                "check": CHECKS[name].title,
                "number": words.number(CHECKS[name], done[name]) if name in done else "",
                "should be": words.should_be(CHECKS[name]),
            }
            for name in some
        ]
        if rows:
            column.table(pd.DataFrame(rows).set_index(""), border="horizontal")


def _more(findings: Sequence[Finding], bug: str) -> None:
    """Which check finds which bug, and every sentence of this examination with its limit and what it cost."""
    _which(bug)
    rows = [
        {
            "": words.MARKS[f.verdict],
            "question": CHECKS[f.check].question,
            "result": f.sentence,
            "limit": CHECKS[f.check].reason,
            words.COST: f"{f.seconds:.2f}",
        }
        for f in findings
    ]
    st.table(pd.DataFrame(rows).set_index(""), border="horizontal")


def _which(bug: str) -> None:
    """A grid of faults and checks as it was measured; a click on a row, or the list, chooses one: the bug
    that was put into the model, until then.
    """
    charts = shipped()
    titles = {name: subject_of(name).title for name in charts}
    picked = widgets.picked("which_grid", "clicked")
    if picked in titles and st.session_state.get("which_clicked") != picked:
        st.session_state["which_clicked"] = st.session_state[FAULT] = picked
    first = bug if bug in charts else next(name for name in charts if name != HEALTHY)
    st.subheader(words.WHICH, anchor=False)
    name = widgets.select(words.FAULT, titles, FAULT, first=first, kind="list", hidden=True)
    plot(
        grid(charts, titles, CHECKS, name),
        key="which_grid",
        height=412,
        name="checks",
        data={"fault": list(charts)}
        | {check: [verdict(chart, check) for chart in charts.values()] for check in CHECKS},
        alt=words.which_alt(charts, CHECKS),
    )
    st.markdown(words.caught_by_checks(titles[name], charts[name], CHECKS))
    st.caption(words.MADE)
