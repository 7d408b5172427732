"""The session's running trainings, small, on every page: looking at them keeps them alive."""

from __future__ import annotations

import streamlit as st

from engine.service.state import RunView
from ui import state
from ui.text.markdown import safe
from ui.text.numbers import duration

POLL_SECONDS = 0.5


PAGE = "pages/start/train/page.py"


def progress_words(view: RunView) -> str:
    """Where a run is, in one line."""
    words = [f"step {view.step:,} of {view.total_steps:,}", f"{duration_exact(view.seconds)} of training"]
    if view.tokens_per_second:
        words.append(f"{view.tokens_per_second:,.0f} tokens/s")
    if view.seconds_left is not None:
        left = duration(view.seconds_left)
        words.append(f"{left} left" if left.startswith("under") else f"about {left} left")
    return " · ".join(words)


def sidebar_status() -> None:
    """Each active run of this browser, small, with a link back. Looking at it keeps the run alive.

    The run that the page itself shows (Train has it in its URL) is left out, and so is the other of its pair.
    """
    if _elsewhere():
        with st.sidebar:
            st.fragment(_status, run_every=1.0)()


def _elsewhere() -> list[RunView]:
    return [
        view
        for view in state.manager().runs(state.owner())
        if view.active and st.query_params.get("run", "") not in (view.id, view.beside)
    ]


def _status() -> None:
    manager, views = state.manager(), _elsewhere()
    if not views:
        st.rerun()
    for view in views:
        manager.watch(view.id)
        _, _, word = STATUS[view.status]
        loss = f"loss {float(view.history.losses[-1]):.2f}" if len(view.history.losses) else word
        with st.container(border=True, gap="xsmall"):
            st.markdown(f"**{safe(view.name)}** · {word}")
            st.progress(
                view.share,
                text=f"step {view.step:,} of {view.total_steps:,} · {loss}",
            )
            st.page_link(
                PAGE, label="Back to this run", icon=":material/arrow_back:", query_params={"run": view.id}
            )


STATUS = {
    "queued": ("hourglass_empty", "gray", "waiting"),
    "starting": ("hourglass_top", "gray", "starting"),
    "running": ("play_arrow", "green", "running"),
    "paused": ("pause", "orange", "paused"),
    "finished": ("check", "blue", "finished"),
    "stopped": ("stop", "gray", "stopped"),
    "failed": ("error", "red", "failed"),
}


def duration_exact(seconds: float) -> str:
    """Elapsed time: tenths below a minute and a half.

    >>> duration_exact(4.43), duration_exact(125)
    ('4.4 s', '2:05 min')
    """
    return f"{seconds:.1f} s" if seconds < 90 else f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"
