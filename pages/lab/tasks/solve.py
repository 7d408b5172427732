"""The view of a task: how it was learned, and what its model answers. One of them groks: it knows its own
sums by heart, and finds the rule long after.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data.tasks.all import TASKS
from engine.data.tasks.lines import remainders
from engine.data.tasks.task import Task, marked
from engine.errors import TaskError
from engine.measure.tasks.task_scores import SOLVED, TaskCurve
from engine.presets.task_recipes import task_recipe
from engine.sample import complete
from engine.sample.problems import Answered, answered, ask, lines_of
from engine.weights.checkpoints import Checkpoint
from pages.lab.tasks import figures, words
from pages.lab.tasks.shipped import choose_task, look_inside, shipped, task_chosen, train_it
from ui import explain, memo, session, widgets
from ui.page_frame import Ask, Code
from ui.players.plot import plot
from ui.text.markdown import sentence

HEIGHT, AXIS = 372, 52  # pixels: of the chart, and of the choice of its axis
SHOWN = 6  # held-out problems
WRITTEN = 158  # letters of a stream
MOST_SHIFT = 30  # sets of problems
GROKS = "modular"  # the task that is solved long after it is known by heart
ASKS = (
    Ask(words.SOLVE_QUESTION, words.SOLVE),
    Ask(words.GROKKING_QUESTION, words.GROKKING, (("task", GROKS),)),
)


def current_ask() -> Ask:
    """Returns the question of the task that is chosen, with its words."""
    return ASKS[task_chosen(list(TASKS)).name == GROKS]


def sources() -> Code:
    """Returns the engine's functions behind the task that is chosen."""
    return (remainders,) if current_ask().query else (answered, task_recipe)


def draw_solve() -> None:
    """Draws the chart, and beside it problems with the model's answers."""
    task = choose_task(list(TASKS))
    checkpoint, curve, corpus = shipped(task)
    groks = task.name == GROKS
    chart, beside = st.columns([5, 3], gap="medium")
    floor = task.floor(checkpoint.config.context)
    with chart:
        log = groks and widgets.select("Steps", words.AXES, "grokking_axis", hidden=True) == "log"
        plot(
            figures.learned(curve, floor, log=log),
            key="task_learned",
            height=HEIGHT - AXIS if groks else HEIGHT,
            alt=words.learned_alt(task, curve, floor),
            name=f"task-{task.name}",
            data=pd.DataFrame(vars(curve)),
        )
    with beside:
        if task.stream:
            _stream(task, checkpoint)
        else:
            _problems(task, checkpoint)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            train_it(task)
            look_inside(task)
    end = words.solved(
        task, checkpoint.metrics["solved"]["validation"], checkpoint.metrics["validation_loss"], floor
    )
    by_heart, rule = curve.step_of(SOLVED, trained_on=True), curve.step_of(SOLVED)
    explain.answer(words.grokked(by_heart, rule, curve) if groks else end)
    explain.measure_it(_measured, task, checkpoint, curve, *([end, corpus.problems] if groks else []))
    explain.by_hand(_by_hand, task, checkpoint.config.context)


def _problems(task: Task, checkpoint: Checkpoint) -> None:
    """Held-out problems and one's own, as the model finishes them."""
    typed = st.text_input(
        words.custom_label(task),
        "",
        key="task_line",
        max_chars=60,
        placeholder=words.example(task),
        **widgets.KEPT,
    ).strip()
    which = widgets.whole(words.SET, 0, MOST_SHIFT, 0, "task_problems")
    st.code(words.marked(_answers(task.name, which, checkpoint)), language=None)
    if typed:
        _own(task, checkpoint, typed)


def _own(task: Task, checkpoint: Checkpoint, typed: str) -> None:
    """A problem that somebody typed."""
    try:
        answer = ask(checkpoint.model, checkpoint.tokenizer, task, typed)
    except TaskError as error:
        st.caption(f":material/info: {sentence(error)}")
    else:
        st.code(words.marked([answer]), language=None)


@memo.measured()
def _answers(name: str, which: int, _found: Checkpoint) -> list[Answered]:
    """Returns a model's answers to one of the sets of problems, spread over those that are held out."""
    task = TASKS[name]
    lines = lines_of(session.corpus(name).validation, task.length, SHOWN * (MOST_SHIFT + 1))
    return answered(_found.model, _found.tokenizer, task, lines[which :: MOST_SHIFT + 1][:SHOWN])


def _stream(task: Task, checkpoint: Checkpoint) -> None:
    """Draws what a model of a stream writes, and which of its letters the source could never have written."""
    written = _written(task.name, checkpoint)
    st.markdown(words.STREAM)
    st.code(words.pieces(written), language=None)


@memo.measured()
def _written(name: str, _found: Checkpoint) -> list[tuple[str, bool]]:
    task = TASKS[name]
    start = session.corpus(name).text[:2]
    text = complete(_found.model, _found.tokenizer, start, WRITTEN, 1.0, seed=0)
    return marked(task, start + text)


def _measured(
    task: Task,
    checkpoint: Checkpoint,
    curve: TaskCurve,
    end: str = "",
    problems: tuple[int, int] | None = None,
) -> None:
    """When it was solved, by which recipe; of the task that groks also how it ends, and its problems of both
    kinds.
    """
    st.markdown(f"{end} {words.when(task, curve, checkpoint.metrics)}")
    if problems is not None:
        st.markdown(words.grokking_recipe(checkpoint.metrics, *problems))


def _by_hand(task: Task, context: int) -> None:
    st.markdown(words.floor_by_hand(task, context, task.floor(context)))
