"""A tool, a part of the view "Chain of thought": a model calls a calculator, and somebody runs the call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.lab.after.stored_runs import (
    choose_seed,
    draw_ends,
    joined,
    seed_lines,
    stored_runs,
    tables_of,
    train_button,
    trained,
)
from pages.lab.after.stored_tunings import between
from studies.experiments.thinking_aloud import CARRIES, Accuracy, accuracies, recipe
from studies.experiments.tool_runs import (
    OFF,
    PROBLEMS,
    RAN,
    SEEDS,
    SHOWN,
    Ran,
    Stream,
    ToolEvaluation,
    calculator,
    learn,
    shipped,
    write,
)
from studies.guesses import after
from studies.tasks.carries import CALLING, COLUMNS, LONG_ADDITIONS, tool_call
from ui import content, explain, guess, widgets
from ui.figures import specs as go
from ui.guess import Guess
from ui.page_frame import View
from ui.players.plot import plot
from ui.race import stored_race

TEXT = content.beside(__file__)
HEIGHT = 330
WHO = "tool_ran"  # key
CLEAR = 0.9  # of sums: a model that does at least that well has learned it
LINES: dict[Ran, tuple[str, str]] = {  # colour, dash
    "run": ("run0", "solid"),
    "nobody": ("validation", "dash"),
    "broken": ("run1", "dot"),
}
STEPS = recipe(CALLING)[1].steps
Looks = tuple[ToolEvaluation, ...]


def draw(container: DeltaGenerator) -> None:
    """Draws the share of right sums by step, and a sum as it was written by model and harness. Controls go
    into the `container`.
    """
    with container:
        ran, number, seed, pressed = _controls()
    stored = tuple(run.looks for run in stored_runs(shipped))
    guess.ask("unrun", _guess, stored)
    live = trained(
        ("tool", seed),
        pressed,
        partial(learn, seed),
        TEXT["training"],
        lambda looks: _by_step(ran, stored, looks),
    )
    if live is None:
        return
    if not (live or stored):
        explain.answer(TEXT["nothing"])
        return
    runs = (live,) if live else stored
    shown = live or stored[seed % len(stored)]
    stream = shown[-1].streams[RAN.index(ran)][number - 1]
    left, right = st.columns([5, 6], gap="small")
    with left:
        _by_step(ran, stored, live)
    with right:
        st.code(staircase(stream), language=None)
        st.caption(verdict(stream))
        st.markdown(_tokens(ran, runs, shown[-1]))
    explain.answer(answer(ran, [run[-1] for run in runs]))
    explain.measure_it(draw_ends, table, stored, live, TEXT("measured", problems=PROBLEMS, steps=STEPS))


def _controls() -> tuple[Ran, int, int, bool]:
    """Returns (who runs the call, the number of the sum, the seed, True if it is to be trained now)."""
    a, b, c, d = st.columns([5, 3, 3, 5], gap="small", vertical_alignment="bottom")
    names = {ran: TEXT(f"ran {ran}", off=OFF) for ran in RAN}
    ran: Ran = widgets.select(TEXT["who"], names, WHO, kind="list", container=a)
    hint = TEXT("sum hint", shown=SHOWN)
    number = widgets.whole(TEXT["sum"], 1, SHOWN, 1, "tool_sum", container=b, hint=hint)
    seed = choose_seed(c, "tool", TEXT("seed hint", last=SEEDS[-1]))
    return ran, number, seed, train_button(d, "tool", TEXT("train", seed=seed))


def staircase(stream: Stream) -> str:
    """Returns a text with a line for each piece, its writer before it, each where the one before ended."""
    writers = [
        TEXT["question"],
        *(TEXT["by harness" if i % 2 else "by model"] for i in range(len(stream.pieces))),
    ]
    label, at, lines = max(map(len, writers)) + 2, 0, []
    for who, piece in zip(writers, (stream.question, *stream.pieces), strict=True):
        lines.append(f"{who:<{label}}{' ' * at}{piece}")
        at += len(piece)
    return "\n".join(lines)


def verdict(stream: Stream) -> str:
    """Says who wrote the result, and whether the sum is right."""
    right = CALLING.answer(stream.question)[-COLUMNS - 1 :] if CALLING.answer else ""
    how = TEXT["text run" if stream.by_harness else "text unrun"]
    return TEXT("text right" if stream.sum == right else "text wrong", how=how, right=right)


def _tokens(ran: Ran, runs: Sequence[Looks], look: ToolEvaluation) -> str:
    """Returns the shares right and the tokens of each way as a table; bold, the call that is chosen."""
    names = (TEXT["row at once"], TEXT["row aloud"])
    rows = [
        TEXT("of table", way=name, right=f"{other.end:.0%}", model=_written(other.task), harness=0)
        for name, other in zip(names, _others(), strict=False)
    ]
    for who in _compared(ran):
        i = RAN.index(who)
        stream = look.streams[i][0]
        rows.append(
            TEXT(
                "chosen of table" if who == ran else "of table",
                way=TEXT(f"row {who}", off=OFF),
                right=_range(run[-1].right[i] for run in runs),
                model=len(stream.by_model),
                harness=len(stream.by_harness),
            )
        )
    return "\n".join([TEXT["tokens"], *rows])


def _compared(ran: Ran) -> tuple[Ran, Ran]:
    """Returns what figure and table show: a call that is run, and `ran` or nobody."""
    return "run", "broken" if ran == "broken" else "nobody"


def _range(shares: Iterable[float]) -> str:
    return between(np.array([*shares]), ".0%")


def _others() -> tuple[Accuracy, ...]:
    """Returns the stored runs of the same model that answer at once, and with a chain of thought; none where
    their file is not whole.
    """
    race = stored_race(CARRIES)
    return tuple(accuracies(race.runs, race)[::2]) if race else ()


def _written(task: str) -> int:
    """Returns the characters that a model writes for an answer."""
    return LONG_ADDITIONS[task].length - 1 - LONG_ADDITIONS[task].given


def _by_step(ran: Ran, stored: Sequence[Looks], live: Looks) -> None:
    if not (stored or live):
        return
    tables = tables_of(table, stored, live)
    ends = [
        TEXT("alt end", **dict(zip(RAN, run[-1].right, strict=True)), off=OFF)
        for run in ((live,) if live else stored)
    ]
    plot(
        by_step(ran, *tables, _others()[1:]),
        key="tool_by_step",
        height=HEIGHT,
        name="tool-call",
        data=joined(*tables),
        alt=TEXT("alt", ends="; ".join(ends)),
    )


def table(looks: Sequence[ToolEvaluation]) -> pd.DataFrame:
    """Returns the shares of a run, a row for each look."""
    columns: dict[str, Any] = {
        name: [getattr(look, name) for look in looks] for name in ("step", "copied", "made_up")
    }
    for i, ran in enumerate(RAN):
        columns |= {
            f"{what} {ran}": [getattr(look, what)[i] for look in looks] for what in ("right", "repeated")
        }
    return pd.DataFrame(columns)


def answer(ran: Ran, ends: Sequence[ToolEvaluation]) -> str:
    """Says what the call brings, by who runs it: the range over the runs."""
    at = RAN.index(ran)
    least = min(
        {"run": end.right[at], "nobody": end.made_up, "broken": end.repeated[at]}[ran] for end in ends
    )
    if ran == "run":
        case = "runs" if least >= CLEAR else "does not run"
    elif ran == "nobody":
        case = "makes up" if least >= CLEAR else "stops"
    else:
        case = "believes" if least >= CLEAR else "doubts"
    numbers = {
        "right": _range(end.right[at] for end in ends),
        "without": _range(end.right[RAN.index("nobody")] for end in ends),
        "repeated": _range(end.repeated[at] for end in ends),
        "made_up": _range(end.made_up for end in ends),
    }
    return TEXT(
        case, off=OFF, seeds=TEXT("of seeds" if len(ends) > 1 else "of one", seeds=len(ends)), **numbers
    )


def _guess(stored: Sequence[Looks]) -> Guess | None:
    """Makes a guess about a call that nobody runs; a choice shows it."""
    truth = after.unrun([run[-1] for run in stored])
    if truth is None:
        return None
    return Guess.of(TEXT, truth, TEXT["guess"], TEXT("outcome", **truth.numbers), {WHO: "nobody"})


def by_step(
    ran: Ran, stored: Sequence[pd.DataFrame], live: pd.DataFrame | None, others: Sequence[Accuracy]
) -> go.Figure:
    """Draws the share of right sums by step and by who runs the call, `ran` above all: stored runs as thin
    lines, thick the live one, or the median of the stored; and the mean of `others`, with a chain of thought.
    """
    traces = [
        go.line(each.steps, each.mean, "quiet", TEXT["line aloud"], TEXT["hover"], dash="dash")
        for each in others
    ]
    for who in sorted(_compared(ran), key=lambda who: who == ran):  # what is drawn last is on top
        shade, dash = LINES[who]
        look = {"shade": shade, "dash": dash, "name": TEXT(f"line {who}", off=OFF), "hover": TEXT["hover"]}
        traces += seed_lines(stored, live, f"right {who}", 4 if who == ran else 2, **look)
    return go.figure(
        traces,
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis(TEXT["step axis"], range=[0, STEPS]),
        yaxis=go.axis(TEXT["share axis"], range=[-0.02, 1.04], tickformat=".0%", showgrid=True),
    )


PART = View("tool", TEXT, draw, (write, calculator, tool_call))
