"""The session's running trainings, small, on every page: looking at them keeps them alive."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from runs.state import RunView
from ui import live, session, site, widgets
from ui.text.markdown import safe
from ui.text.numbers import time_left

PAGE = "pages/start/train/page.py"
RACE = "race"  # in the link: the race that a page shows
_PLACES = "race_places"


def progress_words(view: RunView) -> str:
    """Returns where a run is, in one line."""
    words = [f"step {view.step:,} of {view.total_steps:,}", f"{duration_exact(view.seconds)} of training"]
    if view.tokens_per_second:
        words.append(f"{view.tokens_per_second:,.0f} tokens/s")
    if view.seconds_left is not None:
        words.append(time_left(view.seconds_left))
    return " · ".join(words)


def sidebar_status() -> None:
    """Draws each active run of this browser, small, with a link back; a race as one. Looking at it keeps the
    run alive.

    The run that the page itself shows (Train has it in its URL) is left out, and so is the other of its pair;
    the race that the page shows, likewise.
    """
    for views in _elsewhere():
        with st.container(border=True, gap="xsmall", key=f"card_{views[0].id}"):
            _one(views[0]) if views[0].race is None else _race(views)


def remember_page(race: str, url: str) -> None:
    """Notes on which page a race was started, and with what in its address: the way back to it."""
    entry = site.entry_of(url)
    if entry is not None:
        link = {name: value for name, value in st.query_params.items()} | {RACE: race}
        st.session_state.setdefault(_PLACES, {})[race] = (entry.path, link)


def _elsewhere() -> list[list[RunView]]:
    """Active runs that the page does not show, the runs of a race together."""
    shown, race = widgets.read_url("run"), widgets.read_url(RACE)
    groups: dict[str, list[RunView]] = {}
    for view in session.manager().runs(session.owner()):
        if view.active and shown not in (view.id, view.beside) and (not race or view.race != race):
            groups.setdefault(view.race or view.id, []).append(view)
    return list(groups.values())


def _one(view: RunView) -> None:
    def say(views: list[RunView]) -> str:
        now = views[0]
        loss = f"loss {float(now.history.losses[-1]):.2f}" if len(now.history.losses) else _word(now)
        return f"step {now.step:,} of {now.total_steps:,} · {loss}"

    st.markdown(f"**{safe(view.name)}** · {_word(view)}")
    _follow(view.id, [view], say)
    st.page_link(PAGE, label="Back to this run", icon=":material/arrow_back:", query_params={"run": view.id})


def _race(views: list[RunView]) -> None:
    """The active runs of a race. One that was started elsewhere leads to its first run's page."""
    first = views[0]
    st.markdown(f"**{safe(first.race_title or first.name)}** · {_word(first)}")
    _follow(first.race or "", views, lambda now: f"{len(now)} runs taking turns · {_share(now):.0%}")
    other = (PAGE, {"run": first.id})
    path, link = st.session_state.get(_PLACES, {}).get(first.race, other)
    st.page_link(path, label="Back to this race", icon=":material/arrow_back:", query_params=link)


def _follow(name: str, views: list[RunView], say: Callable[[list[RunView]], str]) -> None:
    """The bar of active runs; when one of them is in another state the page is drawn again."""
    manager, runs = session.manager(), [view.id for view in views]

    def look() -> live.Sight:
        manager.watch(runs[0])
        now = [view for run in runs if (view := manager.view(run)) is not None]
        going = [view for view in now if view.active] or now or views
        return live.Sight(
            [(view.id, view.status) for view in now],
            [view.version for view in now],
            _share(going),
            say(going),
        )

    drawn = [(view.id, view.status) for view in views]
    live.follow(f"status_{name}", look, drawn=drawn, every=1.0, whole=True)


def _share(views: list[RunView]) -> float:
    return sum(view.share for view in views) / len(views)


def _word(view: RunView) -> str:
    return STATUS[view.status][2]


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
