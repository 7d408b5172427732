"""The view "Solved": how a task was learned, and what its model answers. One of them groks: it knows its own
sums by heart, and finds the rule long after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint
from engine.errors import GlassformerError, TaskError
from engine.presets import SMALL
from engine.sample import complete
from pages.lab.tasks.task_models import choose_task, look_inside, shipped
from studies.experiments.lab_races import task_spec
from studies.tasks.all import TASKS
from studies.tasks.lines import remainders
from studies.tasks.problems import Answered, answered, ask, lines_of
from studies.tasks.recipes import task_recipe
from studies.tasks.task import Task, marked
from studies.tasks.task_scores import SOLVED, TaskCurve
from ui import content, explain, memo, session, site, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import Code, View
from ui.players.plot import plot
from ui.text.markdown import safe, sentence

TEXT = content.beside(__file__)
HEIGHT, AXIS = 372, 52  # pixels: of the chart, and of the choice of its axis
SHOWN = 6  # held-out problems
WRITTEN = 158  # letters of a stream
MOST_SHIFT = 30  # sets of problems
GROKS = "modular"  # the task that is solved long after it is known by heart


def draw() -> None:
    task = choose_task(list(TASKS))
    checkpoint, curve, corpus = shipped(task)
    groks = task.name == GROKS
    chart, beside = st.columns([5, 3], gap="medium")
    floor = task.floor(checkpoint.config.context)
    with chart:
        axes = {"log": TEXT["log scale"], "plain": TEXT["linear"]}
        log = groks and widgets.select(TEXT["steps"], axes, "grokking_axis", hidden=True) == "log"
        plot(
            figure(curve, floor, log=log),
            key="task_learned",
            height=HEIGHT - AXIS if groks else HEIGHT,
            alt=TEXT(
                "alt",
                title=task.title,
                solved=curve.solved[-1],
                loss=curve.validation_loss[-1],
                floor=floor,
            ),
            name=f"task-{task.name}",
            data=pd.DataFrame(vars(curve)),
        )
    with beside:
        if task.stream:
            _stream(task, checkpoint)
        else:
            _problems(task, checkpoint)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _train_it(task)
            look_inside(task)
    solved = checkpoint.metrics["solved"]["validation"]
    end = TEXT(f"end {_kind(task)}", share=solved, loss=checkpoint.metrics["validation_loss"], floor=floor)
    explain.answer(_grokking(curve) if groks else end)
    explain.measure_it(_measured, task, checkpoint, curve, *([end, corpus.problems] if groks else []))
    explain.by_hand(_by_hand, task, checkpoint.config.context)


def _kind(task: Task) -> str:
    """Returns whether a task is a stream, problems of which the answers alone count, or other problems."""
    return "stream" if task.stream else "answers only" if task.answers_only else "problems"


def _grokking(curve: TaskCurve) -> str:
    """Says when it memorised its sums, and when it generalised."""
    by_heart, rule = curve.step_of(SOLVED, trained_on=True), curve.step_of(SOLVED)
    if by_heart is None:
        return TEXT("not memorised", share=curve.train_solved[-1])
    if rule is None:
        return TEXT("memorised", by_heart=by_heart, solved=SOLVED, best=curve.best_solved)
    early = curve.solved_after(by_heart)
    return TEXT("generalised", by_heart=by_heart, solved=SOLVED, early=early, rule=rule)


def _problems(task: Task, checkpoint: Checkpoint) -> None:
    """Held-out problems and one's own, as the model finishes them."""
    typed = st.text_input(
        TEXT("own", rule=task.rule, form=task.form),
        "",
        key="task_line",
        max_chars=60,
        placeholder=TEXT("example", form=task.form),
        **widgets.KEPT,
    ).strip()
    which = widgets.whole(TEXT["set"], 0, MOST_SHIFT, 0, "task_problems")
    st.code(_marked(_answers(task.name, which, checkpoint)), language=None)
    if typed:
        _own(task, checkpoint, typed)


