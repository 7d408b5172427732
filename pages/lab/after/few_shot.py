"""SmolLM2, a part of the view "In-context learning": how often it is right, by examples in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tokenizers import Tokenizer
from pages.lab.after.word_pairs import WORD_PAIRS
from studies.circuits.examples_in_prompt import COUNTS, EXCHANGED, RIGHT, FewShot, measure, order, prompt
from studies.guesses import after
from ui import content, explain, guess, model_choice, models, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.labels import plain, short
from ui.figures.theme import SEQUENTIAL, colour
from ui.guess import Guess
from ui.models import REAL_MODEL
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.tokens import show_bytes
from ui.training_step import NEWEST

TEXT = content.beside(__file__)
WAYS = {"right": RIGHT, "exchanged": EXCHANGED}
ANSWERS = "context_answers"  # key: what the examples answer
SHOWN = 2  # examples of the prompt that is written out
HEIGHT = 412
SHADES = {RIGHT: "attention", EXCHANGED: "run1"}
PLACES = np.arange(len(COUNTS))
LETTERS = 9  # of an answer in its cell; the hover has all of it


def draw(line: DeltaGenerator) -> None:
    """Draws the controls and a prompt into `line`; below it the share of right answers, and what was answered
    to every word.
    """
    with line:
        task = widgets.select(
            TEXT["task"], {task: TEXT(f"task {task}") for task in WORD_PAIRS}, "context_task"
        )
        ways = {way: TEXT(f"answers {way}") for way in WAYS}
        way = WAYS[widgets.select(TEXT["answers"], ways, ANSWERS, hint=TEXT["answers hint"])]
        st.code(example(task, way).replace("\n", " ⏎ "), language=None)
    if model_choice.first_of((REAL_MODEL,)) != REAL_MODEL:
        st.info(TEXT["not here"])
        return
    real = models.model_of(REAL_MODEL, NEWEST, ())
    few = measured(
        ("few-shot", REAL_MODEL, task),
        partial(measure, real.model, real.tokenizer, WORD_PAIRS[task]),
        TEXT["measuring"],
        lambda so_far: _draw(task, so_far, way, real.tokenizer),
    )
    if few is None:
        return
    if way == RIGHT:
        guess.ask("exchanged", _guess, few, task)
    _draw(task, few, way, real.tokenizer)
    explain.answer(answer(task, few, way))
    explain.measure_it(_more, few)


def _draw(task: str, few: FewShot | None, way: int, tokenizer: Tokenizer) -> None:
    """Draws what there is so far: nothing before the first draw."""
    if few is None or not few.accuracy.shape[1]:
        return
    shares = zip(COUNTS, few.mean_accuracy[way], strict=True)
    said = ", ".join(TEXT("alt share", count=count, share=share) for count, share in shares)
    left, right = st.columns([1, 1], gap="medium")
    with left:
        plot(
            by_examples(few, way),
            key="context_by_examples",
            height=HEIGHT,
            name="examples-in-prompt",
            data=table(few),
            alt=TEXT("alt", answer=TEXT(f"answer {task}"), shares=said),
        )
    with right:
        tokens = [[show_bytes(tokenizer.decode([int(i)]).encode()) for i in row] for row in few.guess[way, 0]]
        plot(
            answers(few, way, tokens),
            key="context_words",
            height=HEIGHT,
            name="answers",
            data={"word": [word for word, _ in few.pairs]}
            | {TEXT("after", count=count): [row[i] for row in tokens] for i, count in enumerate(COUNTS)},
            alt=TEXT("alt answers", answer=TEXT(f"answer {task}")),
        )


def example(task: str, way: int) -> str:
    """Returns the prompt of the first draw's word after SHOWN examples."""
    drawn = order(len(WORD_PAIRS[task]), 0)[: SHOWN + 1]
    pairs = [WORD_PAIRS[task][i] for i in drawn]
    shown = [(pairs[i][0], pairs[i + way][1]) for i in range(SHOWN)]
    return prompt(shown, pairs[-1][0])


def answer(task: str, few: FewShot, way: int) -> str:
    """Says how often it is right without an example and after the most, or what exchanged answers do."""
    right, exchanged = (few.mean_accuracy[each] for each in (RIGHT, EXCHANGED))
    if way == EXCHANGED:
        share = exchanged[-1] / right[-1] if right[-1] else 0.0
        left = "same" if share >= after.MOST else "few" if share < after.FEW else "half"
        case = f"exchanged {left}"
    else:
        case = "learned" if right[-1] > 2 * right[0] else "not learned"
    return TEXT(
        case,
        answer=TEXT(f"answer {task}"),
        none=right[0],
        right=right[-1],
        exchanged=exchanged[-1],
        most=COUNTS[-1],
        draws=few.accuracy.shape[1],
    )


