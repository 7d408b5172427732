"""The part "T5" of "Biases": buckets of distances, and the bias that a model has learned for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import T5Bias, t5_bucket
from pages.input.positions.bias_map import bias_map, choose_mask, head_line
from pages.input.positions.schemes import example
from studies.positions import t5_buckets as measured
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.patterns import pattern_table
from ui.figures.theme import colour
from ui.model_bar import Subject, subject_bar
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
BUCKETS = (4, 8, 16, 32, 64, 128)
FARTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)
MOST_OFFSETS, MOST_DRAWN = 160, 64  # of the lines, of the matrix
MOST_TOLD = 8  # heads in the sentence


def draw() -> None:
    """Draws which offsets share a bucket."""
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        buckets, far, both = _choose()
    bucket_map = measured.buckets_of(both, buckets, far)
    reach = round(1.25 * far)
    offsets = np.arange(-reach, (reach if both else 0) + 1)
    with figure:
        number = measured.bucket_of(offsets, both, buckets, far)
        plot(
            bucket_steps(offsets, number, bucket_map.exact, bucket_map.open_from),
            key="t5_steps",
            height=400,
            name="t5-buckets",
            data=pd.DataFrame({"offset": offsets, "bucket": number}),
            alt=TEXT("alt", low=offsets[0], high=offsets[-1], last=bucket_map.exact - 1, far=far),
        )
    exact = bucket_map.exact
    shares = "answer both ways" if both else "answer"
    said = [TEXT(shares, last=exact - 1, exact=exact, open_from=bucket_map.open_from)]
    if bucket_map.unused:
        said.append(TEXT("unused", used=len(bucket_map.ranges), buckets=buckets, middle=buckets // 2))
    explain.answer(" ".join(said))
    explain.measure_it(_draw_measured, bucket_map)


def _draw_measured(buckets: measured.Buckets) -> None:
    """The list of buckets, or the bias that a model has learned for each."""
    topics = {name: TEXT[f"topic {name}"] for name in ("buckets", "learned")}
    if widgets.select(TEXT["topic"], topics, "t5_topic", hidden=True) == "learned":
        with subject_bar() as subject:
            _draw_learned_bias(subject)
        return
    ranges = buckets.ranges
    table = {TEXT["bucket"]: [b.number for b in ranges], TEXT["range"]: [minus(b.words) for b in ranges]}
    st.dataframe(pd.DataFrame(table), hide_index=True, height=430)
    st.caption(TEXT("formula", exact=buckets.exact))


def _choose() -> tuple[int, int, bool]:
    """(buckets, maximum distance, whether later tokens have buckets too): such as leave room for the
    logarithmic ones.
    """
    written = "{:,}".format
    buckets = widgets.slide_over(TEXT["buckets"], BUCKETS, T5Bias.buckets, "t5_buckets", written=written)
    limit = widgets.slide_over(TEXT["farthest"], FARTHEST, T5Bias.max_distance, "t5_far", written=written)
    both = not choose_mask("t5_mask")
    exact = measured.exact_buckets(buckets, both)
    far = limit if limit > exact else min(f for f in FARTHEST if f > exact)
    if far != limit:
        st.caption(TEXT("no room", exact=exact, requested=limit, far=far))
    return buckets, far, both


@dataclass(frozen=True, eq=False)
class _Source:
    """A learned bias (bucket, head), and whose it is."""

    weight: np.ndarray = field(repr=False)
    causal: bool
    context: int
    title: str


def _draw_learned_bias(subject: Subject) -> None:
    """Draws the bias by offset, head by head, and as one head adds it to the scores."""
    source = _source(subject)
    if source is None:
        return
    context = source.context
    reach = min(2 * context, MOST_OFFSETS)
    offsets = np.arange(-reach, (0 if source.causal else reach) + 1)
    bias = measured.t5_bias(source.weight, offsets, not source.causal)
    buckets, heads = source.weight.shape
    table = pd.DataFrame({"offset": offsets} | {f"head_{h}": row for h, row in enumerate(bias)})
    plot(
        bias_lines(bias, offsets, context),
        key="t5_lines",
        height=370,
        name="t5-bias",
        data=table,
        alt=TEXT("alt lines", heads=heads, title=source.title),
    )
    st.caption(
        TEXT(
            "learned numbers",
            title=source.title,
            buckets=buckets,
            heads=heads,
            numbers=source.weight.size,
            context=context,
        )
    )
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption(TEXT["by head"])
        plot(
            bias_by_head(bias, offsets, context),
            key="t5_heads",
            height=380,
            name="t5-bias-by-head",
            data=table,
            alt=TEXT["alt heads"],
        )
    with right:
        _draw_matrix(source, float(np.abs(bias).max()))
    st.markdown(_lesson(measured.learned_bias(source.weight, source.causal, context)))


def _source(subject: Subject) -> _Source | None:
    """The model in the bar, else the small trained model, else nothing; with a sentence that says so."""
    c, weight = subject.config, measured.t5_weights(subject.model)
    if weight is not None:
        return _Source(weight, c.causal, c.context, subject.title)
    trained = example("t5")
    weight = None if trained is None else measured.t5_weights(trained.model)
    if trained is None or weight is None:
        st.info(TEXT("no bias", scheme=c.position))
        return None
    title = TEXT("small model", context=trained.config.context)
    st.info(TEXT("shown instead", scheme=c.position, title=title))
    return _Source(weight, trained.config.causal, trained.config.context, title)


def _draw_matrix(source: _Source, reach: float) -> None:
    """One head's bias as it is added to the scores; colours end at `reach`."""
    heads = range(source.weight.shape[1])
    head = widgets.select(TEXT["head"], heads, "t5_head", kind="list")
    matrix = measured.t5_matrix(source.weight, head, min(source.context, MOST_DRAWN), not source.causal)
    plot(
        bias_map(matrix, reach),
        key="t5_matrix",
        height=340,
        name=f"t5-bias-head-{head}",
        data=pattern_table(matrix, [""] * len(matrix)),
        alt=TEXT("alt matrix", head=head),
    )


