"""One neuron: along the text, what it writes, and what excites it."""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.measure import firing, neurons
from pages.inside.feedforward import figures
from pages.inside.feedforward.contexts import contexts
from ui import widgets
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.subject import Subject
from ui.text.markdown import safe

SAVED = 500  # tokens at each end of a large vocabulary that the saved table has


def draw_neuron(subject: Subject, along: np.ndarray, layer: int, neuron: int, is_signed: bool) -> None:
    """Where it fires on the text, what it writes, and what excites it in the corpus: along (query,)."""
    st.subheader(f"Neuron {neuron} of layer {layer}", anchor=False)
    left, right = st.columns([7, 3], gap="medium")
    found = firing.along(along)
    with left:
        st.caption("Shaded by the size of its activation. Choose a token to read the number.")
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
        st.markdown(f"{where}; on this text it lies between {found.low:.3f} and {found.high:.3f}.")
        table = {"position": range(len(along)), "token": subject.labels, "activation": along}
        alt = (
            f"Activation of neuron {neuron} of layer {layer} at each token; strongest at position"
            f" {found.at}, {found.peak:.3f}."
        )
        plot(
            figures.activation_line(along, subject.labels, at),
            key="feedforward_line",
            alt=alt,
            height=240,
            data=table,
            name=f"neuron-{layer}-{neuron}",
        )
    with right:
        _writes(subject, layer, neuron, is_signed)
    with left:
        contexts(subject, layer, neuron, is_signed)


def _writes(subject: Subject, layer: int, neuron: int, is_signed: bool) -> None:
    st.markdown("**What it writes**")
    hint = "Through the linear part of the final norm. Off: the column of $W_{out}$ as it is."
    through = widgets.switch("Through the norm", True, "feedforward_norm", hint=hint)
    scores = neurons.token_scores(subject.model, layer, neuron, through_norm=through)
    found, words = firing.promoted(scores), subject.vocabulary
    alt = (
        f"The tokens promoted most: {' '.join(words[i] for i in found.raised)}; suppressed most:"
        f" {' '.join(words[i] for i in found.lowered)}."
    )
    order = found.ends(SAVED)
    table = {"token": [words[i] for i in order], "logit_per_unit": scores[order]}
    plot(
        figures.token_bars(scores, found, words),
        key="feedforward_tokens",
        alt=alt,
        height=400,
        data=table,
        name=f"writes-{layer}-{neuron}",
    )
    how = norm_words(subject) if through else "No norm is applied."
    both = (
        " When its activation is negative, as a gated neuron's can be, promoted and suppressed change places."
        if is_signed
        else ""
    )
    st.caption(
        f"Its column of $W_{{out}}$ times the unembedding, less the mean over the vocabulary. {how} Left out:"
        f" the norm's division, which depends on the token, and what later layers make of the write.{both}"
    )


def norm_words(subject: Subject) -> str:
    """What the final norm does to what a neuron writes."""
    c, parts = subject.config, subject.model.parts
    norm, at_the_end = parts.norm(c), not parts.wiring(c).ends_normed
    if not at_the_end or not norm.present:
        why = (
            "This model has no norms."
            if at_the_end
            else "Post-norm models have none at the end; the norms inside the blocks are left out too."
        )
        return f"There is no final norm to go through: {why}"
    words = norm.linear_words(c)
    if not words:
        return f"Apart from its division the final {norm.title} changes nothing on the way."
    return f"On the way it is {words}, as the final {norm.title} does."
