"""The view of sinks: how much of all weight lies on the first token, and what becomes of the text without
it.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.measure.circuits.sinks import (
    OPENINGS,
    Opening,
    OpeningResult,
    Sinks,
    measure,
)
from pages.inside.circuits import figures_sinks as figures
from pages.inside.circuits import words_behaviour as words
from pages.inside.circuits.measured_text import SHORT, long_text
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.fit_text import most_tokens
from ui.model_bar import Subject
from ui.players.plot import plot

FRONT = ("\n", " the", ".", "e", "Z")
HEIGHT = 250


def draw_sinks(subject: Subject) -> None:
    """Draws the weight on the first token by layer, and the loss for each way to begin."""
    ids = _text(subject)
    if ids is None:
        return
    opening = widgets.select(
        words.OPENING, words.OPENINGS, "sinks_opening", kind="pills", wrap=True, hidden=True
    )
    left, right = st.columns([3, 2], gap="medium")
    with right:
        front = widgets.select(
            words.PREPENDED, _fronts(subject), "sinks_front", kind="list", hint=words.PREPENDED_HINT
        )
    with left:
        sinks = measured(
            ("sinks", subject.key, ids, front),
            lambda: measure(subject.model, ids, front),
            words.SINKS_MEASURED,
        )
        if sinks is None:
            return
        _draw_layers(sinks, opening, subject)
    with right:
        _draw_losses(sinks, opening)
    explain.answer(words.sinks_answer(sinks, opening, subject))
    explain.measure_it(_heads, sinks.of(opening))
    explain.by_hand(st.markdown, words.SINKS_METHOD)


def _text(subject: Subject) -> tuple[int, ...] | None:
    """One token less than the model reads: one is put in front."""
    ids = long_text(subject, most_tokens(subject.config) - 1, words.SINKS_TEXT)
    if len(ids) < SHORT:
        st.info(words.SHORT_CONTEXT.format(tokens=SHORT))
        return None
    return ids


@memo.measured(copied=True)
def _single(name: str, _tokenizer: Tokenizer) -> list[int]:
    """The tokens of FRONT that are one in this vocabulary."""
    cut = [_tokenizer.encode(text) for text in FRONT if not _tokenizer.unknown(text)]
    return [ids[0] for ids in cut if len(ids) == 1]


def _fronts(subject: Subject) -> dict[int, str]:
    """Returns the tokens that may be put in front, by id: those that a model's texts began with
    come first.
    """
    special: dict[str, int] = dict(getattr(subject.tokenizer, "special", {}))
    begins = sorted(special, key=lambda name: "im_start" not in name)[:1]  # else the first: a text's end
    ids = [special[name] for name in begins] + _single(subject.key[0], subject.tokenizer)
    return {i: subject.vocabulary[i] for i in ids or [0]}


def _draw_layers(sinks: Sinks, opening: Opening, subject: Subject) -> None:
    result = sinks.of(opening)
    layer, head = (grid.ravel() for grid in np.indices(result.share.shape))
    baseline = None if opening == "kept" else sinks.of("kept").by_layer
    plot(
        figures.sink_layers(result.share, result.by_layer, result.even, baseline),
        key="sinks_layers",
        height=HEIGHT + 70,
        name=f"sink-{opening}",
        data={"layer": layer, "head": head, "weight": result.share.ravel()},
        alt=words.LAYERS_ALT.format(token=subject.vocabulary[result.ids[result.seen]], mean=result.mean),
    )


def _draw_losses(sinks: Sinks, opening: Opening) -> None:
    losses = np.array([result.loss for result in sinks.openings])
    names = [words.OPENINGS[each] for each in OPENINGS]
    plot(
        figures.sink_losses(names, losses, OPENINGS.index(opening)),
        key="sinks_losses",
        height=HEIGHT,
        name="sink-losses",
        data={"text_begins": names, "loss_nats": losses},
        alt=words.LOSSES_ALT,
    )


def _heads(result: OpeningResult) -> None:
    """How many heads rest there, and how long the values are that they take from there."""
    st.markdown(words.resting(result))
    layers, kv = result.lengths.shape[1:]
    plot(
        figures.value_bars(result.lengths),
        key="sinks_values",
        height=HEIGHT,
        name="value-lengths",
        data={
            "layer": np.repeat(np.arange(layers), kv),
            "kv_head": np.tile(np.arange(kv), layers),
            "first": result.lengths[0].ravel(),
            "others": result.lengths[1].ravel(),
        },
        alt=words.VALUES_ALT,
    )
