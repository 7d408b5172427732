"""The view "Bigrams": what a bigram model learned, and what it cannot learn."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from studies.experiments.bigram_expectations import DOUBLE, SEEING, SINGLE, TABLE, Expectations, shipped
from studies.tasks.rungs import LADDER
from studies.tasks.text_statistics import counted, expected
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour
from ui.fit_text import show_token
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
HEIGHT = 400
TOP = 5
ALIKE = 0.05  # a rung that tells the two apart by less than this hardly tells them apart
COLUMNS = 3
GAP = 0.05  # between panels, of the width
SHADES = {"text": "quiet", TABLE: "training", "other": "validation"}


def draw() -> None:
    """Draws six small bar charts: after four letters, and after two pairs of letters."""
    expectations = shipped()
    titles = {name: LADDER[name].title for name in SEEING}
    other = widgets.select(TEXT["beside"], titles, "ladder_seeing", first=SEEING[-1])
    shares = [
        TEXT(
            "alt share",
            context=context,
            text=expectations.of("text", context, "e"),
            bigram=expectations.of(TABLE, context, "e"),
            share=expectations.of(other, context, "e"),
            rung=LADDER[other].title,
        )
        for context in DOUBLE
    ]
    plot(
        panels(expectations, other),
        key="ladder_pairs",
        height=HEIGHT,
        alt=TEXT("alt", shares=", ".join(shares)),
        data=_shares(expectations, other),
        name="pairs",
    )
    explain.answer(_answer(expectations, other))
    explain.measure_it(_measured, expectations)


def _shares(expectations: Expectations, other: str) -> pd.DataFrame:
    rows = [
        {"after": context, "letter": letter}
        | {source: expectations.of(source, context, letter) for source in ("text", TABLE, other)}
        for context in (*SINGLE, *DOUBLE)
        for letter in expectations.top(context, TOP)
    ]
    return pd.DataFrame(rows)


def _answer(expectations: Expectations, other: str) -> str:
    """Compares the text, the bigram model, and the rung beside it, after th and after sh."""
    first, second = DOUBLE
    hardly, title = expectations.apart(other) < ALIKE, LADDER[other].title
    return TEXT(
        "hardly told apart" if hardly else "told apart",
        first=first,
        second=second,
        bigram=expectations.of(TABLE, first, "e"),
        text_first=expectations.of("text", first, "e"),
        text_second=expectations.of("text", second, "e"),
        rung=title if hardly else title.lower(),
        rung_first=expectations.of(other, first, "e"),
        rung_second=expectations.of(other, second, "e"),
    )


def _measured(expectations: Expectations) -> None:
    """How differently each goes on after the two pairs, and its loss."""
    sources = (TABLE, *SEEING)
    st.table(
        pd.DataFrame(
            {
                TEXT["apart"]: [f"{expectations.apart(s):.3f}" for s in ("text", *sources)],
                TEXT["loss"]: ["", *(f"{expectations.losses[s]:.3f}" for s in sources)],
            },
            index=[TEXT["the text"], *(LADDER[s].title for s in sources)],
        ),
        border="horizontal",
    )
    st.caption(TEXT["measured"])
    st.caption(TEXT("made", made="; ".join(dict.fromkeys(expectations.made.values()))))


def panels(expectations: Expectations, other: str) -> go.Figure:
    """Draws two rows of three. The first four compare text and table; in the last two the other rung joins
    them.
    """
    layout = base_layout(
        margin={"l": 44, "r": 12, "t": 66, "b": 28},
        barmode="group",
        bargap=0.25,
        legend={"y": 1.09},
    )
    traces = []
    width, height = (1 - GAP * (COLUMNS - 1)) / COLUMNS, 0.38
    annotations = []
    for n, each in enumerate((*SINGLE, *DOUBLE)):
        row, column = divmod(n, COLUMNS)
        axis = "" if n == 0 else str(n + 1)
        left = column * (width + GAP)
        base = 0.0 if row else 1 - height
        letters = expectations.top(each, TOP)
        layout[f"xaxis{axis}"] = {"domain": [left, left + width], "anchor": f"y{axis}", "type": "category"}
        layout[f"yaxis{axis}"] = {
            "domain": [base, base + height],
            "anchor": f"x{axis}",
            "range": [0, 0.55],
            "tickformat": ".0%",
            "nticks": 4,
            "showticklabels": column == 0,
        }
        after = TEXT("after", context="".join(show_token(c) for c in each))
        annotations.append(go.heading(after, left + width / 2, base + height, xanchor="center"))
        sources = ("text", TABLE, other) if each in DOUBLE else ("text", TABLE)
        for source in sources:
            label = TEXT["the text"] if source == "text" else LADDER[source].title
            traces.append(
                go.Bar(
                    x=[show_token(c) for c in letters],
                    y=[expectations.of(source, each, c) for c in letters],
                    name=label,
                    legendgroup=source,
                    showlegend=each == (SINGLE[0] if source in ("text", TABLE) else DOUBLE[0]),
                    marker={"color": colour(SHADES.get(source, SHADES["other"]))},
                    xaxis=f"x{axis}",
                    yaxis=f"y{axis}",
                    hovertemplate=TEXT("hover", source=label),
                )
            )
    layout["annotations"] = annotations
    return go.Figure({"data": traces, "layout": layout})


VIEW = View("pairs", TEXT, draw, code=(counted, expected), needs_model=False)
