"""The part "√d_k" of "Scores": what the division is for, on random queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from studies.attention.scaling import (
    CHOICES,
    KEYS,
    QUERIES,
    WIDTHS,
    SampleQuery,
    ScoreScaling,
    among_zeros,
    crossing,
    jacobian_norm,
    mean_slope,
    sample_query,
    scaling,
    spread,
    theory,
)
from studies.guesses import attention as guesses
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
EXPONENTS = {"none": 0.0, "1/√d_k": 0.5, "1/d_k": 1.0, "own": None}
NAMED = {0.0: "nothing", 0.5: "root", 1.0: "width"}  # exponents
SCORE = 14  # that is worked out: about what a spread of √128 brings by itself
SHADES = ("quiet", "attention")  # without the scale, with it
PANELS = ("spread", "entropy", "jacobian", "slope")  # fields of ScoreScaling


def draw(line: DeltaGenerator) -> None:
    """Draws one query's weights twice: of the scores as they are, and divided."""
    width = widgets.slide_over(TEXT["width"], WIDTHS, 64, "attention_dk", container=line, width=300)
    seed = widgets.whole(
        TEXT["seed"], 0, 9999, 0, "attention_seed", container=line, hint=TEXT["seed hint"], width=120
    )
    query = sample_query(width, seed)
    for column, divided in zip(st.columns(2), (False, True), strict=True):
        with column:
            _bars(query, divided)
    st.caption(TEXT["setting"])
    saturated = "scaled saturated" if query.most_plain > 0.9 else "scaled"
    explain.answer(
        TEXT(
            "one number" if query.width == 1 else saturated,
            width=query.width,
            spread=query.spread,
            plain=query.most_plain,
            scaled=query.most_scaled,
        )
    )
    ask("width", _guess, query, seed)
    explain.measure_it(_curves, width, seed)
    explain.by_hand(_worked, seed)


def _bars(query: SampleQuery, divided: bool) -> None:
    """One query's weights, of the scores as they are or divided."""
    weights = query.scaled if divided else query.plain
    alt = "alt bars divided" if divided else "alt bars"
    plot(
        query_bars(query, divided),
        key=f"attention_scaling_{'divided' if divided else 'example'}",
        alt=TEXT(alt, width=query.width, plain=query.most_plain, scaled=query.most_scaled),
        height=350,
        data=pd.DataFrame({"key": np.arange(1, CHOICES + 1), "score": query.scores, "weight": weights}),
        name=f"one-query{'-divided' if divided else ''}",
    )


def query_bars(query: SampleQuery, divided: bool) -> go.Figure:
    """Draws the weights of one query, as the scores are or `divided` by sqrt(d_k): one bar for each key, in
    the same places and on the same scale both ways; the key that wins undivided stands out in both.
    """
    values = query.scaled if divided else query.plain
    keys = np.arange(1, len(values) + 1)
    numbered = labelled(values)
    bars = go.Bar(
        x=keys,
        y=values.astype(np.float32),
        marker={"color": [colour("attention") if i == query.best else colour("quiet") for i in keys - 1]},
        customdata=query.scores,
        text=[f"{v:.0%}" if i in numbered else "" for i, v in enumerate(values)],
        textposition="outside",
        textfont={"size": 12},
        constraintext="none",
        cliponaxis=False,
        hovertemplate="key %{x}<br>score %{customdata:.2f}<br>weight %{y:.4f}<extra></extra>",
    )
    title = TEXT("title divided" if divided else "title", spread=query.spread)
    return go.figure(
        [bars],
        margin={"l": 56, "r": 8, "t": 34, "b": 44},
        showlegend=False,
        annotations=[go.heading(f"<b>{title}</b>", y=1.02, font={"size": 15})],
        bargap=0.15,
        xaxis=go.axis(TEXT["key"], tickvals=keys[::3]),
        yaxis={"title": {"text": TEXT["weight"]}, "range": [0, 1.08], "tickformat": ".0%"},
    )


