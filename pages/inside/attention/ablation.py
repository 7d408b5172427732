"""The view "Ablation": the model runs again without some of its parts, and the page says what changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ResolvedConfig
from engine.model import Transformer
from engine.parts.registry import Parts
from engine.recording import Recording, on_recording
from studies.attention.ablation import (
    Ablation,
    Comparison,
    Consequence,
    Order,
    Switches,
    changes_nothing,
    compare,
    consequence,
    each_head_off,
    edits_for,
    is_silent,
    missed,
    surest_position,
    writes_a_bias,
)
from studies.costs.cards.table import card_of
from studies.guesses.attention import dearest_part
from studies.shapes.formulas import formulas
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.charts import head_heatmap, head_table, heads_height
from ui.figures.labels import plain
from ui.figures.patterns import token_axis
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.model_needs import HEADS, SAYS
from ui.page_frame import View
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.text.numbers import nats

TEXT = content.beside(__file__)
SHOWN = 6  # candidates before and after
OFF = "attention_off"
PARTS = {"mask": "attention_mask", "scale": "attention_scaled", "position": "attention_position"}  # keys
ABLATIONS: tuple[Ablation, ...] = ("zero", "mean")
ORDERS: tuple[Order, ...] = ("kept", "shuffled", "reversed")
Metric = tuple[str, str, str | None, str]  # label, value, difference and caption


def draw(subject: Subject) -> None:
    position = token_strip(
        subject.labels,
        key="attention_at",
        chosen=surest_position(subject.recording()) if subject.gap is None else subject.gap,
        label=TEXT["strip"],
    )
    controls, figure = st.columns([5, 6], gap="medium")
    with controls:
        switches = _controls(subject, position)
    comparison = _compared(subject.key, subject.ids, switches, subject.recording(), subject.model)
    read = consequence(comparison, position, SHOWN)
    with figure:
        _candidates(subject, read, position)
    explain.answer(_answer(subject, switches, comparison, read, position))
    if subject.config.causal:
        ask("parts", _guess, subject)
    explain.measure_it(_measured, subject, comparison, read, switches, position)
    explain.by_hand(st.markdown, _how_removed(subject.config, subject.model.parts))


def _controls(subject: Subject, position_compared: int) -> Switches:
    config, scheme = subject.config, subject.model.parts.position(subject.config)
    names = [f"{i}.{h}" for i in range(config.n_layers) for h in range(config.n_heads)]
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        hint = TEXT["mask hint" if config.causal else "no mask hint"]
        mask = widgets.switch(TEXT["mask"], True, PARTS["mask"], hint=hint, disabled=not config.causal)
        scale = widgets.switch(TEXT["scale"], True, PARTS["scale"], hint=TEXT["scale hint"])
        hint = TEXT("position hint", off=card_of(scheme).off)
        position = widgets.switch(
            TEXT["position"], True, PARTS["position"], hint=hint, disabled=not scheme.present
        )
    first = _of_layer(0, names)  # something is off at first sight
    off = widgets.select_several(
        TEXT["heads"], names, OFF, first=first, kind="list", placeholder=TEXT["no heads"]
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _button("all", TEXT["all"], TEXT["all hint"], names)
        layers = list(range(config.n_layers))
        if len(layers) > widgets.FEW:
            layers = [widgets.index(TEXT["block"], config.n_layers, "attention_off_layer")]
        for i in layers:
            label, hint = TEXT("of block", layer=i), TEXT("of block hint", layer=i)
            _button(str(i), label, hint, _of_layer(i, names))
        _button("none", TEXT["none"], TEXT["none hint"], [])
    if off == first and mask and scale and position:
        st.caption(TEXT["example"])
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        ways = {way: TEXT[f"with {way}"] for way in ABLATIONS}
        how = widgets.select(TEXT["replace with"], ways, "attention_how", kind="list", width=150)
        orders = {order: TEXT[f"tokens {order}"] for order in ORDERS}
        order = widgets.select(TEXT["earlier"], orders, "attention_order", kind="list", width=150)
        seed = 0
        if order == "shuffled":
            seed = widgets.whole(TEXT["seed"], 0, 9999, 0, "attention_shuffle", width=110)
    bounds = (config.n_layers, config.n_heads)
    chosen = [widgets.indexes_of(name, bounds, ".") for name in off]
    return Switches(
        mask=mask or not config.causal,
        scale=scale,
        position=position or not scheme.enters,
        heads_off=tuple((at[0], at[1]) for at in chosen if at is not None),
        ablation=how,
        order=order,
        seed=seed,
        order_end=position_compared,
    )


def _of_layer(layer: int, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(f"{layer}.")]


def _button(key: str, label: str, hint: str, names: list[str]) -> None:
    """Draws a button that switches the heads of those names off, and no others."""
    st.button(label, key=f"{OFF}_{key}", on_click=_put, args=(names,), help=hint)


def _put(names: list[str]) -> None:
    st.session_state[OFF] = names


@memo.measured()
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], switches: Switches, _before: Recording, _model: Transformer
) -> Comparison:
    return compare(_model, _before, switches)


def _candidates(subject: Subject, read: Consequence, position: int) -> None:
    """The likeliest tokens at a position, before and after."""
    names = [subject.vocabulary[i] for i in read.tokens]
    table = pd.DataFrame({"token": names, "before": read.before, "after": read.after})
    asked = "what comes after" if subject.config.causal else "what is at"
    st.markdown(TEXT(asked, token=subject.labels[position]))
    plot(
        two_bars(table),
        key="attention_tops",
        alt=TEXT("alt candidates", position=position),
        height=330,
        data=table,
        name="before-and-after",
    )


def two_bars(table: pd.DataFrame) -> go.Figure:
    """Draws probabilities before and after, side by side: columns token, before, after."""
    rows = np.arange(len(table))
    traces = [
        go.Bar(
            orientation="h",
            name=TEXT[f"bar {column}"],
            x=table[column].to_numpy(np.float32),
            y=rows,
            marker={"color": shade},
            hovertext=[plain(token) for token in table["token"]],  # in full
            hovertemplate=f"%{{hovertext}} %{{x:.4f}}<extra>{TEXT[f'bar {column}']}</extra>",
        )
        for column, shade in (("before", colour("quiet")), ("after", colour("output")))
    ]
    return go.figure(
        traces,
        margin={"l": 30, "r": 12, "t": 28, "b": 44},
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": TEXT["probability"]}, "rangemode": "tozero"},
        yaxis=token_axis(list(table["token"]), "", size=14, range=[len(table) - 0.5, -0.5]),
    )


def _answer(
    subject: Subject, switches: Switches, comparison: Comparison, read: Consequence, position: int
) -> str:
    """Says what the model lost (Markdown)."""
    (first, before), (then, after) = read.first_before, read.first_after
    token, guess, other = subject.labels[position], subject.vocabulary[first], subject.vocabulary[then]
    here = "after" if subject.config.causal else "at"
    if changes_nothing(switches):
        return TEXT(f"nothing ablated {here}", token=token, guess=guess, before=before)
    prediction = TEXT(
        f"prediction {'stays' if first == then else 'changes'} {here}",
        token=token,
        guess=guess,
        other=other,
        before=before,
        after=after,
    )
    off = content.Filled(without(switches, subject.config.n_layers, subject.config.n_heads))
    if comparison.loss_before is None or comparison.loss_after is None:
        return TEXT("ablated", off=off, prediction=prediction)
    return TEXT(
        "ablated with a loss from" if comparison.start else "ablated with a loss",
        off=off,
        before=comparison.loss_before,
        after=nats(comparison.loss_after, "token" if subject.is_pretrained else "character"),
        start=comparison.start,
        prediction=prediction,
    )


def without(switches: Switches, layers: int, heads: int) -> str:
    """Names what is off, where anything is.

    >>> without(Switches(mask=False, heads_off=((1, 3),)), 4, 4)
    'Without the mask and head 1.3'
    """
    parts: list[str] = [TEXT[f"the {part}"] for part in PARTS if not getattr(switches, part)]
    if switches.heads_off:
        parts.append(_heads(switches.heads_off, layers, heads))
    moved = "" if switches.order == "kept" else TEXT[f"moved {switches.order}"]
    if not parts:
        return TEXT("moved", moved=moved)
    named = parts[0] if len(parts) == 1 else TEXT("and", parts=", ".join(parts[:-1]), last=parts[-1])
    return TEXT("without and moved" if moved else "without", parts=named, moved=moved)


def _heads(off: tuple[tuple[int, int], ...], layers: int, heads: int) -> str:
    """Names some heads."""
    layer, head = off[0]
    if len(off) == layers * heads:
        case = "any"
    elif len(off) == heads > 1 and len({layer for layer, _ in off}) == 1:
        case = "of a block"
    else:
        case = "one" if len(off) == 1 else "several"
    return TEXT(f"heads {case}", layer=layer, head=head, heads=len(off))


def _guess(subject: Subject) -> Guess | None:
    """A guess about the three switches."""
    truth = dearest_part(subject.model, subject.recording())
    if truth is None:
        return None
    losses = (TEXT(f"loss without {part}", loss=truth.numbers[part]) for part in truth.offered)
    on = {key: part != truth.right for part, key in PARTS.items()}
    outcome = TEXT("outcome", whole=truth.numbers["whole"], losses=content.Filled(", ".join(losses)))
    return Guess.of(TEXT, truth, TEXT["guess"], outcome, {OFF: []} | on)


def _measured(
    subject: Subject, comparison: Comparison, read: Consequence, switches: Switches, position: int
) -> None:
    at = TEXT("kl at", token=subject.labels[position], position=position)
    numbers = (
        _loss_metric(comparison, read, subject.config.causal),
        (at, TEXT("nats", value=read.kl), None, TEXT["kl caption"]),
        (TEXT["mean kl"], TEXT("nats", value=read.mean_kl), None, TEXT["mean kl caption"]),
    )
    for column, (label, value, delta, caption) in zip(st.columns(3), numbers, strict=True):
        column.metric(label, value, delta, delta_color="inverse")
        column.caption(caption)
    for remark in _remarks(subject.config, subject.model, switches):
        st.caption(f":material/info: {remark}")
    st.markdown(TEXT["where"])
    kl = comparison.kl
    plot(
        kl_bars(kl, subject.labels, position),
        key="attention_kl",
        alt=TEXT["alt kl"],
        height=320,
        data=pd.DataFrame({"position": np.arange(len(kl)), "token": subject.labels, "kl_nats": kl}),
        name="kl",
    )
    _each(subject, switches.ablation)


def _loss_metric(comparison: Comparison, read: Consequence, causal: bool) -> Metric:
    """The loss after the change, or why there is none."""
    if read.change is None:
        where = "at the end" if causal else "in an encoder"
        return TEXT["loss"], "–", None, TEXT[f"not measured {where}"]
    delta = f"{read.change:+.3f}" if abs(read.change) >= 0.0005 else None
    before = "loss before from" if comparison.start else "loss before"
    caption = TEXT(before, before=comparison.loss_before, start=comparison.start)
    return TEXT["loss per token"], f"{comparison.loss_after:.3f}", delta, caption


def _remarks(config: ResolvedConfig, model: Transformer, switches: Switches) -> list[str]:
    """Everything worth knowing of these switches and this model (Markdown)."""
    scored, silent = card_of(model.parts.mixer(config)).scored, is_silent(config, switches)
    remarks = {
        "nothing changed": changes_nothing(switches),
        "unmasked": not switches.mask,
        "no scores": not scored and not switches.scale,
        "no scale": scored and not config.score_scale and not switches.scale,
        "silent with bias": silent and writes_a_bias(model),
        "silent": silent and not writes_a_bias(model),
    }
    return [TEXT[f"remark {name}"] for name, holds in remarks.items() if holds]


def kl_bars(kl: np.ndarray, labels: Sequence[str], chosen: int) -> go.Figure:
    """Draws one bar for each position: kl (query,), nats; the chosen one stands out."""
    shades = [colour("output") if i == chosen else colour("quiet") for i in range(len(kl))]
    bars = go.Bar(
        x=np.arange(len(kl)),
        y=kl.astype(np.float32),
        marker={"color": shades},
        customdata=[plain(label) for label in labels],
        hovertemplate="after %{customdata}, position %{x}<br>%{y:.4f} nats<extra></extra>",
    )
    top = float(np.nanmax(kl)) if np.isfinite(kl).any() else 0.0
    return go.figure(
        [bars],
        margin={"l": 56, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.1,
        xaxis=go.axis(TEXT["at position"]),
        yaxis={"title": {"text": TEXT["kl"]}, "range": [0, max(top, 1e-3) * 1.05]},
    )


def _each(subject: Subject, how: Ablation) -> None:
    if not widgets.switch(TEXT["each"], False, "attention_each", hint=TEXT["each hint"]):
        return
    values = measured(
        ("each head off", subject.key, subject.ids, how),
        partial(on_recording, each_head_off, subject.model, subject.ids, how),
        TEXT["each measured"],
    )
    if values is None:
        return
    plot(
        head_heatmap(values, TEXT["kl"]),
        key="attention_each_plot",
        alt=TEXT["alt each"],
        height=heads_height(values),
        data=head_table({"kl_nats": values}),
        name="each-head-off",
    )
    found = missed(values)
    explain.takeaway(
        TEXT("missed most", layer=found.layer, head=found.head, most=found.most, least=found.least)
    )


def _how_removed(config: ResolvedConfig, parts: Parts) -> str:
    """Says what each switch replaces in this model (Markdown)."""
    scheme = parts.position(config)
    return TEXT(
        "by hand",
        scores=content.Filled(formulas(config, parts)["scores"][1]),
        position=config.position,
        off=content.Filled(card_of(scheme).off),
        left_out=TEXT["left out"] if "embed" in scheme.enters else "",
    )


VIEW = View("switches", TEXT, draw, code=(edits_for, compare), takes=(SAYS, HEADS))
