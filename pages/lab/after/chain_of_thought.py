"""The view "Chain of thought": a question, answered at once, after dots, or step by step; or often
(best_of_n.py), or with a calculator (tool_call.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.lab.after import best_of_n, tool_call
from runs.state import RunView
from studies.experiments.stored_races import Stored
from studies.experiments.thinking_aloud import (
    ALOUD,
    CARRIES,
    PROBLEMS,
    SOLVED,
    Accuracy,
    Problem,
    accuracies,
    mean_end,
    recipe,
)
from studies.guesses import after
from studies.tasks.carries import COLUMNS, column_steps, long_addition
from studies.tasks.parity import BITS, parity, running_parity
from studies.tasks.task import examples
from ui import content, guess
from ui.figures import specs as go
from ui.figures.losses import DASHES, SHADES
from ui.figures.solved import Solved, solved_curves
from ui.figures.theme import colour
from ui.guess import Guess
from ui.layout import link_to
from ui.page_frame import Parts, View
from ui.players.plot import plot
from ui.race import show_race, stored_race

TEXT = content.beside(__file__)
HEIGHT = 300


def draw(name: str, container: DeltaGenerator) -> None:
    """Draws an example of a problem as each of the three is taught it, with what stands before an answer, and
    the race of the three, the stored one until there is another.
    """
    problem = PROBLEMS[name]
    stored = stored_race(problem.race)
    container.code(_taught(problem, TEXT(f"answer {name}")), language=None)
    guess.ask("dots", _guess, stored)
    show_race(
        problem.race,
        TEXT(f"race {name}"),
        problem.specs(),
        say=lambda views: answer(accuracies(views, stored)),
        stored=stored,
        height=HEIGHT,
        beside=lambda views: _accuracy(views, stored, problem),
        more=lambda views: st.markdown(measured(accuracies(views, stored))),
    )


def _taught(problem: Problem, name: str) -> str:
    """Returns the same question in the three tasks, a line each, behind its label; `name` stands where the
    answer begins, in one column.
    """
    at_once = next(iter(problem.tasks.values()))
    start, texts = examples(at_once, 1)[0].strip()[: at_once.given], []
    for task in problem.tasks.values():
        question, answer = task.asks(start), task.answer
        assert question is not None and answer is not None
        texts.append(question + answer(question))
    last = len(texts[0]) - at_once.given  # characters of the answer itself
    labels = [task.title.lower() for task in problem.tasks.values()]
    label, steps = (max(map(len, column)) for column in (labels, texts))
    return "\n".join(
        f"{way:<{label}}  {text[:-last]:<{steps - last}}  {name} {text[-last:]}"
        for way, text in zip(labels, texts, strict=True)
    )


def _accuracy(views: Sequence[RunView], stored: Stored | None, problem: Problem) -> None:
    """Draws the share of new problems that each solves, by step."""
    scores = accuracies(views, stored)
    end = float(max((view.total_steps for view in views), default=1))
    ends = ", ".join(TEXT("alt end", title=each.title, end=each.end) for each in scores)
    of_sums = bool(scores) and scores[0].problem.race == CARRIES
    plot(
        accuracy_curves(scores, end, problem.chance),
        key="aloud_accuracy",
        height=HEIGHT,
        name="thinking-aloud",
        data=pd.concat(
            [
                pd.DataFrame(each.shares.T).add_prefix("seed ").assign(run=each.title, step=each.steps)
                for each in scores
            ]
            or [pd.DataFrame()]
        ),
        alt=TEXT("alt sum" if of_sums else "alt last bit", ends=ends or TEXT["nothing yet"]),
    )
    if ALOUD in problem.tasks:
        link_to("tasks", TEXT["reader"], tasks_view="heads", task=ALOUD)


def answer(scores: Sequence[Accuracy]) -> str:
    """Says how many new problems each way solves. Where only the model that writes its steps solves sums: of
    the other runs the best.
    """
    aloud = next((each for each in scores if each.task == each.problem.ways[-1]), None)
    others = [each for each in scores if each is not aloud]
    if aloud is None or not others:
        return TEXT["nothing measured"]
    lead = TEXT["lead" if len(aloud.shares) > 1 else "lead alone"]
    if aloud.solved and aloud.problem.race == CARRIES and not any(each.solved for each in others):
        best = max(float(each.shares[:, -1].max()) for each in others)
        return TEXT("adds" if best else "adds alone", lead=lead, aloud=aloud.end, best=best)
    if aloud.solved and all(each.guesses for each in others):
        return TEXT("solved", lead=lead, aloud=aloud.end, others=mean_end(others))
    rest = [TEXT("end", end=each.end, way=each.title.lower()) for each in others]
    return TEXT("so far", aloud=aloud.end, rest=content.Filled(" and ".join(rest)))


def measured(scores: Sequence[Accuracy]) -> str:
    """Says when each was solved, and by which recipe."""
    lines = []
    for each in scores:
        low, high = each.shares[:, -1].min(), each.shares[:, -1].max()
        at = each.solved_at
        when = "solved" if at is not None else "never" if each.shares.max() < SOLVED else "lost"
        lines.append(
            TEXT(
                "measured",
                title=each.title,
                seeds=len(each.shares),
                ends=TEXT("same" if low == high else "range", low=low, high=high),
                when=TEXT(f"when {when}", solved=SOLVED, step=at),
            )
        )
    return "\n".join([*lines, "", _recipe(scores[0].problem)]) if scores else ""


def _recipe(problem: Problem) -> str:
    model, train = recipe(problem.tasks[problem.ways[-1]])
    return TEXT(
        "recipe",
        layers=model.n_layers,
        heads=model.n_heads,
        width=model.d_model,
        positions=TEXT(f"position {model.position}"),
        rate=train.learning_rate,
        steps=train.steps,
        batch=train.batch_size,
        race=problem.race,
    )


def _guess(stored: Stored | None) -> Guess | None:
    """Makes a guess about the stored runs that write dots in place of their steps; None without them."""
    scores = accuracies(stored.runs, stored) if stored else []
    truth = after.dots(scores)
    if truth is None:
        return None
    at_once, dots, aloud = (truth.numbers[name] for name in scores[0].problem.ways)
    outcome = TEXT("outcome", dots=dots, aloud=aloud, at_once=at_once)
    return Guess.of(TEXT, truth, TEXT["guess"], outcome)


def accuracy_curves(scores: Sequence[Accuracy], end: float, chance: float) -> go.Figure:
    """Draws the share of right answers by step: the mean of all seeds, each seed as a thin line, and the
    share that is right by `chance` unless it is 0.
    """
    means = [Solved(each.title, each.steps, each.mean, SHADES[i], DASHES[i]) for i, each in enumerate(scores)]
    figure = solved_curves(means, end, what=TEXT["solved axis"])
    thin = [
        go.Scatter(
            x=each.steps,
            y=np.asarray(shares, np.float32),
            mode="lines",
            line={"color": colour(SHADES[i]), "width": 1},
            opacity=0.5,
            showlegend=False,
            hovertemplate=TEXT("one seed", title=each.title),
        )
        for i, each in enumerate(scores)
        for shares in each.shares
        if len(each.shares) > 1
    ]
    level: dict[str, object] = {}
    if chance:
        quiet = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}
        corner = {"xref": "paper", "xanchor": "right", "yanchor": "top"}
        font = {"color": colour("quiet"), "size": 13}
        level = {
            "shapes": [go.rule(y=chance, line=quiet, layer="below")],
            "annotations": [go.note(TEXT["chance"], 1, chance, font=font, **corner)],
        }
    return go.Figure([*thin, *figure.traces], figure.arrangement | level)


PARITY = View(
    "parity",
    TEXT,
    partial(draw, "parity"),
    (running_parity, parity),
    name=TEXT["parity"],
    variant="parity",
    fields={"bits": BITS},
)
ADDITION = View(
    "addition",
    TEXT,
    partial(draw, "addition"),
    (column_steps, long_addition),
    name=TEXT["addition"],
    variant="addition",
    fields={"columns": COLUMNS},
)
VIEW = View(
    "aloud",
    TEXT,
    needs_model=False,
    parts=Parts(
        "aloud_mode",
        (PARITY, ADDITION, best_of_n.PART, tool_call.PART),
        label=TEXT["compute"],
        hint=TEXT["compute hint"],
        line=(4, 7),
    ),
)
