"""The part "Step by step" of the KV cache: the same text written twice, its costs, and the speed of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from pages.output.generation.conversation import conversation
from studies.generation.kv_cache import (
    CacheStep,
    Speed,
    Totals,
    cache_size,
    comparing,
    filled_bytes,
    first_refill,
    speed,
    totals,
)
from ui import content, explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures import theme
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.component import mounted
from ui.players.plot import plot
from ui.text.numbers import flop

TEXT = content.beside(__file__)
LONGEST, FIRST = 128, 24  # tokens that are written: at most, and at first
MAX_SEED = 2**31 - 1
STEP = "kv_step"  # in the URL, where the browser itself writes it
CHUNK, SLOW_CHUNK = 32, 8  # tokens that are computed at once; by a large model
SPEED_TOKENS, SPEED_SECONDS = 128, 1.0


def draw(subject: Subject, container: Any) -> None:
    """Draws the player, what both ways cost, and whether they agree; the controls stand in `container`."""
    a, b, c = container.columns([4, 2, 3], gap="small", vertical_alignment="bottom")
    speaking, _, about = conversation(subject, c)
    length, sampling = _controls(a, b)
    if about:
        st.caption(about)
    pairs = written_twice(speaking, length, sampling)
    if pairs is None:
        return
    costs = totals(pairs)
    _player(speaking, pairs)
    explain.answer(
        TEXT(
            "cached",
            computed=pairs[-1].computed,
            without=pairs[-1].computed_without,
            times=costs.times,
            same=costs.same,
            steps=len(pairs),
        )
    )
    explain.measure_it(_measured, speaking, pairs, costs)


def _measured(subject: Subject, pairs: tuple[CacheStep, ...], totals: Totals) -> None:
    if (refill := first_refill(pairs)) is not None:
        step, moved = refill
        st.caption(TEXT("refilled", step=step, context=subject.config.context, moved=moved))
    _totals(subject, pairs, totals)
    _identical(subject, totals)
    _speed(subject)


def _controls(a: Any, b: Any) -> tuple[int, SampleConfig]:
    hint = TEXT["length hint"]
    length = widgets.slide(TEXT["length"], 4, LONGEST, FIRST, "kv_length", container=a, hint=hint)
    # Streamlit's own: a box that opens over the page and takes no room on it
    with b.popover(TEXT["sampling"], width="stretch"):
        hint = TEXT["temperature hint"]
        warm = widgets.slide(TEXT["temperature"], 0.0, 2.0, 0.0, "kv_temperature", step=0.1, hint=hint)
        hint = TEXT["seed hint"]
        seed = widgets.whole(TEXT["seed"], 0, MAX_SEED, 0, "kv_seed", hint=hint, disabled=warm == 0)
    return length, SampleConfig(temperature=warm, seed=seed)


def _player(subject: Subject, pairs: tuple[CacheStep, ...]) -> None:
    c, vocabulary = subject.config, subject.vocabulary
    size = cache_size(c, 1, parts=subject.model.parts)
    data = {
        "labels": [*subject.labels, *(vocabulary[p.token] for p in pairs)],
        "without": [vocabulary[p.token_without] for p in pairs],
        "same": [p.token == p.token_without for p in pairs],
        "prompt": len(subject.ids),
        "context": c.context,
        "per_position": size.formula,
        "letters": TEXT["letters"],
        "numbers": f"{size.each} · T · 4",
        "name": STEP,
        "step": widgets.url_index(STEP, len(pairs), nearest=True) or 0,
        "plays": not widgets.read_url(STEP),
        "palette": theme.palette(),
        "steps": [
            {
                "position": p.position,
                "begin": p.begin,
                "computed": p.computed,
                "refilled": p.refilled,
                "flops": p.flops,
                "flops_without": p.flops_without,
            }
            for p in pairs
        ],
    }
    mounted("kvcache", stepper=True)(key="kv_player", data=data)


def written_twice(subject: Subject, length: int, sampling: SampleConfig) -> tuple[CacheStep, ...] | None:
    """Writes with a cache and without. A longer text begins like a shorter one, so a few lengths serve all.
    None while it is still being written.
    """
    chunk = SLOW_CHUNK if subject.is_pretrained else CHUNK
    whole = -(-length // chunk) * chunk
    pairs = measured(
        ("kv", subject.key, subject.ids, whole, sampling.temperature, sampling.seed),
        partial(comparing, subject.model, subject.ids, whole, sampling),
        TEXT["writing twice"],
        offer=TEXT("write twice", tokens=whole) if subject.is_pretrained else "",
    )
    return None if pairs is None else pairs[:length]


def _totals(subject: Subject, pairs: tuple[CacheStep, ...], totals: Totals) -> None:
    tokens, last = [subject.vocabulary[p.token] for p in pairs], pairs[-1]
    table = pd.DataFrame(
        {
            "step": range(len(pairs)),
            "token": tokens,
            "flops_with_cache": totals.cached,
            "flops_without": totals.uncached,
            "total_with_cache": totals.cached_sum,
            "total_without": totals.uncached_sum,
            "computed": [p.computed for p in pairs],
            "computed_without": [p.computed_without for p in pairs],
            "refilled": totals.refilled,
        }
    )
    plot(
        flops_by_step(totals.cached, totals.uncached, tokens, totals.refilled),
        key="kv_flops",
        height=280,
        data=table,
        name="kv-cache-flops",
        alt=TEXT("alt", tokens=len(pairs), last=last.flops, without=last.flops_without),
    )
    cached, uncached = int(totals.cached_sum[-1]), int(totals.uncached_sum[-1])
    said = TEXT("in total", cached=cached, uncached=uncached, times=totals.times)
    if not last.refilled and last.computed == 1:
        said = TEXT(
            "and the last",
            said=said,
            last=last.flops,
            without=last.flops_without,
            times=totals.times_last,
            computed=last.computed_without,
        )
    st.markdown(said)


def _identical(subject: Subject, totals: Totals) -> None:
    filled, whole = _filled(subject.key, subject.ids, subject)
    formula = cache_size(subject.config, len(subject.ids), parts=subject.model.parts).formula
    steps = len(totals.cached)
    case = "same tokens" if totals.same == steps else "other tokens"
    tokens = TEXT(case, same=totals.same, steps=steps, difference=totals.difference)
    agree = "bytes agree" if filled == formula else "bytes differ"
    size = TEXT(agree, prompt=len(subject.ids), formula=formula, filled=filled, whole=whole)
    st.markdown(f"{tokens}\n\n{size}")


@memo.measured(copied=True)
def _filled(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> tuple[int, int]:
    return filled_bytes(_subject.model, ids)


def _speed(subject: Subject) -> None:
    """The speed does not depend on the weights: it is measured once for a model's sizes."""
    columns = st.columns([3, 3, 3, 4], gap="medium", vertical_alignment="center")
    if columns[3].button(TEXT["again"], key="kv_again", icon=":material/timer:"):
        st.session_state["kv_turn"] = (st.session_state.get("kv_turn", 0) + 1) % 100
    with st.spinner(TEXT["timing"]):
        speed = _speed_of(repr(subject.config), st.session_state.get("kv_turn", 0), subject)
    values = {"cached": rate(speed.cached), "uncached": rate(speed.uncached), "ratio": f"{speed.ratio:.1f}"}
    for column, (name, value) in zip(columns, values.items(), strict=False):
        column.metric(TEXT(f"rate {name}"), value)
    st.caption(how_measured(speed, subject.is_pretrained))


