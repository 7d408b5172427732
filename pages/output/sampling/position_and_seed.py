"""Where the views of Sampling look: the position whose logits are drawn from, and the seed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.config import SampleConfig
from engine.errors import ShapeError
from engine.sample import Stage, stages
from studies.generation.outcome import last_torn
from ui import content, memo, widgets
from ui.fit_text import ENGLISH, EXAMPLES
from ui.model_bar import Subject
from ui.models import kind_of
from ui.players.tokens import token_strip
from ui.text.markdown import sentence

TEXT = content.beside(__file__)
LIKELIEST = 15  # tokens that are drawn and listed
MAX_SEED = 2**31 - 1
POSITION = "sampling_position"
UNCERTAIN = {"letters": EXAMPLES["King Richard"], "words": ENGLISH["A story"]}  # kind of model -> a text
TORN = 4  # tokens between which the model is torn where a reader begins


def position_and_seed(subject: Subject, *, beside: Any = None) -> tuple[int, int]:
    """Returns (position whose logits are looked at, seed): one line, in a column `beside` others. Until
    somebody chooses another, the last place where there is something to draw: after “KING RICHARD II:” a line
    break is certain at any temperature. A model that fills in masked tokens is asked for the last one.
    """
    torn = last_torn(subject.recording().logits, TORN)
    begins = torn if subject.gap is None else subject.gap
    left, right = (beside or st).columns([5, 1], gap="medium", vertical_alignment="center")
    with left:
        position = token_strip(
            subject.labels,
            key=POSITION,
            chosen=begins,
            label=TEXT["position"],
            lines=2,
        )
        token = subject.labels[position]
        if not subject.config.causal:
            gap = position == subject.gap
            st.caption(TEXT("last gap" if gap else "seen token", token=token))
        elif position == begins:
            st.caption(TEXT("after the chosen", token=token, torn=TORN))
        else:
            st.caption(TEXT("after", token=token))
    hint = TEXT["same seed"]
    seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "sampling_seed", container=right, hint=hint)
    return position, seed


def offer_uncertain(subject: Subject, position: int) -> None:
    """Offers another position where the model is sure at this one: the one with the most effective choices;
    where that is this one, an example text that leaves some.
    """
    best = last_torn(subject.recording().logits, float("inf"))
    example = UNCERTAIN.get(kind_of(subject.key[0]))
    if best != position:
        label, go = TEXT("uncertain position", token=subject.labels[best]), partial(_choose, best)
    elif example is not None and example != subject.text:
        label, go = TEXT["uncertain text"], partial(_choose, None, example)
    else:
        return
    # Streamlit's own: it chooses in the row of tokens, or in the box, which holds the value.
    st.button(label, key="sampling_uncertain", icon=":material/casino:", on_click=go)


def _choose(position: int | None, text: str = "") -> None:
    widgets.put_index(POSITION, position)
    if text:
        st.session_state["text"] = text


def staged(subject: Subject, position: int, config: SampleConfig, logits: np.ndarray) -> tuple[Stage, ...]:
    """Returns the stages of the logits (vocab,) at a position; kept for the next time. Where no logit is a
    number to draw from, a sentence says so and the view ends.
    """
    try:
        return _stages(subject.key, subject.ids, position, config, logits)
    except ShapeError as error:
        st.warning(TEXT("no logits", why=content.Filled(sentence(error))), icon=":material/warning:")
        st.stop()
        raise


@memo.measured()
def _stages(
    key: tuple[str, int], ids: tuple[int, ...], position: int, config: SampleConfig, _logits: np.ndarray
) -> tuple[Stage, ...]:
    return stages(_logits, config, ids[: position + 1])
