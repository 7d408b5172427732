"""The session's running trainings, small, on every page: looking at them keeps them alive."""

from __future__ import annotations

import streamlit as st

from engine.service.state import RunView
from ui import session, site
from ui.text.markdown import safe
from ui.text.numbers import duration

POLL_SECONDS = 0.5


PAGE = "pages/start/train/page.py"
RACE = "race"  # in the link: the race that a page shows
_PLACES = "race_places"


def progress_words(view: RunView) -> str:
    """Returns where a run is, in one line."""
    words = [f"step {view.step:,} of {view.total_steps:,}", f"{duration_exact(view.seconds)} of training"]
    if view.tokens_per_second:
        words.append(f"{view.tokens_per_second:,.0f} tokens/s")
    if view.seconds_left is not None:
        left = duration(view.seconds_left)
        words.append(f"{left} left" if left.startswith("under") else f"about {left} left")
    return " · ".join(words)


def sidebar_status() -> None:
    """Draws each active run of this browser, small, with a link back; a race as one. Looking at it keeps the
    run alive.

    The run that the page itself shows (Train has it in its URL) is left out, and so is the other of its pair;
    the race that the page shows, likewise.
    """
    if _elsewhere():
        with st.sidebar:
            st.fragment(_status, run_every=1.0)()


def remember_place(race: str, url: str) -> None:
    """Notes on which page a race was started, and with what in its address: the way back to it."""
    entry = site.entry_of(url)
    if entry is not None:
        link = {name: value for name, value in st.query_params.items()} | {RACE: race}
        st.session_state.setdefault(_PLACES, {})[race] = (entry.path, link)


def _elsewhere() -> list[list[RunView]]:
    """Active runs that the page does not show, the runs of a race together."""
    shown, race = st.query_params.get("run", ""), st.query_params.get(RACE, "")
    found: dict[str, list[RunView]] = {}
    for view in session.manager().runs(session.owner()):
        if view.active and shown not in (view.id, view.beside) and (not race or view.race != race):
            found.setdefault(view.race or view.id, []).append(view)
    return list(found.values())


def _status() -> None:
    parties = _elsewhere()
    if not parties:
        st.rerun()
    for views in parties:
        session.manager().watch(views[0].id)
        with st.container(border=True, gap="xsmall"):
            _one(views[0]) if views[0].race is None else _race(views)


def _one(view: RunView) -> None:
    _, _, word = STATUS[view.status]
    loss = f"loss {float(view.history.losses[-1]):.2f}" if len(view.history.losses) else word
    st.markdown(f"**{safe(view.name)}** · {word}")
    st.progress(view.share, text=f"step {view.step:,} of {view.total_steps:,} · {loss}")
    st.page_link(PAGE, label="Back to this run", icon=":material/arrow_back:", query_params={"run": view.id})


def _race(views: list[RunView]) -> None:
    """The active runs of a race. One that was started elsewhere leads to its first run's page."""
    first = views[0]
    word = STATUS[first.status][2]
    st.markdown(f"**{safe(first.race_title or first.name)}** · {word}")
    share = sum(view.share for view in views) / len(views)
    st.progress(share, text=f"{len(views)} trainings in turns · {share:.0%}")
    other = (PAGE, {"run": first.id})
    path, link = st.session_state.get(_PLACES, {}).get(first.race, other)
    st.page_link(path, label="Back to this race", icon=":material/arrow_back:", query_params=link)


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
    """Returns elapsed time: tenths below a minute and a half.

    >>> duration_exact(4.43), duration_exact(125)
    ('4.4 s', '2:05 min')
    """
    return f"{seconds:.1f} s" if seconds < 90 else f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"
