"""A race on a page: several trainings side by side, live, or a shipped one until somebody starts theirs.

views = show_race("rungs", "The ladder", specs, say=words.answer, stored=stored_race("ladder"))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import CheckpointError
from runs.state import RunSpec, RunView
from studies.experiments import race_table
from studies.experiments.lab_races import shipped
from studies.experiments.stored_races import Stored
from ui import (
    explain,
    live,
    race_words,
    session,
    widgets,
)
from ui.figures.losses import WIDE, Curves, median_runs, race_curves
from ui.players.plot import payload, plot
from ui.players.served import ASSETS
from ui.race_desk import buttons, in_hand, progress, troubles
from ui.run_text import baselines
from ui.text.markdown import token_word

HEIGHT = 360  # of the chart
HALF = 420  # pixels: about what the curves have where something stands beside the chart
SMOOTH = 20  # batches, where smoothing is asked for
Say = Callable[[Sequence[RunView]], str]
Draw = Callable[[Sequence[RunView]], object]


def show_race(
    key: str,
    title: str,
    specs: Sequence[RunSpec],
    *,
    say: Say,
    stored: Stored | None = None,
    height: int = HEIGHT,
    beside: Draw | None = None,
    more: Draw | None = None,
) -> Sequence[RunView]:
    """Draws the button that starts it, the chart, the answer that `say` makes of the runs, and, folded, the
    table and a text of each. `key` tells this race from others in the session, `title` in a link; `specs` are
    what the button starts. Until then, what is shown of each is its run in `stored`. `beside` draws more of
    the runs at the chart's right, `more` in the fold. Returns what is shown.
    """
    views = _shown(key, title, specs, stored)
    going = any(view.active for view in views)
    st.html(ASSETS / "race.css")
    st.fragment(_panel)(key, title, specs, say, stored, height, going, beside=beside, more=more)
    return views


def stored_race(name: str) -> Stored | None:
    """Returns a race that comes with the app; None where its file is missing or broken."""
    try:
        return shipped(name)
    except CheckpointError:
        return None


def shown(
    raced: Sequence[RunView], earlier: Sequence[RunView], specs: Sequence[RunSpec], stored: Stored | None
) -> tuple[RunView, ...]:
    """Finds for each of `specs` its run: in the race in hand, among the earlier runs, or in what is stored;
    nothing where there is none. A race that goes on is shown whatever the controls say by now, and so is
    one whose link came without the settings.
    """
    known = [*raced, *reversed(earlier), *(stored.runs if stored else ())]
    views = [next((view for view in known if view.spec.same_recipe(spec)), None) for spec in specs]
    of_race = any(view.spec.same_recipe(spec) for view in raced for spec in specs)
    if raced and not of_race and (any(view.active for view in raced) or not any(views)):
        return tuple(raced)
    return tuple(view for view in views if view is not None)


def _shown(key: str, title: str, specs: Sequence[RunSpec], stored: Stored | None) -> tuple[RunView, ...]:
    race_id = in_hand(key, title)
    raced = session.manager().race(race_id) if race_id else ()
    mine = [
        run for run in session.manager().runs(session.owner()) if run.status == "finished" and not run.changes
    ]
    return shown(raced, mine, specs, stored)


def _panel(
    key: str,
    title: str,
    specs: Sequence[RunSpec],
    say: Say,
    stored: Stored | None,
    height: int,
    was_going: bool,
    *,
    beside: Draw | None,
    more: Draw | None,
) -> None:
    views = _shown(key, title, specs, stored)
    live = [view for view in views if view.race]
    for view in live:
        if view.active:
            session.manager().watch(view.id)
    if any(view.active for view in views) != was_going:
        st.rerun()
    with st.container(key="race_panel"):
        (along, curves, smooth), line = _line(key, title, specs, views)
        chart, side = st.columns([5, 3], gap="medium") if beside else (st.container(), None)
        with chart:
            ways: dict[str, Any] = {"along": along, "curves": curves, "smooth": smooth, "height": height}
            repeats = stored.repeats_of(views) if stored else ()
            draw = _chart(key, views, specs, repeats, wide=WIDE if beside is None else HALF, **ways)
        with line:
            progress(views, specs, stored) if not was_going else _follow(key, views, draw)
        if beside and side:
            with side:
                beside(views)
        explain.answer(say(views) if views else race_words.before(len(specs)))
        troubles(live)
        explain.measure_it(_measured, views, repeats, more)


def _follow(key: str, views: Sequence[RunView], draw: Callable[[Sequence[RunView]], bytes]) -> None:
    """How far the race is, and its curves; the browser follows both while it goes on."""
    manager = session.manager()

    def look() -> live.Sight:
        now = [(manager.view(view.id) if view.id else None) or view for view in views]
        raced = [view for view in now if view.race]
        for view in raced:
            if view.active:
                manager.watch(view.id)
        return live.Sight(
            _shown_of(now),
            [view.version for view in raced],
            sum(view.share for view in raced) / max(1, len(raced)),
            race_words.progress(raced, race_table.left(raced)),
            lambda: {f"race_chart_{key}": draw(now)},
        )

    live.follow(f"race_{key}", look, drawn=_shown_of(views))


def _shown_of(views: Sequence[RunView]) -> list[tuple[object, ...]]:
    """Returns what the browser does not draw by itself on the panel; its sentences, ten times in a race."""
    return [
        (view.id, view.status, view.message, view.warnings, bool(view.snapshots), int(10 * view.share))
        for view in views
    ]


def _line(
    key: str, title: str, specs: Sequence[RunSpec], views: Sequence[RunView]
) -> tuple[tuple[race_table.Along, Curves, bool], DeltaGenerator]:
    """The buttons, how the curves are drawn, and the place for how far they are."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="race_line"):
        buttons(key, title, specs, [view for view in views if view.race])
        along = widgets.select("Against", race_words.AXES, "race_axis", kind="list", hidden=True, width=130)
        curves = widgets.select(
            "Curves", race_words.CURVES, "race_curves", kind="list", hidden=True, width=160
        )
        smooth = widgets.switch("Smooth", False, "race_smooth") if curves != "validation" else False
        line = st.container()
    return (along, curves, smooth), line


