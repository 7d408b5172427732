"""A topic of the view "RoPE": the score against the distance between query and key."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.rope import (
    Decay,
    decay,
    mean_score,
    some_distances,
)
from pages.input.positions import figures_rope as figures
from pages.input.positions import words_measured
from pages.input.positions.rope_turning import BASES, WIDTHS, Turning, near, near_base, turning
from pages.input.positions.shared import thousands
from pages.input.positions.words_answers import distance_sentence
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot

REACHES = (64, 128, 256, 512, 1_024, 4_096, 16_384)
ONES = "q = k = ones"


def draw_distance(subject: Subject) -> None:
    """Draws the score of the mean vectors of a head, or of ones, with one base and with another."""
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = turning(subject)
        kind = widgets.select("Vectors", ("mean of this head", ONES), "rope_vectors", wrap=True)
        base = widgets.slide_over("Base", BASES, near_base(turned.base), "rope_base", written=thousands)
        start = min((r for r in REACHES if r >= subject.config.context), default=REACHES[-1])
        reach = widgets.slide_over("Distances up to", REACHES, start, "rope_reach", written=thousands)
        q, k, width, rotary = turned.q, turned.k, turned.width, turned.rotary
        if kind == ONES:
            first = near(turned.rotary, WIDTHS)
            width = rotary = widgets.slide_over("d_head", WIDTHS, first, "rope_width", written=thousands)
            q = k = np.ones((1, width))
    distances = some_distances(reach)
    other = next(b for b in (turned.base, 10_000.0, 100.0) if b != base)
    curves = {
        f"base {b:,.0f}{_own(b, turned)}": mean_score(q, k, b, distances, rotary)
        for b in (float(base), other)
    }
    with figure:
        plot(
            figures.score_curves(distances, curves, subject.config.context),
            key="rope_curve",
            height=380,
            name="rope-score-against-distance",
            data=pd.DataFrame(
                {"distance": distances}
                | {name.replace(" ", "_").replace(",", ""): v for name, v in curves.items()}
            ),
            alt=f"Score q·k/√{width} against the distance between query and key for {kind}, base {base:,}.",
        )
    falling = decay(distances, next(iter(curves.values())))
    explain.answer(distance_sentence(falling, base))
    explain.by_hand(_say_how, falling, turned, kind, width, len(subject.ids))


def _say_how(decay: Decay, turned: Turning, kind: str, width: int, tokens: int) -> None:
    """How the curve is computed."""
    if kind == ONES:
        pairs = f"{width // 2} pairs" if width > 2 else "one pair"
        st.markdown(words_measured.ones(pairs, width, decay.start))
        return
    st.markdown(words_measured.mean_vectors(tokens, turned.words))


def _own(base: float, turning: Turning) -> str:
    return " (the model's)" if base == turning.base else ""
