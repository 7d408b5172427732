"""Changes to the Transformer since 2017: six choices, model by model."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.presets import ENCODER_DECODERS, PRESETS
from engine.presets.variations import ASPECTS, ORIGINAL, unchanged_aspects, variation
from pages.models.reference import words
from ui import explain, widgets

ALL = {name: preset for name, preset in (PRESETS | ENCODER_DECODERS).items() if not preset.trainable}
SHOWN = ("gpt2", "llama2-7b")
OTHER = "llama2-70b"


def draw_variations() -> None:
    """Draws the original, GPT-2, LLaMA, and one of choice, side by side."""
    titles = {name: preset.title.removesuffix(" (published)") for name, preset in ALL.items()}
    options = {name: title for name, title in titles.items() if name not in SHOWN}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("Beside them", width="content")
        name = widgets.select(
            "Beside them", options, "reference_other", first=OTHER, kind="list", hidden=True, width=260
        )
    explain.answer(words.changed(titles[name], unchanged_aspects(ALL[name].model)))
    models = {"The original, 2017": ORIGINAL} | {titles[each]: ALL[each].model for each in (*SHOWN, name)}
    found = {title: variation(model) for title, model in models.items()}
    first = variation(ORIGINAL)
    st.table(
        pd.DataFrame(
            {
                title: [
                    words.choice(aspect, values[aspect], values[aspect] == first[aspect])
                    for aspect in ASPECTS
                ]
                for title, values in found.items()
            },
            index=[words.ASPECTS[aspect] for aspect in ASPECTS],
        ),
        border="horizontal",
    )
    explain.measure_it(_reasons)


def _reasons() -> None:
    """Why each was changed, and the papers."""
    st.table(
        pd.DataFrame(
            {
                "why it was changed": [words.REASONS[aspect][0] for aspect in ASPECTS],
                "paper": [words.REASONS[aspect][1] for aspect in ASPECTS],
            },
            index=[words.ASPECTS[aspect] for aspect in ASPECTS],
        )
    )
    st.markdown(words.READING)
