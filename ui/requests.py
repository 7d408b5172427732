"""Requests of the run manager by a button, and the sentence where it refuses one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import streamlit as st

from engine.errors import GlassformerError
from ui.text.markdown import safe

REFUSED = "refused"
REFUSAL_SECONDS = 10.0  # that a refusal stays: a panel is drawn again several times a second


def carry_out(what: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of a request; None where it is refused, which `refusal` then shows."""
    st.session_state.pop(REFUSED, None)
    try:
        return what(*arguments)
    except GlassformerError as error:
        st.session_state[REFUSED] = (str(error), time.monotonic())
        return None


def refusal() -> None:
    """Shows why the last request was refused, for long enough to be read."""
    sentence, since = st.session_state.get(REFUSED, ("", 0.0))
    if sentence and time.monotonic() - since < REFUSAL_SECONDS:
        st.error(safe(sentence))
