"""The view "Why decoders": the reasons in a table, each with what of it can be counted or measured here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.experiments.why_decoders import Reasons, reasons
from engine.ledger.model_choices import Size, three
from pages.models.families import words_why as words
from ui import explain, widgets

SIZE = Size(12, 768, 12)
KEPT = 16  # texts of other lengths that are remembered


def draw_why() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        tokens = widgets.slide("Sequence length T", 16, 256, 64, "why_tokens", step=16, width=300)
        percent = widgets.slide("Encoder masking (%)", 5, 50, 15, "why_hidden", step=5, width=300)
    found = _measured(tokens, percent / 100)
    with st.container(key="whole_words"):
        st.table(
            pd.DataFrame(words.table(found), index=list(words.REASONS.values())),
            border="horizontal",
        )
    explain.answer(words.won(tokens, percent, found))
    explain.by_hand(lambda: st.markdown(words.by_hand(found.forms)))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def _measured(tokens: int, rate: float) -> Reasons:
    return reasons(tokens, rate, three(SIZE))
