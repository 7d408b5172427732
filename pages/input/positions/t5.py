"""The view "T5": buckets of distances; the bias that was learned for each is in `t5_learned`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import t5_buckets as measured
from engine.parts.positions import T5Bias
from pages.input.positions import figures_t5 as figures
from pages.input.positions.shared import choose_mask, thousands
from pages.input.positions.t5_learned import draw_learned_bias
from pages.input.positions.words_answers import buckets_sentence
from ui import explain, widgets
from ui.model_bar import subject_bar
from ui.players.plot import plot
from ui.text.numbers import minus

BUCKETS = (4, 8, 16, 32, 64, 128)
FARTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)


def draw_t5() -> None:
    """Draws which offsets share a bucket."""
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        buckets, far, both = _choose()
    found = measured.buckets_of(both, buckets, far)
    reach = round(1.25 * far)
    offsets = np.arange(-reach, (reach if both else 0) + 1)
    with figure:
        number = measured.bucket_of(offsets, both, buckets, far)
        plot(
            figures.bucket_steps(offsets, number, found.exact, found.open_from),
            key="t5_steps",
            height=400,
            name="t5-buckets",
            data=pd.DataFrame({"offset": offsets, "bucket": number}),
            alt=(
                f"Steps: the bucket of each offset from {offsets[0]} to {offsets[-1]}: one each up to"
                f" distance {found.exact - 1}, then wider and wider up to {far}."
            ),
        )
    explain.answer(buckets_sentence(found, buckets, both))
    explain.measure_it(_draw_measured, found)


def _draw_measured(buckets: measured.Buckets) -> None:
    """The list of buckets, or the bias that a model has learned for each."""
    if widgets.select("Topic", TOPICS, "t5_topic", hidden=True) == "learned":
        with subject_bar() as subject:
            draw_learned_bias(subject)
        return
    ranges = buckets.ranges
    table = {"bucket": [b.number for b in ranges], "key − query": [minus(b.words) for b in ranges]}
    st.dataframe(pd.DataFrame(table), hide_index=True, height=430)
    st.caption(
        "bucket = exact + ⌊ln(distance / exact) / ln(maximum / exact) · exact⌋, where “exact” distances have"
        f" a bucket of their own: here {buckets.exact}. A model rarely needs exact long distances."
    )


def _choose() -> tuple[int, int, bool]:
    """(buckets, maximum distance, whether later tokens have buckets too): such as leave room for the
    logarithmic ones.
    """
    buckets = widgets.slide_over("Buckets", BUCKETS, T5Bias.buckets, "t5_buckets", written=thousands)
    asked = widgets.slide_over("Maximum distance", FARTHEST, T5Bias.max_distance, "t5_far", written=thousands)
    both = not choose_mask(True, "t5_mask")
    exact = measured.exact_buckets(buckets, both)
    far = asked if asked > exact else min(f for f in FARTHEST if f > exact)
    if far != asked:
        st.caption(
            f":material/info: {exact} distances have a bucket each, so a maximum of {asked} leaves no"
            f" buckets for longer distances: {far} is used instead."
        )
    return buckets, far, both


TOPICS = {"buckets": "Buckets", "learned": "Learned bias"}
