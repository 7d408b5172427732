"""The view "Induction": random tokens read twice, and what becomes of that without the heads that copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tokenizers import Tokenizer, token_bytes
from engine.model import Transformer
from studies.attention.head_patterns import STRONG
from studies.circuits.induction import Repeat, drawn, guessing, ordinary, read_twice
from studies.circuits.knockout import WEAK, Knockout, knock_out, losses_without
from studies.guesses import attention
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.charts import head_table
from ui.figures.labels import crowded, plain
from ui.figures.theme import SEQUENTIAL
from ui.fit_text import most_tokens
from ui.guess import Choice, Guess, ask
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, HEADS, SAYS
from ui.models import REAL_MODEL, UNTRAINED
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
COUNTS = (8, 16, 24, 32, 48)
MOST_SEED = 9999
HEIGHT, BELOW = 360, 250
CLEARLY_WORSE = 0.2  # nats above ln V, so that both losses differ as they are written


def draw(subject: Subject) -> None:
    """Draws both readings; the heads one by one are folded."""
    pool = _pool(subject.key[0], subject.tokenizer)
    limit = min(most_tokens(subject.config) // 2, len(pool))
    counts = [count for count in COUNTS if count <= limit] or ([limit] if limit > 1 else [])
    if not counts:
        st.info(TEXT["too small"])
        return
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    hint = TEXT["count hint"]
    count = widgets.select(TEXT["count"], counts, "induction_count", first=24, container=row, hint=hint)
    hint = TEXT["seed hint"]
    seed = widgets.whole(TEXT["seed"], 0, MOST_SEED, 0, "induction_seed", container=row, hint=hint, width=140)
    repeat = _read(subject.key, drawn(pool, count, seed), subject)
    labels = [subject.vocabulary[i] for i in repeat.once]
    plot(
        readings(repeat.first, repeat.second, labels),
        key="induction_readings",
        height=HEIGHT,
        name="read-twice",
        data={"token": labels, "first_nats": repeat.first, "second_nats": repeat.second},
        alt=TEXT("alt readings", count=len(labels), first=repeat.first_loss, second=repeat.second_loss),
    )
    explain.answer(" ".join(answer(repeat, subject)))
    if repeat.strong:
        ask("head", guess, subject.model, repeat)
    explain.measure_it(_measured, subject, repeat)


@memo.loaded()
def _pool(name: str, _tokenizer: Tokenizer) -> np.ndarray:
    return ordinary(token_bytes(_tokenizer))


@memo.measured(TEXT["reading"])
def _read(key: tuple[str, int], once: tuple[int, ...], _subject: Subject) -> Repeat:
    return read_twice(_subject.model, once)


def _measured(subject: Subject, repeat: Repeat) -> None:
    """Draws the second reading without the heads that copy, and every head's score."""
    knockout = _knocked_out(subject, repeat) if repeat.scores.size > 1 else None
    if knockout is not None and repeat.strong:
        st.markdown(without_them(knockout))
    st.markdown(TEXT("method", threshold=STRONG, weak=WEAK))
    plot(
        scores_map(repeat.scores),
        key="induction_scores",
        height=110 + 14 * max(8, len(repeat.scores)),
        name="induction-scores",
        data=head_table({"induction": repeat.scores, "previous_token": repeat.previous}),
        alt=TEXT["alt scores"],
    )
    best = pd.DataFrame(
        [
            (_name(one.layer, one.head), one.value, float(repeat.previous[one.layer, one.head]))
            for one in repeat.best[:10]
        ],
        columns=[TEXT["head"], TEXT["score"], TEXT["previous score"]],
    )
    shares = dict.fromkeys(best.columns[1:], st.column_config.NumberColumn(format="%.3f"))
    st.dataframe(best, hide_index=True, column_config=shares, key="induction_table")


def _knocked_out(subject: Subject, repeat: Repeat) -> Knockout | None:
    result = measured(
        ("induction", subject.key, repeat.once),
        partial(knock_out, subject.model, repeat),
        TEXT["knocking out"],
    )
    if result is None:
        return None
    names = [_name(*head) for head in result.heads]
    plot(
        knocked_out(result, names, repeat.first_loss),
        key="induction_knockout",
        height=BELOW,
        name="heads-off",
        data={
            "heads_off": np.arange(len(result.without)),
            "last": ["", *names],
            "best_nats": result.without,
            "random_mean_nats": result.others_mean,
        }
        | {f"random_{i}_nats": others for i, others in enumerate(result.others)},
        alt=TEXT("alt knockout", heads=len(names)),
    )
    return result


# What is said of it -------------------------------------------------------------------------------


def answer(repeat: Repeat, subject: Subject) -> list[str]:
    """Says what is seen and which heads copy, or why none does and what is missing for it."""
    uniform = guessing(subject.config.vocab_size)
    if repeat.first_loss > uniform + CLEARLY_WORSE:
        said = "copies worse" if repeat.copies else "hardly copies worse"
    else:
        said = "copies" if repeat.copies else "hardly copies"
    losses = TEXT(said, first=repeat.first_loss, guess=uniform, second=repeat.second_loss)
    top, below = repeat.best[0], repeat.before
    if many := len(repeat.strong):
        heads = "several heads" if many > 1 else "one head"
        return [losses, TEXT(heads, many=many, head=_name(top.layer, top.head), share=top.value)]
    none = TEXT("no head", head=_name(top.layer, top.head), share=top.value, threshold=STRONG)
    half = "half is there" if below.value >= STRONG else "half is missing"
    lacks = "one block" if subject.config.n_layers == 1 else half
    sentences: list[str] = [losses, none, TEXT(lacks, head=_name(below.layer, below.head), share=below.value)]
    if subject.key[0].startswith(UNTRAINED):
        sentences.append(TEXT["untrained"])
    elif subject.repeat:
        sentences.append(TEXT("trained on repeats", share=subject.repeat))
    elif subject.corpus is not None:
        context = subject.config.context
        sentences.append(TEXT("trained on text", corpus=subject.corpus, context=context))
    return sentences


