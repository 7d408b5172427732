"""A topic of the view "ALiBi": what becomes of a head's pattern."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import alibi as measured
from engine.measure.recording import Recording, record
from engine.model import Transformer
from pages.input.positions import figures_alibi as figures
from pages.input.positions.figures_shared import half_width_pattern
from pages.input.positions.shared import example, thousands
from ui import widgets
from ui.figures.patterns import pattern_table
from ui.fit_text import most_tokens, read, show_token
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot

MULTIPLIERS = (0.25, 0.5, 1, 2, 4, 8, 16)
IN_THE_BAR, TRAINED = "the model in the bar", "a small model trained with ALiBi"


def choose_multiplier() -> float:
    """Returns the multiplier of all slopes."""
    hint = (
        "1 gives the paper's slopes. In our trials, small models with contexts of 64 or 128, as here, learned"
        " better with slopes 4 times as steep."
    )
    return float(
        widgets.slide_over("Slope multiplier", MULTIPLIERS, 1, "alibi_times", hint=hint, written=thousands)
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """Whose scores are bent: `title` begins a sentence."""

    recording: Recording
    labels: list[str]
    title: str


def _source(subject: Subject) -> _Source:
    """The model in the bar; beside it, where there is one, a small model that was trained with ALiBi and
    reads the same text.
    """
    trained = example("alibi") if subject.config.position != "alibi" else None
    if (
        trained is not None
        and widgets.select("Scores from", (IN_THE_BAR, TRAINED), "alibi_source") == TRAINED
    ):
        ids, _, _ = read(subject.text, trained.tokenizer, most_tokens(trained.config))
        labels = [show_token(trained.tokenizer.decode([i])) for i in ids]
        return _Source(
            _trained_recording(ids, trained.model),
            labels,
            f"The small model (checkpoints/positions/alibi, context {trained.config.context})",
        )
    return _Source(subject.recording(), subject.labels, "This model")


@st.cache_resource(max_entries=8, show_spinner=False)
def _trained_recording(ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


def draw_effect(heads: int, times: float) -> None:
    """Draws a head's pattern without the bias and with it, and how far all heads of its layer look: of the
    heads that the model has.
    """
    with subject_bar() as subject:
        _draw_effect(subject, times)


def _draw_effect(subject: Subject, times: float) -> None:
    if subject.config.mixer == "none":
        st.info(
            "This model has no attention layer: its tokens never attend to each other, so there is no"
            " pattern to"
            " change. Choose another model above."
        )
        return
    source = _source(subject)
    recording, c = source.recording, source.recording.config
    layer, head = widgets.head(c, "alibi")
    slope = float(measured.slopes(c.n_heads, times).slope[head])
    own = measured.recorded_slope(c, head, recording.parts)
    effect = measured.alibi_effect(recording[f"blocks.{layer}.scores"][head], slope, recording.seen(), own)
    st.caption(_provenance(source, own))
    _draw_patterns(effect, slope, source.labels)
    _draw_distances(recording, layer, times)
    st.markdown(
        f"The bias favours nearby tokens: head {head} attends **{effect.distance_before:.2f}** tokens back on"
        f" average without it and **{effect.distance_after:.2f}** with it. A high enough score still"
        " outweighs the bias."
    )


def _provenance(source: _Source, own: float) -> str:
    """Where the scores are from. `own` is the slope that they hold already."""
    if own:
        return (
            f"{source.title} was trained with ALiBi. “Without” shows its scores with its own slope,"
            f" {own:.4g}, removed."
        )
    kind = source.recording.config.position
    held = {"none": "no positions at all", "t5": "T5's learned bias, which its scores keep"}.get(
        kind, f"{kind} positions, which it keeps"
    )
    return (
        f"{source.title} was trained with {held}. The bias is added to its recorded scores: a what-if, not"
        " what it was trained for."
    )


def _draw_patterns(effect: measured.Effect, slope: float, labels: list[str]) -> None:
    left, right = st.columns(2, gap="medium")
    for column, key, name, of, pattern in (
        (left, "before", "Without the bias", "the scores", effect.before),
        (right, "after", f"With slope {slope:.4g}", "scores − slope · distance", effect.after),
    ):
        with column:
            st.caption(f"**{name}**: softmax of {of}")
            plot(
                half_width_pattern(pattern, labels),
                key=f"alibi_pattern_{key}",
                height=440,
                name=name.replace(" ", "-").lower(),
                data=pattern_table(pattern, labels),
                alt=f"{name}: weights from 0 to 1, queries down.",
            )
    st.caption("Both on the same scale: blank is 0, darkest is 1.")


def _draw_distances(recording: Recording, layer: int, times: float) -> None:
    before, after = measured.distances_of_heads(recording, layer, times)
    st.caption(
        f"**All heads of layer {layer}**, each with its own slope: mean attention distance over the text"
    )
    plot(
        figures.distance_bars(before, after),
        key="alibi_distances",
        height=270,
        name="alibi-distances",
        data=pd.DataFrame({"head": np.arange(len(before)), "without": before, "with": after}),
        alt="Bars: mean distance of each head without and with the bias.",
    )
