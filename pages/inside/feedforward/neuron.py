"""One neuron: what excites it in the corpus, what it then writes, and, folded, where it fires on the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from engine.measure.feedforward import neurons
from engine.measure.feedforward.neurons import PromotedTokens
from pages.inside.feedforward import figures, words
from pages.inside.feedforward.contexts import Seen, contexts
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip

SAVED = 500  # tokens at each end of a large vocabulary that the saved table has


def draw_neuron(
    subject: Subject, along: np.ndarray, layer: int, neuron: int, is_signed: bool, controls: Any
) -> Seen | None:
    """Draws what excites a neuron beside what it writes, and the sentence; `controls` is the container for
    choices of the corpus. Returns how the contexts were found.
    """
    left, right = st.columns([7, 3], gap="medium")
    with right:
        st.markdown(words.EFFECT)
        promoted = _writes(subject, layer, neuron)
    with left:
        st.markdown(words.TOP)
        top_contexts = contexts(subject, layer, neuron, is_signed, controls)
    raised = [subject.vocabulary[i] for i in promoted.raised[:3]]
    if top_contexts is None:
        peak = neurons.along(along)
        explain.answer(words.on_this_text(layer, neuron, subject.labels[peak.at], peak.peak, raised))
    else:
        liked = top_contexts.liked
        explain.answer(words.likes(layer, neuron, liked, subject.vocabulary[liked.token], raised))
    return top_contexts


def _writes(subject: Subject, layer: int, neuron: int) -> PromotedTokens:
    through = _through_norm()
    scores = neurons.token_scores(subject.model, layer, neuron, through_norm=through)
    promoted, vocabulary = neurons.promoted(scores), subject.vocabulary
    order = promoted.ends(SAVED)
    plot(
        figures.token_bars(scores, promoted, vocabulary),
        key="feedforward_tokens",
        alt=words.promoted_alt(promoted, vocabulary),
        height=330,
        data={"token": [vocabulary[i] for i in order], "logit_per_unit": scores[order]},
        name=f"writes-{layer}-{neuron}",
    )
    return promoted


def _through_norm() -> bool:
    """The switch stands in the fold, which is drawn later: it is read where it is kept."""
    return str(widgets.held_or_linked(NORM)).lower() != "false"


NORM = "feedforward_norm"


def norm_choice(subject: Subject, is_signed: bool) -> None:
    """Draws the choice of the final norm for what is written, and says what is left out."""
    through = widgets.switch(words.APPLY_NORM, True, NORM, hint=words.APPLY_NORM_HINT)
    how = words.norm_words(subject) if through else words.NO_NORM
    norm_step = subject.model.parts.norm(subject.config).card.nonlinearity
    st.caption(words.what_is_written(how, is_signed, norm_step))


def on_the_text(subject: Subject, along: np.ndarray, layer: int, neuron: int) -> None:
    """Draws where the neuron fires on the text: along (query,)."""
    st.subheader(words.ON_TEXT_TITLE.format(layer=layer, neuron=neuron), anchor=False)
    peak = neurons.along(along)
    st.caption(words.SHADED)
    at = token_strip(
        subject.labels,
        key="feedforward_token",
        chosen=peak.at,
        label=words.STRIP_LABEL.format(neuron=neuron),
        values=peak.sizes.tolist(),
        hints=[words.ACTIVATION_HINT.format(position=i, value=value) for i, value in enumerate(along)],
    )
    st.markdown(words.activation_at(subject.labels[at], at, along[at], peak))
    plot(
        figures.activation_line(along, subject.labels, at),
        key="feedforward_line",
        alt=words.ACTIVATION_ALT.format(layer=layer, neuron=neuron, peak=peak),
        height=240,
        data={"position": range(len(along)), "token": subject.labels, "activation": along},
        name=f"neuron-{layer}-{neuron}",
    )