def labelled(values: np.ndarray, least: float = 0.05) -> set[int]:
    """Returns the bars that say their number: the highest first, none beside another, none below `least`.

    >>> sorted(labelled(np.array([0.1, 0.3, 0.2, 0.04, 0.36])))
    [1, 4]
    """
    numbered: set[int] = set()
    for i in np.argsort(-values, kind="stable").tolist():
        if values[i] >= least and not numbered & {i - 1, i + 1}:
            numbered.add(i)
    return numbered


def _guess(query: SampleQuery, seed: int) -> Guess:
    """A guess about heads of another width."""
    other, truth = guesses.other_width(query.width), guesses.width(query.width, seed)
    question = TEXT("guess", width=query.width, other=other)
    outcome = TEXT("outcome", other=other, **truth.numbers)
    return Guess.of(TEXT, truth, question, outcome, {"attention_dk": other})


def _curves(width: int, seed: int) -> None:
    """Spread, entropy and gradients over d_k, of many queries."""
    st.markdown(TEXT("curves", queries=QUERIES, keys=KEYS))
    exponent = _exponent()
    unscaled = scaled_by(0.0)
    scales = {unscaled: 0.0, scaled_by(exponent): exponent}
    curves = {name: _measured(WIDTHS, e, seed) for name, e in scales.items()}
    here = {name: _measured((width,), e, seed) for name, e in scales.items()}
    plot(
        scaling_curves(curves, here, theory(width, exponent).entropy),
        key="attention_scaling",
        alt=TEXT["alt curves"],
        height=540,
        data=_table(curves, here),
        name="scaling",
    )
    crosses = crossing(curves[unscaled], _measured(WIDTHS, 0.5, seed))
    larger = TEXT("never larger" if crosses is None else "larger up to", crossing=crosses)
    st.markdown(TEXT("gradients", here=larger))
    st.markdown(TEXT("measured at", width=width))
    st.table(_compared(here, width, exponent))


def _exponent() -> float:
    scales = {name: name for name in EXPONENTS} | {"own": TEXT["custom"]}
    exponent = EXPONENTS[widgets.select(TEXT["scale"], scales, "attention_scale", first="1/√d_k")]
    if exponent is None:
        exponent = widgets.slide(TEXT["exponent"], 0.0, 1.5, 0.25, "attention_exponent", step=0.05)
    return exponent


def scaled_by(exponent: float) -> str:
    """Names a scale 1/d_k^exponent."""
    return TEXT(f"scaled by {NAMED.get(exponent, 'power')}", exponent=exponent)


@memo.measured()
def _measured(widths: tuple[int, ...], exponent: float, seed: int) -> ScoreScaling:
    return scaling(widths, exponent, seed)


@memo.measured()
def _spread(width: int, seed: int) -> float:
    return spread(width, seed)


