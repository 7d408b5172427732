"""What an experiment needs of a model, and the sentence where it is not there."""

from __future__ import annotations

import streamlit as st

from ui.subject import Subject


def writes(subject: Subject) -> bool:
    """Whether it predicts what comes next; says so where it does not."""
    if subject.config.causal:
        return True
    st.info(
        "This model fills gaps: it reads both ways and does not say what comes next, which is what is"
        " measured here. Choose a model that writes."
    )
    return False


def looks(subject: Subject) -> bool:
    """Whether it has heads that look at other tokens; says so where it has none."""
    if subject.model.parts.mixer(subject.config).present:
        return True
    st.info(
        "This model has no mixer: its tokens never look at each other, so there are no heads to ask. Choose"
        " another model."
    )
    return False
