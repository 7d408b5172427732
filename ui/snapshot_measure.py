"""A number of every snapshot of a run, measured a little at a time while the page is looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from engine.errors import GlassformerError
from engine.model import Transformer
from ui import live
from ui.model_bar import Subject
from ui.models import model_after
from ui.timeline import timeline_of

MOST_STEPS = 32  # snapshots that are measured
SLICE_SECONDS = 0.12  # of measuring in one run of the script: a control waits that long at most


@st.cache_resource(max_entries=16, show_spinner=False)
def _results(what: str, model: str) -> dict[int, Any]:
    """Returns the measurements of a run so far, by step; None for a snapshot that is gone."""
    return {}


def some(steps: Sequence[int]) -> list[int]:
    """Returns at most MOST_STEPS + 1 of the snapshots, every 2^k-th: those of a shorter run stay among them,
    so that nothing is measured twice.

    >>> len(some(range(200))), some([0, 10, 20])
    (26, [0, 10, 20])
    """
    stride = 1
    while -(-len(steps) // stride) > MOST_STEPS:
        stride *= 2
    return sorted({*steps[::stride], steps[-1]})


def draw_over_snapshots(
    what: str,
    model: str,
    steps: Sequence[int],
    measure: Callable[[Transformer], Any],
    draw: Callable[[dict[int, Any]], None],
) -> None:
    """Measures snapshots of a run and draws what is there so far (step -> what `measure` gave), again and
    again until all is measured.

    `what` names the measure among others, `model` the run as the subject's bar does. Streamlit does not dim
    what a fragment draws by itself.
    """
    wanted, kept = some(steps), _results(what, model)

    def go_on() -> None:
        missing = [step for step in wanted if step not in kept]
        _advance(model, missing, kept, measure)
        found = {step: kept[step] for step in wanted if kept.get(step) is not None}
        if found:
            draw(found)
        left = sum(step not in kept for step in wanted)
        if left:
            live.again("snapshot_measure", 0.4)
            st.caption(f"{left} more {'snapshot is' if left == 1 else 'snapshots are'} still to be measured.")
        elif missing:
            st.rerun()  # once, as a whole: no timer is needed any more

    if all(step in kept for step in wanted):
        go_on()
    else:
        st.fragment(go_on)()


def _advance(
    model: str, missing: Sequence[int], kept: dict[int, Any], measure: Callable[[Transformer], Any]
) -> None:
    """Measures until a slice of time is spent, one snapshot at least."""
    end = time.monotonic() + SLICE_SECONDS
    for step in missing:
        try:
            kept[step] = measure(model_after(model, step).model)
        except GlassformerError:
            kept[step] = None  # thinned out or removed meanwhile
        if time.monotonic() > end:
            return


def steps_of(subject: Subject) -> tuple[int, ...]:
    """Returns the steps of the training that is looked at; none for a model without one."""
    timeline = timeline_of(subject.key[0])
    return timeline.steps if timeline else ()
