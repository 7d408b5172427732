"""The training-time scrubber: drag it, and every picture shows the model as it was at that step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.service.history import History
from ui.players.component import mounted

NEWEST = -1
SMOOTH = 5  # batches whose mean loss is drawn behind the slider


def asked(key: str) -> int | None:
    """The step that the scrubber with this key was last moved to (NEWEST: follow), before it is drawn; None
    when it was not touched.
    """
    value = st.session_state.get(key)
    step = value.get("step") if value is not None and hasattr(value, "get") else None
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def scrubber(steps: Sequence[int], history: History, shown: int, *, run: str, key: str) -> None:
    """Draws it. `steps` are the snapshots, `shown` the one that the page has just drawn, or NEWEST.

    It waits for the page to have drawn one step before it asks for another, so that a fast drag never starves
    the pictures.
    """
    mounted("scrubber")(
        key=key,
        data={"steps": list(steps), "losses": losses_at(steps, history), "shown": shown, "run": run},
        on_step_change=lambda: None,
    )


def losses_at(steps: Sequence[int], history: History) -> list[float | None]:
    """Training loss around each snapshot: the mean of up to SMOOTH measured batches that end with it (nats
    per token); None where there is none.

    A batch's loss is measured before its update, so the first one tells of the model before the first step.
    """
    found: list[float | None] = []
    for step in steps:
        end = int(np.searchsorted(history.steps, max(step, 1), side="right"))
        some = history.losses[max(0, end - SMOOTH) : end] if step else history.losses[:1]
        found.append(float(some.mean()) if len(some) and np.isfinite(some).all() else None)
    return found
