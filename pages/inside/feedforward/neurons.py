"""The view "Neurons": what excites one in the corpus, what it then writes, and, folded, where it fires on the
text, and all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.parts.feedforward import FeedForward, GatedFeedForward
from pages.inside.feedforward.contexts import Seen, contexts
from pages.inside.feedforward.neuron_maps import GO, ROOM, distinct, draw_maps, tokens_axis
from studies.costs.cards.table import card_of
from studies.feedforward import neurons
from studies.feedforward.neurons import PromotedTokens
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.axes import symmetric
from ui.figures.labels import LETTER, crowded
from ui.figures.theme import DIVERGING, colour
from ui.model_bar import Subject
from ui.model_needs import FEEDFORWARD, SAYS
from ui.page_frame import Code, View
from ui.players.plot import plot
from ui.players.tokens import token_strip

TEXT = content.beside(__file__)
SAVED = 500  # tokens at each end of a large vocabulary that the saved table has
NORM = "feedforward_norm"
MAJORITY = 0.75  # of the strongest positions: below it, a neuron does not "fire mainly on" a token


def draw(subject: Subject) -> None:
    recording = subject.recording()
    post = _stacked(subject.key, subject.ids, recording)  # (layer, query, d_ff)
    # The gated kinds go far below zero as well; GELU stays above -0.17.
    is_signed = subject.model.parts.feedforward(subject.config).gated
    skip = _skipped(subject, post)
    values, _ = neurons.strongest(post, skip)
    controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    layer, neuron = _choose(values, controls)
    along = post[layer, :, neuron]
    top_contexts = _draw_neuron(subject, along, layer, neuron, is_signed, controls)
    explain.measure_it(_more, subject, post, values, layer, neuron, skip, top_contexts)


def _skipped(subject: Subject, post: np.ndarray) -> int:
    """Tokens at the beginning that do not count: the first, where it drowns all others."""
    if not neurons.first_is_massive(post):
        return 0
    label = TEXT("leave out", token=subject.labels[0])
    return int(widgets.switch(label, True, "feedforward_apart", hint=TEXT["massive"]))


@memo.measured()
def _stacked(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> np.ndarray:
    return _recording.stacked("ffn_post")


def _choose(values: np.ndarray, container: Any) -> tuple[int, int]:
    """(layer, neuron) from a click, the widgets or the URL; where nothing was asked for, the most active
    neuron there is.
    """
    layers, width = values.shape
    clicked = st.session_state.pop(GO, None)
    if clicked is not None:
        st.session_state["feedforward_layer"], st.session_state["feedforward_neuron"] = clicked
    loudest = neurons.loudest(values)[0]
    hint = TEXT["block hint"]
    layer = _number(TEXT["block"], "feedforward_layer", loudest, layers, hint, container)
    first = neurons.loudest(values[layer])[0]
    hint = TEXT("neuron hint", width=width)
    return layer, _number(TEXT["neuron"], "feedforward_neuron", first, width, hint, container)


def _number(label: str, key: str, default: int, count: int, hint: str, container: Any) -> int:
    """An index below `count`: what is settled if it fits, else `default`."""
    # Streamlit's own: the default moves with the text, so that the URL always holds the number.
    held = widgets.settle(key, lambda texts: widgets.index_of(texts[-1], count), default)
    if not isinstance(held, int) or not 0 <= held < count:
        st.session_state[key] = default
    typed = container.number_input(
        label, 0, count - 1, key=key, help=hint, persist_state="session", width=140
    )
    value = widgets.clamped(typed, 0, count - 1, default)
    widgets.note(key, [str(value)])
    return value


def _draw_neuron(
    subject: Subject, along: np.ndarray, layer: int, neuron: int, is_signed: bool, controls: Any
) -> Seen | None:
    """Draws what excites a neuron beside what it writes, and the sentence; `controls` is the container for
    choices of the corpus. Returns how the contexts were found.
    """
    left, right = st.columns([7, 3], gap="medium")
    with right:
        st.markdown(TEXT["effect"])
        promoted = _writes(subject, layer, neuron)
    with left:
        st.markdown(TEXT["top"])
        top_contexts = contexts(subject, layer, neuron, is_signed, controls)
    explain.answer(_answer(subject, along, layer, neuron, promoted, top_contexts))
    return top_contexts


def _answer(
    subject: Subject,
    along: np.ndarray,
    layer: int,
    neuron: int,
    promoted: PromotedTokens,
    seen: Seen | None,
) -> str:
    """Says what excites a neuron in the corpus, else on the text alone, and what it promotes."""
    quoted = (TEXT("quoted", token=subject.vocabulary[i]) for i in promoted.raised[:3])
    it = {"layer": layer, "neuron": neuron, "promoted": content.Filled(", ".join(quoted))}
    if seen is None:
        peak = neurons.along(along)
        return TEXT("on this text", token=subject.labels[peak.at], value=peak.peak, **it)
    liked = seen.liked
    if liked.count == 1:
        case = "no favourite"
    elif liked.count == liked.positions:
        case = "fires on all"
    else:
        case = "fires mainly" if MAJORITY * liked.positions <= liked.count else "fires mostly"
    return TEXT(
        case,
        token=subject.vocabulary[liked.token],
        count=liked.count,
        positions=liked.positions,
        value=liked.value,
        **it,
    )


def _writes(subject: Subject, layer: int, neuron: int) -> PromotedTokens:
    through = _through_norm()
    scores = neurons.token_scores(subject.model, layer, neuron, through_norm=through)
    promoted, vocabulary = neurons.promoted(scores), subject.vocabulary
    order = promoted.ends(SAVED)
    raised, lowered = (" ".join(vocabulary[i] for i in ids) for ids in (promoted.raised, promoted.lowered))
    plot(
        token_bars(scores, promoted, vocabulary),
        key="feedforward_tokens",
        alt=TEXT("alt tokens", raised=raised, lowered=lowered),
        height=330,
        data={"token": [vocabulary[i] for i in order], "logit_per_unit": scores[order]},
        name=f"writes-{layer}-{neuron}",
    )
    return promoted


def _through_norm() -> bool:
    """The switch stands in the fold, which is drawn later: it is read where it is kept."""
    return str(widgets.held_or_linked(NORM)).lower() != "false"


def _more(
    subject: Subject,
    post: np.ndarray,
    values: np.ndarray,
    layer: int,
    neuron: int,
    skip: int,
    seen: Seen | None,
) -> None:
    """How the places were found; the neuron on the text; all neurons of its layer, and of the model."""
    how = st.empty()  # kept while a corpus is read: the pictures below would move up, and be drawn anew
    if seen is not None:
        how.caption(TEXT("how read", total=seen.total, window=seen.window, positive=seen.positive))
    _norm_choice(subject)
    _on_the_text(subject, post[layer, :, neuron], layer, neuron)
    draw_maps(subject, post, values, layer, neuron, skip)


def _norm_choice(subject: Subject) -> None:
    """Draws the choice of the final norm for what is written, and says what is left out."""
    through = widgets.switch(TEXT["norm"], True, NORM, hint=TEXT["norm hint"])
    parts = subject.model.parts
    step = content.Filled(card_of(parts.norm(subject.config)).nonlinearity)
    said = [
        TEXT["written"],
        _final_norm(subject) if through else TEXT["no norm"],
        TEXT("left out", step=step),
    ]
    if parts.feedforward(subject.config).gated:
        said.append(TEXT["signs swap"])
    st.caption(" ".join(said))


def _final_norm(subject: Subject) -> str:
    """Says what the final norm does to a neuron's output."""
    c, parts = subject.config, subject.model.parts
    norm = card_of(parts.norm(c))
    if not parts.norm(c).present:
        return TEXT["without norms"]
    if parts.wiring(c).ends_normed:
        return TEXT["post-norm"]
    title, step, does = (content.Filled(w) for w in (norm.title, norm.nonlinearity, norm.linear_words(c)))
    return TEXT("norm changed" if does else "norm unchanged", norm=title, step=step, does=does)


