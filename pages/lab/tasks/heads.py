"""The view of heads: who looks at the place that the next letter of the answer comes from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tasks.all import ALOUD, MODELLED
from engine.data.tasks.task import Task
from engine.measure.tasks.task_heads import (
    ProblemReading,
    SourceAttention,
    by_last_result,
    looking,
    seen,
    solved_without,
)
from engine.measure.tasks.task_scores import OutOfTurn, out_of_turn
from engine.sample.problems import lines_of
from engine.weights.checkpoints import Checkpoint
from pages.lab.tasks import figures, words
from pages.lab.tasks.shipped import choose_task, look_inside, shipped
from ui import explain, memo, session, widgets
from ui.players.plot import plot

HEIGHT, BARS = 430, 250
LOOKED_AT = 40  # problems over which a score is a mean, and that are asked without a head
CIRCLES = {"repeat"}  # tasks whose answers two rules give
ALIGNED = [name for name, task in MODELLED.items() if task.sources is not None]


def draw_heads() -> None:
    """Draws the pattern of a head on a problem; beside it the score of every head."""
    task = choose_task(ALIGNED)
    checkpoint, _, _ = shipped(task)
    scored = _looking(task.name, checkpoint)
    if scored is None:
        st.info(words.NO_PATTERN)
        return
    best = {f"{value.layer}.{value.head}": words.head_option(value) for value in scored.best}
    picture, beside = st.columns([3, 2], gap="medium")
    with beside:
        row = st.container(horizontal=True, gap="small", vertical_alignment="bottom")
        chosen = widgets.select("Head", best, "task_head", kind="list", container=row)
        which = widgets.whole("Problem", 0, LOOKED_AT - 1, 0, "task_problem", container=row, width=130)
        layer, head = map(int, chosen.split("."))
        plot(
            figures.scores(scored.scores, scored.even, (layer, head)),
            key="task_scores",
            height=BARS,
            alt=words.scores_alt(scored),
            name=f"heads-{task.name}",
            data=figures.heads_table(scored.scores),
        )
        if task.name == ALOUD:
            st.caption(words.PARTIAL)
        look_inside(task)
    shown = _seen(task.name, which, checkpoint)
    with picture:
        plot(
            figures.looked_at(shown, layer, head),
            key="task_pattern",
            height=HEIGHT,
            alt=words.pattern_alt(task, layer, head),
            name=f"head-{chosen}",
        )
    score = float(scored.scores[layer, head])
    without, whole = _without(task.name, ((layer, head),), checkpoint), _without(task.name, (), checkpoint)
    sentence = words.by_result(_by_result(checkpoint)) if task.name == ALOUD else ""
    if sentence:
        sentence += words.without_it(chosen, without, whole)
    else:
        sentence = words.does_it(chosen, score, scored.even, without, whole)
    alike = tuple((value.layer, value.head) for value in scored.strong)
    if len(alike) > 1 and (layer, head) in alike:
        sentence += words.and_others(len(alike), _without(task.name, alike, checkpoint))
    explain.answer(sentence)
    explain.measure_it(_measured, task, checkpoint, scored)


def _measured(task: Task, checkpoint: Checkpoint, scored: SourceAttention) -> None:
    """Every head: where it looks, and what is left without it."""
    st.markdown(words.heads_method(task, scored, LOOKED_AT))
    rows = [
        {
            "head": f"{head.layer}.{head.head}",
            "weight on the source": head.value,
            "solved without it": _without(task.name, ((head.layer, head.head),), checkpoint),
        }
        for head in scored.best
    ]
    share = st.column_config.NumberColumn(format="percent")
    columns = {"weight on the source": share, "solved without it": share}
    st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=columns, key="task_heads_table")
    if task.name in CIRCLES:
        st.markdown(words.turns(_turns(task.name, checkpoint)))


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
