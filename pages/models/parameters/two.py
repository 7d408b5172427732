"""Two models side by side: where each has its parameters, and in which fields they differ."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from engine.ledger.shares import Difference, differences, where
from pages.models.parameters import answers, figures, words
from pages.models.parameters.choice import OTHER, Choice, choose, plain
from pages.models.parameters.where import parts_in_words
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe, whole

SCALES = ("Shares", "Counts")
SECOND = "llama2-7b"


def draw_two(choice: Choice) -> None:
    """Draws a bar for each model, and which is larger; folded, the table of their parts and the fields that
    differ.
    """
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("Compare with", width="content")
        name = choose("Compare with", OTHER, SECOND)
        scale = widgets.select("Scale", SCALES, "parameters_scale", hidden=True)
    try:
        other = plain(name)
    except (GlassformerError, OSError) as error:
        st.error(safe(str(error)))
        return
    models = [(whole(choice.title), choice.ledger), (whole(other.title), other.ledger)]
    titles = [models[0][0], _other_than(models[0][0], models[1][0])]
    pairs = differences(choice.ledger, other.ledger, tuple(figures.NAMES))
    table = pd.DataFrame([_row(name, pair, titles) for name, pair in pairs.items()])
    explain.answer(answers.larger(choice, other, pairs["all"]))
    alt = " ".join(
        f"{title}: {ledger.total:,} parameters, {parts_in_words(ledger)}" for title, ledger in models
    )
    plot(
        figures.comparison(models, shares=scale == "Shares"),
        key="parameters_comparison",
        alt=alt,
        height=330,
        data=table,
        name="comparison",
    )
    explain.measure_it(_tables, table, _fields(choice, other, titles), choice, other)


def _tables(table: pd.DataFrame, fields: pd.DataFrame, choice: Choice, other: Choice) -> None:
    """Part by part, and the fields in which the models differ."""
    st.markdown(words.networks(*(where(each.ledger).network_share for each in (choice, other))))
    numbers = {name: st.column_config.NumberColumn(format="localized") for name in table.columns[1:4]}
    st.dataframe(table, hide_index=True, column_config=numbers)
    if len(fields):
        st.dataframe(fields, hide_index=True, height=35 * len(fields) + 38)
    else:
        st.caption(words.SAME_FIELDS)


def _row(name: str, pair: Difference, titles: list[str]) -> dict[str, object]:
    return {
        "component": figures.NAMES.get(name, name),
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
