"""The view "Switch things off": the model runs again without some of its parts, and the page says what
changed.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention.ablation import (
    Ablation,
    Comparison,
    Consequence,
    Switches,
    compare,
    consequence,
    each_head_off,
    missed,
    surest_position,
)
from engine.measure.recording import Recording
from engine.model import Transformer
from pages.inside.attention import guesses
from pages.inside.attention import words_switches as words
from pages.inside.attention.figures import kl_bars, two_bars
from pages.inside.attention.heads_map import head_heatmap, head_table, heads_height
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.guess import ask
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.markdown import safe

SHOWN = 6  # candidates before and after
OFF = "attention_off"


def draw_switches(subject: Subject) -> None:
    position = token_strip(
        subject.labels,
        key="attention_at",
        chosen=surest_position(subject.recording()) if subject.gap is None else subject.gap,
        label=words.STRIP,
    )
    controls, figure = st.columns([5, 6], gap="medium")
    with controls:
        switches = _controls(subject, position)
    comparison = _compared(subject.key, subject.ids, switches, subject.recording(), subject.model)
    read = consequence(comparison, position, SHOWN)
    with figure:
        _candidates(subject, read, position)
    explain.answer(words.switched(subject, switches, comparison, read, position))
    if subject.config.causal:
        ask("parts", guesses.parts, subject)
    explain.measure_it(_measured, subject, comparison, read, switches, position)
    explain.by_hand(st.markdown, words.how_removed(subject.config, subject.model.parts))


def _candidates(subject: Subject, read: Consequence, position: int) -> None:
    """The likeliest tokens at a position, before and after."""
    names = [subject.vocabulary[i] for i in read.tokens]
    table = pd.DataFrame({"token": names, "before": read.before, "after": read.after})
    st.markdown(words.question(subject.config.causal, safe(subject.labels[position])))
    plot(
        two_bars(table),
        key="attention_tops",
        alt=words.CANDIDATES_ALT.format(position=position),
        height=330,
        data=table,
        name="before-and-after",
    )


def _measured(
    subject: Subject, comparison: Comparison, read: Consequence, switches: Switches, position: int
) -> None:
    numbers = (
        words.loss_metric(comparison, read, subject.config.causal),
        words.kl_metric(read, subject.labels[position], position),
        words.mean_metric(read),
    )
    for column, (label, value, delta, caption) in zip(st.columns(3), numbers, strict=True):
        column.metric(label, value, delta, delta_color="inverse")
        column.caption(caption)
    for remark in words.remarks(subject.config, subject.model, switches):
        st.caption(f":material/info: {remark}")
    st.markdown(words.WHERE)
    kl = comparison.kl
    plot(
        kl_bars(kl, subject.labels, position),
        key="attention_kl",
        alt=words.KL_ALT,
        height=320,
        data=pd.DataFrame({"position": np.arange(len(kl)), "token": subject.labels, "kl_nats": kl}),
        name="kl",
    )
    _each(subject, switches.ablation)


def _controls(subject: Subject, position_compared: int) -> Switches:
    config, scheme = subject.config, subject.model.parts.position(subject.config)
    names = [f"{i}.{h}" for i in range(config.n_layers) for h in range(config.n_heads)]
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        hint = words.MASK_HINT if config.causal else words.NO_MASK_HINT
        mask = widgets.switch(words.MASK, True, "attention_mask", hint=hint, disabled=not config.causal)
        scale = widgets.switch(words.SCALE, True, "attention_scaled", hint=words.SCALE_HINT)
        hint = words.POSITION_HINT.format(off=scheme.card.off)
        position = widgets.switch(
            words.POSITION, True, "attention_position", hint=hint, disabled=not scheme.present
        )
    first = _of_layer(0, names)  # something is off at first sight
    off = widgets.select_several(
        words.ABLATED, names, OFF, first=first, kind="list", placeholder=words.NONE_ABLATED
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.button(words.ALL, key="attention_off_all", on_click=_put, args=(names,), help=words.ALL_HINT)
        layers = list(range(config.n_layers))
        if len(layers) > widgets.FEW:
            layers = [widgets.index(words.BLOCK, config.n_layers, "attention_off_layer")]
        for i in layers:
            label, hint = words.block_button(i)
            heads = _of_layer(i, names)
            st.button(label, key=f"attention_off_{i}", on_click=_put, args=(heads,), help=hint)
        st.button(words.NONE, key="attention_off_none", on_click=_put, args=([],), help=words.NONE_HINT)
    if off == first and mask and scale and position:
        st.caption(words.FIRST)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        how = widgets.select(words.HOW, words.ABLATIONS, "attention_how", kind="list", width=150)
        order = widgets.select(words.ORDER, words.ORDERS, "attention_order", kind="list", width=150)
        seed = 0
        if order == "shuffled":
            seed = widgets.whole(words.SEED, 0, 9999, 0, "attention_shuffle", width=110)
    bounds = (config.n_layers, config.n_heads)
    chosen = [widgets.indexes_of(name, bounds, ".") for name in off]
    return Switches(
        mask=mask or not config.causal,
        scale=scale,
        position=position or not subject.model.parts.position(config).enters,
        heads_off=tuple((at[0], at[1]) for at in chosen if at is not None),
        ablation=how,
        order=order,
        seed=seed,
        order_end=position_compared,
    )


def _of_layer(layer: int, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(f"{layer}.")]


def _put(names: list[str]) -> None:
    st.session_state[OFF] = names


@memo.measured()
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], switches: Switches, _before: Recording, _model: Transformer
) -> Comparison:
    return compare(_model, _before, switches)


def _each(subject: Subject, how: Ablation) -> None:
    if not widgets.switch(words.EACH, False, "attention_each", hint=words.EACH_HINT):
        return
    values = measured(
        ("each head off", subject.key, subject.ids, how),
        partial(each_head_off, subject.model, subject.recording(), how),
        words.EACH_MEASURED,
    )
    if values is None:
        return
    plot(
        head_heatmap(values, words.KL),
        key="attention_each_plot",
        alt=words.EACH_ALT,
        height=heads_height(values),
        data=head_table({"kl_nats": values}),
        name="each-head-off",
    )
    explain.takeaway(words.missed_most(missed(values)))
