"""The run panel: a fragment that is drawn again when a run, or a pair, has something new to show; the browser
follows the bar and the curve by itself.
"""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.start.train import copying_heads
from pages.start.train.loss_chart import Picture, losses
from pages.start.train.run_kinds import kind_of
from pages.start.train.run_numbers import by_hand, measured
from pages.start.train.samples import samples
from pages.start.train.shown_runs import compared, in_training, other_of, start
from pages.start.train.steering import bar, buttons, look_inside, options
from runs.compare import Comparison, compare
from runs.state import RunView
from studies.attention.head_scores import HeadGrowth
from studies.experiments.race_table import name_of
from ui import content, explain, live, session
from ui.players.served import ASSETS
from ui.requests import refusal
from ui.status import STATUS, progress_words
from ui.text.markdown import safe
from ui.text.numbers import nats

TEXT = content.beside(__file__)
HEIGHT = 318  # of the chart; the text beside it is as high as the chart and its controls
CHOICES = 48  # pixels: of those controls, which stand in the menu while it trains
CLEAR = 0.02  # nats: a smaller difference between two runs may be their seeds'


def run_panel(run_id: str) -> None:
    """Draws everything about one run, and about the second of its pair."""
    view = session.manager().view(run_id)
    if view is None:
        st.info(TEXT["gone"])
        return
    st.html(ASSETS / "panel.css")
    going = _going(view, other_of(view))
    with st.container(key="run_panel"):
        st.fragment(_panel)(run_id, going)


def _going(view: RunView, other: RunView | None) -> bool:
    return view.active or (other is not None and other.active)


def _panel(run_id: str, was_going: bool) -> None:
    manager = session.manager()
    manager.watch(run_id)
    view = manager.view(run_id)
    other = other_of(view) if view is not None else None
    if other is not None:
        manager.watch(other.id)
    if view is None or _going(view, other) != was_going or st.session_state.get("run_id") != run_id:
        st.rerun()
    mine = manager.may_control(run_id, session.owner())
    menu, progress = _line(view, other, mine)
    refusal()
    with_heads = any(copying_heads.scored(run) for run in compared(view, other))
    kind = kind_of(view.spec)
    parts = [5, 8] if with_heads else [5, 5, 4] if kind.answers else [1, 1]
    chart, *middle, beside = st.columns(parts, gap="medium")
    with chart:
        notes, picture = losses(view, other, HEIGHT + (CHOICES if view.active else 0), menu)
    with progress:
        _follow(view, other, picture)
    for column in middle:
        with column:
            kind.draw_shares(view, HEIGHT + 50)
    with beside:
        shown = copying_heads.looked_at(view, other)
        if shown is None:
            samples(compared(view, other), key="own_text", height=HEIGHT + 50)
        else:
            copying_heads.heads(*shown, HEIGHT + (0 if other else 50))
    explain.answer(_answer(view, other, shown[1] if shown is not None else None))
    for note in notes:
        st.caption(note)
    _troubles(view, other)
    explain.measure_it(_measured, view, other, with_heads)
    explain.by_hand(by_hand, view)
    if (now := in_training(view, other)).active:
        bar(now, mine)


def _measured(view: RunView, other: RunView | None, with_text: bool) -> None:
    """The numbers; and what the model writes, where something else stands beside the chart."""
    if with_text:
        samples(compared(view, other), key="own_text", height=HEIGHT)
    measured(view, other)


def _follow(view: RunView, other: RunView | None, picture: Picture) -> None:
    """Draws how far the run is; the browser follows it, and its curve, while it goes on."""
    if not _going(view, other):
        st.progress(view.share, text=f"{safe(view.name)} · {progress_words(view)}")
        return
    manager, runs = session.manager(), compared(view, other)

    def look() -> live.Sight:
        for run in runs:
            manager.watch(run.id)
        first, *others = [current for run in runs if (current := manager.view(run.id))] or [view]
        second = others[0] if others else None
        now = in_training(first, second)
        return live.Sight(
            [_shown(run) for run in (first, *others)],
            [run.version for run in (first, *others)],
            now.share,
            f"{now.name} · {progress_words(now)}",
            lambda: {"loss_chart": picture(first, second)},
        )

    live.follow("run", look, drawn=[_shown(run) for run in runs])


def _shown(view: RunView) -> tuple[object, ...]:
    """Returns what the browser does not draw by itself on the panel."""
    history = view.history
    return (
        *(view.status, view.queue_position, view.name, view.message, view.warnings, bool(view.snapshots)),
        *(len(history.evaluations), len(history.samples), view.learning_rate, view.prompt),
    )


def _line(view: RunView, other: RunView | None, mine: bool) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draws what the run does now, and what can be done with it. Returns the menu of all else, and the place
    for how far it is.
    """
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="run_line"):
        now = in_training(view, other)
        icon, colour, word = STATUS[now.status]
        if now.status == "queued" and now.queue_position:
            word = TEXT("waiting", position=now.queue_position)
        st.badge(word, icon=f":material/{icon}:", color=colour)  # type: ignore[arg-type]
        buttons(view, other, mine)
        look_inside(view)
        menu = options(view, mine)
    progress = st.container()
    if not mine:
        st.info(TEXT["stranger"])
        st.button(
            TEXT["train this"],
            icon=":material/play_arrow:",
            on_click=start,
            args=(view.spec,),
            key="train_this",
        )
    return menu, progress


def _answer(view: RunView, other: RunView | None, growth: HeadGrowth | None) -> str:
    """Returns the sentence on a run, where heads form on those, or on both of a pair."""
    if other is None:
        return copying_heads.answer(growth) if growth is not None else kind_of(view.spec).answer(view)
    first, second = name_of(view), name_of(other)
    comparison = compare(view.history.evaluations, other.history.evaluations)
    if not comparison:
        return TEXT("pair waits", first=first, second=second)
    noun = kind_of(view.spec).noun
    both = [content.Filled(nats(loss, noun)) for loss in comparison.losses]
    pair = TEXT("pair", steps=comparison.steps[1], first=first, one=both[0], second=second, other=both[1])
    leaks = bool(kind_of(other.spec).warning)
    return f"{pair} {verdict(comparison, leaks, noun)} {copying_heads.both(view, other)}"


def verdict(comparison: Comparison, leaks: bool, noun: str) -> str:
    """Says what the difference of two runs means. `leaks`: the second has no mask, and sees what it should
    guess.
    """
    difference = comparison.difference
    if leaks:
        case = "copies" if difference < -CLEAR else "could copy"
    else:
        case = "alike" if abs(difference) < CLEAR else "worse" if difference > 0 else "better"
    return TEXT(f"verdict {case}", noun=noun, difference=abs(difference))


def _troubles(view: RunView, other: RunView | None) -> None:
    """Shows what went wrong, or what may mislead."""
    for run in compared(view, other):
        name = f"{safe(run.name)}: " if other else ""
        for sentence in (*([run.message] if run.message else []), *run.warnings):
            (st.error if run.status == "failed" else st.warning)(name + safe(sentence))
    if alone := kind_of(view.spec).warning:
        st.warning(alone)