def rate(value: float) -> str:
    """
    >>> rate(4.26), rate(1234.5)
    ('4.3', '1,234')
    """
    return f"{value:.1f}" if value < 20 else f"{value:,.0f}"


def how_measured(speed: Speed, large: bool) -> str:
    """Says how the speeds were measured, and why they are not in proportion to the work."""
    blocks = TEXT["one block"] if speed.blocks == 1 else TEXT("blocks", blocks=speed.blocks)
    why = ("a large model" if large else "a small model") if speed.work > speed.ratio else "more than work"
    said = TEXT("measured", blocks=blocks, tokens=speed.tokens)
    return f"{said} {TEXT(f'speed of {why}', work=speed.work)}"


@memo.measured(copied=True)
def _speed_of(config: str, turn: int, _subject: Subject) -> Speed:
    return speed(_subject.model, min(SPEED_TOKENS, _subject.config.context), SPEED_SECONDS)


def flops_by_step(
    with_cache: np.ndarray, without: np.ndarray, tokens: Sequence[str], refilled: np.ndarray
) -> go.Figure:
    """Draws FLOPs for each token that was written, (step,), on a logarithmic axis; `refilled` (step,) are
    marked.
    """
    at = np.arange(len(tokens))
    named = [plain(token) for token in tokens]
    traces = [
        go.Scatter(
            x=at,
            y=y.astype(np.float64),
            name=name,
            mode="lines+markers",
            marker={"size": 5},
            line={"color": colour(shade), "width": 2.5, "dash": dash},
            customdata=[f"“{token}”: {flop(float(v))}" for token, v in zip(named, y, strict=True)],
            hovertemplate=TEXT("hover step", name=name),
        )
        for name, y, shade, dash in (
            (TEXT["without"], without, "quiet", "dash"),
            (TEXT["with the cache"], with_cache, "attention", "solid"),
        )
    ]
    if refilled.any():
        traces.append(
            go.Scatter(
                x=at[refilled],
                y=with_cache[refilled].astype(np.float64),
                name=TEXT["cache refilled"],
                mode="markers",
                hoverinfo="skip",
                marker={"size": 13, "symbol": "circle-open", "color": colour("output"), "line": {"width": 2}},
            )
        )
    ends = np.log10(
        [max(1.0, float(min(with_cache.min(), without.min()))), float(max(with_cache.max(), without.max()))]
    )
    return go.figure(
        traces,
        margin={"l": 64, "r": 12, "t": 30, "b": 44},
        xaxis=go.axis(TEXT["axis step"], zeroline=False, range=[-0.6, len(tokens) - 0.4]),
        yaxis={
            "title": {"text": TEXT["axis flop"]},
            "type": "log",
            "tickformat": "~s",
            "dtick": 1,
            "range": [float(ends[0]) - 0.25, float(ends[1]) + 0.25],
        },
    )
