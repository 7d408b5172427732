"""The view "Attention sinks": how much of all weight lies on the first token, and what becomes of the text
without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from engine.data.tokenizers import Tokenizer
from pages.inside.circuits.measured_text import SHORT, long_text
from pages.inside.circuits.prompts import CITIES
from studies.attention.head_patterns import STRONG
from studies.attention.heads import HeadValue
from studies.circuits.sinks import OPENINGS, Opening, OpeningResult, Sinks, measure
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.charts import head_table
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.fit_text import most_tokens
from ui.model_bar import Subject
from ui.model_needs import CAUSAL, HEADS, SAYS
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
FRONT = ("\n", " the", ".", "e", "Z")
HEIGHT = 250
NAMED = 12  # layers that have room for the number of each of their heads


def draw(subject: Subject) -> None:
    """Draws the weight on the first token by layer, and the loss for each way to begin."""
    ids = _text(subject)
    if ids is None:
        return
    titles = _openings()
    opening = widgets.select(TEXT["opening"], titles, "sinks_opening", kind="pills", wrap=True, hidden=True)
    left, right = st.columns([3, 2], gap="medium")
    with right:
        hint = TEXT["prepended hint"]
        front = widgets.select(TEXT["prepended"], _fronts(subject), "sinks_front", kind="list", hint=hint)
    with left:
        sinks = measured(
            ("sinks", subject.key, ids, front),
            partial(measure, subject.model, ids, front),
            TEXT["reading"],
        )
        if sinks is None:
            return
        _draw_layers(sinks, opening, subject)
    with right:
        _draw_losses(sinks, opening)
    explain.answer(answer(sinks, opening, subject.vocabulary))
    explain.measure_it(_heads, sinks.of(opening))
    explain.by_hand(st.markdown, TEXT["method"])


def _openings() -> dict[Opening, str]:
    return {opening: TEXT(f"opening {opening}") for opening in OPENINGS}


def _text(subject: Subject) -> tuple[int, ...] | None:
    """One token less than the model reads: one is put in front."""
    ids = long_text(subject, most_tokens(subject.config) - 1, CITIES)
    if len(ids) < SHORT:
        st.info(TEXT("short context", tokens=SHORT))
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


def answer(sinks: Sinks, opening: Opening, vocabulary: Sequence[str]) -> str:
    """Says what is seen under one opening (Markdown)."""
    result, kept = sinks.of(opening), sinks.of("kept")
    losses = {"kept": kept.loss, "forgotten": sinks.of("forgotten").loss, "dropped": sinks.of("dropped").loss}
    shares: dict[str, Any] = {
        "first": vocabulary[result.ids[result.seen]],
        "mean": result.mean,
        "even": result.even,
    }
    if opening == "kept":
        most = result.most
        return TEXT(
            "sink" if result.is_sink else "no sink", most=most.value, head=_name(most), **shares, **losses
        )
    if opening in ("other", "dropped"):
        moved = "sink moved" if result.is_sink else "no sink either"
        return TEXT(moved, before=kept.mean, loss=result.loss, **shares, **losses)
    if opening == "forgotten":
        name = "new sink" if result.is_sink else "no new sink"
        return TEXT(name, gone=vocabulary[sinks.ids[0]], loss=result.loss, **shares, **losses)
    other = vocabulary[sinks.ids[sinks.control]]
    return TEXT("another hidden", other=other, position=sinks.control, loss=result.loss, **losses)


def _name(head: HeadValue) -> content.Filled:
    return content.Filled(f"{head.layer}.{head.head}")


def _draw_layers(sinks: Sinks, opening: Opening, subject: Subject) -> None:
    result = sinks.of(opening)
    baseline = None if opening == "kept" else sinks.of("kept").by_layer
    plot(
        sink_layers(result.share, result.by_layer, result.even, baseline),
        key="sinks_layers",
        height=HEIGHT + 70,
        name=f"sink-{opening}",
        data=head_table({"weight": result.share}),
        alt=TEXT("alt layers", token=subject.vocabulary[result.ids[result.seen]], mean=result.mean),
    )


def _draw_losses(sinks: Sinks, opening: Opening) -> None:
    losses = np.array([result.loss for result in sinks.openings])
    names = list(_openings().values())
    plot(
        sink_losses(names, losses, OPENINGS.index(opening)),
        key="sinks_losses",
        height=HEIGHT,
        name="sink-losses",
        data={"text_begins": names, "loss_nats": losses},
        alt=TEXT["alt losses"],
    )


def _heads(result: OpeningResult) -> None:
    """How many heads rest there, and how long the values are that they take from there."""
    (low, high), most = result.ratios, result.most
    st.markdown(
        TEXT(
            "resting",
            resting=result.resting,
            heads=result.share.size,
            strong=STRONG,
            head=_name(most),
            most=most.value,
            low=low,
            high=high,
        )
    )
    plot(
        value_bars(result.lengths),
        key="sinks_values",
        height=HEIGHT,
        name="value-lengths",
        data=head_table({"first": result.lengths[0], "others": result.lengths[1]}, "kv_head"),
        alt=TEXT["alt values"],
    )


# Figures ------------------------------------------------------------------------------------------


def sink_layers(share: np.ndarray, mean: np.ndarray, even: float, baseline: np.ndarray | None) -> go.Figure:
    """Draws weight on the earliest token in sight: every head (layer, head) a dot, the mean of a layer
    (layer,) a line; `baseline` is that of the text as it is, to compare.
    """
    layers, heads = share.shape
    layer, head = (grid.ravel() for grid in np.indices(share.shape))
    spread = 0.5 * (head + 0.5) / heads - 0.25  # heads of one layer side by side, so that none hides another
    dots = go.Scatter(
        x=layer + spread,
        y=share.ravel().astype(np.float32),
        mode="markers",
        name=TEXT["one head"],
        marker={"color": colour("attention", 50), "size": 5},
        customdata=[f"{a}.{b}" for a, b in zip(layer, head, strict=True)],
        hovertemplate=TEXT["hover of a head"],
    )
    at = np.arange(layers)
    traces, hover = [dots], TEXT["hover of a block"]
    if baseline is not None:
        before = TEXT["unchanged"]
        traces.append(go.line(at, baseline, "quiet", before, hover, width=1.5, dash="dot", points=5))
    traces.append(go.line(at, mean, "attention", TEXT["mean"], hover, points=5))
    ends, flat = np.array([-0.5, layers - 0.5]), np.array([even, even])
    uniform = go.line(ends, flat, "residual", TEXT["uniform"], "%{y:.1%}", width=1.5, dash="dash")
    return go.figure(
        [*traces, uniform],
        margin={"l": 52, "r": 8, "t": 26, "b": 40},
        xaxis=go.axis(TEXT["block axis"], zeroline=False, dtick=1 if layers <= 12 else 5),
        yaxis={
            "title": {"text": TEXT["weight axis"]},
            "range": [0, 1.03],
            "tickformat": ".0%",
            "zeroline": False,
        },
    )


def sink_losses(names: Sequence[str], losses: np.ndarray, chosen: int) -> go.Figure:
    """Draws a bar for each way to begin the text, the first on top: nats per token of the second half."""
    at = -np.arange(len(names))
    shades = [colour("attention") if i == chosen else colour("quiet", 60) for i in range(len(names))]
    bars = go.Bar(
        x=losses,
        y=at,
        orientation="h",
        marker={"color": shades},
        text=[f"{loss:.2f}" for loss in losses],
        textposition="outside",
        cliponaxis=False,
        customdata=[plain(name) for name in names],
        hovertemplate=TEXT["hover of a loss"],
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 12, "t": 26, "b": 40},
        showlegend=False,
        bargap=0.25,
        xaxis={
            "title": {"text": TEXT["loss axis"]},
            "range": [0, 1.4 * max(float(losses.max()), 1e-6)],  # room for the numbers
            "nticks": 4,
        },
        yaxis=go.ticks(at, [plain(name) for name in names], automargin=True),
    )


def value_bars(lengths: np.ndarray) -> go.Figure:
    """Draws lengths (2, layer, kv_head) of value vectors: at the earliest position in sight, and the mean of
    the others.
    """
    _, layers, kv = lengths.shape
    at = [(i, h) for i in range(layers) for h in range(kv)]
    axis: dict[str, Any] = go.axis(TEXT["heads axis"])
    groups: Any = [[TEXT("block", block=i) for i, _ in at], [f"{h}" for _, h in at]]
    if layers > NAMED:  # no room for a name below each: a layer's heads stand around its number
        groups = np.array([i + (h - (kv - 1) / 2) / (kv + 1) for i, h in at])
        axis |= {"title": {"text": TEXT["blocks axis"]}, "dtick": 5}
    traces = [
        go.Bar(
            name=name,
            x=groups,
            y=values.reshape(-1).astype(np.float32),
            marker={"color": shade},
            hovertext=[TEXT("bar", block=i, head=h) for i, h in at],
            hovertemplate=TEXT("hover of a bar", name=name),
        )
        for name, values, shade in (
            (TEXT["first position"], lengths[0], colour("attention")),
            (TEXT["others"], lengths[1], colour("quiet")),
        )
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 30, "b": 60},
        barmode="group",
        bargap=0.2,
        xaxis=axis,
        yaxis={"title": {"text": TEXT["norm axis"]}, "rangemode": "tozero"},
    )


def _variant(subject: Subject) -> str:
    return "" if subject.is_pretrained else "small"


VIEW = View("sinks", TEXT, draw, (measure,), takes=(SAYS, CAUSAL, HEADS), variant=_variant, figures_only=True)
