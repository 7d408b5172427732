"""Requirements of an experiment, and the sentence where a model does not meet them."""

from __future__ import annotations

import streamlit as st

from pages.inside.circuits.words import TEXT
from ui.fit_text import read
from ui.model_bar import Subject

SHORT = 16  # tokens: a shorter text has no second half to speak of, and its loss is an accident


def writes(subject: Subject) -> bool:
    """Returns True if the model predicts what comes next; says so where it does not."""
    if subject.config.causal:
        return True
    st.info(
        "This model fills gaps: it reads both ways and does not say what comes next, which is what is"
        " measured here. Choose a model that writes."
    )
    return False


def looks(subject: Subject) -> bool:
    """Returns True if the model has heads that attend to other tokens; says so where it has none."""
    if subject.model.parts.mixer(subject.config).present:
        return True
    st.info(
        "This model has no mixer: its tokens never look at each other, so there are no heads to ask. Choose"
        " another model."
    )
    return False


def long_text(subject: Subject, most: int, fallback: str = TEXT) -> tuple[int, ...]:
    """Returns the first `most` tokens of the bar's text; of our `fallback` where that is too short, which is
    said.
    """
    if len(subject.ids) >= SHORT:
        return subject.ids[:most]
    ids, _, _ = read(fallback, subject.tokenizer, most)
    if len(ids) >= SHORT:
        st.caption(
            f":material/info: The text above has {len(subject.ids)} tokens, too few to measure on: one of"
            f" {len(ids)} is read instead, about Paris and Rome."
        )
    return ids
