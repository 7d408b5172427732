"""The view "Diagnose": every check on the model of the bar, and on the same with a bug put into it; which
check finds which bug.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CorpusError
from runs.state import RunView
from studies.lab.doctor.case import Case, TrainingCurve, relative_difference
from studies.lab.doctor.check import Check, Finding, shown
from studies.lab.doctor.checks import CHECKS, examine
from studies.lab.doctor.forward import sees_the_future
from studies.lab.doctor.parts_swap import fitting, grafted
from studies.lab.doctor.start import gradients_by_block
from studies.lab.doctor.table import HEALTHY, Chart, shipped, subject_of
from ui import (
    content,
    explain,
    models,
    session,
    widgets,
)
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.model_needs import CHECKS as HAS_CHECKS
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
MARKS = {"pass": ":green[:material/check_circle:]", "fail": ":red[:material/cancel:]", "not applicable": "–"}
PENDING = ":gray[:material/hourglass_empty:]"
NONE, FAULT = "none", "which_fault"
QUICK = tuple(name for name, check in CHECKS.items() if not check.slow)
SLOW = tuple(name for name, check in CHECKS.items() if check.slow)
VALUES = {"not applicable": 0.0, "pass": 0.5, "fail": 1.0}
SCALE = [  # nothing to ask, passed, failed
    [0.0, colour("quiet", 8)],
    [0.34, colour("quiet", 8)],
    [0.34, colour("run0", 25)],
    [0.67, colour("run0", 25)],
    [0.67, colour("run4")],
    [1.0, colour("run4")],
]
SHORT = 34  # letters of a row's label on a phone; the longest has 42
NARROW = 9  # pixels: the letters of the grid's names on a phone


def draw(subject: Subject) -> None:
    """Draws two columns of checks, one by one as they are done, the answer, and one of them in words."""
    left, right = st.columns([3, 1], gap="medium")
    with right:
        bugs = {} if subject.is_pretrained else fitting(subject.model)
        options = {NONE: TEXT["no bug"]} | bugs
        bug = widgets.select(TEXT["bug"], options, "doctor_bug", kind="list", hint=TEXT["bug hint"])
        slow = not subject.is_pretrained and widgets.switch(
            TEXT["overfit"], False, "doctor_slow", hint=TEXT["overfit hint"]
        )
        names = {name: CHECKS[name].title for name in CHECKS}
        chosen = widgets.select(TEXT["which check"], names, "doctor_check", kind="list")
    with left, st.container(key="doctor_checks"):
        findings = _examined(subject, bug, slow)
        if findings is not None:
            _table(findings)
    if findings is None:
        return
    with right:
        record = next((f for f in findings if f.check == chosen), None)
        if record is not None:
            check = CHECKS[chosen]
            sentence = content.Filled(record.sentence)  # Markdown of ours, as the check's own
            question, reason = content.Filled(check.question), content.Filled(check.reason)
            st.caption(TEXT("check", question=question, sentence=sentence, reason=reason))
    explain.answer(_answer(findings))
    explain.measure_it(_more, findings, bug)


def _answer(findings: Sequence[Finding]) -> str:
    """Says how many checks passed, and what the first that did not says."""
    applied = [f for f in findings if f.verdict != "not applicable"]
    failed = [f for f in applied if f.verdict == "fail"]
    if not failed:
        return TEXT("healthy", applied=len(applied))
    sentence = content.Filled(failed[0].sentence)
    title = CHECKS[failed[0].check].title
    return TEXT("ill", failed=len(failed), applied=len(applied), title=title, sentence=sentence)


def _examined(subject: Subject, bug: str, slow: bool) -> tuple[Finding, ...] | None:
    """The findings; None while they are being made, with those drawn that are there."""
    case = _case(subject, bug)
    key = ("doctor", subject.key, bug, case.curve is not None and len(case.curve.losses))
    names = CHECKS if slow else QUICK
    result = measured(
        (*key, "quick"),
        partial(examine, case, QUICK),
        TEXT["examining"],
        lambda some: _so_far(some or (), names),
    )
    if result is None or not slow:
        return result
    more = measured(
        (*key, "slow"),
        partial(examine, case, SLOW),
        TEXT["examining"],
        lambda some: _so_far((*result, *(some or ())), names),
    )
    return None if more is None else (*result, *more)


def _case(subject: Subject, bug: str) -> Case:
    """Returns the case to examine: the model, its text and its training as far as they are here."""
    name, step = subject.key
    model = grafted(subject.model, bug) if bug != NONE else subject.model
    if (run := models.run_of(name)) is not None:
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
        st.caption(TEXT("no text", why=str(error)))
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
    verdicts = [finding.verdict for finding in findings]
    passed = verdicts.count("pass")
    done = passed + verdicts.count("fail")
    explain.answer(TEXT("so far" if done else "running", passed=passed, done=done))


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
                "": MARKS[done[name].verdict] if name in done else PENDING,
                TEXT["check column"]: CHECKS[name].title,
                TEXT["number column"]: _number(CHECKS[name], done[name]) if name in done else "",
                TEXT["limit column"]: should_be(CHECKS[name]),
            }
            for name in some
        ]
        if rows:
            column.table(pd.DataFrame(rows).set_index(""), border="horizontal")


def _number(check: Check, finding: Finding) -> str:
    """Returns the number of a check as its sentence writes it."""
    return "" if finding.number is None else shown(finding.number, check.written)


def should_be(check: Check) -> str:
    """Returns the values of a healthy model, in short.

    >>> [should_be(CHECKS[name]) for name in ("future", "spread", "targets", "learned", "first_loss")]
    ['0', '0.67 to 1.50', '100%', 'below −0.20', '±0.50']
    """
    low, high = (shown(limit, check.written) for limit in (check.low, check.high))
    if check.slack or check.low == check.high:
        return high if check.low == check.high else shown(0.0, check.written)
    if math.isinf(check.low):
        return TEXT("below", limit=high)
    if math.isinf(check.high):
        return TEXT["above"]
    if check.low == 0.0:
        return TEXT("below", limit=high)
    if check.low == -check.high:
        return TEXT("around", limit=high.lstrip("+"))
    return TEXT("between", low=low, high=high)


def _more(findings: Sequence[Finding], bug: str) -> None:
    """Which check finds which bug, and every sentence of this examination with its limit and what it cost."""
    _which(bug)
    rows = [
        {
            "": MARKS[f.verdict],
            TEXT["question column"]: CHECKS[f.check].question,
            TEXT["result column"]: f.sentence,
            TEXT["reason column"]: CHECKS[f.check].reason,
            TEXT["seconds column"]: f"{f.seconds:.2f}",
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
    st.subheader(TEXT["grid"], anchor=False)
    name = widgets.select(TEXT["grid bug"], titles, FAULT, first=first, kind="list", hidden=True)
    plot(
        grid(charts, titles, name),
        key="which_grid",
        height=412,
        name="checks",
        data={"fault": list(charts)}
        | {check: [_verdict(chart, check) for chart in charts.values()] for check in CHECKS},
        alt=TEXT("alt", models=len(charts), checks=len(CHECKS)),
    )
    st.markdown(_caught(titles[name], charts[name]))
    st.caption(TEXT["grid made"])


def _caught(title: str, chart: Chart) -> str:
    """Says how many checks find a fault, and what the quickest of them says."""
    caught = chart.caught_by
    applied = [name for name, finding in chart.findings.items() if finding.verdict != "not applicable"]
    if not caught:
        return TEXT("not caught", title=title, applied=len(applied))
    quickest = min(caught, key=lambda name: CHECKS[name].minutes)
    return TEXT(
        "caught",
        title=title,
        caught=len(caught),
        applied=len(applied),
        quickest=CHECKS[quickest].title,
        sentence=content.Filled(chart.findings[quickest].sentence),
    )


def grid(charts: Mapping[str, Chart], titles: Mapping[str, str], chosen: str) -> go.Figure:
    """Draws (fault, check): whether the check fails. The row of the chosen fault is framed."""
    names = list(charts)[::-1]
    verdicts = [[_verdict(charts[name], check) for check in CHECKS] for name in names]
    row = names.index(chosen)
    trace = go.Heatmap(
        z=np.array([[VALUES[v] for v in line] for line in verdicts], dtype=np.float32),
        x=list(range(len(CHECKS))),
        y=list(range(len(names))),
        zmin=0.0,
        zmax=1.0,
        colorscale=SCALE,
        showscale=False,
        xgap=2,
        ygap=2,
        customdata=[[name] * len(CHECKS) for name in names],
        text=[
            [
                TEXT("hover", title=titles[name], check=check.title, verdict=verdict)
                for check, verdict in zip(CHECKS.values(), line, strict=True)
            ]
            for name, line in zip(names, verdicts, strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    frame = {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": row - 0.5,
        "y1": row + 0.5,
        "line": {"color": colour("residual"), "width": 2},
    }
    columns = _every(list(CHECKS), [check.title for check in CHECKS.values()]) | {"side": "top"}
    rows = _every(names, [titles[name] for name in names])
    small = {"tickfont": {"size": NARROW}}
    narrow = {  # a column is as wide as a letter is high: its name stands upright
        "margin": {"l": 184, "r": 4, "t": 112, "b": 8},
        "xaxis": columns | small | {"tickangle": -90},
        "yaxis": rows | small | {"ticktext": [_short(titles[name]) for name in names]},
    }
    return go.figure(
        [trace],
        margin={"l": 264, "r": 104, "t": 116, "b": 8},  # slanted names reach beyond the last column
        xaxis=columns | {"tickangle": -45},
        yaxis=rows,
        shapes=[frame],
        showlegend=False,
        meta={"narrow": narrow},
    )


def _verdict(chart: Chart, check: str) -> str:
    finding = chart.findings.get(check)
    return "not applicable" if finding is None else finding.verdict


def _every(names: Sequence[str], written: Sequence[str]) -> dict[str, Any]:
    """An axis that names every row or column, and keeps its room."""
    return go.ticks(
        list(range(len(names))), list(written), tickfont={"size": 11}, automargin=False, fixedrange=True
    )


def _short(title: str) -> str:
    """A title that leaves room for the grid; the list above it has it whole."""
    return title if len(title) <= SHORT else f"{title[: SHORT - 1].rstrip()}…"


VIEW = View(
    "doctor",
    TEXT,
    draw,
    code=(examine, sees_the_future, gradients_by_block, relative_difference),
    brings_text=True,
    takes=(HAS_CHECKS,),
)