def _on_the_text(subject: Subject, along: np.ndarray, layer: int, neuron: int) -> None:
    """Draws where the neuron fires on the text: along (query,)."""
    st.subheader(TEXT("on text", layer=layer, neuron=neuron), anchor=False)
    peak = neurons.along(along)
    st.caption(TEXT["shaded"])
    at = token_strip(
        subject.labels,
        key="feedforward_token",
        chosen=peak.at,
        label=TEXT("strip", neuron=neuron),
        values=peak.sizes.tolist(),
        hints=[TEXT("strip hint", position=i, value=value) for i, value in enumerate(along)],
    )
    here = {"token": subject.labels[at], "position": at, "value": along[at]}
    st.markdown(TEXT("activation at", **here, low=peak.low, high=peak.high))
    plot(
        activation_line(along, subject.labels, at),
        key="feedforward_line",
        alt=TEXT("alt activation", layer=layer, neuron=neuron, position=peak.at, peak=peak.peak),
        height=240,
        data={"position": range(len(along)), "token": subject.labels, "activation": along},
        name=f"neuron-{layer}-{neuron}",
    )


def _code(subject: Subject) -> Code:
    """Returns the network that this model has, and what is measured of it."""
    kind = subject.model.parts.feedforward(subject.config)
    network = GatedFeedForward if kind.gated else FeedForward
    measured = (neurons.strongest, neurons.quiet_share, neurons.token_scores, neurons.scan)
    return (network, *measured)


