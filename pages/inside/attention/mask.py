"""The view "Mask": what the causal mask hides, and what a model learns that was trained without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.model import Transformer
from engine.recording import Recording
from pages.inside.attention import axes
from pages.inside.attention.heads_map import TOPIC
from studies.attention.ablation import UnmaskedReading, without_mask
from studies.experiments.no_causal_mask import PROMPT, STEPS, Both, learn, shipped
from studies.guesses import attention as guesses
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.labels import crowded
from ui.figures.patterns import named_cells, placed, token_axis
from ui.figures.theme import SEQUENTIAL, colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, HEADS, SAYS
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
HEIGHT, CURVES = 365, 195
SMALLEST, BELOW = 205, 42  # pixels of a pattern, and below it
SCALE = {  # the colours of weights, below a pattern
    "orientation": "h",
    "x": 0.5,
    "xanchor": "center",
    "y": -0.03,
    "yanchor": "top",
    "len": 0.7,
    "thickness": 8,
    "tickvals": [0, 0.5, 1],
}
SHADES = {"masked": "attention", "unmasked": "output"}


def draw(subject: Subject) -> None:
    if len(subject.ids) < 2:
        st.info(TEXT["one token"])
        return
    both = shipped()
    reading = _without(subject.key, subject.ids, subject.recording(), subject.model)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(subject.config, TOPIC)
        steps = both.masked.steps
        step = widgets.slide_over(TEXT["trained for"], steps, steps[-1], "attention_mask_step", width=330)
    with_mask, without, training = st.columns([6, 6, 7], gap="medium")
    weights = subject.recording().stacked("pattern")[layer, head]
    unmasked = reading.patterns[layer, head]
    for column, pattern, mask in ((with_mask, weights, True), (without, unmasked, False)):
        with column:
            _pattern(subject, pattern, (layer, head), mask)
    at = steps.index(step)
    with training:
        st.caption(TEXT["stored"])
        plot(
            learning_curves(both, at),
            key="attention_mask_curves",
            alt=TEXT["alt curves"],
            height=CURVES,
            data=pd.DataFrame(
                {"step": steps, "with_mask": both.masked.losses, "without_mask": both.unmasked.losses}
            ),
            name="with-and-without-mask",
        )
        for run in SHADES:
            text = " ".join(getattr(both, run).texts[at].split())
            st.caption(TEXT(f"wrote {run}", prompt=PROMPT, text=text))
    explain.answer(
        TEXT(
            "untrained" if step == 0 else "trained",
            future=float(reading.future[layer, head]),
            masked=both.masked.losses[at],
            unmasked=both.unmasked.losses[at],
            step=step,
        )
    )
    ask("unmasked", _guess, reading)
    explain.measure_it(_more, subject, reading)
    explain.by_hand(st.markdown, TEXT["by hand"])


@memo.measured()
def _without(
    key: tuple[str, int], ids: tuple[int, ...], _before: Recording, _model: Transformer
) -> UnmaskedReading:
    return without_mask(_model, _before)


def _pattern(subject: Subject, weights: np.ndarray, indexes: tuple[int, int], mask: bool) -> None:
    """One head's weights (query, key), with its mask or without."""
    layer, head = indexes
    names = [f"{i} {label}" for i, label in enumerate(subject.labels)]
    kind = "on" if mask else "off"
    plot(
        pattern_figure(weights, subject.labels, mask),
        key=f"attention_mask_{kind}",
        alt=TEXT("alt pattern masked" if mask else "alt pattern unmasked", layer=layer, head=head),
        height=HEIGHT,
        data=pd.DataFrame(weights, columns=names).assign(query=names),
        name=f"mask-{kind}-layer-{layer}-head-{head}",
    )


