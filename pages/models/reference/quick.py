"""The quick reference: each part's role, formula, output shape and parameters, and today's choice."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.ledger.shares import Line, quick_reference
from engine.measure.shapes.formulas import formulas
from engine.presets import PRESETS
from pages.models.reference import words
from ui import explain, widgets
from ui.search.route import QUESTIONS

ONE_STACK = {
    name: preset for name, preset in PRESETS.items() if not (preset.trainable or preset.model.pooler)
}


def draw_quick() -> None:
    """Draws seven rows for a published model."""
    titles = {name: preset.title.removesuffix(" (published)") for name, preset in ONE_STACK.items()}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("Model", width="content")
        name = widgets.select(
            "Model", titles, "reference_sizes", first="gpt2", kind="list", hidden=True, width=260
        )
        # Streamlit's own: another page of this server, beside the app's.
        st.link_button(words.PRINTED, f".{QUESTIONS}", icon=":material/print:")
    c = ONE_STACK[name].model.resolved()
    rows = quick_reference(c)
    explain.answer(words.most_of(titles[name], rows))
    with st.container(key="whole_words"), st.container(key="reference_parts"):
        st.table(
            pd.DataFrame(
                {
                    "role": [words.ROLES[row.part][0] for row in rows],
                    "formula": [words.FORMULAS[row.part] for row in rows],
                    "parameters": [f"{row.parameters:,}" if row.parameters else "none" for row in rows],
                    "output": [_shape(row) for row in rows],
                    "today": [words.ROLES[row.part][1] for row in rows],
                },
                index=[words.PARTS[row.part] for row in rows],
            ),
            border="horizontal",
        )
    st.caption(words.SIZES)
    explain.by_hand(_exact, formulas(c))


def _shape(row: Line) -> str:
    return "(" + ", ".join(f"{size:,}" for size in row.shape) + ")"


def _exact(by_activation: dict[str, tuple[str, str]]) -> None:
    """The formula of every activation of this very model."""
    st.table(
        pd.DataFrame(
            {"formula": [f"${latex}$" for latex, _ in by_activation.values()]},
            index=[f"`{name}`" for name in by_activation],
        )
    )
