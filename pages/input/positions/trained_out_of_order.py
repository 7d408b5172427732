"""A part of "Why": a trained model reads a text out of order, its positions and its mask on and off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.permutation import (
    Move,
    Setting,
    in_order_and_out,
    moves_nothing,
    new_order,
    setting_of,
    word_order,
)
from engine.model import Transformer
from pages.input.positions.schemes import TITLES
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.axes import token_axis
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.layout import fewer_labels_on_phones
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot

TEXT = content.beside(__file__)
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
        st.info(TEXT["one token"])
        return
    unit = widgets.select(TEXT["unit"], UNITS, "why_unit", hint=TEXT["unit hint"], wrap=True)
    texts = [subject.tokenizer.decode([i]) for i in subject.ids]
    order = word_order(texts, move, seed) if unit == "words" else new_order(len(texts), move, seed)
    st.markdown(TEXT("reads", text="".join(subject.labels[i] for i in order)))
    if unit == "words" and moves_nothing(order):
        st.caption(TEXT["one word"])
    settings = _measured(subject.key, subject.ids, tuple(order.tolist()), subject.model)
    _draw_losses(settings, subject)
    _draw_moved(settings, subject)
    explain.takeaway(_lesson(settings, subject))


def _draw_losses(settings: tuple[Setting, ...], subject: Subject) -> None:
    """A row for each setting of the switches."""
    has_none = subject.config.position == "none"
    rows = [
        TEXT(
            "row",
            positions=TEXT["off" if not each.position else "has none" if has_none else "on"],
            mask=TEXT["on" if each.mask else "off"],
            moved=each.relative,
            loss_in=_loss(each.loss_in),
            loss_out=_loss(each.loss_out),
        )
        for each in settings
    ]
    st.markdown("\n".join([TEXT["settings"], *rows]))
    none = TEXT["no loss unmasked" if subject.config.causal else "no loss hidden"]
    st.caption(TEXT("moved by", none=none, scheme=TITLES[subject.config.position]))


def _loss(nats: float | None) -> str:
    return TEXT["none"] if nats is None else f"{nats:.3f}"


def _draw_moved(settings: tuple[Setting, ...], subject: Subject) -> None:
    """How far each token moved, in one setting."""
    by_name = {
        TEXT[f"positions {'on' if s.position else 'off'}, mask {'on' if s.mask else 'off'}"]: s
        for s in settings
    }
    chosen = widgets.select(TEXT["setting"], list(by_name), "why_setting", wrap=True)
    fewer_labels_on_phones(len(subject.ids))
    plot(
        moved_bars(by_name[chosen].moved, subject.labels),
        key="why_moved",
        height=270,
        name="moved-by-order",
        data=pd.DataFrame({"token": subject.labels} | {name: s.moved for name, s in by_name.items()}),
        alt=TEXT("alt", setting=chosen),
    )


def _lesson(settings: tuple[Setting, ...], subject: Subject) -> str:
    """Sums up the numbers of all settings."""
    bare, placed = (setting_of(settings, position, False) for position in (False, True))
    leak, both = (setting_of(settings, position, True) for position in (False, True))
    assert bare is not None and placed is not None
    said = [TEXT("lesson without", bare=bare.relative)]
    if leak is None or both is None:
        said.append(TEXT("lesson no mask", placed=placed.relative))
    elif subject.config.position == "none":
        said.append(TEXT("lesson no positions", leak=leak.relative))
    else:
        scheme = TITLES[subject.config.position]
        said.append(TEXT("lesson both", leak=leak.relative, both=both.relative, scheme=scheme))
        if both.loss_in is not None and both.loss_out is not None and leak.loss_in is not None:
            losses = {"ordered": both.loss_in, "shuffled": both.loss_out, "bare": leak.loss_in}
            said.append(TEXT("lesson losses", **losses))
    return " ".join(said)


@memo.measured()
def _measured(
    key: tuple[str, int], ids: tuple[int, ...], order: tuple[int, ...], _model: Transformer
) -> tuple[Setting, ...]:
    return in_order_and_out(_model, ids, np.array(order, dtype=np.int64))


def moved_bars(values: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws how far each token's final vector moved (position,), in units of the usual length of such a
    vector.
    """
    bars = go.Bar(
        x=np.arange(len(labels)),
        y=values.astype(np.float32),
        marker={"color": colour("position")},
        customdata=[plain(label) for label in labels],
        hovertemplate=f"{TEXT['hover']}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.15,
        xaxis=token_axis(labels, TEXT["token axis"]),
        yaxis={"title": {"text": TEXT["moved axis"]}, "rangemode": "tozero", "exponentformat": "power"},
    )
