"""The view "Race": rungs side by side, or models that differ in one thing; raced on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CorpusError
from engine.experiments.lab_races import RUNGS, question_specs, rung_specs
from engine.experiments.ladder_gains import Finish, finish
from engine.experiments.race_table import Unit, standings
from engine.experiments.stored_races import Stored
from engine.presets.ladder import FIRST_FOUR, LADDER, LONG_TRAINING, RACE_TRAINING
from engine.presets.races import QUESTIONS
from engine.service.state import RunView
from pages.lab.ladder import words
from ui import session, widgets
from ui.race import show_race, stored_race
from ui.run_text import counting
from ui.text.markdown import safe

STEPS = (150, RACE_TRAINING.steps, LONG_TRAINING.steps)
SECONDS = (5, 15)  # of computing, each
KEY, TYPED = "ladder_question", "ladder_typed"
MOST = 8
WIDE, NARROW = 500, 170  # pixels of the lists
HEIGHT, LOWER = 350, 300  # pixels of the chart; where rungs are chosen above it


def draw_race() -> None:
    """Draws a list of questions; the race that answers it, with rungs, text and budget where rungs race."""
    line = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    titles = {RUNGS: words.ASK_RUNGS} | {name: question.asks for name, question in QUESTIONS.items()}
    name = widgets.select(words.QUESTION, titles, KEY, kind="list", width=WIDE, container=line)
    if name == RUNGS:
        _rungs(line)
        return
    question, unit, race = QUESTIONS[name], _unit(name), stored_race(name)

    def say(views: Sequence[RunView]) -> str:
        return words.compared(name, _finish(views, race, unit, counting(unit=unit)))

    show_race(f"question_{name}", question.title, question_specs(name), say=say, stored=race, height=HEIGHT)


def _finish(
    views: Sequence[RunView], race: Stored | None, unit: Unit, lines: Mapping[str, float]
) -> Finish | None:
    """The order of a race, with the other seeds of those runs that are stored."""
    return finish(standings(views), unit, lines, standings(race.repeats_of(views) if race else ()))


def _unit(name: str) -> Unit:
    """Nats of different tokens say nothing between them."""
    return "bits" if len({c.train.tokenizer for c in QUESTIONS[name].contestants}) > 1 else "nats"


def _rungs(line: st.delta_generator.DeltaGenerator) -> None:
    budgets = {f"{n}": words.steps(n) for n in STEPS} | {f"{n}s": words.seconds(n) for n in SECONDS}
    budget = widgets.select(
        words.BUDGET,
        budgets,
        "ladder_steps",
        first=f"{RACE_TRAINING.steps}",
        kind="list",
        hint=words.BUDGET_HINT,
        width=NARROW,
        container=line,
    )
    text = widgets.select(words.TEXT, words.TEXTS, "ladder_text", kind="list", width=NARROW, container=line)
    names = widgets.select_several(
        words.RUNGS,
        {name: rung.title for name, rung in LADDER.items()},
        "ladder_rungs",
        first=FIRST_FOUR,
        kind="list",
        max_selections=MOST,
        label_visibility="collapsed",
    )
    if len(names) < 2:
        st.info(words.FEW)
        names = list(FIRST_FOUR)
    text, typed, corpus = _corpus(text)
    lines = {} if corpus is None else corpus.baselines
    by_clock = budget.endswith("s")
    specs = rung_specs(
        names,
        text,
        typed,
        65 if corpus is None else corpus.vocab_size,
        steps=0 if by_clock else int(budget),
        seconds=float(budget[:-1]) if by_clock else 0.0,
    )

    race = stored_race(RUNGS)

    def say(views: Sequence[RunView]) -> str:
        return words.race_answer(_finish(views, race, "nats", lines))

    show_race(RUNGS, "The ladder", specs, say=say, stored=race, height=LOWER)


def _corpus(text: str) -> tuple[str, str | None, Corpus | None]:
    """(its name, what was typed, the corpus); no corpus, with a sentence, where it cannot be had."""
    typed = None
    if text == "text":
        limit = session.profile().max_text
        typed = widgets.box(words.YOURS, limit, TYPED, height=80, placeholder=words.YOURS_HINT) or None
        if typed is None:
            st.info(words.TOO_SHORT)
            text = "shakespeare"
    try:
        return text, typed, corpora.from_text(typed) if typed else session.corpus(text)
    except CorpusError as error:
        st.warning(safe(str(error)))
        return text, None, None
