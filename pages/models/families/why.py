"""The reasons why decoders won, in a table, each with what of it can be counted or measured here."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.experiments.why_decoders import Reasons, reasons
from engine.ledger.model_choices import Size, three
from pages.models.families import words_why as words
from ui import explain, memo, widgets

SIZE = Size(12, 768, 12)
KEPT = 16  # texts of other lengths that are remembered


def draw_why(line: DeltaGenerator) -> None:
    with line:
        tokens = widgets.slide("Sequence length T", 16, 256, 64, "why_tokens", step=16, width=300)
        percent = widgets.slide("Encoder masking (%)", 5, 50, 15, "why_hidden", step=5, width=300)
    comparison = _measured(tokens, percent / 100)
    with st.container(key="whole_words"):
        st.table(
            pd.DataFrame(words.table(comparison), index=list(words.REASONS.values())),
            border="horizontal",
        )
    explain.answer(words.won(tokens, percent, comparison))
    explain.by_hand(lambda: st.markdown(words.by_hand(comparison.forms)))


@memo.measured(copied=True)
def _measured(tokens: int, rate: float) -> Reasons:
    return reasons(tokens, rate, three(SIZE))
