"""The step of a run's training that is looked at. This module owns it: the scrubber and links only ask.

    step = current(model, steps)   # what to draw; it is then in the URL, too
    move(model, step)              # what the scrubber was moved to

NEWEST is the newest snapshot, whatever its step: it is followed while the run trains, and is not in the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from ui import widgets

NEWEST = -1
IN_URL = "step"
HELD = "step_shown"  # in the session
REMEMBERED = 8  # steps in the URL that were ours, or are done with: a message with one may still be under way


@dataclass(frozen=True)
class Shown:
    """The step that is shown. `url_steps`: the steps named in the URL so far, by us or by a link, latest
    last; `moved`: the scrubber changed it in this run, which is newer than any URL.
    """

    model: str
    step: int
    url_steps: tuple[str, ...] = ()
    moved: bool = False


def current(model: str, steps: Sequence[int]) -> int:
    """Returns the snapshot of `model` to show, one of `steps` or NEWEST: where the scrubber was moved to,
    else what a new link names, else where this model was left, else the newest; where somebody went back to
    an address, what that names, else the newest. A step that is not kept gives way to the nearest one.

    `steps` is empty for a model without a training: then NEWEST, and what is held is left alone.
    """
    if not steps:
        st.query_params.pop(IN_URL, None)
        return NEWEST
    held = st.session_state.get(HELD, Shown(model, NEWEST))
    step = held.step if held.model == model else NEWEST
    named = st.query_params.get(IN_URL)
    number = widgets.number_of(named)
    if widgets.went_back():
        step = NEWEST if number is None else number
    elif named not in held.url_steps and not (held.moved and held.model == model) and number is not None:
        step = number
    step = nearest_step(step, steps)
    written = None if step == NEWEST else str(step)
    st.session_state[HELD] = Shown(model, step, _with(held.url_steps, named, written))
    if written is None:
        st.query_params.pop(IN_URL, None)
    elif named != written:
        st.query_params[IN_URL] = written
    return step


def move(model: str, step: int) -> None:
    """Shows another step of `model`, from the next run of the script on."""
    held = st.session_state.get(HELD, Shown(model, NEWEST))
    st.session_state[HELD] = Shown(model, step, held.url_steps, moved=True)


def nearest_step(step: int, steps: Sequence[int]) -> int:
    """Returns the one of `steps` nearest to `step`, the earlier of two; NEWEST stays.

    >>> [nearest_step(step, (0, 10, 20)) for step in (14, 15, 99, NEWEST)]
    [10, 10, 20, -1]
    """
    return step if step == NEWEST or step in steps else min(steps, key=lambda other: abs(other - step))


def _with(earlier: tuple[str, ...], *new: str | None) -> tuple[str, ...]:
    texts = tuple(text for text in new if text is not None)
    return (*(text for text in earlier if text not in texts), *dict.fromkeys(texts))[-REMEMBERED:]