def _own(task: Task, checkpoint: Checkpoint, typed: str) -> None:
    """A problem that somebody typed."""
    try:
        answer = ask(checkpoint.model, checkpoint.tokenizer, task, typed)
    except TaskError as error:
        st.caption(f":material/info: {sentence(error)}")
    else:
        st.code(_marked([answer]), language=None)


def _marked(answers: Sequence[Answered]) -> str:
    """Returns a line each: a sign and a word, the problem, and the right answer beside a wrong one."""
    lines = []
    for each in answers:
        about = {"mark": _mark(each.right), "question": each.question, "written": each.written}
        if each.wanted and not each.right:
            lines.append(TEXT("corrected", **about, wanted=each.wanted))
        else:
            lines.append(TEXT("answer", **about))
    return "\n".join(lines)


def _mark(right: bool) -> str:
    return TEXT["right" if right else "wrong"]


@memo.measured()
def _answers(name: str, which: int, _found: Checkpoint) -> list[Answered]:
    """Returns a model's answers to one of the sets of problems, spread over those that are held out."""
    task = TASKS[name]
    lines = lines_of(session.corpus(name).validation, task.length, SHOWN * (MOST_SHIFT + 1))
    return answered(_found.model, _found.tokenizer, task, lines[which :: MOST_SHIFT + 1][:SHOWN])


def _stream(task: Task, checkpoint: Checkpoint) -> None:
    """Draws what a model of a stream writes, and which of its letters the source could never have written."""
    written = _written(task.name, checkpoint)
    st.markdown(TEXT["sample"])
    lines = [TEXT("piece", mark=_mark(possible), piece=piece) for piece, possible in written]
    st.code("\n".join(lines), language=None)


@memo.measured()
def _written(name: str, _found: Checkpoint) -> list[tuple[str, bool]]:
    task = TASKS[name]
    start = session.corpus(name).text[:2]
    text = complete(_found.model, _found.tokenizer, start, WRITTEN, 1.0, seed=0)
    return marked(task, start + text)


def _train_it(task: Task) -> None:
    """Draws the button that trains it live, on the training page."""
    if st.session_state.pop("train_task", None) == task.name:
        try:
            run = session.manager().start(task_spec(task.name), session.owner())
        except GlassformerError as error:
            st.error(safe(str(error)))
        else:
            st.session_state["run_id"] = st.session_state["run_in_hand"] = run
            entry = site.entry_of("train")
            assert entry is not None
            st.switch_page(entry.path, query_params={"run": run, "data": "task", "task": task.name})
    st.button(
        TEXT["train live"],
        icon=":material/play_arrow:",
        key="train_task_live",
        on_click=lambda: st.session_state.update(train_task=task.name),
        help=TEXT["live answers only" if task.answers_only else "live"],
    )


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
    step = curve.step_of(SOLVED)
    when = TEXT("never solved" if step is None else "solved after", solved=SOLVED, step=step)
    st.markdown(f"{end} {when} {_trained(task, checkpoint)}")
    if problems is not None:
        settings, (train, validation) = checkpoint.metrics["train"], problems
        st.markdown(
            TEXT(
                "pairs",
                train=train,
                validation=validation,
                weight_decay=settings["weight_decay"],
                learning_rate=settings["learning_rate"],
                batch=settings["batch_size"],
                seed=settings["seed"],
            )
        )


def _trained(task: Task, checkpoint: Checkpoint) -> str:
    """Says how it was trained; where that was timed, how long it took."""
    metrics = checkpoint.metrics
    settings = metrics["train"]
    cpu = metrics.get("cpu_seconds")
    return TEXT(
        "trained and timed" if cpu else "trained",
        steps=settings["steps"],
        batch=settings["batch_size"],
        optimizer=settings["optimizer"],
        seed=settings["seed"],
        cpu=cpu,
        name=content.Filled(task.name),  # stands in code
        date=metrics["date"],
        machine=metrics["machine"]["processor"],
    )


