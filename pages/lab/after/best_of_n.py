"""Best of n, a part of the view "Chain of thought": what a vote and a verifier make of many answers."""

from __future__ import annotations

from functools import partial
from math import comb
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.slices import median_curve, seed_median
from pages.lab.after.answer_bars import answer_bars
from studies.after.reward import ASKED, CONFIG, HALF, draw_answers
from studies.guesses import after
from studies.tasks.attempts import (
    COUNTS,
    MOST,
    SEEDS,
    TEMPERATURES,
    Attempts,
    Votes,
    majority_at,
    measure,
    pass_at,
)
from ui import content, explain, guess, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
TEMPERATURE = "attempts_temperature"  # key
HEIGHT = 360
CLEAR = 0.05  # a share that is higher by less is not said to be higher
BARS = 12  # answers that are drawn, at most
NAMED = 8  # of them in the description of the picture
K = COUNTS[3]  # answers, in the arithmetic


def draw(container: DeltaGenerator) -> None:
    """Draws the share of right sums by number of answers, and the votes for one sum. Controls go into the
    `container`.
    """
    with container:
        temperature, chosen = _controls()
    by_temperature = measured(("attempts",), partial(measure), TEXT["measuring"], pausable=True)
    if by_temperature is None:
        return
    attempts = by_temperature[temperature]
    other = TEMPERATURES[-1] if temperature == TEMPERATURES[0] else TEMPERATURES[0]
    guess.ask("verified", _guess, attempts, by_temperature[other])
    each, table = attempts.votes[chosen - 1], _table(attempts)
    left, right = st.columns([5, 3], gap="small")
    with left:
        plot(
            shares(attempts),
            key="attempts_shares",
            height=HEIGHT,
            name="attempts",
            data=table,
            alt=TEXT("alt", most=MOST, ends=_ends(attempts)),
        )
    with right:
        counted = [TEXT("alt vote", answer=answer, count=count) for answer, count in each.answers[:NAMED]]
        plot(
            vote_bars(each),
            key="attempts_votes",
            height=HEIGHT - 40,
            name="votes",
            data=pd.DataFrame(each.answers, columns=["answer", "count"]),
            alt=TEXT("alt votes", sum=each.question + each.right, counted=", ".join(counted)),
        )
        st.caption(votes(each))
    explain.answer(answer(attempts))
    explain.measure_it(st.dataframe, table)
    right_ones = dict(each.answers).get(each.right, 0)
    explain.by_hand(
        st.markdown,
        TEXT(
            "by hand",
            right=right_ones,
            most=MOST,
            k=K,
            estimate=1 - comb(MOST - right_ones, K) / comb(MOST, K),
            groups=MOST // K,
        ),
    )


def _controls() -> tuple[float, int]:
    """Returns (the temperature, the number of the sum whose votes are drawn)."""
    a, b, _ = st.columns([4, 3, 6], gap="small", vertical_alignment="bottom")
    names, hint = {each: f"{each:g}" for each in TEMPERATURES}, TEXT["temperature hint"]
    temperature = widgets.select(TEXT["temperature"], names, TEMPERATURE, first=1.0, container=a, hint=hint)
    # The vote on the fifth is wrong.
    hint = TEXT("sum hint", asked=ASKED)
    return temperature, widgets.whole(TEXT["sum"], 1, ASKED, 5, "attempts_sum", container=b, hint=hint)


def _table(attempts: Attempts) -> pd.DataFrame:
    """Returns the shares, a row for each seed and number of answers."""
    rows = [
        (seed, n, attempts.verifier[i, j], attempts.majority[i, j])
        for i, seed in enumerate(SEEDS)
        for j, n in enumerate(COUNTS)
    ]
    return pd.DataFrame(rows, columns=["seed", "answers", "verifier", "majority"])


def answer(attempts: Attempts) -> str:
    """Says what most answers gain over a single one, by medians of the seeds."""
    single, vote, verified = (
        seed_median(values.tolist())
        for values in (attempts.single, attempts.majority[:, -1], attempts.verifier[:, -1])
    )
    alike = (attempts.majority[:, -1] < attempts.single + CLEAR).any()
    return TEXT(
        "vote hardly gains" if alike else "vote gains less",
        most=MOST,
        verified=verified,
        single=single,
        seeds=len(SEEDS),
        vote=vote,
    )


def votes(each: Votes) -> str:
    """Says what the votes for a sum come to."""
    top, count = each.answers[0]
    right = dict(each.answers).get(each.right, 0)
    case = "right" if top == each.right else "wrong" if right else "without"
    return TEXT(f"votes {case}", count=count, most=MOST, right=right)


def _ends(attempts: Attempts) -> str:
    """Returns what the curves end at, by seed."""
    ends = zip(attempts.single, attempts.majority[:, -1], attempts.verifier[:, -1], strict=True)
    return "; ".join(TEXT("alt end", single=s, vote=m, verified=v) for s, m, v in ends)


def _guess(now: Attempts, then: Attempts) -> Guess | None:
    """Makes a guess about a verifier's share at the temperature of `then`; a choice sets it."""
    truth = after.verified(now, then)
    if truth is None:
        return None
    n = truth.numbers
    return Guess.of(
        TEXT,
        truth,
        TEXT(
            "guess lower" if then.temperature < now.temperature else "guess raise",
            temperature=then.temperature,
            single_after=n["single_after"],
            single=n["single"],
            most=MOST,
        ),
        TEXT(
            "outcome",
            most=MOST,
            before=n["before"],
            now=now.temperature,
            after=n["after"],
            then=then.temperature,
            seeds=len(SEEDS),
        ),
        {TEMPERATURE: then.temperature},
    )


def shares(attempts: Attempts) -> go.Figure:
    """Draws shares of right sums by number of answers: seeds as thin lines, their median as a thick line."""
    single = np.repeat(attempts.single[:, None], len(COUNTS), 1)
    traces = []
    for values, name, shade, dash in (
        (attempts.verifier, TEXT["verifier"], "run0", "solid"),
        (attempts.majority, TEXT["majority"], "validation", "solid"),
        (single, TEXT["single"], "quiet", "dot"),
    ):
        thin: dict[str, Any] = {"width": 1, "opacity": 0.5, "showlegend": False}
        for y, look in [*((each, thin) for each in values), (median_curve(values), {"width": 3})]:
            traces.append(
                go.line(list(COUNTS), y, shade, name, TEXT["shares hover"], dash=dash, points=4, **look)
            )
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis(
            TEXT["answers axis"], type="log", tickvals=list(COUNTS), ticktext=[str(n) for n in COUNTS]
        ),
        yaxis=go.axis(TEXT["share axis"], range=[0, 1.04], tickformat=".0%", showgrid=True),
    )


def vote_bars(each: Votes) -> go.Figure:
    """Draws how often each answer was given, the right one in another colour."""
    shown = each.answers[:BARS]
    return answer_bars(
        [text for text, _ in shown],
        [count for _, count in shown],
        [str(count) for _, count in shown],
        [text == each.right for text, _ in shown],
        title=TEXT("bars title", question=each.question, right=each.right),
        hover=TEXT["votes hover"],
        left=52,
        xaxis=go.axis(TEXT["votes axis"]),
    )


PART = View(
    "attempts",
    TEXT,
    draw,
    (pass_at, majority_at, draw_answers),
    fields={"half": HALF, "most": MOST, "blocks": CONFIG.n_layers, "width": CONFIG.d_model},
)
