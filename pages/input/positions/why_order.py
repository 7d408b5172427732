"""The worth of a text's order to a trained model, measured for the view "Why"."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.permutation import (
    Move,
    Setting,
    in_order_and_out,
    moves_nothing,
    new_order,
    word_order,
)
from engine.model import Transformer
from pages.input.positions import figures_why as figures
from pages.input.positions import words_answers
from pages.input.positions.words_answers import TITLES
from ui import explain, widgets
from ui.layout import fewer_labels_on_phones
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import number

UNITS = ("words", "tokens")


def draw_trained(move: Move, seed: int) -> None:
    """Draws a model and a text of one's own, in order and out of order."""
    with subject_bar() as subject:
        _draw_order(subject, move, seed)


def _draw_order(subject: Subject, move: Move, seed: int) -> None:
    """The text in another order: how far each token's vector moves, and the losses, with positions and mask
    on and off.
    """
    if len(subject.ids) < 2:
        st.info("This text has one token, so there is only one order. Type more above.")
        return
    hint = "Whole words, with the spaces after them, or single tokens."
    unit = widgets.select("What is reordered", UNITS, "why_unit", hint=hint, wrap=True)
    texts = [subject.tokenizer.decode([i]) for i in subject.ids]
    order = word_order(texts, move, seed) if unit == "words" else new_order(len(texts), move, seed)
    st.markdown(f"In the new order it reads: **{safe(''.join(subject.labels[i] for i in order))}**")
    if unit == "words" and moves_nothing(order):
        st.caption(
            ":material/info: The text is one word, so moving words changes nothing. Reorder tokens instead."
        )
    settings = _measured(subject.key, subject.ids, tuple(order.tolist()), subject.model)
    _draw_losses(settings, subject)
    _draw_moved(settings, subject)
    explain.takeaway(words_answers.lesson(settings, TITLES[subject.config.position]))


def _draw_losses(settings: tuple[Setting, ...], subject: Subject) -> None:
    """A row for each setting of the switches."""
    scheme = TITLES[subject.config.position]
    st.markdown(
        "\n".join(
            [
                "| positions | mask | tokens move by | loss in order | out of order |",
                "|---|---|---|---|---|",
                *(_row(setting, scheme) for setting in settings),
            ]
        )
    )
    none = (
        "the mask is off, so the answer is visible"
        if subject.config.causal
        else "the model predicts hidden tokens, not the next one"
    )
    st.caption(
        "Move by: the norm of (final vector out of order minus final vector in order) of the same token, root"
        " mean square over the text, divided by the typical norm of such a vector (`norm_final`). Losses:"
        f" nats per token of the text as it was read; none where {none}. Positions ({scheme}) and mask are"
        " removed by editing the forward pass; the weights stay as trained."
    )


def _draw_moved(settings: tuple[Setting, ...], subject: Subject) -> None:
    """How far each token moved, in one setting."""
    names = [words_answers.setting_name(s) for s in settings]
    chosen = widgets.select("Drawn token by token", names, "why_setting", wrap=True)
    fewer_labels_on_phones(len(subject.ids))
    plot(
        figures.moved_bars(settings[names.index(chosen)].moved, subject.labels),
        key="why_moved",
        height=270,
        name="moved-by-order",
        data=pd.DataFrame(
            {"token": subject.labels} | {words_answers.setting_name(s): s.moved for s in settings}
        ),
        alt=(
            f"How far the final vector of each token moves when the order of the text changes, with {chosen}."
        ),
    )


def _row(setting: Setting, scheme: str) -> str:
    losses = ["none" if x is None else f"{x:.3f}" for x in (setting.loss_in, setting.loss_out)]
    on = ("on" if scheme != TITLES["none"] else "the model has none") if setting.position else "off"
    return (
        f"| {on} | {'on' if setting.mask else 'off'} | {number(setting.relative)} | {losses[0]} | {losses[1]}"
        " |"
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _measured(
    key: tuple[str, int], ids: tuple[int, ...], order: tuple[int, ...], _model: Transformer
) -> tuple[Setting, ...]:
    return in_order_and_out(_model, ids, np.array(order, dtype=np.int64))
