"""The view "A thousand draws": how far shares stray from probabilities."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.sample import uniform
from engine.sample.outcome import Tally, likeliest_ids, tally
from pages.output.sampling import figures, words
from pages.output.sampling.place import LIKELIEST, place, staged
from ui import explain
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.sampler import sampler, settings
from ui.text.markdown import safe

DRAWS = 1000


def draw_draws(subject: Subject) -> None:
    """Draws again and again from the last stage's distribution."""
    position, seed = place(subject)
    config = settings(seed)
    logits, previous = subject.recording().logits[position], subject.ids[: position + 1]
    last = staged(subject, position, config, logits)[-1]
    numbers = uniform(seed, DRAWS).numpy()
    found = tally(last.probabilities, numbers)
    sampler(logits, subject.vocabulary, previous, config, numbers, mode="draws", drawn=found.ids)
    likely = int(found.probabilities.argmax())
    explain.answer(words.drawn(found, seed, safe(subject.vocabulary[likely]), likely))
    explain.measure_it(_engines, subject, found, last.remaining)


def _engines(subject: Subject, tally: Tally, kept: int) -> None:
    order = likeliest_ids(tally.probabilities, min(LIKELIEST, kept))
    tokens = [subject.vocabulary[i] for i in order]
    p, shares = tally.probabilities[order], tally.shares[order]
    table = pd.DataFrame(
        {"token": tokens, "id": order, "probability": p, "draws": tally.counts[order], "share": shares}
    )
    st.markdown("The engine's own thousand draws, with the same random numbers as the browser's.")
    plot(
        figures.shares(tokens, p, shares),
        key="sampling_shares",
        height=300,
        name="thousand-draws",
        data=table,
        alt=f"Share of {DRAWS:,} draws beside the probability, for the {len(tokens)} likeliest tokens.",
    )
