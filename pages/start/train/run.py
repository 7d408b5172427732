"""The run panel: a fragment that looks at a run a few times a second while it is active, and the sidebar's
small status.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from engine.errors import GlassformerError
from engine.service.state import RunSpec, RunView
from pages.start.train import curve_points, curves
from pages.start.train.losses import LIVE_POINTS, losses, number, numbers
from pages.start.train.samples import samples
from ui import site, state
from ui.fields import visible
from ui.players.plot import plot
from ui.players.served import ASSETS
from ui.status import POLL_SECONDS, STATUS, progress_words
from ui.text.markdown import safe, token_word

GO_WIDTH = 118  # of Pause, Resume and Continue, which share a place: what stands beside them does not move
REFUSAL_SECONDS = 10.0  # that a refusal stays: the panel is drawn again several times a second
# between drawings of the two small charts while a run goes on: drawing takes the browser more time than all
# the rest
SELDOM_SECONDS = 2.0


def start(spec: RunSpec) -> None:
    """Starts a run and makes it the one that is shown. A refusal becomes a sentence on the page."""
    st.session_state.pop("refused", None)
    try:
        select(state.manager().start(spec, state.owner()))
    except GlassformerError as error:
        _refuse(error)


def select(run_id: str) -> None:
    """Makes a run the one that the panel shows, also in the URL, so that a reload finds it again."""
    st.session_state["run_id"] = st.session_state["run_in_hand"] = run_id
    st.query_params["run"] = run_id


def selected() -> str | None:
    """The run to show: the URL's, else the one this session looked at last (its id then goes back into the
    URL).

    A run id in a URL may be anything; one that no run has is left for the panel to explain.
    """
    named = st.query_params.get("run")
    if named is None and (kept := st.session_state.get("run_id")) and state.manager().view(kept) is not None:
        st.query_params["run"] = named = kept
    st.session_state["run_id"] = named
    return named


def refusal() -> None:
    """What was refused at the last click, said for long enough to be read."""
    sentence, since = st.session_state.get("refused", ("", 0.0))
    if sentence and time.monotonic() - since < REFUSAL_SECONDS:
        st.error(safe(sentence))


def _refuse(error: GlassformerError) -> None:
    st.session_state["refused"] = (str(error), time.monotonic())


def act(what: Callable[..., Any], *arguments: Any) -> None:
    """Carries out a button. A refusal becomes a sentence; a new run that comes of it is the one shown."""
    st.session_state.pop("refused", None)
    try:
        result = what(*arguments)
    except GlassformerError as error:
        _refuse(error)
        return
    if isinstance(result, str) and result:
        select(result)


def run_panel(run_id: str, overlaid: Sequence[str]) -> None:
    """Everything about one run. `overlaid`: the ids of runs whose curves are laid over its own."""
    view = state.manager().view(run_id)
    if view is None:
        st.info(
            "The run in this link is not on this server: it was removed, or the server was restarted, or the"
            " link is not whole. Train starts a new one."
        )
        return
    # The timer exists only while there is something to wait for; when that changes, the whole page runs once
    # and sets it anew.
    st.html(ASSETS / "panel.css")
    with st.container(key="run_panel"):
        st.fragment(_panel, run_every=POLL_SECONDS if view.active else None)(
            run_id, tuple(overlaid), view.active
        )


def _panel(run_id: str, overlaid: tuple[str, ...], polling: bool) -> None:
    manager = state.manager()
    manager.watch(run_id)
    view = manager.view(run_id)
    if view is None or view.active != polling or st.session_state.get("run_id") != run_id:
        st.rerun()
    mine = manager.may_control(run_id, state.owner())
    _heading(view, mine)
    _buttons(view, mine)
    st.progress(view.share, text=progress_words(view))
    refusal()
    for sentence in (*([view.message] if view.message else []), *view.warnings):
        (st.error if view.status == "failed" else st.warning)(safe(sentence))
    losses(view, overlaid)
    _text(view)
    _look_inside(view)
    _live_controls(view, mine)
    numbers(view)
    _small_charts(view)
    size = (
        f"{view.parameters:,} parameters, vocabulary of {view.spec.model.vocab_size:,}"
        f" {token_word(view.spec.train.tokenizer)}s."
    )
    st.caption(f"{size} {view.precision[:1].upper()}{view.precision[1:]}." if view.precision else size)


def _heading(view: RunView, mine: bool) -> None:
    icon, colour, word = STATUS[view.status]
    if view.status == "queued" and view.place:
        word = f"waiting, place {view.place} in the queue"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(safe(view.name), anchor=False, width="content")
        st.badge(word, icon=f":material/{icon}:", color=colour)  # type: ignore[arg-type]
    if not mine:
        st.info(
            "This run belongs to another browser: you can watch it, but only that browser can control it."
            " Press Train to start one of your own."
        )


def _buttons(view: RunView, mine: bool) -> None:
    """Every button stays in its place and is greyed out where it has no sense, so that nothing jumps."""
    manager, owner, run = state.manager(), state.owner(), view.id
    go: tuple[str, str, str, bool, Callable[..., Any], tuple[Any, ...]]
    if view.status == "paused":
        go = ("resume", "Resume", "play_arrow", True, act, (manager.resume, run, owner))
    elif view.active:
        go = ("pause", "Pause", "pause", view.status == "running", act, (manager.pause, run, owner))
    else:
        go = ("extend", "Continue", "fast_forward", view.resumable, _extend, (view,))
    offered = [
        go,
        ("step", "One step", "skip_next", view.status == "paused", act, (manager.step, run, owner)),
        ("stop", "Stop", "stop", view.active, act, (manager.stop, run, owner)),
        (
            "restart",
            "Restart",
            "restart_alt",
            view.status not in ("queued", "starting"),
            act,
            (manager.restart, run, owner),
        ),
    ]
    helps = {
        "extend": "Goes on from the last snapshot, for as many steps as More steps says.",
        "step": "One update of the weights, then pause again.",
        "restart": "A new run with the same settings and the same first weights.",
    }
    with st.container(horizontal=True, gap="small"):
        for name, label, icon, possible, action, arguments in offered:
            st.button(
                label,
                key=f"{name}_button",
                icon=f":material/{icon}:",
                disabled=not (mine and possible),
                on_click=action,
                args=arguments,
                help=helps.get(name),
                width=GO_WIDTH if name == go[0] else "content",
            )


def _text(view: RunView) -> None:
    samples(
        view.history.samples,
        run=view.id,
        masked=view.spec.train.objective == "masked",
        key="own_text",
        height=210,
    )


def _look_inside(view: RunView) -> None:
    """The way into this run's model, at any of its snapshots, on the pages that look inside."""
    pages = [entry for entry in site.built() if entry.section == "Look inside"]
    if not (pages and view.snapshots):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Look inside it:**", width="content")
        for entry in pages:
            try:
                st.page_link(
                    entry.path,
                    label=entry.title,
                    icon=entry.icon,
                    query_params={"model": f"run-{view.id}"},
                    width="content",
                )
            except (
                StreamlitPageNotFoundError
            ):  # this page is run alone, without app.py: there is nowhere to go
                return