def _by_hand(task: Task, context: int) -> None:
    """Where the floor comes from."""
    st.markdown(
        TEXT(
            f"by hand {_kind(task)}",
            first=task.entropies[0],
            rate=task.entropies[-1],
            context=context,
            others=context - 1,
            length=task.length,
            entropies=", ".join(f"{entropy:.2f}" for entropy in task.entropies),
            floor=task.floor(context),
        )
    )


def figure(curve: TaskCurve, floor: float, *, log: bool = False) -> go.Figure:
    """Draws, above, the share of problems solved by step; below, the loss, nats, with its floor. `log`: steps
    in powers of ten.
    """
    some = curve.steps > 0 if log else curve.steps >= 0
    steps = curve.steps[some]
    losses = (curve.validation_loss[some], curve.train_loss[some])
    traces = [
        *_both(TEXT["held-out"], "validation", steps, curve.solved[some], losses[0], width=3, dash="solid"),
        *_both(TEXT["trained on"], "training", steps, curve.train_solved[some], losses[1]),
    ]
    end = float(steps[-1])
    lowest = min(floor, float(min(np.nanmin(loss) for loss in losses)))
    highest = float(max(np.nanquantile(loss, 0.98) for loss in losses))
    room = 0.08 * (highest - lowest)
    scale = (
        {"type": "log", "range": [float(np.log10(steps[0])), float(np.log10(end))], "dtick": 1}
        if log
        else {"range": [0, end]}
    )
    return go.figure(
        traces,
        uirevision="task-learned",
        margin={"l": 56, "r": 14, "t": 8, "b": 40},
        showlegend=True,
        legend={"font": {"size": 13}},
        xaxis=go.axis(TEXT["step"], anchor="y2") | scale,
        yaxis={
            "title": {"text": TEXT["solved"]},
            "range": [-0.03, 1.05],
            "tickformat": ".0%",
            "domain": [0.53, 1],
            "nticks": 4,
        },
        yaxis2={
            "title": {"text": TEXT["loss"]},
            "range": [max(0.0, lowest - 2 * room) if lowest else -room, highest + room],
            "domain": [0, 0.44],
            "anchor": "x",
            "nticks": 5,
            "zeroline": False,
        },
        shapes=[_across(floor)],
        annotations=[_named(floor)],
    )


def _both(
    name: str,
    shade: str,
    steps: np.ndarray,
    share: np.ndarray,
    loss: np.ndarray,
    width: float = 1.6,
    dash: str = "dot",
) -> list[dict[str, Any]]:
    """The two lines of some problems: the share that is solved, and the loss below it."""
    line = {"color": colour(shade), "width": width, "dash": dash}
    both = {"type": "scatter", "mode": "lines", "x": steps, "line": line, "cliponaxis": False}
    return [
        both | {"y": share, "name": name, "hovertemplate": TEXT("hover share", name=name)},
        both
        | {"y": loss, "yaxis": "y2", "showlegend": False, "hovertemplate": TEXT("hover loss", name=name)},
    ]


def _across(floor: float) -> dict[str, Any]:
    line = {"color": colour("quiet"), "width": 2, "dash": "dash"}
    return go.rule(y=floor, yref="y2") | {"line": line, "layer": "below"}


def _named(floor: float) -> dict[str, Any]:
    return go.note(
        TEXT("floor", floor=floor),
        1,
        floor,
        xref="paper",
        yref="y2",
        xanchor="right",
        yanchor="bottom",
        font={"color": colour("quiet"), "size": 13},
    )


def _groks() -> bool:
    """True if the task that is chosen is the one that groks, before it is drawn."""
    return widgets.settled(TASKS, "task") == GROKS


def _variant() -> str:
    return "grokking" if _groks() else ""


def _code() -> Code:
    return (remainders,) if _groks() else (answered, task_recipe)


VIEW = View(
    "solve",
    TEXT,
    draw,
    _code,
    needs_model=False,
    fields={"blocks": SMALL["task"].model.n_layers, "width": SMALL["task"].model.d_model},
    variant=_variant,
    variants={"grokking": (("task", GROKS),)},
    shows=("grokking", "generalisation", "memorisation"),
)
