"""The view "Temperature": the same logits and the same model at five temperatures, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.data.tokenizers import ends
from engine.sample import Stage
from engine.sample.decoding_comparison import write_each
from engine.sample.outcome import likeliest_ids
from pages.output.sampling import figures, guesses, words
from pages.output.sampling.position_and_seed import LIKELIEST, offer_uncertain, position_and_seed, staged
from ui import explain
from ui.background_jobs import measured
from ui.guess import ask
from ui.layout import scrolled
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

TEMPERATURES = (0.2, 0.5, 0.8, 1.0, 1.5)
SHOWN = 8  # tokens in a chart
CHARACTERS = 200
HEIGHT, BEGINS = 185, 90  # pixels of the charts; letters of a text below its chart
NARROW = 620  # pixels of the five charts: a narrower screen scrolls


def draw_temperatures(subject: Subject) -> None:
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
        st.info(words.NO_SAMPLES)
    first, last = records[0], records[-1]
    explain.answer(words.temperature(first, last, TEMPERATURES, order, safe(subject.vocabulary[order[0]])))
    if words.is_sure(last):
        offer_uncertain(subject, position)
    ask("colder", guesses.colder, logits, subject.vocabulary)
    listed = pd.DataFrame(
        {"token": [subject.vocabulary[i] for i in order], "logit": logits[order].round(2)}
        | {f"τ = {t:g}": r.probabilities[order].round(4) for t, r in zip(TEMPERATURES, records, strict=True)}
    )
    explain.measure_it(_uncertainty, records, listed, texts)


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
    plot(
        figures.temperatures(tokens[:SHOWN], values[:, :SHOWN], [f"τ = {t:g}" for t in TEMPERATURES]),
        key="sampling_temperatures",
        height=HEIGHT,
        name="temperatures",
        data=table,
        alt=words.temperatures_alt(len(tokens[:SHOWN]), TEMPERATURES),
    )


def _samples(subject: Subject, position: int, seed: int) -> tuple[str, ...] | None:
    """A text below each chart."""
    ids = subject.ids[: position + 1]
    samplings = [SampleConfig(temperature=t, seed=seed) for t in TEMPERATURES]
    texts = measured(
        ("temperatures", subject.key, ids, seed),
        lambda: write_each(
            subject.model, subject.tokenizer, ids, CHARACTERS, samplings, ends(subject.tokenizer)
        ),
        "Writing",
        offer=words.WRITE_EACH if subject.is_pretrained else "",
    )
    if texts is None:
        return None
    with st.container(key="gf-text-temperatures"):  # a text by its class: not words of ours
        columns = st.columns(len(TEMPERATURES), gap="small")
    for column, t, text in zip(columns, TEMPERATURES, texts, strict=True):
        with column:
            st.caption(f"At τ = {t:g} it writes:")
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
    rows = [
        {"temperature": t, "entropy (nats)": r.entropy, "choices": r.choices}
        for t, r in zip(TEMPERATURES, records, strict=True)
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="sampling_entropies",
        column_config={
            "entropy (nats)": st.column_config.NumberColumn(format="%.2f"),
            "choices": st.column_config.NumberColumn(format="%.1f"),
        },
    )
    st.caption(words.CHOICES)
    st.dataframe(listed, hide_index=True, key="sampling_likeliest")
    st.caption(words.LISTED)
    for t, text in zip(TEMPERATURES, texts or (), strict=False):
        st.markdown(f"**τ = {t:g}**")
        st.code(text, language=None, wrap_lines=True)
