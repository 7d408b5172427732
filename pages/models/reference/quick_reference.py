"""The view "Quick reference": each part's role, formula, output shape and parameters, and today's choice."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from studies.costs.presets import PRESETS
from studies.costs.shares import Line, quick_reference
from studies.shapes.formulas import formulas
from ui import content, explain, widgets
from ui.page_frame import View
from ui.search.route import QUESTIONS

TEXT = content.beside(__file__)
ONE_STACK = {
    name: preset for name, preset in PRESETS.items() if not (preset.trainable or preset.model.pooler)
}


def draw() -> None:
    """Draws seven rows for a published model."""
    titles = {name: preset.title.removesuffix(" (published)") for name, preset in ONE_STACK.items()}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(TEXT["model"], width="content")
        name = widgets.select(
            TEXT["model"], titles, "reference_sizes", first="gpt2", kind="list", hidden=True, width=260
        )
        # Streamlit's own: another page of this server, beside the app's.
        st.link_button(TEXT["printed"], f".{QUESTIONS}", icon=":material/print:")
    c = ONE_STACK[name].model.resolved()
    rows = quick_reference(c)
    _answer(titles[name], rows)
    with st.container(key="whole_words"), st.container(key="reference_parts"):
        st.table(
            pd.DataFrame(
                {
                    TEXT["role"]: [TEXT(f"role {row.part}") for row in rows],
                    TEXT["formula"]: [TEXT(f"formula {row.part}") for row in rows],
                    TEXT["parameters"]: [
                        f"{row.parameters:,}" if row.parameters else TEXT["none"] for row in rows
                    ],
                    TEXT["output"]: [_shape(row) for row in rows],
                    TEXT["today"]: [TEXT(f"today {row.part}") for row in rows],
                },
                index=[TEXT(f"part {row.part}") for row in rows],
            ),
            border="horizontal",
        )
    st.caption(TEXT["sizes"])
    explain.by_hand(_exact, formulas(c))


def _answer(title: str, rows: tuple[Line, ...]) -> None:
    """Says which part holds most parameters."""
    largest, total = max(rows, key=lambda row: row.parameters), sum(row.parameters for row in rows)
    part = content.Filled(TEXT(f"part {largest.part}").lower())
    explain.answer(TEXT("largest", title=title, total=total, part=part, share=largest.parameters / total))


def _shape(row: Line) -> str:
    return "(" + ", ".join(f"{size:,}" for size in row.shape) + ")"


def _exact(by_activation: dict[str, tuple[str, str]]) -> None:
    """The formula of every activation of this very model."""
    st.table(
        pd.DataFrame(
            {TEXT["formula"]: [f"${latex}$" for latex, _ in by_activation.values()]},
            index=[f"`{name}`" for name in by_activation],
        )
    )


VIEW = View("quick", TEXT, draw, code=(quick_reference,), needs_model=False)
