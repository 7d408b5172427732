"""The view "Temperatures": the same logits and the same model at five temperatures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.sample.generate import write_each
from engine.sample.outcome import likeliest_ids
from engine.tokenizers import ends
from pages.output.sampling import figures
from pages.output.sampling.place import LIKELIEST, place, staged
from ui import explain
from ui.layout import scrolled
from ui.players.plot import plot
from ui.slow import measured
from ui.subject import Subject
from ui.text.markdown import safe

TEMPERATURES = (0.2, 0.5, 0.8, 1.0, 1.5)
CHARACTERS = 200


def draw_temperatures(subject: Subject) -> None:
    """The likeliest tokens at five temperatures, and what the model writes at each."""
    position, seed = place(subject)
    logits = subject.recording().logits[position]
    order = likeliest_ids(logits, LIKELIEST)
    records = [staged(subject, position, SampleConfig(temperature=t), logits)[-1] for t in TEMPERATURES]
    words = [subject.vocabulary[i] for i in order]
    values = np.stack([r.probabilities[order] for r in records])
    titles = [f"τ = {t:g}" for t in TEMPERATURES]
    table = pd.DataFrame(
        {
            "token": words,
            "id": order,
            "logit": logits[order],
            **{f"temperature_{t:g}": v for t, v in zip(TEMPERATURES, values, strict=True)},
        }
    )
    scrolled("sampling_five", 620)
    with st.container(key="sampling_five"):
        plot(
            figures.temperatures(words, values, titles),
            key="sampling_temperatures",
            height=440,
            name="temperatures",
            data=table,
            alt=(
                f"Probability of the {len(words)} likeliest tokens at temperatures"
                f" {', '.join(f'{t:g}' for t in TEMPERATURES)}."
            ),
        )
    facts = [f"{r.entropy:.2f} nats ≈ {r.choices:.1f} choices" for r in records]
    if subject.config.causal:
        _samples(subject, position, seed, facts)
    else:
        st.caption(
            "Entropy, and the effective number of choices: "
            + " · ".join(f"{title}: {fact}" for title, fact in zip(titles, facts, strict=True))
            + "."
        )
        st.info("This model looks both ways and fills gaps; it does not write on, so there are no samples.")
    first, last = records[0], records[-1]
    explain.takeaway(
        f"**Temperature changes no ranking, only how much it counts.** “{safe(words[0])}” has"
        f" {first.probabilities[order[0]]:.1%} at τ = {TEMPERATURES[0]:g} and"
        f" {last.probabilities[order[0]]:.1%} at τ = {TEMPERATURES[-1]:g}; the effective number of choices"
        f" goes from {first.choices:.1f} to {last.choices:.1f}."
    )


def _samples(subject: Subject, position: int, seed: int, facts: Sequence[str]) -> None:
    """A text for each temperature; `facts` say how uncertain its first draw was."""
    until = ", or until it says that it is finished" if ends(subject.tokenizer) else ""
    st.markdown(
        f"**What it writes after this text, {CHARACTERS} characters each{until}** (seed {seed}), and the"
        f" entropy over {subject.config.vocab_size:,} tokens"
    )
    samplings = [SampleConfig(temperature=t, seed=seed) for t in TEMPERATURES]
    ids = subject.ids[: position + 1]
    texts = measured(
        ("temperatures", subject.key, ids, seed),
        lambda: write_each(
            subject.model, subject.tokenizer, ids, CHARACTERS, samplings, ends(subject.tokenizer)
        ),
        "Writing",
    )
    if texts is None:
        return
    grid = st.grid("auto", min_column_width=250, gap="small")  # wide enough for a line of verse
    for t, text, fact in zip(TEMPERATURES, texts, facts, strict=True):
        with grid.cell():
            st.markdown(f"**τ = {t:g}** :small[{fact}]")
            st.code(text, language=None, wrap_lines=True)
