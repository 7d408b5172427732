"""The view "Cost": a fault and its healthy twin side by side, with what both write."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.errors import CheckpointError
from engine.experiments.bug_races import (
    CORPUS,
    Bug,
    compare_twins,
    shipped,
    specs,
)
from engine.lab.faults import FAULTS, Fault
from engine.service.state import RunView
from pages.lab.faults import guesses, words
from pages.lab.faults.patterns import draw_patterns
from ui import memo, session, widgets
from ui.guess import Guess, ask
from ui.page_frame import Words
from ui.race import show_race

FIRST = "no_mask"
HEIGHT = 262  # of the chart, pixels
TEXT = 100  # of what one of the two writes
CHOSEN = "fault"


def draw_cost() -> None:
    fault = choose()
    bug, corpus = _shipped(fault.name), _corpus()
    text = corpus.text[: fault.characters] if fault.characters else None
    stored = bug.read(text) if bug else None

    def say(views: Sequence[RunView]) -> str:
        repeats = stored.repeats_of(views) if stored else ()
        return words.answer(compare_twins(views, corpus.text, repeats))

    vocab_size = bug.race.runs[0].spec.model.vocab_size if bug else _vocab_size(text or corpus.text)
    show_race(
        f"fault_{fault.name}",
        fault.title,
        specs(fault, vocab_size, text),
        say=say,
        stored=stored,
        height=HEIGHT,
        beside=partial(_beside, corpus.text),
        more=partial(_more, fault, bug),
    )
    names = list(FAULTS)
    after = FAULTS[names[(names.index(fault.name) + 1) % len(names)]]
    ask("mistake", _guess, after, corpus.text)


def _guess(fault: Fault, text: str) -> Guess | None:
    """About another mistake, of which the curves are stored."""
    bug = _shipped(fault.name)
    return (
        None
        if bug is None
        else guesses.next_mistake(fault, compare_twins(bug.race.runs, text, bug.race.repeats))
    )


def choose() -> Fault:
    """Draws the choice of a fault, with the lines that make it."""
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="center")
    titles = {name: fault.title for name, fault in FAULTS.items()}
    name = widgets.select(
        "Bug", titles, CHOSEN, first=FIRST, kind="list", container=left, hint=words.ELSEWHERE
    )
    right.code(FAULTS[name].diff.text, language="diff", wrap_lines=True)
    return FAULTS[name]


def fault_words() -> Words:
    """Returns the words of the fault that is shown."""
    return words.explained(FAULTS.get(st.session_state.get(CHOSEN, FIRST), FAULTS[FIRST]))


def _corpus() -> Corpus:
    """Tiny Shakespeare; where it is not here and cannot be fetched, the text that every Python carries."""
    return session.corpus(CORPUS if corpora.shakespeare_path() else "python")


def _vocab_size(text: str) -> int:
    return corpora.from_text(text).vocab_size


@memo.loaded()
def _shipped(name: str) -> Bug | None:
    """None where it did not come with the app, or was made of other settings."""
    try:
        return shipped(name)
    except CheckpointError:
        return None


def _beside(text: str, views: Sequence[RunView]) -> None:
    """Draws what both write, one under the other."""
    if len(views) < 2:
        return
    both = compare_twins(views, text)
    for side, broken in ((both.healthy, False), (both.broken, True)):
        st.markdown(words.written(side, broken))
        st.code(words.shown(side.text), language=None, wrap_lines=True, height=TEXT)


def _more(fault: Fault, bug: Bug | None, views: Sequence[RunView]) -> None:
    st.caption(f"{words.where(fault)} {words.recipe(fault)}")
    draw_patterns(views, bug)