def table(few: FewShot) -> pd.DataFrame:
    """Returns the shares, a row for each way, draw and count of examples."""
    ways, draws, counts = few.accuracy.shape
    names = np.array([TEXT(f"answers {way}") for way in WAYS])
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
    words, draws = len(few.pairs), few.accuracy.shape[1]
    counts = ", ".join(map(str, COUNTS))
    st.markdown(TEXT("measured", words=words, counts=counts, draws=draws, answers=few.accuracy.size * words))


def _guess(few: FewShot, task: str) -> Guess | None:
    """Makes a guess about examples with one another's answers; a choice sets that."""
    truth = after.exchanged(few)
    if truth is None:
        return None
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", answer=TEXT(f"answer {task}"), most=COUNTS[-1]),
        TEXT("outcome", **truth.numbers),
        {ANSWERS: "exchanged"},
    )


def by_examples(few: FewShot, way: int) -> go.Figure:
    """Draws the share of right answers and the probability of the right one by examples in the prompt: means,
    and thin lines for each draw; where the answers are exchanged, the others stay for comparison.
    """
    names = {RIGHT: TEXT["line right"], EXCHANGED: TEXT["line exchanged"]}
    traces = [
        _line(each, SHADES[way], TEXT["one draw"], 1.0, legend=draw == 0)
        for draw, each in enumerate(few.accuracy[way])
    ]
    if way == EXCHANGED:
        traces.append(_line(few.mean_accuracy[RIGHT], SHADES[RIGHT], names[RIGHT], 2.0))
    traces.append(_line(few.mean_accuracy[way], SHADES[way], names[way], 5.0))
    traces.append(_line(few.mean_likelihood[way], "output", TEXT["line likelihood"], 2.5, "dash"))
    return go.figure(
        traces,
        uirevision="context-by-examples",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        xaxis=go.ticks(PLACES, list(map(str, COUNTS)), title=TEXT["examples axis"], range=[-0.15, 5.15]),
        yaxis={"title": {"text": TEXT["share axis"]}, "range": [-0.02, 1.04], "tickformat": ".0%"},
    )


def answers(few: FewShot, way: int, tokens: Sequence[Sequence[str]]) -> go.Figure:
    """Draws the answer `tokens` (pair, count) of the first draw to every word, right ones bold, over the
    probability of the right answer.
    """
    right, values = few.right[way, 0], few.probability[way, 0]
    cells = [
        [_cell(token, bool(ok)) for token, ok in zip(row, oks, strict=True)]
        for row, oks in zip(tokens, right, strict=True)
    ]
    heat = go.Heatmap(
        z=values.astype(np.float32),
        x=PLACES,
        y=np.arange(len(few.pairs)),
        text=cells,
        texttemplate="%{text}",
        textfont={"size": 12},
        hovertext=[[f"{word} → {answer}"] * len(COUNTS) for word, answer in few.pairs],
        hovertemplate=TEXT["tokens hover"],
        colorscale=SEQUENTIAL,
        zmin=0,
        zmax=1,
        xgap=1,
        ygap=1,
        showscale=False,
    )
    return go.figure(
        [heat],
        uirevision="context-words",
        margin={"l": 74, "r": 8, "t": 44, "b": 6},
        showlegend=False,
        xaxis=go.ticks(PLACES, list(map(str, COUNTS)), title=TEXT["tokens axis"], side="top"),
        yaxis=go.ticks(
            np.arange(len(few.pairs)), [plain(word) for word, _ in few.pairs], autorange="reversed", ticks=""
        ),
    )


def _cell(token: str, right: bool) -> str:
    text = plain(short(token.removeprefix("␣") or token, LETTERS))
    return f"<b>{text}</b>" if right else text


def _line(
    y: np.ndarray, shade: str, name: str, width: float, dash: str = "solid", *, legend: bool = True
) -> go.Trace:
    return go.Scatter(
        x=PLACES,
        y=np.asarray(y, np.float32),
        name=name,
        mode="lines",
        line={"color": colour(shade, 60 if width < 2 else 100), "width": width, "dash": dash},
        showlegend=legend,
        hovertemplate=TEXT("hover", name=name),
    )


PART = View("words", TEXT, draw, code=(measure, order))
