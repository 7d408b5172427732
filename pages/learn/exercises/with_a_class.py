"""The part "with a class" of the view "Before and after": a room whose phones take both forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import GlassformerError
from runs.quizzes import FIRST, SECOND, Quiz, Quizzes
from studies.inventory.gain import Chosen, Gain, gain, table
from studies.inventory.questions import LARGEST_SEED
from ui import content, explain, inventory, live, session, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.component import mounted
from ui.players.plot import plot
from ui.stage.draw import URL, way_to

TEXT = content.beside(__file__)
SEED = "before_seed"
POLL_SECONDS = 2.0
HEIGHT = 410
SHOWN = 3  # misconceptions that stayed
NAMES = ("first", "second")  # of the forms


def draw(line: DeltaGenerator) -> None:
    """Draws the lecturer's room; the seed of a new one stands in a `line`."""
    quizzes, owner = session.quizzes(), session.owner()
    live.follow("quiz", lambda: live.Sight(_seen(quizzes, owner)), every=POLL_SECONDS)
    quiz, linked = quizzes.mine(owner), widgets.read_url(inventory.QUERY)
    if quiz is None and linked and _there(quizzes, linked):
        _draw_guest(linked)
        return
    widgets.keep_in_url(inventory.QUERY, quiz.room if quiz else None)
    if quiz is None:
        with line:
            seed = widgets.whole(TEXT["seed"], 1, LARGEST_SEED, 1, SEED, width=130, hint=TEXT["seed hint"])
        _draw_none(seed)
    elif quiz.finished:
        _draw_gain(quiz)
    else:
        _draw_open(quiz)


def _seen(quizzes: Quizzes, owner: str) -> object:
    """Returns the state of the room that its page shows."""
    quiz = quizzes.mine(owner)
    return (
        None if quiz is None else (quiz.form, quiz.open, [each.people for each in quiz.counts], quiz.complete)
    )


def _there(quizzes: Quizzes, room: str) -> bool:
    try:
        quizzes.look(room)
    except GlassformerError:
        return False
    return True


def _draw_guest(room: str) -> None:
    """Draws, for phones that the code of a stage has led here, the way to where they answer."""
    st.link_button(TEXT["answer here"], f"{URL}?{inventory.QUERY}={room}", type="primary")
    explain.answer(TEXT["guest"])


def _draw_none(seed: int) -> None:
    st.markdown(TEXT["steps"])
    _button("start", TEXT["open a room"], partial(_start, seed), main=True)
    explain.answer(TEXT["answer none"])


