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
from ui.text.markdown import safe
from ui.text.numbers import minus

SAVED = 500  # tokens at each end of a large vocabulary that the saved table has


def draw_neuron(
    subject: Subject, along: np.ndarray, layer: int, neuron: int, is_signed: bool, controls: Any
) -> Seen | None:
    """Draws what excites a neuron beside what it writes, and the sentence; `controls` is the container for
    choices of the corpus. Returns how the contexts were found.
    """
    left, right = st.columns([7, 3], gap="medium")
    with right:
        st.markdown("**Direct effect on the logits**")
        found = _writes(subject, layer, neuron)
    with left:
        st.markdown("**Top activating positions**")
        seen = contexts(subject, layer, neuron, is_signed, controls)
    raised = [subject.vocabulary[i] for i in found.raised[:3]]
    if seen is None:
        peak = neurons.along(along)
        explain.answer(words.on_this_text(layer, neuron, subject.labels[peak.at], peak.peak, raised))
    else:
        liked = seen.liked
        explain.answer(words.likes(layer, neuron, liked, subject.vocabulary[liked.token], raised))
    return seen


def _writes(subject: Subject, layer: int, neuron: int) -> PromotedTokens:
    through = _through_norm()
    scores = neurons.token_scores(subject.model, layer, neuron, through_norm=through)
    found, vocabulary = neurons.promoted(scores), subject.vocabulary
    alt = (
        f"The tokens promoted most: {' '.join(vocabulary[i] for i in found.raised)}; suppressed most:"
        f" {' '.join(vocabulary[i] for i in found.lowered)}."
    )
    order = found.ends(SAVED)
    table = {"token": [vocabulary[i] for i in order], "logit_per_unit": scores[order]}
    plot(
        figures.token_bars(scores, found, vocabulary),
        key="feedforward_tokens",
        alt=alt,
        height=330,
        data=table,
        name=f"writes-{layer}-{neuron}",
    )
    return found


def _through_norm() -> bool:
    """The switch stands in the fold, which is drawn later: it is read where it is kept."""
    return str(widgets.held_or_linked(NORM)).lower() != "false"


NORM = "feedforward_norm"


def norm_choice(subject: Subject, is_signed: bool) -> None:
    """Draws the choice of the final norm for what is written, and says what is left out."""
    hint = "On: through the linear part of the final norm. Off: the column of $W_{out}$ as it is."
    through = widgets.switch("Apply the final norm", True, NORM, hint=hint)
    how = words.norm_words(subject) if through else "No norm is applied."
    norm_step = subject.model.parts.norm(subject.config).card.nonlinearity
    st.caption(words.what_is_written(how, is_signed, norm_step))


def on_the_text(subject: Subject, along: np.ndarray, layer: int, neuron: int) -> None:
    """Draws where the neuron fires on the text: along (query,)."""
    st.subheader(f"Neuron {neuron} of block {layer} on this text", anchor=False)
    found = neurons.along(along)
    st.caption("Shaded by the size of its activation. Choose a token to read its value.")
    hints = [f"position {i}: {v:.4f}" for i, v in enumerate(along)]
    label = f"The text, shaded by the activation of neuron {neuron}"
    at = token_strip(
        subject.labels,
        key="feedforward_token",
        chosen=found.at,
        label=label,
        values=found.sizes.tolist(),
        hints=hints,
    )
    where = f"At “{safe(subject.labels[at])}” (position {at}) its activation is **{along[at]:.4f}**"
    st.markdown(
        f"{where}; on this text it ranges from {minus(f'{found.low:.3f}')} to {minus(f'{found.high:.3f}')}."
    )
    table = {"position": range(len(along)), "token": subject.labels, "activation": along}
    alt = (
        f"Activation of neuron {neuron} of block {layer} at each token; strongest at position {found.at},"
        f" {found.peak:.3f}."
    )
    plot(
        figures.activation_line(along, subject.labels, at),
        key="feedforward_line",
        alt=alt,
        height=240,
        data=table,
        name=f"neuron-{layer}-{neuron}",
    )
