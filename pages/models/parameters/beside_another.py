"""The part "Beside another model": where each has its parameters, and in which fields they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from pages.models.parameters.choice import OTHER, Choice, choose, plain
from pages.models.parameters.components import NAMES, SHADES, colour_on, shares_in_words
from studies.costs.ledger import COMPONENTS, Ledger, ledger, parameter_rows
from studies.costs.shares import Difference, differences, where
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.markdown import safe, whole
from ui.text.numbers import short

TEXT = content.beside(__file__)
SCALES = ("Shares", "Counts")
SECOND = "llama2-7b"


def draw(choice: Choice) -> None:
    """Draws a bar for each model, and which is larger; folded, the table of their parts and the fields that
    differ.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(TEXT["compare with"], width="content")
        name = choose(TEXT["compare with"], OTHER, SECOND)
        scale = widgets.select(TEXT["scale"], SCALES, "parameters_scale", hidden=True)
    try:
        other = plain(name)
    except (GlassformerError, OSError) as error:
        st.error(safe(str(error)))
        return
    models = [(whole(choice.title), choice.ledger), (whole(other.title), other.ledger)]
    titles = [models[0][0], _other_than(models[0][0], models[1][0])]
    pairs = differences(choice.ledger, other.ledger, tuple(NAMES))
    table = pd.DataFrame([_row(name, pair, titles) for name, pair in pairs.items()])
    explain.answer(_answer(choice, other, pairs["all"]))
    alt = " ".join(
        TEXT("alt model", model=title, total=ledger.total, parts=shares_in_words(ledger))
        for title, ledger in models
    )
    plot(
        comparison(models, shares=scale == "Shares"),
        key="parameters_comparison",
        alt=alt,
        height=330,
        data=table,
        name="comparison",
    )
    explain.measure_it(_tables, table, _fields(choice, other, titles), choice, other)


def _answer(choice: Choice, other: Choice, totals: Difference) -> str:
    """Says which of the two is larger."""
    bigger, smaller = (choice, other) if totals.difference < 0 else (other, choice)
    return TEXT(
        "larger" if totals.difference else "equal",
        model=choice.title,
        other=other.title,
        bigger=bigger.title,
        smaller=smaller.title,
        times=totals.times,
        most=totals.larger,
        least=min(totals.first, totals.second),
    )


def _tables(table: pd.DataFrame, fields: pd.DataFrame, choice: Choice, other: Choice) -> None:
    """Part by part, and the fields in which the models differ."""
    first, second = (where(each.ledger).network_share for each in (choice, other))
    st.markdown(TEXT("networks", first=first, second=second))
    numbers = {name: st.column_config.NumberColumn(format="localized") for name in table.columns[1:4]}
    st.dataframe(table, hide_index=True, column_config=numbers)
    if len(fields):
        st.dataframe(fields, hide_index=True, height=35 * len(fields) + 38)
    else:
        st.caption(TEXT["same fields"])


def _row(name: str, pair: Difference, titles: list[str]) -> dict[str, object]:
    return {
        "component": NAMES.get(name, name),
        titles[0]: pair.first,
        titles[1]: pair.second,
        "difference": pair.difference,
        "ratio": "–" if pair.ratio is None else f"{pair.ratio:,.3g}×",
    }


def _other_than(first: str, second: str) -> str:
    return f"{second} (2)" if first == second else second


def _fields(choice: Choice, other: Choice, names: list[str]) -> pd.DataFrame:
    """The fields in which the two differ, with both values."""
    first, second = choice.config.to_dict(), other.config.to_dict()
    rows = [
        {"field": field, names[0]: f"{first[field]}", names[1]: f"{second[field]}"}
        for field in first
        if first[field] != second[field]
    ]
    return pd.DataFrame(rows)


def comparison(models: Sequence[tuple[str, Ledger]], *, shares: bool) -> go.Figure:
    """Draws parameters by component, one bar a model; as shares of the whole, or as counts."""
    names = [f"{title}<br>{short(ledger.total)}" for title, ledger in models]
    bars: list[dict[str, Any]] = []
    named: set[str] = set()  # norms have one colour, and one name in the legend
    for part in COMPONENTS:
        counts = [ledger.components.get(part, 0) for _, ledger in models]
        if not any(counts):
            continue
        share = [count / max(ledger.total, 1) for count, (_, ledger) in zip(counts, models, strict=True)]
        kind = "norms" if SHADES[part] == "norm" else NAMES[part]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": np.array(share if shares else counts, dtype=np.float64),
                "name": kind,
                "legendgroup": kind,
                "showlegend": kind not in named,
                "marker": {"color": colour(SHADES[part]), "line": {"width": 1, "color": colour("quiet", 40)}},
                "hovertext": [
                    f"{NAMES[part]}: {count:,} ({s:.2%})" for count, s in zip(counts, share, strict=True)
                ],
                "hoverinfo": "text",
                "text": [f"{s:.0%}" if s > 0.06 and shares else "" for s in share],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "insidetextfont": {"color": colour_on(SHADES[part])},
            }
        )
        named.add(kind)
    return go.figure(
        bars,
        barmode="stack",
        bargap=0.35,
        margin={"l": 110, "r": 16, "t": 84, "b": 44},
        legend={"xref": "container", "yref": "container", "yanchor": "top", "entrywidth": 96},
        xaxis={
            "title": {"text": TEXT["axis shares"] if shares else "parameters"},
            "nticks": 6,
            "exponentformat": "B",
        }
        | ({"tickformat": ".0%"} if shares else {}),
        yaxis={"autorange": "reversed", "showgrid": False},
    )


PART = View("two", TEXT, draw, code=(ledger, parameter_rows))