def _draw_open(quiz: Quiz) -> None:
    """Draws the way to the room, how many are there, and what the lecturer does next."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        way = way_to(st.context.url or "", quiz.room, inventory.QUERY)
        mounted("room_code", styles=("room_code",))(key="quiz_code", data=way | {"label": TEXT["code"]})
    with right:
        if quiz.form is not None:
            some, whole = st.columns(2)
            some.metric(TEXT[f"people {NAMES[quiz.form]}"], quiz.counts[quiz.form].people)
            whole.metric(TEXT["complete"], quiz.complete)
        _draw_steps(quiz)
    state = "new" if quiz.form is None else "open" if quiz.open else "closed"
    explain.answer(TEXT[f"state {state}"])


def _draw_steps(quiz: Quiz) -> None:
    """Draws the buttons of a room whose second form is not closed."""
    with st.container(horizontal=True):
        if quiz.open:
            _button("close", TEXT["close"], lambda: session.quizzes().close(session.owner()), main=True)
        elif quiz.form is None:
            _button("first", TEXT["open first"], partial(_hand_out, FIRST), main=True)
            _button("second", TEXT["open second alone"], partial(_hand_out, SECOND), TEXT["alone hint"])
        else:
            _button("second", TEXT["open second"], partial(_hand_out, SECOND), main=True)
            _button("first", TEXT["again"], partial(_hand_out, FIRST))
            _save(quiz)
        _ending()


def _draw_gain(quiz: Quiz) -> None:
    """Draws the gain by question, and what stayed."""
    both = inventory.forms(quiz.seed)
    result = gain(*both, quiz.counts)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        shares = {"before": result.before, "after": result.after, "gain": result.change}
        alt, name = _alt(result), "before-and-after"
        plot(
            figure(result),
            key="quiz_gain",
            alt=alt,
            height=HEIGHT,
            data={"question": result.titles} | shares,
            name=name,
        )
    with right:
        if not math.isnan(result.normalised):
            (before, after), of = result.points, len(result.questions)
            formula = TEXT("gain formula", before=before, after=after, of=of)
            st.metric(TEXT["gain"], TEXT("gain value", gain=result.normalised))
            st.caption(formula)
        if result.stayed:
            st.caption(TEXT["stayed"])
        for row in result.stayed[:SHOWN]:
            st.markdown(_stayed(result, row))
        with st.container(horizontal=True):
            _save(quiz)
            _button("second", TEXT["again"], partial(_hand_out, SECOND))
            _ending()
    explain.answer(_answer(result))
    explain.measure_it(_draw_options, result)


def _stayed(result: Gain, row: Chosen) -> str:
    """Returns a misconception that stayed (Markdown), with a link to the view that refutes it."""
    address = content.Filled(f"{row.question.page}?{urlencode(row.question.query)}")
    fields = {"belief": row.option.misconception, "address": address, "after": row.after}
    if not result.people[FIRST]:
        return TEXT("stayed alone", **fields)
    return TEXT("stayed row", before=row.before, **fields)


def _draw_options(result: Gain) -> None:
    """Draws a row for each option: who chose it before, and who after."""
    columns = {
        TEXT["question"]: [row.question.title for row in result.chosen],
        TEXT["option"]: [
            ("" if row.option.misconception else "✓ ") + row.option.text for row in result.chosen
        ],
        TEXT["misconception"]: [row.option.misconception for row in result.chosen],
        TEXT["before"]: [row.before for row in result.chosen],
        TEXT["after"]: [row.after for row in result.chosen],
    }
    share = st.column_config.NumberColumn(format="percent")
    config = {str(TEXT["before"]): share, str(TEXT["after"]): share}
    st.dataframe(pd.DataFrame(columns), hide_index=True, column_config=config)


def figure(result: Gain) -> go.Figure:
    """Draws the shares that were right as two dots for each question, joined, the largest gain on top."""
    order, traces = result.order, []
    if all(result.people):
        for certain, shade, width, dash in ((True, "validation", 4, "solid"), (False, "quiet", 2, "dot")):
            joined = [(at, i) for at, i in enumerate(order) if bool(result.clear[i]) == certain]
            x = [share for _, i in joined for share in (result.before[i], result.after[i], None)]
            y = [each for at, _ in joined for each in (at, at, None)]
            label = TEXT["clear" if certain else "chance"]
            traces.append(go.line(x, y, shade, label, width=width, dash=dash, hoverinfo="skip"))
    ways = (
        (result.before, TEXT["before"], "quiet", "circle-open"),
        (result.after, TEXT["after"], "validation", "circle"),
    )
    for (shares, name, shade, symbol), people in zip(ways, result.people, strict=True):
        if people:
            marker = {"color": colour(shade), "symbol": symbol, "size": 13, "line": {"width": 2.5}}
            hover = TEXT("hover", people=people)
            dots = {"x": shares[order], "y": list(range(len(order))), "name": name}
            traces.append(go.Scatter(mode="markers", marker=marker, hovertemplate=hover, **dots))
    titles = [result.titles[i] for i in order]
    return go.figure(
        traces,
        margin={"l": 150, "r": 12, "t": 34, "b": 44},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis=go.axis(TEXT["share right"], showgrid=True, range=[-0.03, 1.03], tickformat=".0%"),
        yaxis=go.ticks(list(range(len(order))), titles, range=[len(order) - 0.5, -0.5]),
    )


def _alt(result: Gain) -> str:
    if not all(result.people):
        return TEXT("alt single", all=len(result.questions))
    top = result.order[0]
    return TEXT(
        "alt",
        all=len(result.questions),
        title=result.titles[top],
        before=float(result.before[top]),
        after=float(result.after[top]),
    )


def _answer(result: Gain) -> str:
    """Returns the claim: what the class went from and to, and what stayed most."""
    (first, second), (before, after), of = result.people, result.points, len(result.questions)
    if not second:
        return TEXT["answer nobody"]
    belief = result.stayed[0].option.misconception if result.stayed else ""
    if not first:
        return TEXT("answer second", after=after, of=of)
    if not belief:
        return TEXT("answer all gone", before=before, after=after, of=of)
    return TEXT("answer gain", before=before, after=after, of=of, belief=belief)


def _button(
    key: str, label: str, act: Callable[[], object], hint: str | None = None, *, main: bool = False
) -> None:
    st.button(
        label,
        key=f"quiz_{key}",
        type="primary" if main else "secondary",
        on_click=_do,
        args=(act,),
        help=hint,
    )


def _ending() -> None:
    """Draws the way out, which asks once more: all counts are lost with the room."""
    with st.popover(TEXT["end"]):
        st.markdown(TEXT["end warning"])
        _button("end", TEXT["end now"], lambda: session.quizzes().end(session.owner()))


def _save(quiz: Quiz) -> None:
    """Draws the button that saves all counts."""
    both = inventory.forms(quiz.seed)
    # Streamlit's own: a file is built when it is asked for, not before.
    st.download_button(
        TEXT["save"],
        lambda: pd.DataFrame(table(both, quiz.counts)).to_csv(index=False),
        f"before-and-after-{quiz.seed}.csv",
        "text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="quiz_csv",
    )


def _start(seed: int) -> None:
    session.quizzes().start(session.owner(), seed, inventory.sizes(inventory.forms(seed)))


def _hand_out(form: int) -> None:
    session.quizzes().hand_out(session.owner(), form)


def _do(act: Callable[[], object]) -> None:
    """Does what a button stands for; a refusal is said."""
    try:
        act()
    except GlassformerError as error:
        st.toast(str(error), icon=":material/info:")


PART = View("class", TEXT, draw, code=(gain,))
