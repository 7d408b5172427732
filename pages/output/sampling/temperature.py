"""The view "Temperature": the same logits and the same model at five temperatures, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import ends
from engine.sample import Stage
from engine.sample.generate import steps
from engine.sample.stages import temperature
from pages.output.sampling.position_and_seed import LIKELIEST, offer_uncertain, position_and_seed, staged
from studies.generation.decoding_comparison import write_each
from studies.generation.outcome import likeliest_ids
from studies.guesses import sampling
from ui import content, explain
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.axes import MONO
from ui.figures.labels import plain
from ui.figures.theme import base_layout, colour
from ui.guess import Guess, ask
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.model_needs import SAYS
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
TEMPERATURES = (0.2, 0.5, 0.8, 1.0, 1.5)
SHOWN = 8  # tokens in a chart
CHARACTERS = 200
HEIGHT, BEGINS = 185, 90  # pixels of the charts; letters of a text below its chart
NARROW = 620  # pixels of the five charts: a narrower screen scrolls
SURE = 0.5  # of the favourite at the highest temperature: then the draws are tame at all of them


def draw(subject: Subject) -> None:
    """Draws the likeliest tokens at five temperatures, and what the model writes at each."""
    position, seed = position_and_seed(subject)
    logits = subject.recording().logits[position]
    order = likeliest_ids(logits, LIKELIEST)
    records = [staged(subject, position, SampleConfig(temperature=t), logits)[-1] for t in TEMPERATURES]
    scrolled("sampling_five", NARROW)
    with st.container(key="sampling_five"):
        _charts(subject, order, records, logits)
    texts = None
    if subject.config.causal:
        texts = _samples(subject, position, seed)
    else:
        st.info(TEXT["no samples"])
    sure = _answer(records[0], records[-1], order[0], subject.vocabulary)
    if sure:
        offer_uncertain(subject, position)
    ask("colder", colder, logits, subject.vocabulary)
    listed = pd.DataFrame(
        {TEXT["token"]: [subject.vocabulary[i] for i in order], TEXT["logit"]: logits[order].round(2)}
        | {name: r.probabilities[order].round(4) for name, r in zip(_titles(), records, strict=True)}
    )
    explain.measure_it(_uncertainty, records, listed, texts)


def _titles() -> list[str]:
    return [TEXT("at", t=t) for t in TEMPERATURES]


def _answer(cold: Stage, warm: Stage, likeliest: int, vocabulary: Sequence[str]) -> bool:
    """Compares the likeliest token at the lowest and the highest temperature. True where the model is sure at
    all of them.
    """
    sure = float(warm.probabilities.max()) > SURE
    explain.answer(
        TEXT(
            "sure" if sure else "sharp and flat",
            token=vocabulary[likeliest],
            coldest=TEMPERATURES[0],
            hottest=TEMPERATURES[-1],
            low=cold.probabilities[likeliest],
            high=warm.probabilities[likeliest],
            low_choices=cold.choices,
            high_choices=warm.choices,
        )
    )
    return sure


def colder(logits: np.ndarray, vocabulary: Sequence[str]) -> Guess | None:
    """Makes a guess about half the temperature and the two likeliest of logits (vocab,)."""
    truth = sampling.colder(logits)
    if truth is None:
        return None
    n = truth.numbers
    first, second = (vocabulary[i] for i in likeliest_ids(logits, 2))
    choices = {name: TEXT("times", ratio=n[name]) for name in ("same", "doubled", "squared")}
    question = TEXT("guess", first=first, second=second, same=n["same"])
    return Guess.of(TEXT, truth, question, TEXT("outcome", found=n["found"]), choices=choices)


def _charts(subject: Subject, order: np.ndarray, records: list[Stage], logits: np.ndarray) -> None:
    tokens = [subject.vocabulary[i] for i in order]
    values = np.stack([r.probabilities[order] for r in records])
    table = pd.DataFrame(
        {
            "token": tokens,
            "id": order,
            "logit": logits[order],
            **{f"temperature_{t:g}": v for t, v in zip(TEMPERATURES, values, strict=True)},
        }
    )
    each = ", ".join(f"{t:g}" for t in TEMPERATURES)
    plot(
        figure(tokens[:SHOWN], values[:, :SHOWN], _titles()),
        key="sampling_temperatures",
        height=HEIGHT,
        name="temperatures",
        data=table,
        alt=TEXT("alt", tokens=len(tokens[:SHOWN]), temperatures=each),
    )


def _samples(subject: Subject, position: int, seed: int) -> tuple[str, ...] | None:
    """A text below each chart."""
    ids = subject.ids[: position + 1]
    samplings = [SampleConfig(temperature=t, seed=seed) for t in TEMPERATURES]
    texts = measured(
        ("temperatures", subject.key, ids, seed),
        partial(
            write_each,
            subject.model,
            subject.tokenizer,
            ids,
            CHARACTERS,
            samplings,
            ends(subject.tokenizer),
        ),
        TEXT["writing"],
        offer=TEXT["write each"] if subject.is_pretrained else "",
    )
    if texts is None:
        return None
    with st.container(key="gf-text-temperatures"):  # a text by its class: not words of ours
        columns = st.columns(len(TEMPERATURES), gap="small")
    for column, t, text in zip(columns, TEMPERATURES, texts, strict=True):
        with column:
            st.caption(TEXT("writes", t=t))
            st.code(begin(text), language=None, wrap_lines=True)
    return texts


def begin(text: str) -> str:
    r"""Returns the beginning of a text that fits below its chart, on few lines.

    >>> begin("To be,\nor not")
    'To be,⏎ or not'
    """
    return text[:BEGINS].replace("\n", "⏎ ") + (" …" if len(text) > BEGINS else "")


def _uncertainty(records: list[Stage], listed: pd.DataFrame, texts: Sequence[str] | None) -> None:
    """The entropy of the next token at each temperature, the likeliest tokens, and the whole texts."""
    entropy, choices = TEXT["entropy"], TEXT["choices"]
    rows = [
        {TEXT["temperature"]: t, entropy: r.entropy, choices: r.choices}
        for t, r in zip(TEMPERATURES, records, strict=True)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="sampling_entropies",
        column_config={
            entropy: st.column_config.NumberColumn(format="%.2f"),
            choices: st.column_config.NumberColumn(format="%.1f"),
        },
    )
    st.caption(TEXT["choices are"])
    st.dataframe(listed, hide_index=True, key="sampling_likeliest")
    st.caption(TEXT["likeliest"])
    for title, text in zip(_titles(), texts or (), strict=False):
        st.markdown(f"**{title}**")
        st.code(text, language=None, wrap_lines=True)


def figure(tokens: Sequence[str], values: np.ndarray, titles: Sequence[str]) -> go.Figure:
    """Draws probabilities (temperature, token) as one panel of bars for each temperature, all on
    one scale.
    """
    at, names = -np.arange(len(tokens)), [plain(w) for w in tokens]
    count, gap = len(titles), 0.018
    width = (1 - gap * (count - 1)) / count
    traces = []
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 26, "b": 24},
        showlegend=False,
        bargap=0.25,
        yaxis=go.ticks(at, names, tickfont=MONO),
        annotations=[
            go.note(
                title,
                i * (width + gap) + width / 2,
                1.0,
                xref="paper",
                yref="paper",
                xanchor="center",
                yanchor="bottom",
            )
            for i, title in enumerate(titles)
        ],
    )
    top = float(values.max()) * 1.05
    for i, title in enumerate(titles):
        axis = "" if i == 0 else str(i + 1)
        begin = i * (width + gap)
        layout[f"xaxis{axis}"] = {
            "domain": [begin, min(1.0, begin + width)],
            "range": [0, top],
            "nticks": 3,
            "anchor": "y",
            "tickformat": ".1~f",
        }
        traces.append(
            go.Bar(
                x=values[i].astype(np.float32),
                y=at,
                orientation="h",
                xaxis=f"x{axis}",
                yaxis="y",
                marker={"color": colour("output")},
                customdata=names,
                hovertemplate=TEXT("hover", title=title) + "<extra></extra>",
            )
        )
    return go.Figure({"data": traces, "layout": layout})


VIEW = View("temperatures", TEXT, draw, code=(temperature, steps), takes=(SAYS,))
