"""The view "Mask": what the causal mask hides, and what a model learns that was trained without it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.errors import CheckpointError
from engine.experiments.no_causal_mask import shipped
from engine.measure.attention.ablation import UnmaskedReading, without_mask
from engine.measure.recording import Recording
from engine.model import Transformer
from pages.inside.attention import guesses
from pages.inside.attention import words_mask as words
from pages.inside.attention.figures_mask import learning_curves, losses_by_position, single_pattern
from pages.inside.attention.heads_map import TOPIC
from ui import explain, memo, widgets
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

HEIGHT, CURVES = 365, 195


def draw_mask(subject: Subject) -> None:
    if len(subject.ids) < 2:
        st.info(words.ONE_TOKEN)
        return
    try:
        both = shipped()
    except CheckpointError as error:
        st.info(str(error))
        return
    reading = _without(subject.key, subject.ids, subject.recording(), subject.model)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        layer, head = widgets.head(subject.config, TOPIC)
        steps = both.masked.steps
        step = widgets.slide_over(words.TRAINED_FOR, steps, steps[-1], "attention_mask_step", width=330)
    with_mask, without, training = st.columns([6, 6, 7], gap="medium")
    weights = subject.recording().stacked("pattern")[layer, head]
    unmasked = reading.patterns[layer, head]
    for column, pattern, mask in ((with_mask, weights, True), (without, unmasked, False)):
        with column:
            _pattern(subject, pattern, (layer, head), mask)
    at = steps.index(step)
    with training:
        st.caption(words.STORED)
        plot(
            learning_curves(both, at),
            key="attention_mask_curves",
            alt=words.CURVES_ALT,
            height=CURVES,
            data=pd.DataFrame(
                {"step": steps, "with_mask": both.masked.losses, "without_mask": both.unmasked.losses}
            ),
            name="with-and-without-mask",
        )
        for run, name in ((both.masked, words.WITH), (both.unmasked, words.WITHOUT)):
            st.caption(words.wrote(name, safe(" ".join(run.texts[at].split()))))
    future = float(reading.future[layer, head])
    explain.answer(words.masked(future, both.masked.losses[at], both.unmasked.losses[at], step))
    ask("unmasked", guesses.unmasked, reading)
    explain.measure_it(_more, subject, reading)
    explain.by_hand(st.markdown, words.BY_HAND)


def _pattern(subject: Subject, weights: np.ndarray, indexes: tuple[int, int], mask: bool) -> None:
    """One head's weights (query, key), with its mask or without."""
    layer, head = indexes
    names = [f"{i} {label}" for i, label in enumerate(subject.labels)]
    kind = "on" if mask else "off"
    plot(
        single_pattern(weights, subject.labels, mask),
        key=f"attention_mask_{kind}",
        alt=words.pattern_alt(layer, head, mask),
        height=HEIGHT,
        data=pd.DataFrame(weights, columns=names).assign(query=names),
        name=f"mask-{kind}-layer-{layer}-head-{head}",
    )


def _more(subject: Subject, reading: UnmaskedReading) -> None:
    """The loss of each token with the mask and without, in the model above."""
    plot(
        losses_by_position(reading, subject.labels),
        key="attention_mask_losses",
        alt=words.LOSSES_ALT,
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
    st.markdown(words.not_learned(reading))
    st.caption(words.RECIPE)


@memo.measured()
def _without(
    key: tuple[str, int], ids: tuple[int, ...], _before: Recording, _model: Transformer
) -> UnmaskedReading:
    return without_mask(_model, _before)
