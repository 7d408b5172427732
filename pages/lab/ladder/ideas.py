"""The view "Rungs": all rungs, what each adds in the configuration and in the code, and what it buys."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import CheckpointError
from engine.experiments.lab_races import RUNGS, SEEDS, rung_losses
from engine.experiments.ladder_gains import idea
from engine.experiments.race_table import standings
from engine.experiments.stored_races import Stored
from engine.measure.slices import seed_median
from engine.measure.tasks.ladder import KINDS, lines
from engine.presets.ladder import LADDER
from pages.lab.ladder import words
from pages.lab.ladder.figures_ideas import rungs
from ui import (
    explain,
    race_words,
    widgets,
)
from ui.layout import link_to
from ui.players.plot import plot
from ui.race import stored_race
from ui.run_text import counting

HEIGHT = 440
FIRST = "positions"


def draw_ideas() -> None:
    """Draws a point for each rung; beside it the difference from the one below."""
    race = stored_race(RUNGS)
    by_seed = _losses()
    medians = {name: seed_median(over) for name, over in by_seed.items()}
    picture, beside = st.columns([3, 2], gap="medium")
    titles = {name: rung.title for name, rung in LADDER.items()}
    with beside:
        name = widgets.select(words.RUNG, titles, "ladder_rung", first=FIRST, kind="list")
        upto = widgets.switch(words.UP_TO, False, "ladder_upto", hint=words.UP_TO_HINT)
        _difference(name)
    drawn = [n for n in by_seed if not upto or list(LADDER).index(n) <= list(LADDER).index(name)]
    with picture:
        if not by_seed:
            st.info(words.NOT_STORED)
        plot(
            rungs(by_seed, name, counting(), drawn),
            key="ladder_ideas",
            height=HEIGHT,
            alt=words.ladder_alt({n: medians[n] for n in drawn}),
            data=pd.DataFrame(
                {
                    "rung": [titles[n] for n in by_seed],
                    "nats": [medians[n] if n in drawn else None for n in by_seed],
                    "lowest": [min(by_seed[n]) if n in drawn else None for n in by_seed],
                    "highest": [max(by_seed[n]) if n in drawn else None for n in by_seed],
                }
            ),
            name="rungs",
        )
    explain.answer(words.idea_answer(idea(name, by_seed), name, medians.get(name)))
    if race:
        explain.measure_it(_table, race)


def _difference(name: str) -> None:
    """Draws what is new: in words, in the configuration, in the code."""
    rung = LADDER[name]
    st.markdown(rung.idea)
    if rung.below is None:
        st.caption(words.LOWEST)
    else:
        below = LADDER[rung.below]
        sentences = [
            words.change(field, getattr(below.model, field), new) for field, new in rung.changes.items()
        ]
        if rung.parts != below.parts:
            sentences.append(words.parts_change(below.parts, rung.parts))
        st.markdown("  \n".join(sentences))
    source = lines(name)
    if source:
        st.code(source, language="python", height=230, wrap_lines=True)
    else:
        st.caption(words.NOTHING_NEW)
    if name in KINDS:
        link_to("attention", words.SELF_TERM, attention_view="scores", attention_scores="self")


def _losses() -> dict[str, tuple[float, ...]]:
    """Returns the losses of the stored race of all rungs, by seed; nothing where it is missing or broken."""
    try:
        return rung_losses()
    except CheckpointError:
        return {}


def _table(race: Stored) -> None:
    """The race's table, and the rungs with other seeds."""
    st.dataframe(pd.DataFrame(race_words.table(standings(race.runs))), hide_index=True)
    st.caption(race_words.made(race.made))
    st.caption(words.SEEDS)
    by_seed = _losses()
    rows = {f"seed {seed}": [over[at] for over in by_seed.values()] for at, seed in enumerate(SEEDS)}
    st.dataframe(pd.DataFrame({"rung": [LADDER[name].title for name in by_seed]} | rows), hide_index=True)
