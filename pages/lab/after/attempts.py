"""The view of many answers to one question: what a vote and a verifier make of them."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.tasks.attempts import COUNTS, SEEDS, TEMPERATURES, Attempts, measure
from engine.training.post_training.reward import ASKED
from pages.lab.after import figures_attempts as figures
from pages.lab.after import guesses_aloud as guesses
from pages.lab.after import words_attempts as words
from ui import explain, guess, widgets
from ui.background_jobs import measured
from ui.players.plot import plot

TEMPERATURE = "attempts_temperature"  # key
HEIGHT = 360


def draw_attempts(container: DeltaGenerator) -> None:
    """Draws the share of right sums by number of answers, and the votes for one sum. Controls go into the
    `container`.
    """
    with container:
        a, b, _ = st.columns([4, 3, 6], gap="small", vertical_alignment="bottom")
        names = {each: f"{each:g}" for each in TEMPERATURES}
        temperature = widgets.select(
            "Temperature", names, TEMPERATURE, first=1.0, container=a, hint=words.HINT
        )
        chosen = widgets.whole(
            "Sum", 1, ASKED, 5, "attempts_sum", container=b, hint=words.QUESTION_HINT
        )  # the fifth is one where the vote is wrong
    by_temperature = measured(("attempts",), measure, words.DOING, pausable=True)
    if by_temperature is None:
        return
    attempts = by_temperature[temperature]
    other = TEMPERATURES[-1] if temperature == TEMPERATURES[0] else TEMPERATURES[0]
    guess.ask("verified", guesses.verified, attempts, by_temperature[other], TEMPERATURE)
    each = attempts.votes[chosen - 1]
    left, right = st.columns([5, 3], gap="small")
    with left:
        plot(
            figures.shares(attempts),
            key="attempts_shares",
            height=HEIGHT,
            name="attempts",
            data=_table(attempts),
            alt=words.alt(attempts),
        )
    with right:
        plot(
            figures.votes(each),
            key="attempts_votes",
            height=HEIGHT - 40,
            name="votes",
            data=pd.DataFrame(each.answers, columns=["answer", "count"]),
            alt=words.votes_alt(each),
        )
        st.caption(words.votes(each))
    explain.answer(words.answer(attempts))
    explain.measure_it(st.dataframe, _table(attempts))
    explain.by_hand(st.markdown, words.by_hand(each))


def _table(attempts: Attempts) -> pd.DataFrame:
    """Returns the shares, a row for each seed and number of answers."""
    rows = [
        (seed, n, attempts.verifier[i, j], attempts.majority[i, j])
        for i, seed in enumerate(SEEDS)
        for j, n in enumerate(COUNTS)
    ]
    return pd.DataFrame(rows, columns=["seed", "answers", "verifier", "majority"])
