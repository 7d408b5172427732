"""The view of patching: where a model keeps what an answer hangs on."""

from __future__ import annotations

import streamlit as st

from ui.subject import Subject


def draw_patching(subject: Subject) -> None:
    st.info(f"{subject.title}: this experiment is being built.")
