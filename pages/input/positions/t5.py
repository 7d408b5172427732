"""The view "T5": buckets of distances, and the bias that a model has learned for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import t5_buckets as measured
from engine.parts.positions import T5Bias
from pages.input.positions import figures_t5 as figures
from pages.input.positions import words_answers, words_measured
from pages.input.positions.bias_map import bias_map, choose_mask
from pages.input.positions.schemes import example
from pages.input.positions.shared import thousands
from pages.input.positions.words_answers import buckets_sentence
from ui import explain, widgets
from ui.figures.patterns import pattern_table
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot
from ui.text.numbers import minus

BUCKETS = (4, 8, 16, 32, 64, 128)
FARTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)
TOPICS = {"buckets": "Buckets", "learned": "Learned bias"}
MOST_OFFSETS, MOST_DRAWN = 160, 64  # of the lines, of the matrix


def draw_t5() -> None:
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
            figures.bucket_steps(offsets, number, bucket_map.exact, bucket_map.open_from),
            key="t5_steps",
            height=400,
            name="t5-buckets",
            data=pd.DataFrame({"offset": offsets, "bucket": number}),
            alt=(
                f"Steps: the bucket of each offset from {offsets[0]} to {offsets[-1]}: one each up to"
                f" distance {bucket_map.exact - 1}, then wider and wider up to {far}."
            ),
        )
    explain.answer(buckets_sentence(bucket_map, buckets, both))
    explain.measure_it(_draw_measured, bucket_map)


def _draw_measured(buckets: measured.Buckets) -> None:
    """The list of buckets, or the bias that a model has learned for each."""
    if widgets.select("Topic", TOPICS, "t5_topic", hidden=True) == "learned":
        with subject_bar() as subject:
            draw_learned_bias(subject)
        return
    ranges = buckets.ranges
    table = {"bucket": [b.number for b in ranges], "key − query": [minus(b.words) for b in ranges]}
    st.dataframe(pd.DataFrame(table), hide_index=True, height=430)
    st.caption(words_measured.bucket_formula(buckets.exact))


def _choose() -> tuple[int, int, bool]:
    """(buckets, maximum distance, whether later tokens have buckets too): such as leave room for the
    logarithmic ones.
    """
    buckets = widgets.slide_over("Buckets", BUCKETS, T5Bias.buckets, "t5_buckets", written=thousands)
    limit = widgets.slide_over("Maximum distance", FARTHEST, T5Bias.max_distance, "t5_far", written=thousands)
    both = not choose_mask("t5_mask")
    exact = measured.exact_buckets(buckets, both)
    far = limit if limit > exact else min(f for f in FARTHEST if f > exact)
    if far != limit:
        st.caption(words_measured.no_room(exact, limit, far))
    return buckets, far, both


@dataclass(frozen=True, eq=False)
class _Source:
    """A learned bias (bucket, head), and whose it is."""

    weight: np.ndarray = field(repr=False)
    causal: bool
    context: int
    title: str


def draw_learned_bias(subject: Subject) -> None:
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
        figures.bias_lines(bias, offsets, context),
        key="t5_lines",
        height=370,
        name="t5-bias",
        data=table,
        alt=f"Lines: the bias that each of {heads} heads adds at each offset, of {source.title}.",
    )
    st.caption(words_measured.learned_numbers(source.title, buckets, heads, source.weight.size, context))
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("**Head by distance**")
        plot(
            figures.bias_by_head(bias, offsets, context),
            key="t5_heads",
            height=380,
            name="t5-bias-by-head",
            data=table,
            alt="Heatmap: bias of each head (rows) at each offset (columns).",
        )
    with right:
        _draw_matrix(source, float(np.abs(bias).max()))
    st.markdown(words_answers.t5_lesson(measured.learned_bias(source.weight, source.causal, context)))


def _source(subject: Subject) -> _Source | None:
    """The model in the bar, else the small trained model, else nothing; with a sentence that says so."""
    c, weight = subject.config, measured.t5_weights(subject.model)
    if weight is not None:
        return _Source(weight, c.causal, c.context, subject.title)
    trained = example("t5")
    weight = None if trained is None else measured.t5_weights(trained.model)
    other = f"The model in the bar uses another scheme ({c.position})"
    if trained is None or weight is None:
        st.info(words_measured.no_bias(other))
        return None
    title = words_measured.t5_example(trained.config.context)
    st.info(f"{other}. Shown instead: {title}.")
    return _Source(weight, trained.config.causal, trained.config.context, title)


def _draw_matrix(source: _Source, reach: float) -> None:
    """One head's bias as it is added to the scores; colours end at `reach`."""
    heads = range(source.weight.shape[1])
    head = widgets.select("Added to the scores of head", heads, "t5_head", kind="list")
    matrix = measured.t5_matrix(source.weight, head, min(source.context, MOST_DRAWN), not source.causal)
    plot(
        bias_map(matrix, reach),
        key="t5_matrix",
        height=340,
        name=f"t5-bias-head-{head}",
        data=pattern_table(matrix, [""] * len(matrix)),
        alt=f"Heatmap: the bias of head {head} as it is added to the scores, queries down.",
    )
