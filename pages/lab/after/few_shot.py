"""The same question, asked of SmolLM2 with words: how often it answers right, by examples in its prompt."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tokenizers import Tokenizer
from engine.measure.circuits.examples_in_prompt import (
    COUNTS,
    EXCHANGED,
    RIGHT,
    FewShot,
    measure,
    order,
    prompt,
)
from pages.lab.after import figures_few_shot as figures
from pages.lab.after import guesses_context as guesses
from pages.lab.after import words_few_shot as words
from pages.lab.after.prompts import TASKS, WordTask
from ui import explain, guess, model_choice, models, widgets
from ui.background_jobs import measured
from ui.models import REAL_MODEL
from ui.players.plot import plot
from ui.text.tokens import show_bytes
from ui.training_step import NEWEST

WAYS = {"right": RIGHT, "exchanged": EXCHANGED}
ANSWERS = "context_answers"  # key: what the examples answer
SHOWN = 2  # examples of the prompt that is written out
HEIGHT = 412


def draw_few_shot(line: DeltaGenerator) -> None:
    """Draws the controls and a prompt into `line`; below it the share of right answers, and what was answered
    to every word.
    """
    with line:
        name = widgets.select("Task", {key: task.title for key, task in TASKS.items()}, "context_task")
        way = WAYS[widgets.select("Answers in the examples", words.WAYS, ANSWERS, hint=words.WAYS_HINT)]
        st.code(example(TASKS[name], way).replace("\n", " ⏎ "), language=None)
    if model_choice.first_of((REAL_MODEL,)) != REAL_MODEL:
        st.info(words.NOT_HERE)
        return
    task, real = TASKS[name], models.model_of(REAL_MODEL, NEWEST, ())
    few = measured(
        ("few-shot", REAL_MODEL, name),
        lambda: measure(real.model, real.tokenizer, task.pairs),
        words.MEASURING,
        lambda so_far: _draw(task, so_far, way, real.tokenizer),
    )
    if few is None:
        return
    if way == RIGHT:
        guess.ask("exchanged", guesses.exchanged, few, task, ANSWERS)
    _draw(task, few, way, real.tokenizer)
    explain.answer(words.answer(task, few, way))
    explain.measure_it(_more, few)


def _draw(task: WordTask, few: FewShot | None, way: int, tokenizer: Tokenizer) -> None:
    """Draws what there is so far: nothing before the first draw."""
    if few is None or not few.accuracy.shape[1]:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        plot(
            figures.by_examples(few, way),
            key="context_by_examples",
            height=HEIGHT,
            name="examples-in-prompt",
            data=table(few),
            alt=words.alt(task, few, way),
        )
    with right:
        tokens = [[show_bytes(tokenizer.decode([int(i)]).encode()) for i in row] for row in few.guess[way, 0]]
        plot(
            figures.answers(few, way, tokens),
            key="context_words",
            height=HEIGHT,
            name="answers",
            data={"word": [word for word, _ in few.pairs]}
            | {f"after {count}": [row[i] for row in tokens] for i, count in enumerate(COUNTS)},
            alt=words.answers_alt(task),
        )


def example(task: WordTask, way: int) -> str:
    """Returns the prompt of the first draw's word after SHOWN examples."""
    drawn = order(len(task.pairs), 0)[: SHOWN + 1]
    pairs = [task.pairs[i] for i in drawn]
    shown = [(pairs[i][0], pairs[i + way][1]) for i in range(SHOWN)]
    return prompt(shown, pairs[-1][0])


def table(few: FewShot) -> pd.DataFrame:
    """Returns the shares, a row for each way, draw and count of examples."""
    ways, draws, counts = few.accuracy.shape
    names = np.array([words.WAYS[way] for way in WAYS])
    return pd.DataFrame(
        {
            "answers": names.repeat(draws * counts),
            "draw": np.tile(np.arange(draws).repeat(counts), ways),
            "examples": np.tile(COUNTS, ways * draws),
            "right": few.accuracy.ravel(),
            "probability": few.likelihood.ravel(),
        }
    )


def _more(few: FewShot) -> None:
    rows = table(few).groupby(["answers", "examples"], sort=False)[["right", "probability"]]
    st.dataframe(rows.agg(["mean", "min", "max"]).round(3))
    st.markdown(words.measured(few))
