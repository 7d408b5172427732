"""Direct logit attribution: which part pushed the logit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.residual.attribution import Attribution, Pushes, Versus, attribute, pushes
from engine.measure.residual.lens import sureness, telling
from pages.inside.residual import figures, words
from pages.inside.residual.lens import blanks, following, read_so_far
from pages.inside.residual.targets import choose_tokens
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe
from ui.text.numbers import scientific

POSITION = "residual_position"
BARS = {"largest": "largest", "layers": "by block"}
SHOWN = 16  # that push hardest, where a model has hundreds of heads


@st.cache_resource(max_entries=128, show_spinner=False)
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
        subject.labels, key=POSITION, chosen=first_position(subject), label=_strip_label(subject)
    )
    wide, narrow = st.columns([3, 1], gap="medium")
    with narrow:
        target, versus = choose_tokens(subject, position, st, st)
    attribution = _attribution(subject.key, subject.ids, position, target, versus, subject)
    told = pushes(subject.config, attribution, subject.model.parts)
    name = subject.vocabulary[target]
    writers = told.writers
    if len(told.single) > len(writers):
        hint = f"The largest of {len(told.single)} components, or the heads of each block summed."
        if widgets.select("Bars", BARS, "residual_bars", container=narrow, hint=hint, wrap=True) == "largest":
            writers = told.leading(SHOWN)
    labels, parts = ([getattr(push, what) for push in writers] for what in ("label", "part"))
    values = np.array([push.value for push in writers])
    with wide:
        plot(
            figures.part_bars(labels, parts, values, title="contribution to the logit (nats)"),
            key="residual_parts",
            height=390,
            name="logit-attribution",
            data=pd.DataFrame({"writer": labels, "part": parts, "contribution": values}),
            alt=(
                f"Bars: what each component adds to the logit of {name} at position {position}, bottom of the"
                " model first."
            ),
        )
    read = read_so_far(subject, position)
    explain.answer(words.push_answer(told, attribution.logit, name, read, subject.config.causal))
    explain.measure_it(_more, subject, attribution, told, name, versus)


def first_position(subject: Subject) -> int:
    """Returns the token that is looked at until another is chosen: a gap, else one after which the guess is
    sure, and right.
    """
    if subject.gap is not None:
        return subject.gap
    recording = subject.recording()
    guesses = recording.guesses
    return telling(guesses, following(subject), sureness(recording.logits), blanks(subject, guesses))


def _more(subject: Subject, attribution: Attribution, told: Pushes, name: str, versus: Versus) -> None:
    """The sum, and heads against layers."""
    against = words.compared(versus, subject.vocabulary[versus] if isinstance(versus, int) else "")
    facts = {
        "Sum of the contributions": f"{attribution.total:+.4f}",
        f"Logit of “{name}”{against}": f"{attribution.logit:+.4f}",
        "Difference": scientific(told.difference),
    }
    for column, (label, value) in zip(st.columns(3), facts.items(), strict=True):
        column.metric(safe(label), value)
    st.caption(words.frozen_words(subject.config, subject.model.parts, attribution.scale))
    if subject.model.parts.mixer(subject.config).present:
        layers, heads = ([str(i) for i in range(n)] for n in attribution.heads.shape)
        plot(
            figures.signed_map(attribution.heads, heads, layers, x="head", y="block", unit="nats"),
            key="residual_heads",
            height=390,
            name="head-attribution",
            data=pd.DataFrame(attribution.heads, columns=[f"head_{h}" for h in heads])
            .rename_axis("layer")
            .reset_index(),
            alt=(
                "Heatmap of the contribution of each head (columns) in each block (rows) to the logit; blue"
                " pushes down, orange up."
            ),
        )


def _strip_label(subject: Subject) -> str:
    return (
        "Position whose next token is predicted"
        if subject.config.causal
        else "Position whose token is predicted"
    )
