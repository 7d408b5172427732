"""Controls of a run: pausing, stopping, other rates and prompts, longer; and looking inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitPageNotFoundError

from pages.start.train.run_kinds import kind_of
from pages.start.train.shown_runs import act, act_on_all, in_training
from runs.state import RunView
from ui import content, session, site
from ui.fields import visible

TEXT = content.beside(__file__)
WIDTH = 118  # of a button of the run: several share a place, and what stands beside them does not move


def buttons(view: RunView, other: RunView | None, mine: bool) -> None:
    """Draws the two buttons of a run: Pause or Resume, then Stop; at its end Continue and Restart, each in
    the other's place. While it is held, a third does one step.
    """
    manager, owner, run = session.manager(), session.owner(), view.id
    both = [run, *([other.id] if other is not None and other.active else [])]
    if (now := in_training(view, other)) is not view:  # the second of a pair, whose first has ended before
        view, both = now, [now.id]
    if view.status == "paused":
        _button("resume", "play_arrow", mine, act_on_all, manager.resume, both, owner)
    elif view.active:
        going = mine and view.status == "running"
        _button("pause", "pause", going, act_on_all, manager.pause, both, owner)
    else:
        done = max(view.snapshots, default=0)
        help = TEXT["continue hint"] if room(view) else TEXT("full", steps=done)
        _button("extend", "fast_forward", mine and further(view) > 0, _extend, view, help=help)
    if view.active:
        _button("stop", "stop", mine, act_on_all, manager.stop, both, owner)
    else:
        _restart(view, mine)
    if view.status == "paused":
        hint = TEXT["step hint"]
        _button("step", "skip_next", mine, act_on_all, manager.step, both, owner, help=hint)


def _button(
    name: str, icon: str, possible: bool, does: Callable[..., Any], *args: Any, help: str = ""
) -> None:
    # Streamlit's own: it asks something of the run, and has no value.
    st.button(
        TEXT[f"button {name}"],
        key=f"{name}_button",
        icon=f":material/{icon}:",
        disabled=not possible,
        on_click=does,
        args=args,
        help=help or None,
        width=WIDTH,
    )


def _restart(view: RunView, mine: bool) -> None:
    possible = mine and view.status not in ("queued", "starting")
    help = TEXT["restart hint"]
    manager, owner = session.manager(), session.owner()
    _button("restart", "restart_alt", possible, act, manager.restart, view.id, owner, help=help)


def bar(view: RunView, mine: bool) -> None:
    """Draws, at the bottom of a phone's screen, the step, the loss, and the button that holds it."""
    manager, owner = session.manager(), session.owner()
    losses = view.history.losses
    at = TEXT(
        "bar with loss" if len(losses) else "bar",
        step=view.step,
        steps=view.total_steps,
        loss=float(losses[-1]) if len(losses) else 0.0,
    )
    with st.container(horizontal=True, vertical_alignment="center", key="run_bar"):
        st.markdown(at, width="stretch")
        paused = view.status == "paused"
        st.button(
            TEXT["button resume" if paused else "button pause"],
            key="bar_button",
            icon=":material/play_arrow:" if paused else ":material/pause:",
            disabled=not (mine and view.status in ("running", "paused")),
            on_click=act,
            args=(manager.resume if paused else manager.pause, view.id, owner),
        )


def look_inside(view: RunView) -> None:
    """Draws the way into this run's model, at any of its snapshots, on the pages that look inside: what it
    cannot do is not offered.
    """
    kind, run = kind_of(view.spec), f"run-{view.id}"
    links = [(entry, link) for entry in site.built() if (link := kind.link(entry, run))]
    if not (links and view.snapshots):
        return
    with st.popover(TEXT["look inside"], icon=":material/search:"):
        for entry, link in links:
            try:
                st.page_link(entry.path, label=entry.title, icon=entry.icon, query_params=link)
            except StreamlitPageNotFoundError:
                return  # this page is run alone, without app.py: there is nowhere to go


def options(view: RunView, mine: bool) -> DeltaGenerator:
    """Draws the menu of a run: what may be changed while it trains, and for how long it goes on after its
    end. Returns it, for what else belongs there. Keys hold the run's id: each run has its own values.
    """
    run, train, live = view.id, view.spec.train, mine and view.active
    rate_key, prompt_key = f"rate-{run}", f"prompt-{run}"
    prompt = train.sample_prompt if view.prompt is None else view.prompt
    rate = float(train.learning_rate if view.learning_rate is None else view.learning_rate)
    menu = st.popover(TEXT["options"], icon=":material/tune:")
    with menu:
        st.text_input(
            TEXT["prompt" if view.spec.kind.inside else "source"],
            value=prompt.replace("\n", "⏎"),
            key=prompt_key,
            max_chars=200,
            disabled=not live,
            on_change=_set_prompt,
            args=(run, prompt_key),
            persist_state="session",
            help=TEXT["prompt hint"],
        )
        # Streamlit's own: what is typed is a command to the running training, no value to keep in the link.
        st.number_input(
            TEXT["rate"],
            value=rate,
            step=float(train.learning_rate) / 4 or 1e-4,
            format="%g",
            key=rate_key,
            disabled=not mine,
            on_change=_set_rate,
            args=(run, rate_key),
            persist_state="session",
            help=TEXT["rate hint"],
        )
        if view.active:
            _restart(view, mine)
        else:
            st.number_input(
                TEXT["more steps"],
                value=max(further(view), 1),
                min_value=1,
                max_value=max(room(view), 1),
                step=100,
                key=_more_key(view),
                on_change="ignore",  # the button reads it
                disabled=not (mine and further(view)),
                help=TEXT["more steps hint"],
            )
    return menu


def room(view: RunView) -> int:
    """Returns the steps that a run may still do after its last snapshot on this server."""
    return max(session.profile().max_steps - max(view.snapshots, default=0), 0)


def further(view: RunView) -> int:
    """Returns the steps that Continue adds: those left between the last snapshot and the planned end, after a
    whole run as many again, and no more than there is room for. 0 where it cannot go on.
    """
    left = max(view.total_steps - max(view.snapshots, default=0), 0) or view.spec.train.steps
    return min(left, room(view)) if view.resumable else 0


def _more_key(view: RunView) -> str:
    return f"more-{view.id}-{further(view)}"


def _set_rate(run: str, key: str) -> None:
    value = st.session_state[key]
    if value is not None:
        act(session.manager().set_learning_rate, run, session.owner(), float(value))


def _set_prompt(run: str, key: str) -> None:
    act(session.manager().set_prompt, run, session.owner(), visible(st.session_state[key] or ""))


def _extend(view: RunView) -> None:
    act(
        session.manager().extend,
        view.id,
        session.owner(),
        int(st.session_state.get(_more_key(view)) or further(view)),
    )
