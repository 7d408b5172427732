"""The training-time scrubber: drag it, and every picture shows the model as it was at that step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import streamlit as st

from engine.records import Evaluation
from ui.plot import ASSETS

NEWEST = -1


@cache
def _mount() -> Callable[..., Any]:
    return st.components.v2.component(
        "glassformer_scrubber",
        css=(ASSETS / "scrubber.css").read_text("utf-8"),
        js=(ASSETS / "scrubber.js").read_text("utf-8"),
        isolate_styles=False,
    )


def asked(key: str) -> int | None:
    """The step that the scrubber with this key was last moved to (NEWEST: follow), before it is drawn; None when it was not touched."""
    value = st.session_state.get(key)
    step = value.get("step") if value is not None and hasattr(value, "get") else None
    return step if isinstance(step, int) and not isinstance(step, bool) else None


def scrubber(steps: Sequence[int], evaluations: Sequence[Evaluation], shown: int, *, run: str, key: str) -> None:
    """Draws it. `steps` are the snapshots, `shown` the one that the page is about to draw, or NEWEST.

    It waits for the page to have drawn one step before it asks for another, so that a fast drag never starves the pictures.
    """
    _mount()(key=key, data={"steps": list(steps), "losses": losses_at(steps, evaluations), "shown": shown, "run": run}, on_step_change=lambda: None)


def losses_at(steps: Sequence[int], evaluations: Sequence[Evaluation]) -> list[float | None]:
    """Validation loss at each snapshot, in a straight line between the measured ones; None past the last.

    >>> losses_at([0, 5, 10, 20], [Evaluation(0, 4.0, 4.0, 0.0, False), Evaluation(10, 2.0, 2.0, 1.0, False)])
    [4.0, 3.0, 2.0, None]
    """
    known = [(e.step, e.validation_loss) for e in evaluations if np.isfinite(e.validation_loss)]
    if not known:
        return [None] * len(steps)
    x, y = zip(*known, strict=True)
    return [float(np.interp(step, x, y)) if x[0] <= step <= x[-1] else None for step in steps]