def scaling_curves(
    curves: Mapping[str, ScoreScaling], here: Mapping[str, ScoreScaling], most: float
) -> go.Figure:
    """Draws spread, entropy and two sizes of the gradient over d_k (logarithmic); `here`, one d_k, is marked;
    `most`: the largest possible entropy.
    """
    chosen = float(next(iter(here.values())).widths[0])
    dashed = {"color": colour("validation"), "width": 1.5, "dash": "dash"}
    dotted = {"color": colour("quiet"), "width": 1, "dash": "dot"}
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = [go.rule(y=most, xref="x2 domain", yref="y2", line=dashed)]
    notes, axes = [], {}
    for i, field in enumerate(PANELS):
        axis, left, bottom = "" if i == 0 else str(i + 1), 0.54 * (i % 2), 0.58 * (1 - i // 2)
        traces += [
            _curve(name, c.widths, getattr(c, field), shade, axis, i == 0)
            for shade, (name, c) in zip(SHADES, curves.items(), strict=False)
        ]
        for shade, (name, c) in zip(SHADES, here.items(), strict=False):
            traces.append(
                _curve(name, c.widths, getattr(c, field), shade, axis, False)
                | dict(mode="markers", marker={"size": 11, "color": colour(shade)})
            )
        under = go.axis("d_k", tickvals=[1, 8, 64, 512], anchor=f"y{axis}")
        axes[f"xaxis{axis}"] = {"type": "log", "domain": [left, left + 0.46]} | under
        small: dict[str, Any] = {"nticks": 5} | (
            {"exponentformat": "power"} if field == "slope" else {"tickformat": "~g"}
        )
        axes[f"yaxis{axis}"] = (
            dict(rangemode="tozero", anchor=f"x{axis}", domain=[bottom, bottom + 0.36]) | small
        )
        notes.append(go.heading(TEXT[f"panel {field}"], left, bottom + 0.37))
        shapes.append(go.rule(x=chosen, xref=f"x{axis}", yref=f"y{axis} domain", line=dotted))
    for i, measured in enumerate(curves.values()):
        expected = _curve(TEXT["theory"], measured.widths, measured.expected, "validation", "", i == 0)
        traces.append(expected | {"mode": "lines", "line": dashed})
    margin = {"l": 52, "r": 8, "t": 44, "b": 46}
    return go.figure(traces, margin=margin, shapes=shapes, annotations=notes, legend={"y": 1.04}, **axes)


def _curve(name: str, x: np.ndarray, y: np.ndarray, shade: str, axis: str, legend: bool) -> dict[str, Any]:
    return go.line(
        x,
        y,
        shade,
        name,
        "d_k %{x}<br>%{y:.4g}",
        points=5,
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        showlegend=legend,
        legendgroup=name,
    )


def _table(*groups: dict[str, ScoreScaling]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "scale": name,
                "d_k": c.widths,
                "spread": c.spread,
                "entropy_nats": c.entropy,
                "jacobian_norm": c.jacobian,
                "mean_slope": c.slope,
            }
        )
        for curves in groups
        for name, c in curves.items()
    ]
    return (
        pd.concat(frames, ignore_index=True)
        .drop_duplicates(["scale", "d_k"])
        .sort_values(["scale", "d_k"], ignore_index=True)
    )


def _compared(here: Mapping[str, ScoreScaling], width: int, exponent: float) -> pd.DataFrame:
    """A row for each number at one d_k: unscaled and scaled (one column where nothing is), and the theory."""
    expected = theory(width, exponent)
    columns = {name: [f"{getattr(c, field)[0]:.4g}" for field in PANELS] for name, c in here.items()}
    columns[TEXT["comparison"]] = [
        TEXT(
            f"compared {field}",
            plain_spread=expected.plain_spread,
            spread=expected.spread,
            keys=KEYS,
            entropy=expected.entropy,
            slope=expected.slope,
        )
        for field in PANELS
    ]
    return pd.DataFrame(columns, index=pd.Index([TEXT[f"row {field}"] for field in PANELS], name=""))


def _worked(seed: int) -> None:
    columns = st.columns(3)
    for column, width in zip(columns, (32, 128), strict=False):
        how = TEXT("worked spread", width=width, root=theory(width, 0.0).plain_spread)
        with column:
            explain.worked(TEXT("spread at", width=width), f"{_spread(width, seed):.2f}", how)
    with columns[2]:
        zeros = widgets.whole(TEXT["zeros"], 1, 100_000, 99, "attention_zeros")
        among = among_zeros(SCORE, zeros, 128)
        how = TEXT("worked among", score=SCORE, zeros=zeros, exponential=among.exponential)
        explain.worked(TEXT("score among", score=SCORE, zeros=zeros), f"{among.weight:.5f}", how)
    st.caption(
        TEXT(
            "each zero",
            zeros=zeros,
            each=among.each_zero,
            divided=among.divided,
            weight=among.divided_weight,
        )
    )


PART = View("scaling", TEXT, draw, code=(sample_query, scaling, jacobian_norm, mean_slope))
