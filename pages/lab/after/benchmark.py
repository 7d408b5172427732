"""The view "Benchmark": twenty questions, marked in four ways; and once the model was trained on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.slices import seed_median
from pages.lab.after.stored_runs import MOST_SEED, stored_runs, train_button
from studies.after.benchmark import (
    LETTERS,
    MIXED,
    ORDERS,
    RECIPE,
    WAYS,
    WORDINGS,
    Scores,
    Way,
    Wording,
    arranged,
    by_chance,
    cloze,
    contaminate,
    interval,
    log_p,
    right_letters,
    sheet,
)
from studies.after.benchmark_questions import EXAMPLES, ITEMS
from studies.experiments.benchmark_runs import Plan, shipped
from studies.guesses import after
from ui import content, explain, guess, model_choice, models, widgets
from ui.background_jobs import begun, measured
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess
from ui.models import REAL_MODEL
from ui.page_frame import View
from ui.players.plot import plot
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
COUNT, LEAST, MOST = len(ITEMS), *by_chance()
APART = 6  # questions: two standard errors of the difference of two marks near a half, were they independent
ORDER = "bench_order"  # key
HEIGHT = 330


def draw() -> None:
    """Draws the marks of the model that is chosen, and the scores of a question."""
    a, b, c, d, e = st.columns([5.6, 3.6, 3, 3.8, 2.9], gap="small", vertical_alignment="bottom")
    names = {name: TEXT(f"model {name}") for name in ("published", "trained")}
    hint = TEXT("trained hint", steps=RECIPE.steps)
    trained = widgets.select(TEXT["model"], names, "bench_model", container=a, hint=hint) == "trained"
    titles = {name: TEXT(f"wording {name}") for name in WORDINGS}
    wording: Wording = widgets.select(TEXT["wording"], titles, "bench_wording", kind="list", container=b)
    hint = TEXT("order hint", quarter=COUNT // len(LETTERS))
    orders = {order: TEXT["order mixed"] if order == MIXED else order for order in ORDERS}
    order = widgets.select(TEXT["order"], orders, ORDER, kind="list", container=c, hint=hint)
    number = widgets.whole(TEXT["number"], 1, COUNT, 1, "bench_question", container=e)
    stored = {run.plan: run.scores for run in stored_runs(shipped)}
    runs, examples = (_trained(stored, d), 0) if trained else _published(stored, d)
    if runs is None:
        return
    if not runs or Plan(0) not in stored:
        explain.answer(TEXT["nothing"])
        return
    before = stored[Plan(0)] if trained else runs[0]
    if not trained and wording == "question":
        guess.ask("placed", _guess, before)
    ways = WAYS if wording == "question" else WAYS[1:]
    marks = {way: seed_median(run.mark(way, wording, order) for run in runs) for way in ways}
    said = ", ".join(TEXT("alt mark", way=TEXT(f"way {way}"), mark=mark) for way, mark in marks.items())
    left, right = st.columns([4, 5], gap="small")
    with left:
        plot(
            bars(ways, before, runs if trained else (), wording, order),
            key="bench_marks",
            height=HEIGHT,
            name="benchmark",
            data=table(runs, before),
            alt=TEXT("alt", count=COUNT, marks=said, least=LEAST, most=MOST),
        )
    with right:
        st.markdown(options(runs[0], number - 1, wording, order))
        st.caption(TEXT["ways"])
    explain.answer(
        trained_answer(before, runs, wording) if trained else answer(before, wording, order, examples)
    )
    explain.measure_it(_more, stored, int(marks["whole"]))


def _published(stored: Mapping[Plan, Scores], container: DeltaGenerator) -> tuple[tuple[Scores, ...], int]:
    """Draws the number of examples; returns the scores with it, none where they are not stored, and it."""
    hint = TEXT("examples hint", letters=", ".join(letter for _, letter in EXAMPLES))
    counts = [str(count) for count in range(len(EXAMPLES) + 1)]
    count = int(widgets.select(TEXT["examples"], counts, "bench_examples", hint=hint, container=container))
    return tuple(scores for plan, scores in stored.items() if plan == Plan(count)), count


def _trained(stored: Mapping[Plan, Scores], container: DeltaGenerator) -> tuple[Scores, ...] | None:
    """Draws the button that trains; returns the scores of the run that was trained here, else of the stored
    ones, that of the seed first; None while it goes on.
    """
    seeds = [plan.seed for plan in stored if plan.seed is not None]
    runs = tuple(stored[Plan(0, seed)] for seed in seeds)
    if model_choice.first_of((REAL_MODEL,)) != REAL_MODEL:
        container.caption(TEXT["not here"])
        return runs
    a, b = container.columns([1, 1], gap="small", vertical_alignment="bottom")
    recipe = replace(RECIPE, seed=widgets.whole(TEXT["seed"], 0, MOST_SEED, 0, "bench_seed", container=a))
    key = ("benchmark", REAL_MODEL, recipe)
    if not (train_button(b, "bench", TEXT["train"]) or begun(key)):
        first = recipe.seed % max(1, len(runs))
        if runs and recipe.seed not in seeds:
            st.caption(TEXT("not trained", seed=recipe.seed, seeds=len(runs), first=seeds[first]))
        return runs[first:] + runs[:first]
    real = models.model_of(REAL_MODEL, NEWEST, ())
    done = measured(
        key, partial(contaminate, real.model, real.tokenizer, recipe), TEXT["training"], pausable=True
    )
    return None if done is None else (done.scores,)


def answer(scores: Scores, wording: Wording, order: str, examples: int = 0) -> str:
    """Says what the way of marking, the order or the wording does to the mark, and where the answers of that
    many examples stood.
    """
    now, first = scores.mark("whole", wording), scores.mark("whole")
    if wording == "other":
        return TEXT("others", now=now, first=first, count=COUNT)
    if wording == "paraphrase":
        alike = abs(now - first) < APART
        return TEXT("worded" if alike else "worded apart", now=now, first=first, count=COUNT)
    marks = [scores.mark(way) for way in WAYS]
    if order == MIXED:
        spread = "spread" if LEAST <= marks[0] <= MOST else "spread above"
        return TEXT(spread, low=min(marks), high=max(marks), count=COUNT)
    mark = scores.mark("letter", order=order)
    placed = "unplaced" if LEAST <= mark <= MOST else "placed"
    said = TEXT(placed, order=order, mark=mark, mixed=marks[0], count=COUNT)
    if placed == "unplaced" or not examples:
        return said
    prefers = max(LETTERS, key=lambda letter: scores.mark("letter", order=letter))
    letters = ", ".join(letter for _, letter in EXAMPLES[:examples])
    return f"{said} {TEXT('prefers', letter=prefers, examples=examples, letters=letters)}"


def trained_answer(before: Scores, runs: Sequence[Scores], wording: Wording) -> str:
    """Says what training on the questions has changed, by medians of the runs."""
    first, last = before.mark("whole", wording), [run.mark("whole", wording) for run in runs]
    rose = all(mark > first + 1 for mark in last)
    several = TEXT("of seeds" if len(runs) > 1 else "of one", seeds=len(runs))
    numbers = {"before": first, "after": f"{seed_median(last):g}", "count": COUNT, "seeds": several}
    if wording == "question":
        guesses = all(LEAST <= run.mark("letter") <= MOST for run in runs)
        letter = TEXT["letter chance" if guesses else "letter above"]
        return TEXT("learned", steps=RECIPE.steps, letter=letter, **numbers)
    if wording == "paraphrase":
        return TEXT("reworded" if rose else "not reworded", **numbers)
    return TEXT("wiser" if rose else "no wiser", **numbers)


def options(scores: Scores, at: int, wording: Wording, order: str) -> str:
    """Returns the options of a question with what each way compares, the highest bold (Markdown)."""
    item, first = ITEMS[at], int(right_letters(order)[at])
    question = {"question": item.question, "paraphrase": item.paraphrase, "other": item.other}[wording]
    wanted = item.right_of_other if wording == "other" else 0
    compared = {way: scores.compared(way, wording, order)[at].tolist() for way in WAYS}
    rows = []
    for option in np.roll(np.arange(len(LETTERS)), first).tolist():
        letter = LETTERS[(option + first) % len(LETTERS)]
        name = TEXT(
            "right mark" if option == wanted else "wrong mark", name=f"{letter}. {item.options[option]}"
        )
        cells = {
            way: TEXT["none"]
            if way == "letter" and wording != "question"
            else TEXT("highest" if values[option] == max(values) else "value", value=values[option])
            for way, values in compared.items()
        }
        rows.append(TEXT("option", name=name, **cells))
    return "\n".join([TEXT("options", question=question), *rows])


def table(runs: Sequence[Scores], before: Scores) -> pd.DataFrame:
    """Returns the marks by each way, a row for each run and kind of question."""
    rows = [
        (
            name,
            wording,
            *(
                scores.mark(way, wording) if way != "letter" or wording == "question" else np.nan
                for way in WAYS
            ),
        )
        for name, scores in (
            (TEXT["before"], before),
            *((TEXT["after"], run) for run in runs if run is not before),
        )
        for wording in WORDINGS
    ]
    return pd.DataFrame(rows, columns=["model", "wording", *WAYS])


def _more(stored: Mapping[Plan, Scores], mark: int) -> None:
    low, high = interval(mark, COUNT)
    st.markdown(TEXT("measured", mark=mark, count=COUNT, low=low, high=high))
    published = {plan.examples: scores for plan, scores in stored.items() if plan.seed is None}
    rows = [
        {TEXT["examples"]: str(count)} | {order: scores.mark("letter", order=order) for order in ORDERS}
        for count, scores in published.items()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True)
    st.caption(TEXT["stored by"])


def _guess(scores: Scores) -> Guess | None:
    """Makes a guess about the letter mark with every right answer at A; a choice sets that."""
    truth = after.placed(scores, LETTERS[0])
    if truth is None:
        return None
    question = TEXT("guess", order=LETTERS[0], count=COUNT)
    return Guess.of(TEXT, truth, question, TEXT("outcome", count=COUNT, **truth.numbers), {ORDER: LETTERS[0]})


def bars(
    ways: Sequence[Way], before: Scores, trained: Sequence[Scores], wording: Wording, order: str
) -> go.Figure:
    """Draws a bar for each way, over the band of guessing; where the model was trained, the median of the
    runs beside it, and a point for each.
    """
    rows = np.arange(len(ways))
    first: list[float] = [before.mark(way, wording, order) for way in ways]
    shown = [(TEXT["before"], "quiet" if trained else "output", first)]
    each = [[run.mark(way, wording, order) for way in ways] for run in trained]
    if trained:
        shown.append((TEXT["after"], "output", [seed_median(marks) for marks in zip(*each, strict=True)]))
    traces = [
        go.Bar(
            x=values,
            y=rows,
            orientation="h",
            name=name,
            text=[f"{value:g}" for value in values],
            textangle=0,
            insidetextanchor="middle",  # at the end stand the points
            marker={"color": colour(shade)},
            hovertemplate=f"{TEXT['hover']}<extra>{name}</extra>",
        )
        for name, shade, values in shown
    ]
    traces += [
        go.Scatter(
            x=marks,
            y=rows + 0.2,
            mode="markers",
            marker={"size": 7, "color": colour("quiet"), "line": {"width": 1}},
            name=TEXT["one seed"],
            showlegend=first,
            hovertemplate=f"{TEXT['hover']}<extra>{TEXT['one seed']}</extra>",
        )
        for first, marks in zip((True, *[False] * len(each)), each, strict=False)
        if len(each) > 1
    ]
    band = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "x0": LEAST, "x1": MOST, "line": {"width": 0}}
    font = {"color": colour("quiet"), "size": 13}
    return go.figure(
        traces,
        margin={"l": 150, "r": 12, "t": 76 if trained else 24, "b": 40},
        showlegend=bool(trained),
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": 1.09, "yanchor": "bottom"},
        xaxis=go.axis(TEXT("axis", count=COUNT), range=[0, COUNT + 0.6], dtick=5),
        yaxis=go.ticks(rows, [TEXT[f"way {way}"] for way in ways], autorange="reversed"),
        shapes=[band | {"fillcolor": colour("quiet", 18), "layer": "below"}],
        annotations=[
            go.note(TEXT["chance"], (LEAST + MOST) / 2, 1, yref="paper", yanchor="bottom", font=font)
        ],
    )


VIEW = View(
    "benchmark",
    TEXT,
    draw,
    (log_p, cloze, sheet, arranged, contaminate),
    needs_model=False,
    fields={"count": COUNT, "expected": COUNT // len(LETTERS), "least": LEAST, "most": MOST},
    shows=("contamination", "PMI", "acc_norm", "multiple choice"),
)
