"""One measure of every head, as the view Heads shows it: the grid coloured by it, all numbers in a table."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.measure.attention.head_patterns import largest, mean_head
from engine.measure.attention.heads import HeadNumbers
from engine.measure.slices import extent
from pages.inside.attention import words
from pages.inside.attention.figures import head_heatmap, head_table
from pages.inside.attention.habits import REPEATED, can_repeat
from ui import explain
from ui.model_bar import Subject
from ui.players.plot import plot

HEIGHT = 400


def draw_measure(subject: Subject, numbers: HeadNumbers, field: str) -> None:
    """Draws a cell for each head, coloured by one of words.MEASURES."""
    arrays = {name: values for name in words.MEASURES if (values := number_of(numbers, name)) is not None}
    measure = words.MEASURES[field]
    st.caption(measure.meaning)
    if field not in arrays:
        st.info(words.not_measured(field, can_repeat(subject)))
    elif not np.isfinite(arrays[field]).any():
        st.info(words.ONE_TOKEN)
    else:
        values = arrays[field]
        plot(
            head_heatmap(values, f"{measure.title.lower()} ({measure.unit})", top=measure.top),
            key="attention_numbers",
            alt=words.measure_alt(measure, *extent(values)),
            height=HEIGHT,
            data=head_table(arrays),
            name="heads",
        )
        explain.answer(words.most_of(measure, largest(values), mean_head(values)))
    explain.measure_it(_more, subject, numbers, arrays)


def number_of(numbers: HeadNumbers, field: str) -> np.ndarray | None:
    """Returns (layer, head); None where it was not measured."""
    return numbers.by_target.get(field, getattr(numbers, field, None))


def _more(subject: Subject, numbers: HeadNumbers, arrays: dict[str, np.ndarray]) -> None:
    """Draws the notable heads, and all numbers as a table."""
    st.markdown(words.STAND_OUT)
    st.markdown("\n".join(f"- {line}" for line in words.standing_out(numbers, subject.config.causal)))
    table = head_table(arrays).rename(columns=words.COLUMNS)
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(table), 460),
        column_config={c: st.column_config.NumberColumn(format="%.3f") for c in table.columns[2:]},
        key="attention_table",
    )
    st.caption(words.measured_how(REPEATED))