def _lesson(learned: measured.LearnedBias) -> str:
    """Says which heads look near and which far, read off the trained part of the bias."""
    heads = range(min(len(learned.favours), MOST_TOLD))
    each = (TEXT("of head", head=h, distance=learned.favours[h], slope=learned.alibi_slope[h]) for h in heads)
    said = [
        TEXT(
            "lesson",
            last=learned.last,
            head=learned.loudest,
            spread=learned.spread[learned.loudest],
            factor=float(f"{learned.factor:.2g}"),
            heads=content.Filled("; ".join(each)),
        )
    ]
    if (new := learned.unmet) is not None:
        unmet = {"buckets": new.buckets, "distance": new.distance, "mean": new.mean}
        said.append(TEXT("unmet", **unmet, last=learned.last, met=new.met_mean))
    return " ".join(said)


# Figures ------------------------------------------------------------------------------------------


def bucket_steps(offsets: np.ndarray, buckets: np.ndarray, exact: int, open_from: int) -> go.Figure:
    """Draws bucket against offset (offset,): one colour where each distance has its own, another where
    several share one, grey for the last, which has no end.
    """
    distance = np.abs(offsets)
    traces = []
    for name, mask, shade in (
        (TEXT["own"], distance < exact, "position"),
        (TEXT["logarithmic"], (distance >= exact) & (distance < open_from), "attention"),
        (TEXT("last", open_from=open_from), distance >= open_from, "quiet"),
    ):
        traces.append(
            go.Scatter(
                mode="lines+markers",
                name=name,
                x=offsets.astype(np.float32),
                y=np.where(mask, buckets, np.nan).astype(np.float32),
                line={"color": colour(shade), "width": 2, "shape": "hvh"},
                marker={"size": 4, "color": colour(shade)},
                connectgaps=False,
                hovertemplate=TEXT["hover bucket"],
            )
        )
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        xaxis=go.axis(TEXT["offset"], zeroline=True),
        yaxis={"title": {"text": TEXT["bucket"]}, "rangemode": "tozero"},
    )


def _context_mark(context: int, low: float, high: float) -> dict[str, Any]:
    """Dotted lines where the training's context ends, if that is inside the picture; offsets reach to both
    sides.
    """
    line = {"color": colour("output"), "dash": "dot", "width": 1.5}
    ends = [x for x in (-context + 0.5, context - 0.5) if low <= x <= high]
    return dict(shapes=[go.rule(x=x, line=line) for x in ends])


def bias_lines(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws what each head adds at each offset: bias (head, offset). The dotted line is the end of the
    training context.
    """
    traces = [
        go.Scatter(
            mode="lines",
            name=TEXT("named head", head=head),
            x=offsets.astype(np.float32),
            y=row.astype(np.float32),
            line=head_line(head) | {"shape": "hvh"},
            hovertemplate=TEXT("hover line", head=head),
        )
        for head, row in enumerate(bias)
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(bias) <= 8,
        xaxis=go.axis(TEXT["offset"]),
        yaxis={"title": {"text": TEXT["bias on score"]}, "zeroline": True},
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )


def bias_by_head(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws the same as a picture: bias (head, offset), a row for each head."""
    heat = go.signed(
        bias,
        x=offsets,
        y=np.arange(len(bias)),
        hovertemplate=TEXT["hover heads"],
        colorbar=go.scale(TEXT["bias"]),
    )
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 12, "b": 44},
        showlegend=False,
        xaxis=go.axis(TEXT["offset"], zeroline=False),
        yaxis=go.axis(
            TEXT["head axis"], dtick=1 if len(bias) <= 16 else 4, autorange="reversed", zeroline=False
        ),
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )


PART = View("t5", TEXT, draw, code=(T5Bias, t5_bucket))
