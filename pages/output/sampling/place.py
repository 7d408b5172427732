"""Where the views of Sampling look: the position whose logits are drawn from, and the seed."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.config import SampleConfig
from engine.errors import ShapeError
from engine.sample import Stage, stages
from ui import widgets
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

LIKELIEST = 15  # tokens that are drawn and listed
MAX_SEED = 2**31 - 1
SEED = "Left: the token after which the next one is drawn. The same seed draws the same token."


def place(subject: Subject) -> tuple[int, int]:
    """(position whose logits are looked at, seed): one line."""
    left, right = st.columns([5, 1], gap="medium", vertical_alignment="center")
    with left:
        position = token_strip(
            subject.labels,
            key="sampling_position",
            chosen=len(subject.ids) - 1,
            label="The position whose logits are sampled",
        )
    seed = widgets.whole("Seed", 0, MAX_SEED, 0, "sampling_seed", place=right, hint=SEED)
    return position, seed


def staged(subject: Subject, position: int, config: SampleConfig, logits: np.ndarray) -> tuple[Stage, ...]:
    """The stages of the logits (vocab,) at a position; kept for the next time. Where no logit is a number to
    draw from, a sentence says so and the view ends.
    """
    try:
        return _stages(subject.key, subject.ids, position, config, logits)
    except ShapeError as error:
        sentence = safe(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        st.warning(
            f"{sentence} The weights have grown beyond all numbers, as they do when a training diverges: look"
            " at an earlier step, or at another model.",
            icon=":material/warning:",
        )
        st.stop()
        raise


@st.cache_resource(max_entries=128, show_spinner=False)
def _stages(
    key: tuple[str, int], ids: tuple[int, ...], position: int, config: SampleConfig, _logits: np.ndarray
) -> tuple[Stage, ...]:
    return stages(_logits, config, ids[: position + 1])
