"""The view "Replication": a lecture's experiment and ours, rung by rung."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import CheckpointError
from engine.experiments.ladder import (
    Experiment,
    Overfit,
    of_checkpoint,
    shipped,
)
from engine.presets.ladder import LECTURE
from pages.lab.ladder import words_lecture as words
from pages.lab.ladder.figures_lecture import beside, over_steps, readings
from ui import explain, widgets
from ui.players.plot import plot

HEIGHT = 420
OURS = "shakespeare-modern"


def draw_lecture() -> None:
    """Draws what was published beside what was measured here; or the curves."""
    try:
        found = shipped()
    except CheckpointError as error:
        st.info(str(error))
        return
    shown = widgets.select(words.SHOWN, words.SHOWS, "ladder_lecture", hidden=True)
    figure = beside(found) if shown == "ends" else over_steps(found)
    plot(
        figure,
        key=f"ladder_lecture_{shown}",
        height=HEIGHT,
        alt=words.alt(found),
        data=pd.DataFrame(words.table(found)),
        name="lecture",
    )
    overfit = of_checkpoint(OURS, found.letters)
    explain.answer(words.answer(found, overfit))
    explain.measure_it(_measured, found, overfit)


def _measured(experiment: Experiment, overfit: Overfit) -> None:
    """The table, what each wrote, and a training that goes on learning what it has read."""
    st.dataframe(pd.DataFrame(words.table(experiment)), hide_index=True)
    st.caption(words.made(experiment))
    plot(readings(overfit), key="ladder_readings", height=280, alt=words.readings(overfit), name="readings")
    st.caption(words.readings(overfit))
    wrote = {name: each for name, each in experiment.rungs.items() if each.text}
    if wrote:
        titles = {name: LECTURE[name].rung.title for name in wrote}
        name = widgets.select(words.WROTE, titles, "ladder_wrote", kind="list")
        st.caption(words.wrote(wrote[name]))
        st.code(wrote[name].text, language=None, wrap_lines=True)