def _small_charts(view: RunView) -> None:
    view = _seldom(view)
    h, total = view.history, float(view.total_steps)
    some = curve_points.spread(len(h.steps), LIVE_POINTS)
    left, right = st.columns(2)
    latest_norm, latest_rate = (
        number(float(values[-1]), ".3g") if len(values) else "–"
        for values in (h.grad_norms, h.learning_rates)
    )
    with left:
        st.markdown(
            f"**Gradient norm** {latest_norm}",
            help="The length of the gradient over all parameters, before clipping. Logarithmic.",
        )
        plot(
            curves.small_curve(
                h.steps[some], h.grad_norms[some], title="gradient norm", shade="quiet", log=True, end=total
            ),
            key="norm_chart",
            alt=f"Gradient norm before clipping, now {latest_norm}",
            height=170,
        )
    with right:
        st.markdown(f"**Learning rate** {latest_rate}", help="AdamW's, after schedule and warm-up.")
        plot(
            curves.small_curve(
                h.steps[some], h.learning_rates[some], title="learning rate", shade="run0", end=total
            ),
            key="rate_chart",
            alt=f"Learning rate, now {latest_rate}",
            height=170,
        )


def _seldom(view: RunView) -> RunView:
    """The view, or while the run goes on the one of up to SELDOM_SECONDS ago: the browser draws nothing where
    nothing has changed.
    """
    kept, since = st.session_state.get("seldom", (None, 0.0))
    if (
        view.status == "running"
        and kept is not None
        and kept.id == view.id
        and kept.status == "running"
        and time.monotonic() - since < SELDOM_SECONDS
    ):
        return kept
    st.session_state["seldom"] = (view, time.monotonic())
    return view


def _live_controls(view: RunView, mine: bool) -> None:
    """What may be changed while it runs, and for how long it goes on after its end. Keys hold the run's id:
    each run has its own values.
    """
    run, train, live = view.id, view.spec.train, mine and view.active
    rate_key, prompt_key = f"rate-{run}", f"prompt-{run}"
    left, middle, right = st.columns(3)
    prompt = train.sample_prompt if view.prompt is None else view.prompt
    rate = float(train.learning_rate if view.learning_rate is None else view.learning_rate)
    left.text_input(
        "Prompt",
        value=prompt.replace("\n", "⏎"),
        key=prompt_key,
        max_chars=200,
        disabled=not live,
        on_change=_set_prompt,
        args=(run, prompt_key),
        persist_state="session",
        help=(
            "What the next samples continue; ⏎ is a line break. Characters that the text does not have are"
            " left out."
        ),
    )
    middle.number_input(
        "Learning rate",
        value=rate,
        step=float(train.learning_rate) / 4 or 1e-4,
        format="%g",
        key=rate_key,
        disabled=not mine,
        on_change=_set_rate,
        args=(run, rate_key),
        persist_state="session",
        help=(
            "A new peak from the next step on, also when an ended run is continued; Muon's rate moves in"
            " proportion."
        ),
    )
    right.number_input(
        "More steps",
        value=undone(view),
        min_value=1,
        step=100,
        key=_more_key(view),
        disabled=not (mine and view.resumable and not view.active),
        help="How far Continue goes on from the last snapshot, once the run has ended.",
    )


def undone(view: RunView) -> int:
    """Steps left between the last snapshot and the planned end; after a whole run, as many again."""
    return max(view.total_steps - max(view.snapshots, default=0), 0) or view.spec.train.steps


def _more_key(view: RunView) -> str:
    return f"more-{view.id}-{undone(view)}"


def _set_rate(run: str, key: str) -> None:
    value = st.session_state[key]
    if value is not None:
        act(state.manager().set_learning_rate, run, state.owner(), float(value))


def _set_prompt(run: str, key: str) -> None:
    act(state.manager().set_prompt, run, state.owner(), visible(st.session_state[key] or ""))


def _extend(view: RunView) -> None:
    act(
        state.manager().extend,
        view.id,
        state.owner(),
        int(st.session_state.get(_more_key(view)) or undone(view)),
    )
