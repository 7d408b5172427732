"""Text of an experiment: the bar's, or ours where that is too short to measure on."""

from __future__ import annotations

import streamlit as st

from pages.inside.circuits.prompts import PARIS_AND_ROME
from ui import content
from ui.fit_text import read
from ui.model_bar import Subject

TEXT = content.beside(__file__)
SHORT = 16  # tokens: a shorter text has no second half to speak of, and its loss is an accident


def long_text(subject: Subject, most: int, fallback: str = PARIS_AND_ROME) -> tuple[int, ...]:
    """Returns the first `most` tokens of the bar's text; of our `fallback` where that is too short, which is
    said.
    """
    if len(subject.ids) >= SHORT:
        return subject.ids[:most]
    ids, _, _ = read(fallback, subject.tokenizer, most)
    if len(ids) >= SHORT:
        st.caption(TEXT("read instead", count=len(subject.ids), instead=len(ids)))
    return ids
