"""Two models side by side: where each has its parameters, and in which fields they differ."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.errors import GlassformerError
from pages.models.parameters import figures
from pages.models.parameters.choice import OTHER, Choice, choose, plain
from pages.models.parameters.where import parts_in_words
from ui import explain
from ui.players.plot import plot
from ui.text.markdown import safe, whole

SCALES = ("Shares", "Counts")
SECOND = "llama2-7b"


def compare_view(choice: Choice) -> None:
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        name = choose("Compare with", OTHER, SECOND)
    with right:
        scale = st.segmented_control(
            "Scale",
            SCALES,
            default=SCALES[0],
            required=True,
            key="parameters_scale",
            bind="query-params",
            label_visibility="collapsed",
        )
    try:
        other = plain(name)
    except (GlassformerError, OSError) as error:
        st.error(safe(str(error)))
        return
    models = [(whole(choice.title), choice.ledger), (whole(other.title), other.ledger)]
    parts = [name for name in figures.NAMES if any(ledger.components.get(name) for _, ledger in models)]
    rows = [_row(name, *(ledger.components.get(name, 0) for _, ledger in models)) for name in parts]
    table = pd.DataFrame([*rows, _row("all", *(ledger.total for _, ledger in models))])
    table = table.rename(columns={"first": models[0][0], "second": _other_than(models[0][0], models[1][0])})
    alt = " ".join(
        f"{title}: {ledger.total:,} parameters, {parts_in_words(ledger)}" for title, ledger in models
    )
    plot(
        figures.comparison(models, shares=scale != SCALES[1]),
        key="parameters_comparison",
        alt=alt,
        height=300,
        data=table,
        name="comparison",
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="localized") for name in table.columns[1:4]
        },
    )
    fields = _fields(choice, other, list(table.columns[1:3]))
    if len(fields):
        st.dataframe(fields, hide_index=True, height=35 * len(fields) + 38)
    else:
        st.caption("All fields are the same.")
    first, second = (ledger.total for _, ledger in models)
    large, small = max(first, second), max(min(first, second), 1)
    bigger = models[0][0] if first > second else models[1][0]
    same = "Both have as many parameters."
    if first != second:
        same = (
            f"**{safe(bigger)}** has {large - small:,} parameters more: {large / small:,.3g} times as many."
        )
    explain.takeaway(
        f"{same} In the feed-forward networks of their blocks: {_network(choice)} and {_network(other)} of"
        " the blocks' parameters."
    )


def _row(name: str, first: int, second: int) -> dict[str, object]:
    ratio = f"{second / first:,.3g}×" if first else "–"
    return {
        "component": figures.NAMES.get(name, name),
        "first": first,
        "second": second,
        "difference": second - first,
        "ratio": ratio,
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


def _network(choice: Choice) -> str:
    return f"{choice.ledger.components.get('feedforward', 0) / max(choice.ledger.in_blocks, 1):.1%}"