def pattern_figure(weights: np.ndarray, labels: Sequence[str], masked: bool) -> go.Figure:
    """Draws weights (query, key) of a head, with the mask (what it hides is grey) or without, in [0, 1]."""
    cells = named_cells([f"query {n}" for n in placed(labels)], [f"key {n}" for n in placed(labels)], " → ")
    heat = go.Heatmap(
        z=axes.unmasked(weights, masked),
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        colorbar=SCALE | {"ticktext": ["0", TEXT["half"], "1"]},
        hoverongaps=False,
        hovertemplate="%{hovertext}<br>weight %{z:.4f}<extra></extra>",
        **cells,
    )
    margin = {"l": 26 + axes.room_for(labels, SMALLEST), "r": 6, "t": 50 + axes.room_for(labels, SMALLEST)}
    notes = [go.heading(TEXT["head masked" if masked else "head unmasked"], yshift=margin["t"] - 24)]
    if masked and len(labels) > 2:
        corner = {"xanchor": "right", "yanchor": "top", "font": {"size": 13}}
        notes.append(go.heading(TEXT["hidden"], 0.97, 0.93, **corner))
    return go.figure(
        [heat],
        margin=margin | {"b": BELOW},
        showlegend=False,
        annotations=notes,
        plot_bgcolor=axes.MASKED,
        xaxis=axes.across(labels, SMALLEST, size=11),
        yaxis=axes.down(labels, SMALLEST, size=11),
    )


def learning_curves(both: Both, at: int) -> go.Figure:
    """Loss on held-out text over the steps, with the mask and without; the step `at` is marked, with its
    numbers.
    """
    traces: list[dict[str, Any]] = []
    for name, shade in SHADES.items():
        run = getattr(both, name)
        hover = "step %{x}<br>%{y:.3f} nats"
        traces.append(go.line(run.steps, run.losses, shade, TEXT[f"run {name}"], hover, width=3))
        traces.append(
            go.Scatter(
                mode="markers+text",
                x=[run.steps[at]],
                y=[run.losses[at]],
                text=[f"{run.losses[at]:.2f}"],
                textposition="top left" if at else "middle right",
                textfont={"size": 14},
                marker={"size": 11, "color": colour(shade)},
                showlegend=False,
                hoverinfo="skip",
                cliponaxis=False,
            )
        )
    return go.figure(
        traces,
        margin={"l": 50, "r": 20, "t": 30, "b": 44},
        xaxis=go.axis(TEXT["training step"]),
        yaxis={"title": {"text": TEXT["loss"]}, "rangemode": "tozero"},
    )


def _guess(reading: UnmaskedReading) -> Guess | None:
    """A guess about the loss of the model above without its mask."""
    truth = guesses.unmasked(reading)
    if truth is None:
        return None
    outcome = TEXT("outcome", **truth.numbers)
    return Guess.of(TEXT, truth, TEXT["guess"], outcome, {explain.MEASURE: True})


def _more(subject: Subject, reading: UnmaskedReading) -> None:
    """The loss of each token with the mask and without, in the model above."""
    plot(
        losses_by_position(reading, subject.labels),
        key="attention_mask_losses",
        alt=TEXT["alt losses"],
        height=300,
        data=pd.DataFrame(
            {
                "position": np.arange(1, len(subject.ids)),
                "token": subject.labels[1:],
                "with_mask": reading.loss_with,
                "without_mask": reading.loss_without,
            }
        ),
        name="loss-without-mask",
    )
    st.markdown(TEXT("not learned", masked=reading.mean_with, unmasked=reading.mean_without))
    st.caption(TEXT("recipe", steps=STEPS, prompt=PROMPT))


def losses_by_position(reading: UnmaskedReading, labels: Sequence[str]) -> go.Figure:
    """Draws the loss of each token after the first, both ways."""
    positions = np.arange(1, len(labels))
    traces = [
        go.line(
            positions,
            values.astype(np.float32),
            shade,
            TEXT[f"tokens {name}"],
            "%{customdata}<br>%{y:.3f} nats",
            points=6,
            customdata=placed(labels)[1:],
        )
        for (name, shade), values in zip(
            SHADES.items(), (reading.loss_with, reading.loss_without), strict=True
        )
    ]
    axis = token_axis(labels, TEXT["predicted"], 12, tickangle=-90 if crowded(labels, 900) else 0)
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 28, "b": 90},
        xaxis=axis,
        yaxis={"title": {"text": TEXT["loss"]}, "rangemode": "tozero"},
    )


VIEW = View("mask", TEXT, draw, code=(without_mask, learn), takes=(SAYS, CAUSAL, HEADS), figures_only=True)
