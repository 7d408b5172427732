"""The view "Replication": a lecture's experiment and ours, rung by rung."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.experiments.lab_races import RUNGS
from engine.experiments.ladder import (
    Experiment,
    Overfit,
    of_checkpoint,
    shipped,
)
from engine.presets.ladder import LADDER, LECTURE
from pages.lab.ladder import words_lecture as words
from pages.lab.ladder.figures_lecture import SHADES, beside, over_steps, readings
from ui import explain, widgets
from ui.players.plot import plot
from ui.race import stored_race

HEIGHTS = {"ends": 420, "curves": 350}
OURS = "shakespeare-modern"


def draw_lecture() -> None:
    """Draws what was published beside what was measured here; or the curves."""
    experiment = shipped()
    shown = widgets.select(words.SHOWN, words.SHOWS, "ladder_lecture", hidden=True)
    figure = beside(experiment) if shown == "ends" else over_steps(experiment, _chosen(experiment))
    plot(
        figure,
        key=f"ladder_lecture_{shown}",
        height=HEIGHTS[shown],
        alt=words.alt(experiment),
        data=pd.DataFrame(words.table(experiment)),
        name="lecture",
    )
    overfit = of_checkpoint(OURS, experiment.letters)
    explain.answer(words.answer(experiment, overfit))
    explain.measure_it(_measured, experiment, overfit)


def _chosen(experiment: Experiment) -> list[str]:
    """Returns the rungs whose curves are drawn: chosen ones, at first those of an exact published loss."""
    titles = {name: LECTURE[name].rung.title for name in LECTURE if name in experiment.rungs}
    published = [name for name in titles if LECTURE[name].loss is not None and not LECTURE[name].about]
    most = len(SHADES)
    chosen = widgets.select_several(
        words.CURVES, titles, "ladder_lecture_rungs", first=published, kind="list", max_selections=most
    )
    return (chosen or published)[:most]


def _measured(experiment: Experiment, overfit: Overfit) -> None:
    """The table, what each wrote, and a training that goes on learning what it has read."""
    st.dataframe(pd.DataFrame(words.table(experiment)), hide_index=True)
    st.caption(words.made(experiment))
    for text in (words.reasons(experiment), words.depth(experiment), words.figure_7_1(experiment)):
        if text:
            st.markdown(text)
    plot(readings(overfit), key="ladder_readings", height=280, alt=words.readings(overfit), name="readings")
    st.caption(words.readings(overfit))
    wrote = {name: each for name, each in experiment.rungs.items() if each.text}
    if wrote:
        titles = {name: LECTURE[name].rung.title for name in wrote}
        name = widgets.select(words.WROTE, titles, "ladder_wrote", kind="list")
        left, right = st.columns(2, gap="medium")
        left.caption(words.wrote(wrote[name]))
        left.code(wrote[name].text, language=None, wrap_lines=True)
        _short_ladder(right, name)


def _short_ladder(container: Any, name: str) -> None:
    """Draws what the same rung wrote in the short ladder, where it is one of its rungs."""
    race = stored_race(RUNGS)
    for view in race.runs if race else ():
        if name in LADDER and view.name == LADDER[name].title and view.history.samples:
            sample, look = view.history.samples[-1], view.history.evaluations[-1]
            container.caption(words.wrote_small(sample.step, look.validation_loss, len(sample.text)))
            container.code(sample.text, language=None, wrap_lines=True)
