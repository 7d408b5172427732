"""The view "Fixed memory": what a cache, a sum and the delta rule give back of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from pages.inside.attention import recall_task
from studies.attention.fixed_memory import (
    D_HEAD,
    HEADS,
    ROUNDS,
    RULES,
    WIDTH,
    Pairs,
    Reading,
    Recall,
    Rule,
    draw_pairs,
    given_back,
    reading,
    recall,
    written,
)
from studies.guesses import attention as guesses
from studies.guesses.attention import HEARD
from ui import content, explain, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import DIVERGING, colour
from ui.guess import Guess, ask
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import gigabytes

TEXT = content.beside(__file__)
MOST, FIRST = 128, 48  # pairs
SHADES: dict[Rule, str] = {"cache": "attention", "adding": "quiet", "delta": "output"}
LENGTHS = (64, 256, 1024, 4096, 16384)


def draw() -> None:
    """Draws what each key gives back, beside the matrix that holds all pairs; or trained models on a task."""
    line = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    with line:
        parts = {part: TEXT[f"part {part}"] for part in ("pairs", "task")}
        part = widgets.select(TEXT["part"], parts, "memory_part", hidden=True)
        if part == "pairs":
            rule: Rule = widgets.select(
                TEXT["shown"],
                {r: TEXT[f"name {r}"] for r in RULES},
                "memory_rule",
                first="delta",
                kind="list",
                width=130,
            )
            count = widgets.slide(TEXT["pairs"], 2, MOST, FIRST, "memory_pairs", width=150)
            likeness = widgets.slide(TEXT["likeness"], 0.0, 0.9, 0.0, "memory_likeness", step=0.1, width=150)
            again = widgets.switch(TEXT["again"], False, "memory_again", hint=TEXT["again hint"])
            seed = widgets.whole(TEXT["seed"], 0, 9999, 0, "memory_seed", width=100)
    if part == "task":
        recall_task.draw(line)
    else:
        _draw_pairs(draw_pairs(count, seed, likeness, again), rule, again)


def _draw_pairs(pairs: Pairs, rule: Rule, again: bool) -> None:
    recalls = {each: recall(pairs, each) for each in RULES}
    left, right = st.columns([3, 5], gap="medium")
    with left:
        _draw_state(pairs, rule)
    with right:
        _draw_recall(recalls)
    explain.answer(answer(pairs, recalls, again))
    ask("memory", guess, pairs)
    explain.measure_it(_measured)
    explain.by_hand(_worked)


def answer(pairs: Pairs, recalls: Mapping[Rule, Recall], again: bool) -> str:
    """Says how many pairs come back, or which of two values of one key (Markdown)."""
    right = {rule: one.count for rule, one in recalls.items()}
    if again:
        cosines = {rule: float(one.cosine[0]) for rule, one in recalls.items()}
        heard = min(cosines["adding"], cosines["cache"]) > HEARD
        return TEXT("answer again" if heard else "answer again noise", **cosines)
    if min(right.values()) == len(pairs):
        return TEXT(
            "answer all", pairs=len(pairs), numbers=recalls["delta"].numbers, held=recalls["cache"].numbers
        )
    better: Rule = "delta" if right["delta"] > right["adding"] else "adding"
    worse: Rule = "adding" if better == "delta" else "delta"
    return TEXT(
        "answer",
        pairs=len(pairs),
        cache=right["cache"],
        better=TEXT[f"by {better}"],
        most=right[better],
        worse=TEXT[f"by {worse}"],
        fewer=right[worse],
        numbers=recalls["delta"].numbers,
        held=recalls["cache"].numbers,
    )


def guess(pairs: Pairs) -> Guess | None:
    """A guess about a key that is written twice into a sum."""
    truth = guesses.written_twice(pairs)
    if truth is None:
        return None
    sets = {"memory_again": True, "memory_rule": "adding"}
    return Guess.of(TEXT, truth, TEXT["guess"], TEXT("outcome", **truth.numbers), sets)


def _draw_state(pairs: Pairs, rule: Rule) -> None:
    held = written(pairs, rule)
    plot(
        state_map(held, rule),
        key="memory_state",
        alt=TEXT("alt state", rows=held.shape[0], columns=held.shape[1]),
        height=350,
        data=pd.DataFrame(held),
        name="memory-state",
    )


def state_map(held: np.ndarray, rule: Rule) -> go.Figure:
    """Draws what a memory holds (row, column) as cells."""
    heat = go.Heatmap(
        z=held.astype(np.float32),
        zmin=-float(np.abs(held).max()),
        zmax=float(np.abs(held).max()),
        colorscale=DIVERGING,
        showscale=False,
        hovertemplate=TEXT["hover state"],
    )
    title = TEXT("title state", rule=TEXT[f"name {rule}"], rows=held.shape[0], columns=held.shape[1])
    return go.figure(
        [heat],
        margin={"l": 48, "r": 8, "t": 34, "b": 44},
        annotations=[go.heading(f"<b>{title}</b>", y=1.02, font={"size": 15})],
        xaxis=go.axis(TEXT["state columns cache" if rule == "cache" else "state columns"], showgrid=False),
        yaxis=go.axis(TEXT["state rows cache" if rule == "cache" else "state rows"], showgrid=False)
        | {"autorange": "reversed"},
    )


def _draw_recall(recalls: Mapping[Rule, Recall]) -> None:
    count = len(recalls["cache"].cosine)
    plot(
        recall_by_pair(recalls),
        key="memory_recall",
        alt=TEXT("alt recall", pairs=count, **{rule: one.count for rule, one in recalls.items()}),
        height=350,
        data=pd.DataFrame(
            {"pair": range(1, count + 1)}
            | {f"{rule}_cosine": one.cosine for rule, one in recalls.items()}
            | {f"{rule}_right": one.right for rule, one in recalls.items()}
        ),
        name="memory-recall",
    )


def recall_by_pair(recalls: Mapping[Rule, Recall]) -> go.Figure:
    """Draws, for each pair in the order of writing, the cosine of what its key gives back with its value; a
    filled mark where that is the nearest of all values.
    """
    traces = [
        go.Scatter(
            x=np.arange(1, len(one.cosine) + 1),
            y=one.cosine.astype(np.float32),
            mode="markers",
            name=TEXT("legend", rule=TEXT[f"name {rule}"], right=one.count),
            marker={
                "color": colour(SHADES[rule]),
                "size": 9,
                "symbol": ["circle" if right else "circle-open" for right in one.right],
            },
            hovertemplate=TEXT["hover recall"],
        )
        for rule, one in recalls.items()
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 34, "b": 44},
        xaxis=go.axis(TEXT["order"], showgrid=False),
        yaxis=go.axis(TEXT["cosine"], range=[-0.65, 1.08]),
        annotations=[
            go.note(TEXT["filled"], 1, 0, xref="paper", yref="paper", xanchor="right", yanchor="bottom")
        ],
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )


def _measured() -> None:
    """Bytes and seconds of one more token by the length of the text."""
    timed = measured(("memory by length", LENGTHS), partial(reading, LENGTHS), TEXT["measuring"])
    if timed is None:
        return
    st.markdown(TEXT("measured", heads=HEADS, d_head=D_HEAD, rounds=ROUNDS))
    st.table(costs(timed))


def costs(timed: Reading) -> pd.DataFrame:
    """Returns bytes and microseconds of each memory, a row for each length."""
    rows = {
        f"{length:,}": {
            TEXT("column bytes", rule=TEXT[f"name {rule}"]): gigabytes(timed.bytes[rule][at])
            for rule in RULES
        }
        | {
            TEXT("column seconds", rule=TEXT[f"name {rule}"]): f"{1e6 * timed.seconds[rule][at]:,.0f} µs"
            for rule in RULES
        }
        for at, length in enumerate(timed.lengths)
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(TEXT["tokens before"])


def _worked() -> None:
    """Two writes under one key, in numbers."""
    st.markdown(TEXT["by hand"])


VIEW = View(
    "memory",
    TEXT,
    draw,
    code=(draw_pairs, written, given_back, recall),
    needs_model=False,
    fields={"width": WIDTH},
)