def _chart(
    key: str,
    views: Sequence[RunView],
    specs: Sequence[RunSpec],
    repeats: Sequence[RunView],
    *,
    along: race_table.Along,
    curves: Curves,
    smooth: bool,
    height: int,
    wide: int,
) -> Callable[[Sequence[RunView]], bytes]:
    """Draws the curves, those of other seeds thin. Returns how they are drawn at any later moment."""
    cuts = {spec.train.tokenizer for spec in ([view.spec for view in views] or specs)}
    unit: race_table.Unit = "bits" if len(cuts) > 1 else "nats"
    lines = baselines(views[0].spec if views else specs[0], unit)

    def chart(now: Sequence[RunView]) -> dict[str, Any]:
        going = any(view.active for view in now)
        drawn = [race_table.run_curves(view, along, unit, SMOOTH if smooth else 1) for view in now]
        others = [race_table.run_curves(view, along, unit) for view in repeats]
        figure = race_curves(
            drawn,
            lines,
            others,
            along=along,
            curves=curves,
            unit=unit,
            token=token_word(min(cuts)),
            end=race_table.end_of(now, along),
            height=height,
            wide=wide,
        )
        return {
            "figure": figure,
            "key": f"race_chart_{key}",
            "alt": race_words.alt(median_runs(drawn, others)[0], len(repeats)),
            "height": height,
            # too much to send at every look
            "data": None if going or not now else race_table.table([*now, *repeats]),
            "name": "race",
        }

    plot(**chart(views))
    return lambda now: payload(**chart(now))


def _measured(views: Sequence[RunView], repeats: Sequence[RunView], more: Draw | None) -> None:
    """The table of all seeds, and a text of each run under the same prompt and seed."""
    if more:
        more(views)
    if not views:
        st.caption(race_words.NOTHING)
        return
    forms = {name: st.column_config.NumberColumn(format=form) for name, form in race_words.FORMS.items()}
    lines = race_words.table(race_table.standings([*views, *repeats]))
    st.dataframe(pd.DataFrame(lines), hide_index=True, column_config=forms, key="race_table")
    st.caption(race_words.MEANT)
    written = race_table.written(views)
    columns = st.columns(2)
    for index, (name, sample) in enumerate(written):
        with columns[index % 2]:
            st.markdown(race_words.wrote(name, sample.step, sample.prompt))
            st.code(sample.prompt + sample.text, language=None, wrap_lines=True)
