"""The part "A whole text" of FLOPs: the T² of attention in bytes and in seconds of this server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from pages.models.parameters.choice import Choice
from pages.models.parameters.length import LENGTHS, chosen_length, length_axis
from studies.costs.whole_text import ROUNDS, Timing, pattern_bytes, timed_lengths, timing
from ui import content, explain
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.players.plot import plot
from ui.text.numbers import duration, gigabytes

TEXT = content.beside(__file__)


def draw(choice: Choice, tokens: int) -> None:
    """Draws bytes and seconds of one layer's attention over the length of the text."""
    ledger = choice.ledger
    c = ledger.config
    lengths = timed_lengths(c, LENGTHS)
    key = ("attention of a text", c, ledger.parts.name)
    timed = measured(key, partial(timing, c, lengths, ledger.parts), TEXT["measuring"])
    if timed is None:
        return
    if not timed.seconds:
        st.info(TEXT["nothing compared"])
        return
    taken = pattern_bytes(c, tokens)
    plot(
        costs_by_length(np.array(LENGTHS), [pattern_bytes(c, n) for n in LENGTHS], timed, tokens),
        key="parameters_whole_text",
        alt=TEXT("alt", bytes=taken, tokens=tokens, longest=timed.longest),
        height=350,
        data=pd.DataFrame(
            {
                "tokens": LENGTHS,
                "bytes": [pattern_bytes(c, n) for n in LENGTHS],
                "seconds": [timed.at(n) if n >= min(lengths) else np.nan for n in LENGTHS],
                "measured": [n in timed.seconds for n in LENGTHS],
            }
        ),
        name="attention-of-a-text",
    )
    explain.answer(answer(choice, timed, tokens))
    explain.measure_it(_how, timed)


def answer(choice: Choice, timed: Timing, tokens: int) -> str:
    """Says what one layer's attention takes in a text of so many tokens."""
    c = choice.config
    taken = pattern_bytes(c, tokens)
    if 0 < c.widest_window < tokens:
        everything = pattern_bytes(replace(c, window=0), tokens)
        return TEXT("answer with a window", tokens=tokens, window=c.window, bytes=taken, all=everything)
    if tokens < min(timed.seconds):
        return TEXT("answer, short", tokens=tokens, bytes=taken)
    where = TEXT("extrapolated" if tokens > timed.longest else "here", longest=timed.longest)
    return TEXT(
        "answer", tokens=tokens, bytes=taken, seconds=spent(timed.at(tokens)), where=content.Filled(where)
    )


def _how(timed: Timing) -> None:
    longest = timed.longest
    st.markdown(TEXT("measured", rounds=ROUNDS, half=longest // 2, longest=longest, doubled=timed.doubled))


def spent(seconds: float) -> str:
    """Returns measured seconds in words, those below 1 in milliseconds.

    >>> spent(0.0042), spent(0.1874), spent(4.2)
    ('4.2 ms', '190 ms', '4 s')
    """
    return f"{float(f'{seconds * 1000:.2g}'):g} ms" if seconds < 1 else duration(seconds)


def costs_by_length(lengths: np.ndarray, sizes: Sequence[int], timed: Timing, at: int) -> go.Figure:
    """Draws bytes of a layer's attention weights (lengths,), and beside them seconds of its products, over
    the length of the text; `at` is the chosen length.
    """
    measured_lengths = list(timed.seconds)
    beyond = [timed.longest, *(int(n) for n in lengths if n > timed.longest)]
    bytes_line = {
        "type": "scatter",
        "mode": "lines",
        "x": lengths,
        "y": sizes,
        "line": {"width": 3, "color": colour("attention")},
        "text": [gigabytes(n) for n in sizes],
        "hovertemplate": TEXT["hover bytes"],
    }
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": measured_lengths,
        "y": [timed.seconds[n] for n in measured_lengths],
        "xaxis": "x2",
        "yaxis": "y2",
        "line": {"width": 3, "color": colour("output")},
        "marker": {"size": 9},
        "text": [spent(timed.seconds[n]) for n in measured_lengths],
        "hovertemplate": TEXT["hover seconds"],
    }
    dashed = points | {
        "mode": "lines",
        "x": beyond,
        "y": [timed.at(n) for n in beyond],
        "line": {"width": 2, "color": colour("output"), "dash": "dot"},
        "text": [spent(timed.at(n)) for n in beyond],
        "hovertemplate": TEXT["hover beyond"],
    }
    rule = chosen_length(at)
    logarithmic = {"type": "log", "tickformat": "~s", "dtick": 2}
    return go.figure(
        [bytes_line, dashed, points],
        margin={"l": 72, "r": 16, "t": 16, "b": 48},
        showlegend=False,
        shapes=[rule, rule | {"xref": "x2", "yref": "y2 domain"}],
        xaxis=length_axis(lengths) | {"domain": [0, 0.44]},
        xaxis2=length_axis(lengths) | {"domain": [0.56, 1], "anchor": "y2"},
        yaxis=logarithmic | {"title": {"text": TEXT["axis bytes"]}},
        yaxis2=logarithmic | {"title": {"text": TEXT["axis seconds"]}, "anchor": "x2"},
    )
