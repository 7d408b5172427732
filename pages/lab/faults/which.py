"""The view "Which check finds which bug?": the table as it was measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from engine.lab.doctor.checks import CHECKS
from engine.lab.doctor.table import (
    HEALTHY,
    Chart,
    shipped,
    subject_of,
)
from pages.lab.faults import words_doctor as words
from pages.lab.faults.doctor_figures import grid
from ui import explain, widgets
from ui.players.plot import plot

KEY = "which_fault"


def draw_which() -> None:
    """Draws a grid of faults and checks; a click on a row, or the list, chooses one."""
    charts = shipped()
    titles = {name: subject_of(name).title for name in charts}
    picked = widgets.picked("which_grid", "clicked")
    if picked in titles and st.session_state.get("which_clicked") != picked:
        st.session_state["which_clicked"] = st.session_state[KEY] = picked
    first = next(name for name in charts if name != HEALTHY)
    name = widgets.select(words.FAULT, titles, KEY, first=first, kind="list", hidden=True)
    plot(
        grid(charts, titles, CHECKS, name),
        key="which_grid",
        height=412,
        name="checks",
        data={"fault": list(charts)}
        | {check: [_verdict(chart, check) for chart in charts.values()] for check in CHECKS},
        alt=words.which_alt(charts, CHECKS),
    )
    explain.answer(words.caught_by_checks(titles[name], charts[name], CHECKS))
    explain.measure_it(_more, charts, name)


def _verdict(chart: Chart, check: str) -> str:
    found = chart.findings.get(check)
    return "not applicable" if found is None else found.verdict


def _more(charts: Mapping[str, Chart], name: str) -> None:
    """All that was found of one model, and how the grid was made."""
    rows = [
        {
            "": words.MARKS[f.verdict],
            "check": CHECKS[f.check].title,
            "found": f.sentence,
            "limit": CHECKS[f.check].reason,
        }
        for f in charts[name].findings.values()
        if f.check in CHECKS
    ]
    st.table(pd.DataFrame(rows).set_index(""), border="horizontal")
    st.caption(words.MADE)
