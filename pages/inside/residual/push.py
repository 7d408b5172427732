"""Direct logit attribution: which part pushed the logit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.residual.attribution import Attribution, Versus, attribute, pushes
from engine.measure.residual.lens import sureness, telling
from pages.inside.residual import figures, words
from pages.inside.residual.lens import blanks, following, read_so_far
from pages.inside.residual.targets import choose_tokens
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

POSITION = "residual_position"
SHOWN = 16  # that push hardest, where a model has hundreds of heads


@memo.measured()
def _attribution(
    key: tuple[str, int], ids: tuple[int, ...], position: int, target: int, versus: Versus, _subject: Subject
) -> Attribution:
    return attribute(_subject.model, _subject.recording(), position, target, versus)


def draw_push(subject: Subject) -> None:
    """Draws the parts of one logit, as bars; heads against layers and the sum are folded."""
    if not subject.model.parts.logit_is_sum(subject.config):
        st.info(words.not_a_sum(subject.config, subject.model.parts))
        return
    position = token_strip(
        subject.labels, key=POSITION, chosen=first_position(subject), label=words.predicts_at(subject.config)
    )
    wide, narrow = st.columns([3, 1], gap="medium")
    with narrow:
        target, versus = choose_tokens(subject, position)
    attribution = _attribution(subject.key, subject.ids, position, target, versus, subject)
    sums = pushes(subject.config, attribution, subject.model.parts)
    name = subject.vocabulary[target]
    writers = sums.writers
    if len(sums.single) > len(writers):
        hint = words.BARS_HINT.format(components=len(sums.single))
        bars = widgets.select(
            words.BARS, words.PUSH_BARS, "residual_bars", container=narrow, hint=hint, wrap=True
        )
        if bars == "largest":
            writers = sums.leading(SHOWN)
    labels, parts = ([getattr(push, what) for push in writers] for what in ("label", "part"))
    values = np.array([push.value for push in writers])
    with wide:
        plot(
            figures.part_bars(labels, parts, values, title=words.CONTRIBUTION),
            key="residual_parts",
            height=390,
            name="logit-attribution",
            data=pd.DataFrame({"writer": labels, "part": parts, "contribution": values}),
            alt=words.BARS_ALT.format(name=name, position=position),
        )
    read = read_so_far(subject, position)
    explain.answer(words.push_answer(sums, attribution.logit, name, read, subject.config.causal))
    explain.measure_it(_more, subject, attribution, sums.difference, name, versus)


def first_position(subject: Subject) -> int:
    """Returns the token that is looked at until another is chosen: a gap, else one after which the guess is
    sure, and right.
    """
    if subject.gap is not None:
        return subject.gap
    recording = subject.recording()
    guesses = recording.guesses
    return telling(guesses, following(subject), sureness(recording.logits), blanks(subject, guesses))


def _more(subject: Subject, attribution: Attribution, difference: float, name: str, versus: Versus) -> None:
    """The sum, and heads against layers."""
    against = words.compared(versus, subject.vocabulary[versus] if isinstance(versus, int) else "")
    metrics = words.sum_metrics(attribution, difference, name, against)
    for column, (label, value) in zip(st.columns(3), metrics.items(), strict=True):
        column.metric(label, value)
    st.caption(words.frozen_words(subject.config, subject.model.parts, attribution.scale))
    if subject.model.parts.mixer(subject.config).present:
        columns = [f"head_{head}" for head in range(subject.config.n_heads)]
        plot(
            figures.head_map(attribution.heads),
            key="residual_heads",
            height=390,
            name="head-attribution",
            data=pd.DataFrame(attribution.heads, columns=columns).rename_axis("layer").reset_index(),
            alt=words.HEADS_ALT,
        )
