"""The view "Race": any rungs side by side, live."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.data import corpora
from engine.errors import CorpusError
from engine.experiments.lab_races import RUNGS, rung_specs
from engine.experiments.ladder_gains import finish
from engine.experiments.race_table import standings
from engine.measure.tasks.text_statistics import baselines
from engine.presets.ladder import FIRST_FOUR, LADDER, RACE_TRAINING
from engine.service.state import RunView
from pages.lab.ladder import words
from pages.lab.ladder.shared import stored
from ui import session, widgets
from ui.race import show_race
from ui.text.markdown import safe

STEPS = (150, 300, 600, 1200)
SECONDS = (5, 15)  # of computing, each
KEY, TYPED = "ladder", "ladder_typed"
MOST = 8


def draw_race() -> None:
    """Draws the rungs that are raced, the text, the steps; the race."""
    titles = {name: rung.title for name, rung in LADDER.items()}
    which, rest = st.columns([5, 3], gap="medium", vertical_alignment="bottom")
    with which:
        names = widgets.select_several(
            words.RUNGS, titles, "ladder_rungs", first=FIRST_FOUR, kind="list", max_selections=MOST
        )
    with rest, st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        budgets = {f"{n}": f"{n:,} steps" for n in STEPS} | {f"{n}s": words.seconds(n) for n in SECONDS}
        budget = widgets.select(
            words.BUDGET,
            budgets,
            "ladder_steps",
            first=f"{RACE_TRAINING.steps}",
            kind="list",
            hint=words.BUDGET_HINT,
        )
        text = widgets.select(words.TEXT, words.TEXTS, "ladder_text", kind="list")
    typed = _typed() if text == "text" else None
    if text == "text" and not typed:
        st.info(words.TOO_SHORT)
        text, typed = "shakespeare", None
    if len(names) < 2:
        st.info(words.FEW)
        names = list(FIRST_FOUR)
    try:
        corpus = corpora.from_text(typed) if typed else session.corpus(text)
        size = corpus.vocab_size
        lines = dict(baselines(corpus))
    except CorpusError as error:
        st.warning(safe(str(error)))
        size, lines = 65, {}
        typed = None
    by_clock = budget.endswith("s")
    steps, seconds = (0, float(budget[:-1])) if by_clock else (int(budget), 0.0)
    specs = rung_specs(names, text, typed, size, steps=steps, seconds=seconds)

    def say(views: Sequence[RunView]) -> str:
        return words.race_answer(finish(standings(views), "nats", lines))

    show_race(KEY, "The ladder", specs, say=say, stored=stored(RUNGS), height=330)


def _typed() -> str | None:
    limit = session.profile().max_text
    return widgets.box(words.YOURS, limit, TYPED, height=80, placeholder=words.YOURS_HINT) or None
