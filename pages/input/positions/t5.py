"""The view "T5": buckets of distances; the bias that was learned for each is in `t5_learned`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import t5_buckets as measured
from engine.parts.positions import T5Bias
from pages.input.positions import t5_figures as figures
from pages.input.positions.shared import choose_mask, thousands
from pages.input.positions.t5_learned import draw_learned_bias
from ui import explain, widgets
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.numbers import minus

BUCKETS = (4, 8, 16, 32, 64, 128)
FARTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)


def draw_t5(subject: Subject) -> None:
    """Buckets of distances, or the bias that was learned for each."""
    titles = {name: title for name, (title, _) in TOPICS.items()}
    TOPICS[widgets.one_of("Topic", titles, "t5_topic", hidden=True)][1](subject)


def _choose(subject: Subject) -> tuple[int, int, bool]:
    """(buckets, maximum distance, whether later tokens have buckets too): such as leave room for the
    logarithmic ones.
    """
    one, two, three = st.columns([3, 3, 2.4], gap="medium", vertical_alignment="bottom")
    buckets = widgets.slide_over(
        "Buckets", BUCKETS, T5Bias.buckets, "t5_buckets", place=one, written=thousands
    )
    asked = widgets.slide_over(
        "Maximum distance", FARTHEST, T5Bias.max_distance, "t5_far", place=two, written=thousands
    )
    with three:
        both = not choose_mask(subject.config.causal, "t5_mask")
    exact = measured.exact_buckets(buckets, both)
    far = asked if asked > exact else min(f for f in FARTHEST if f > exact)
    if far != asked:
        st.caption(
            f":material/info: {exact} distances have a bucket of their own, so a maximum of {asked} leaves"
            f" none to share: {far} is used instead."
        )
    return buckets, far, both


def draw_buckets(subject: Subject) -> None:
    """Which offsets share a bucket."""
    buckets, far, both = _choose(subject)
    found = measured.buckets_of(both, buckets, far)
    reach = round(1.25 * far)
    offsets = np.arange(-reach, (reach if both else 0) + 1)
    left, right = st.columns([3, 1.7], gap="medium")
    with left:
        number = measured.bucket_of(offsets, both, buckets, far)
        plot(
            figures.bucket_steps(offsets, number, found.exact, found.open_from),
            key="t5_steps",
            height=430,
            name="t5-buckets",
            data=pd.DataFrame({"offset": offsets, "bucket": number}),
            alt=(
                f"Steps: the bucket of each offset from {offsets[0]} to {offsets[-1]}: one each up to"
                f" distance {found.exact - 1}, then ever wider ones up to {far}."
            ),
        )
    with right:
        ranges = found.ranges
        table = {"bucket": [b.number for b in ranges], "key − query": [minus(b.words) for b in ranges]}
        st.dataframe(pd.DataFrame(table), hide_index=True, height=430)
    explain.takeaway(_lesson(found, buckets, both))


def _lesson(found: measured.Buckets, buckets: int, both: bool) -> str:
    exact = found.exact
    ratio = f"exact + ⌊ln(distance / exact) / ln(maximum / exact) · {exact}⌋"
    words = (
        f"Distances 0 to {exact - 1} have a bucket each{' on either side' if both else ''}; the next {exact}"
        f" buckets share the distances from {exact} on, wider and wider: bucket = {ratio}. The last takes"
        f" everything from **{found.open_from}** on. "
    )
    if found.unused:
        words += (
            f"**{len(found.ranges)} of {buckets}** buckets are ever used: bucket {buckets // 2}, for 'later"
            " at distance 0', is never reached. "
        )
    if not both:
        words += "With a causal mask the buckets of later tokens are not needed, so all are for the past. "
    return words + "Far away, a model rarely needs to know exactly how far."


TOPICS = {"buckets": ("Buckets", draw_buckets), "learned": ("Learned bias", draw_learned_bias)}