# Figures ------------------------------------------------------------------------------------------


def activation_line(values: np.ndarray, labels: Sequence[str], at: int) -> go.Figure:
    """Draws one neuron along the text: values (query,), `at` the chosen token."""
    names = distinct(labels)
    line = go.line(names, values.astype(np.float32), "feedforward", "", TEXT["hover activation"], points=5)
    mark = go.Scatter(
        mode="markers",
        x=[names[at]],
        y=values[at : at + 1].astype(np.float32),
        hoverinfo="skip",
        marker={"size": 12, "color": colour("output"), "symbol": "circle-open", "line": {"width": 2}},
    )
    return go.figure(
        [line, mark],
        margin={"l": 56, "r": 8, "t": 8, "b": 40 + LETTER * crowded(labels, ROOM)},
        showlegend=False,
        xaxis=tokens_axis(labels, categoryarray=names, categoryorder="array"),
        yaxis={"title": {"text": TEXT["activation"]}, "zeroline": True},
    )


def token_bars(scores: np.ndarray, promoted: PromotedTokens, vocabulary: Sequence[str]) -> go.Figure:
    """Draws the tokens that a write raises most and lowers most: scores (vocab,) in logits, zero-mean."""
    rows = [*promoted.raised, *promoted.lowered[::-1]]
    values = scores[rows].astype(np.float32)
    top = symmetric(values)
    bars = go.Bar(
        orientation="h",
        x=values,
        y=distinct([vocabulary[i] for i in rows]),
        hovertemplate=TEXT["hover token"],
        marker={
            "color": values,
            "colorscale": DIVERGING,
            "cmin": -top,
            "cmax": top,
            "line": {"width": 1, "color": colour("quiet")},
            "showscale": False,
        },
    )
    return go.figure(
        [bars],
        margin={"l": 44, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.25,
        xaxis={"title": {"text": TEXT["logit"]}, "zeroline": True},
        yaxis={"type": "category", "autorange": "reversed", "tickfont": {"size": 14}, "nticks": len(rows)},
    )


VIEW = View("neurons", TEXT, draw, code=_code, takes=(SAYS, FEEDFORWARD))
