"""The model of the bar in both programs."""

from __future__ import annotations

import streamlit as st

from engine.errors import ConfigError
from engine.lab.reference.compare import Comparison, compare
from pages.models.reference.shared import (
    Wrong,
    choose_mistake,
    draw_activations,
    draw_figure,
    verdict,
    wrong,
)
from ui import explain
from ui.model_bar import Subject
from ui.text.markdown import safe


def draw_model(subject: Subject) -> None:
    said = st.container()
    left, right = st.columns([3, 7], gap="medium")
    with left:
        chosen = wrong(choose_mistake("reference_port"), subject.config)
        if subject.model.parts.name != "healthy":
            st.caption(
                f":material/info: This model itself was made with a mistake, `{subject.model.parts.name}`:"
                " the second program does not have it."
            )
    with right:
        try:
            found = _compared(subject.key, subject.ids, chosen.name, chosen, subject)
        except ConfigError as error:
            st.info(f"The second program cannot run this model: {safe(str(error))}.")
            return
        draw_figure(found, "reference_model", 380)
    with said:
        explain.answer(verdict(found, chosen))
    explain.measure_it(draw_activations, found)


@st.cache_resource(max_entries=32, show_spinner="Running both …")
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], mistake: str, _chosen: Wrong, _subject: Subject
) -> Comparison:
    return compare(_subject.model, _subject.recording(), _chosen.choices)
