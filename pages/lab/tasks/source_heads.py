"""The view "Source heads": who looks at the place that the next letter of the answer comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint
from pages.lab.tasks.task_models import choose_task, look_inside, shipped
from studies.attention.heads import HeadValue, ranked_heads
from studies.tasks.all import ALOUD, MODELLED
from studies.tasks.problems import lines_of
from studies.tasks.task import Task
from studies.tasks.task_heads import (
    HALF,
    ProblemReading,
    SourceAttention,
    by_last_result,
    looking,
    seen,
    solved_without,
)
from studies.tasks.task_scores import OutOfTurn, out_of_turn
from ui import content, explain, memo, session, widgets
from ui.figures import specs as go
from ui.figures.charts import head_table
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

Head = tuple[int, int]  # (layer, head)
TEXT = content.beside(__file__)
HEIGHT, BARS = 430, 250
LOOKED_AT = 40  # problems over which a score is a mean, and that are asked without a head
CIRCLES = {"repeat"}  # tasks whose answers two rules give
ALIGNED = [name for name, task in MODELLED.items() if task.sources is not None]


def draw() -> None:
    task = choose_task(ALIGNED)
    checkpoint, _, _ = shipped(task)
    scored = _looking(task.name, checkpoint)
    if scored is None:
        st.info(TEXT["no pattern"])
        return
    picture, beside = st.columns([3, 2], gap="medium")
    with beside:
        head, which = _controls(scored)
        _scores(task, scored, head)
        if task.name == ALOUD:
            st.caption(TEXT["last result"])
        look_inside(task)
    shown = _seen(task.name, which, checkpoint)
    with picture:
        layer, place = head
        plot(
            pattern_figure(shown, layer, place),
            key="task_pattern",
            height=HEIGHT,
            alt=TEXT("alt pattern", layer=layer, head=place, title=task.title),
            name=f"head-{_name(head)}",
        )
    explain.answer(_answer(task, checkpoint, scored, head))
    explain.measure_it(_measured, task, checkpoint, scored)


def _controls(scored: SourceAttention) -> tuple[Head, int]:
    """Draws the choices of a head, the best first, and of a problem."""
    options = {_name(each): TEXT("option", head=_name(each), weight=each.value) for each in scored.best}
    row = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
    chosen = widgets.select(TEXT["head"], options, "task_head", kind="list", container=row)
    which = widgets.whole(TEXT["problem"], 0, LOOKED_AT - 1, 0, "task_problem", container=row, width=130)
    layer, head = map(int, chosen.split("."))
    return (layer, head), which


def _name(head: Head | HeadValue) -> str:
    layer, place = (head.layer, head.head) if isinstance(head, HeadValue) else head
    return f"{layer}.{place}"


def _scores(task: Task, scored: SourceAttention, head: Head) -> None:
    """Draws the score of every head."""
    best = scored.best[0]
    plot(
        scores_figure(scored.scores, scored.even, head),
        key="task_scores",
        height=BARS,
        alt=TEXT("alt scores", head=_name(best), weight=best.value, even=scored.even),
        name=f"heads-{task.name}",
        data=head_table({"weight_on_source": scored.scores}),
    )


def _answer(task: Task, checkpoint: Checkpoint, scored: SourceAttention, head: Head) -> str:
    """Says what a head does and what is left without it; where several look there, without any of them."""
    score = float(scored.scores[head])
    fates = {
        "head": _name(head),
        "without": _without(task.name, (head,), checkpoint),
        "whole": _without(task.name, (), checkpoint),
    }
    readers = readers_by_result(_by_result(checkpoint)) if task.name == ALOUD else None
    if readers is not None:
        zero, one = readers
        said = TEXT(
            "by last result",
            zero=_name(zero),
            zero_weight=zero.value,
            one=_name(one),
            one_weight=one.value,
            **fates,
        )
    else:
        said = TEXT("no head attends" if score < HALF else "attends", score=score, even=scored.even, **fates)
    alike = tuple((each.layer, each.head) for each in scored.strong)
    if len(alike) > 1 and head in alike:
        without = _without(task.name, alike, checkpoint)
        all_ablated = "both ablated" if len(alike) == 2 else "all ablated"
        return f"{said} {TEXT(all_ablated, heads=len(alike), without=without)}"
    return said


def readers_by_result(weights: Mapping[str, np.ndarray]) -> tuple[HeadValue, HeadValue] | None:
    """Returns the heads that read the next bit after the partial results 0 and 1, from the weights (layer,
    head) of all heads there; None where no head clearly does, or the same for both.
    """
    zero, one = (ranked_heads(weights[token])[0] for token in "01")
    if min(zero.value, one.value) < HALF or (zero.layer, zero.head) == (one.layer, one.head):
        return None
    return zero, one


def _measured(task: Task, checkpoint: Checkpoint, scored: SourceAttention) -> None:
    """Every head: where it looks, and what is left without it."""
    st.markdown(TEXT("method", measured=scored.problems, title=task.title, asked=LOOKED_AT))
    rows = [
        {
            TEXT["head column"]: _name(head),
            TEXT["weight"]: head.value,
            TEXT["without"]: _without(task.name, ((head.layer, head.head),), checkpoint),
        }
        for head in scored.best
    ]
    share = st.column_config.NumberColumn(format="percent")
    columns: dict[str, Any] = {TEXT["weight"]: share, TEXT["without"]: share}
    st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=columns, key="task_heads_table")
    if task.name in CIRCLES:
        turn = _turns(task.name, checkpoint)
        st.markdown(TEXT("out of turn", probes=turn.probes, longest=turn.longest, after=turn.after))


@memo.measured()
def _looking(name: str, _found: Checkpoint) -> SourceAttention | None:
    task = MODELLED[name]
    lines = lines_of(session.corpus(name).validation, task.length, LOOKED_AT)
    return looking(_found.model, _found.tokenizer, task, lines)


@memo.measured()
def _by_result(_found: Checkpoint) -> dict[str, np.ndarray]:
    task = MODELLED[ALOUD]
    lines = lines_of(session.corpus(ALOUD).validation, task.length, LOOKED_AT)
    return by_last_result(_found.model, _found.tokenizer, task, lines)


@memo.measured()
def _seen(name: str, which: int, _found: Checkpoint) -> ProblemReading:
    """One of the held-out problems, with its right answer."""
    task = MODELLED[name]
    line = lines_of(session.corpus(name).validation, task.length, LOOKED_AT)[which, 1:-1]
    return seen(_found.model, _found.tokenizer, task, _found.tokenizer.decode(line.tolist()))


@memo.measured()
def _without(name: str, heads: tuple[tuple[int, int], ...], _found: Checkpoint) -> float:
    """The share that is solved without some heads."""
    task = MODELLED[name]
    lines = lines_of(session.corpus(name).validation, task.length, LOOKED_AT)
    return solved_without(_found.model, _found.tokenizer, task, lines, heads)


@memo.measured()
def _turns(name: str, _found: Checkpoint) -> OutOfTurn:
    return out_of_turn(_found.model, _found.tokenizer, MODELLED[name].alphabet)


def pattern_figure(reading: ProblemReading, layer: int, head: int) -> go.Figure:
    """Draws a head's pattern; framed, for every letter of the answer, the positions that it comes from."""
    labels = ["⏎" if letter == "\n" else letter for letter in reading.letters]
    heat = pattern_heatmap(reading.patterns[layer, head], labels)
    line = {"color": colour("output"), "width": 2}
    frames = [
        {"type": "rect", "x0": key - 0.5, "x1": key + 0.5, "y0": query - 0.5, "y1": query + 0.5, "line": line}
        for query, keys in reading.targets
        for key in keys
    ]
    return heat.changed({"shapes": frames})


def scores_figure(values: np.ndarray, even: float, chosen: Head) -> go.Figure:
    """Draws the score of every head, (layer, head), as bars; the chosen one in full colour, a
    line at `even`.
    """
    names = [_name(head) for head in np.ndindex(values.shape)]
    strong = [at == chosen for at in np.ndindex(values.shape)]
    bars = go.Bar(
        x=names,
        y=values.ravel(),
        marker={"color": [colour("attention", 100 if bold else 45) for bold in strong]},
        text=[f"{value:.0%}" for value in values.ravel()],
        textposition="outside",
        cliponaxis=False,
        hovertemplate=TEXT["hover"],
    )
    line = {"color": colour("quiet"), "width": 1.5, "dash": "dot"}
    return go.figure(
        [bars],
        margin={"l": 48, "r": 8, "t": 22, "b": 40},
        showlegend=False,
        xaxis=go.axis(TEXT["heads"], type="category"),
        yaxis={
            "title": {"text": TEXT["weight"]},
            "range": [0, 1.05],
            "tickformat": ".0%",
            "nticks": 4,
        },
        shapes=[go.rule(y=even, line=line)],
    )


VIEW = View("heads", TEXT, draw, code=(looking, solved_without, out_of_turn), needs_model=False)