def without_them(off: Knockout) -> str:
    """Says what the second reading costs with the best heads off, and with as many others."""
    given: dict[str, Any] = {"off": len(off.heads), "best": off.without[-1], "random": off.others_mean[-1]}
    if not off.below:
        return TEXT("without them", **given)
    below = off.below[0]
    return TEXT("without one below", **given, head=_name(below.layer, below.head), loss=below.value)


def _name(layer: int, head: int) -> content.Filled:
    """A head's name on the axes: both counted from 0."""
    return content.Filled(f"{layer}.{head}")


def guess(model: Transformer, repeat: Repeat) -> Guess | None:
    """Returns which head is missed most at the second reading."""
    truth = attention.missed_head(model, repeat)
    if truth is None:
        return None
    names = {kind: _name(*head) for kind, head in attention.candidates(repeat).items()}
    choices = tuple(
        Choice(TEXT(f"choice {kind}", head=name), _reply(kind, truth.right)) for kind, name in names.items()
    )
    n = truth.numbers
    losses = ", ".join(TEXT("loss without", loss=n[kind], head=names[kind]) for kind in truth.offered)
    outcome = TEXT("outcome", whole=n["whole"], losses=content.Filled(losses))
    right = truth.offered.index(truth.right)
    return Guess(TEXT["guess"], choices, right, outcome, {explain.MEASURE: True})


def _reply(kind: str, right: str) -> str:
    """Names the thought behind choosing a head, missed less than the right one unless it is that."""
    if kind == right:
        return TEXT(f"right {kind}")
    wrong = TEXT(f"wrong {kind}")
    return TEXT("against idle", wrong=wrong) if right == "idle" else wrong


# Figures ------------------------------------------------------------------------------------------


def readings(first: np.ndarray, second: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws the loss of each token at its first and at its second reading, (place,) both."""
    at, hover = np.arange(len(labels)), TEXT["hover of a token"]
    rest: dict[str, Any] = {"points": 5, "customdata": [plain(label) for label in labels]}
    traces = [
        go.line(at, first, "quiet", TEXT["first reading"], hover, dash="dot", **rest),
        go.line(at, second, "validation", TEXT["second reading"], hover, **rest),
    ]
    tall = crowded(labels, 480)
    return go.figure(
        traces,
        margin={"l": 44, "r": 8, "t": 26, "b": 30 + (7 * tall or 14)},
        xaxis=token_axis(labels, TEXT["tokens axis"], upright=tall > 0)
        | {"tickfont": MONO | {"size": 11 if tall else 13}},
        yaxis={"title": {"text": TEXT["loss axis"]}, "rangemode": "tozero", "zeroline": False},
    )


def knocked_out(off: Knockout, heads: Sequence[str], first: float) -> go.Figure:
    """Draws the loss of the second reading by the number of heads that are off: the best ones, as many others
    with their mean; `first`, the loss of the first reading, is a line.
    """
    at = np.arange(len(off.without))
    names = [TEXT["all heads"], *(TEXT("without", head=head) for head in heads)]
    traces = [
        go.line(at, draw, "quiet", width=1, opacity=0.5, hoverinfo="skip", showlegend=False)
        for draw in off.others
    ]
    hover = TEXT["random hover"]
    traces.append(go.line(at, off.others_mean, "quiet", TEXT["random heads"], hover, points=5))
    hover = TEXT["best hover"]
    traces.append(
        go.line(at, off.without, "attention", TEXT["best heads"], hover, points=5, customdata=names)
    )
    return go.figure(
        traces,
        margin={"l": 44, "r": 8, "t": 26, "b": 60},
        **go.level(TEXT["first reading"], first, width=1.2),
        xaxis=go.ticks(
            at,
            [TEXT["none"], *heads],
            title=TEXT["heads off axis"],
            tickangle=0 if len(heads) <= 8 else -90,
        ),
        yaxis={"title": {"text": TEXT["knockout axis"]}, "rangemode": "tozero", "zeroline": False},
    )


def scores_map(scores: np.ndarray) -> go.Figure:
    """Draws a weight in [0, 1] of every head, (layer, head); layer 0 at the bottom."""
    heat = go.Heatmap(
        z=scores.astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        xgap=1,
        ygap=1,
        hovertemplate=TEXT["hover of a score"],
        colorbar={"title": {"text": TEXT["weight"], "side": "top"}, "thickness": 10},
    )
    layers, heads = ([str(i) for i in range(n)] for n in scores.shape)
    return go.figure(
        [heat],
        margin={"l": 44, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=rows_axis(heads, title={"text": TEXT["head"]}, tickangle=0),
        yaxis=rows_axis(layers, title={"text": TEXT["block"]}),
    )


def _variant(subject: Subject) -> str:
    return "" if subject.is_pretrained else "small"


VIEW = View(
    "induction",
    TEXT,
    draw,
    (read_twice, knock_out, losses_without),
    brings_text=True,
    takes=(SAYS, CAUSAL, HEADS),
    best=(REAL_MODEL, "timelapse"),
    variant=_variant,
)
