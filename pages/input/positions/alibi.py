"""The part "ALiBi" of "Biases": what a distance costs each head. Measured: how far that lets a head see, the
bias, and what becomes of a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.model import Transformer
from engine.parts.positions import Alibi, alibi_slopes
from engine.recording import Recording, record
from pages.input.positions.bias_map import bias_map, choose_mask, head_line
from pages.input.positions.maps import draw_pattern
from pages.input.positions.schemes import example
from studies.positions import alibi as measured
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.patterns import pattern_table
from ui.figures.theme import colour
from ui.fit_text import most_tokens, read, show_token
from ui.model_bar import Subject, subject_bar
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
MOST_HEADS, FIRST_HEADS = 32, 8
LENGTH = 128  # of the text over which the curves are drawn
CONTEXTS = (16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)
LENGTHS = (16, 32, 64, 128)
MULTIPLIERS = (0.25, 0.5, 1, 2, 4, 8, 16)
TOPICS = ("slopes", "matrix", "effect")
CORNER = 3  # rows and columns of the bias that are written out


def draw() -> None:
    """Draws the cost of distance in each head."""
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        heads = widgets.slide(TEXT["heads"], 1, MOST_HEADS, FIRST_HEADS, "alibi_heads")
        times = float(
            widgets.slide_over(
                TEXT["multiplier"],
                MULTIPLIERS,
                1,
                "alibi_times",
                hint=TEXT["multiplier hint"],
                written="{:,}".format,
            )
        )
        distance = widgets.slide(TEXT["distance"], 1, LENGTH - 1, 10, "alibi_distance")
    slopes = measured.slopes(heads, times)
    left = measured.factors(slopes.slope, np.array([distance]))[:, 0]
    with figure:
        plot(
            decay_curves(slopes.slope, LENGTH, distance),
            key="alibi_decay",
            height=400,
            name="alibi-decay",
            data=pd.DataFrame({"head": np.arange(heads), "slope": slopes.slope, f"left_at_{distance}": left}),
            alt=TEXT("alt", heads=heads, length=LENGTH, distance=distance),
        )
    explain.answer(answer(heads, distance, float(left.min()), float(left.max())))
    explain.measure_it(_draw_measured, heads, times)


def answer(heads: int, distance: int, least: float, most: float) -> str:
    """Says what is left of a weight at the distance: `least` by the steepest head, `most` by the flattest."""
    case = "answer of one" if heads == 1 else "answer"
    return TEXT(case, heads=heads, distance=distance, least=least, most=most)


def _draw_measured(heads: int, times: float) -> None:
    """One of three topics."""
    titles = {name: TEXT[f"topic {name}"] for name in TOPICS}
    topic = widgets.select(TEXT["topic"], titles, "alibi_topic", hidden=True)
    if topic == "slopes":
        _draw_slopes(heads, times)
    elif topic == "matrix":
        _draw_matrix(heads, times)
    else:
        with subject_bar() as subject:
            _draw_effect(subject, times)


def _draw_slopes(heads: int, times: float) -> None:
    """Draws how far each head reaches, and where its slope is from."""
    context = widgets.slide_over(TEXT["context"], CONTEXTS, LENGTH, "alibi_context", written="{:,}".format)
    slopes = measured.slopes(heads, times)
    reaches = {"distance_to_1_over_e": slopes.to_a_third, "distance_to_1_percent": slopes.to_a_percent}
    st.caption(TEXT("reach", context=context))
    plot(
        reach_bars(slopes, context),
        key="alibi_reach",
        height=340,
        name="alibi-reach",
        data=pd.DataFrame({"head": np.arange(heads), "slope": slopes.slope} | reaches),
        alt=TEXT("alt reach", heads=heads),
    )
    st.markdown(
        TEXT(
            "slopes and reach",
            steepest=slopes.steepest,
            flattest=slopes.flattest,
            within=slopes.within(context),
            heads=heads,
            context=context,
            left=slopes.farthest(context),
        )
    )
    _list_slopes(slopes)


def _list_slopes(slopes: measured.Slopes) -> None:
    heads = len(slopes.slope)
    st.dataframe(
        pd.DataFrame(
            {
                TEXT["column head"]: np.arange(heads),
                TEXT["column slope"]: [slope_power(float(s)) for s in slopes.slope],
                TEXT["column decimal"]: [f"{s:.6g}" for s in slopes.slope],
                TEXT["column third"]: [f"{d:,.1f}" for d in slopes.to_a_third],
                TEXT["column percent"]: [f"{d:,.1f}" for d in slopes.to_a_percent],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * heads, 318),
    )
    split = measured.slope_rule(heads)
    case = "rule of others" if split.rest else "rule"
    st.caption(TEXT(case, heads=heads, power=split.power, rest=split.rest, twice=2 * split.power))


def slope_power(slope: float) -> str:
    """A slope as a fraction, where it is a whole power of two, else as a power.

    >>> slope_power(0.25), slope_power(2**-0.5), slope_power(2.0)
    ('1/4', '2^(−0.5)', '2')
    """
    exponent = math.log2(slope)
    if exponent != round(exponent):
        return minus(f"2^({exponent:.4g})")
    return f"1/{2 ** -round(exponent)}" if exponent < 0 else f"{2 ** round(exponent)}"


def _draw_matrix(heads: int, times: float) -> None:
    """Draws what one head adds to the scores."""
    first, second, third = st.columns([3, 3, 2.2], gap="medium", vertical_alignment="bottom")
    length = widgets.slide_over(TEXT["length"], LENGTHS, 32, "alibi_length", container=first)
    head = widgets.slide(TEXT["head"], 0, heads - 1, 0, "alibi_matrix_head", container=second)
    with third:
        causal = choose_mask("alibi_mask")
    bias = measured.alibi_bias(heads, length, times, causal)[head]
    slope = float(measured.slopes(heads, times).slope[head])
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        plot(
            bias_map(bias),
            key="alibi_matrix",
            height=460,
            name=f"alibi-bias-head-{head}",
            data=pattern_table(bias, [""] * length),
            alt=TEXT("alt matrix", slope=slope, length=length),
        )
    with right:
        st.markdown(TEXT("slope of head", head=head, heads=heads, slope=slope))
        st.markdown(TEXT["formula"])
        st.caption(TEXT["corner"])
        st.table(_corner(bias))
    far = measured.farthest_key(slope, length)
    farthest = TEXT("farthest key", penalty=far.penalty, factor=far.factor)
    st.markdown(f"{farthest} {TEXT['later hidden' if causal else 'both ways']}")


def _corner(bias: np.ndarray) -> pd.DataFrame:
    """The first queries and keys, written out."""
    some = bias[:CORNER, :CORNER]
    cells = [["−∞" if not np.isfinite(v) else minus(f"{v + 0.0:.4g}") for v in row] for row in some]
    return pd.DataFrame(
        cells,
        index=pd.Index([TEXT("query", number=i) for i in range(len(some))], name=""),
        columns=[TEXT("key", number=i) for i in range(len(some))],
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """Whose scores are bent: `title` begins a sentence."""

    recording: Recording
    labels: list[str]
    title: str


def _source(subject: Subject) -> _Source:
    """The model in the bar; beside it, where there is one, a small model that was trained with ALiBi and
    reads the same text.
    """
    trained = example("alibi") if subject.config.position != "alibi" else None
    sources = (TEXT["in the bar"], TEXT["trained"])
    if trained is not None and widgets.select(TEXT["source"], sources, "alibi_source") == sources[1]:
        ids, _, _ = read(subject.text, trained.tokenizer, most_tokens(trained.config))
        labels = [show_token(trained.tokenizer.decode([i])) for i in ids]
        title = TEXT("small model", context=trained.config.context)
        return _Source(_trained_recording(ids, trained.model), labels, title)
    return _Source(subject.recording(), subject.labels, TEXT["this model"])


@memo.measured()
def _trained_recording(ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


def _draw_effect(subject: Subject, times: float) -> None:
    """Draws a head's pattern without the bias and with it, and how far all heads of its layer look: of the
    heads that the model has.
    """
    if subject.config.mixer == "none":
        st.info(TEXT["no attention"])
        return
    source = _source(subject)
    recording, c = source.recording, source.recording.config
    layer, head = widgets.head(c, "alibi")
    slope = float(measured.slopes(c.n_heads, times).slope[head])
    trained = measured.recorded_slope(c, head, recording.parts)
    effect = measured.alibi_effect(
        recording[f"blocks.{layer}.scores"][head], slope, recording.seen(), trained
    )
    st.caption(_provenance(source, trained))
    _draw_patterns(effect, slope, source.labels)
    _draw_distances(recording, layer, times)
    st.markdown(TEXT("distances", head=head, before=effect.distance_before, after=effect.distance_after))


def _provenance(source: _Source, slope: float) -> str:
    """Says where the scores are from; they hold `slope` already."""
    kind = source.recording.config.position
    case = "ALiBi" if slope else kind if kind in ("none", "t5") else "another"
    return TEXT(f"trained with {case}", title=source.title, slope=slope, kind=kind)


def _draw_patterns(effect: measured.Effect, slope: float, labels: list[str]) -> None:
    patterns = {"before": effect.before, "after": effect.after}
    for column, (key, pattern) in zip(st.columns(2, gap="medium"), patterns.items(), strict=True):
        title = TEXT(f"title {key}", slope=slope)
        with column:
            st.caption(TEXT(f"softmax {key}", title=title))
            name, alt = title.replace(" ", "-").lower(), TEXT("alt pattern", title=title)
            draw_pattern(pattern, labels, f"alibi_pattern_{key}", name, alt)
    st.caption(TEXT["same scale"])


def _draw_distances(recording: Recording, layer: int, times: float) -> None:
    before, after = measured.distances_of_heads(recording, layer, times)
    st.caption(TEXT("all heads", layer=layer))
    plot(
        distance_bars(before, after),
        key="alibi_distances",
        height=270,
        name="alibi-distances",
        data=pd.DataFrame({"head": np.arange(len(before)), "without": before, "with": after}),
        alt=TEXT["alt distances"],
    )


# Figures ------------------------------------------------------------------------------------------


def decay_curves(slope: np.ndarray, length: int, distance: int) -> go.Figure:
    """Draws the factor on a score's weight at each distance before the softmax is normalised, e^(-slope *
    distance), a line for each head.
    """
    distances = np.unique(np.linspace(0, length - 1, min(length, 400)).round())
    traces = [
        go.Scatter(
            mode="lines",
            name=TEXT("named head", head=head),
            x=distances.astype(np.float32),
            y=row.astype(np.float32),
            line=head_line(head),
            hovertemplate=TEXT("hover decay", head=head, slope=s),
        )
        for head, (s, row) in enumerate(zip(slope, measured.factors(slope, distances), strict=True))
    ]
    marks = [
        go.rule(y=y, line={"color": colour("quiet"), "dash": "dot", "width": 1}) for y in (np.exp(-1), 0.01)
    ]
    marks.append(go.rule(x=distance, line={"color": colour("output"), "width": 1.5}))
    look = {
        "showarrow": False,
        "xanchor": "right",
        "yanchor": "bottom",
        "font": {"color": colour("quiet"), "size": 12},
    }
    notes = [
        {"xref": "paper", "x": 1, "y": y, "text": text} | look
        for y, text in ((np.exp(-1), TEXT["third"]), (0.01, TEXT["percent"]))
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(slope) <= 8,
        shapes=marks,
        annotations=notes,
        xaxis=go.axis(TEXT["tokens back"], zeroline=False),
        yaxis={"title": {"text": TEXT["share"]}, "range": [0, 1.03]},
    )


def reach_bars(slopes: measured.Slopes, length: int) -> go.Figure:
    """Draws how far each head reaches, two bars for each on a logarithmic axis; the dotted line is the length
    of the text.
    """
    heads = np.arange(len(slopes.slope))
    traces = [
        go.Bar(
            name=name,
            x=heads,
            y=values,
            marker={"color": colour(shade)},
            hovertemplate=TEXT("hover reach", name=name),
        )
        for name, values, shade in (
            (TEXT["falls third"], slopes.to_a_third, "position"),
            (TEXT["falls percent"], slopes.to_a_percent, "quiet"),
        )
    ]
    line = go.rule(y=length, line={"color": colour("output"), "width": 1.5, "dash": "dot"})
    low, high = np.log10(min(slopes.to_a_third.min(), 1.0)), np.log10(max(slopes.to_a_percent.max(), length))
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.2,
        shapes=[line],
        annotations=[
            go.note(
                TEXT("text length", length=length),
                0,
                float(np.log10(length)),
                xref="paper",
                xanchor="left",
                yanchor="bottom",
            )
        ],
        xaxis=go.axis(TEXT["head axis"], dtick=1 if len(heads) <= 16 else 4, zeroline=False),
        yaxis=go.axis(
            TEXT["distance axis"], showgrid=True, type="log", range=[low - 0.05, high + 0.1], dtick=1
        ),
    )


def distance_bars(before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray) -> go.Figure:
    """Draws how far each head of a layer looks without and with the bias: (head,), tokens."""
    traces = [
        go.Bar(
            name=name,
            x=np.arange(len(values)),
            y=np.asarray(values, dtype=np.float32),
            marker={"color": colour(shade)},
            hovertemplate=TEXT("hover distance", name=name),
        )
        for name, values, shade in ((TEXT["without"], before, "quiet"), (TEXT["with"], after, "position"))
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        barmode="group",
        bargap=0.25,
        xaxis=go.axis(TEXT["head axis"], dtick=1),
        yaxis={"title": {"text": TEXT["mean axis"]}, "rangemode": "tozero"},
    )


PART = View("alibi", TEXT, draw, code=(Alibi, alibi_slopes, measured.alibi_effect))
