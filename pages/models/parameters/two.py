"""Two models side by side: where each has its parameters, and in which fields they differ."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from engine.ledger.shares import Pair, compared, where
from pages.models.parameters import figures
from pages.models.parameters.choice import OTHER, Choice, choose, plain, say_changes
from pages.models.parameters.where import parts_in_words
from ui import explain, widgets
from ui.players.plot import plot
from ui.text.markdown import safe, whole

SCALES = ("Shares", "Counts")
SECOND = "llama2-7b"


def draw_two(choice: Choice) -> None:
    """A bar for each model, the table of their parts, and the fields that differ."""
    say_changes(choice)
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        name = choose("Compare with", OTHER, SECOND)
    with right:
        scale = widgets.one_of("Scale", SCALES, "parameters_scale", hidden=True)
    try:
        other = plain(name)
    except (GlassformerError, OSError) as error:
        st.error(safe(str(error)))
        return
    models = [(whole(choice.title), choice.ledger), (whole(other.title), other.ledger)]
    titles = [models[0][0], _other_than(models[0][0], models[1][0])]
    pairs = compared(choice.ledger, other.ledger, tuple(figures.NAMES))
    table = pd.DataFrame([_row(name, pair, titles) for name, pair in pairs.items()])
    alt = " ".join(
        f"{title}: {ledger.total:,} parameters, {parts_in_words(ledger)}" for title, ledger in models
    )
    plot(
        figures.comparison(models, shares=scale == "Shares"),
        key="parameters_comparison",
        alt=alt,
        height=300,
        data=table,
        name="comparison",
    )
    numbers = {name: st.column_config.NumberColumn(format="localized") for name in table.columns[1:4]}
    st.dataframe(table, hide_index=True, column_config=numbers)
    fields = _fields(choice, other, titles)
    if len(fields):
        st.dataframe(fields, hide_index=True, height=35 * len(fields) + 38)
    else:
        st.caption("All fields are the same.")
    _takeaway(choice, other, pairs["all"])


def _takeaway(choice: Choice, other: Choice, totals: Pair) -> None:
    said = "Both have as many parameters."
    if totals.difference:
        bigger = choice if totals.difference < 0 else other
        said = (
            f"**{safe(whole(bigger.title))}** has {abs(totals.difference):,} parameters more:"
            f" {totals.times:,.3g} times as many."
        )
    one, two = (where(each.ledger).network_share for each in (choice, other))
    explain.takeaway(
        f"{said} In the feed-forward networks of their blocks: {one:.1%} and {two:.1%} of"
        " the blocks' parameters."
    )


def _row(name: str, pair: Pair, titles: list[str]) -> dict[str, object]:
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
    one, two = choice.config.to_dict(), other.config.to_dict()
    rows = [
        {"field": field, names[0]: f"{one[field]}", names[1]: f"{two[field]}"}
        for field in one
        if one[field] != two[field]
    ]
    return pd.DataFrame(rows)
