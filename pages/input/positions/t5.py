"""The view "T5": buckets of distances, and the bias that was learned for each."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import distance as measured
from engine.parts.positions import T5Bias
from pages.input.positions import bias_figures as figures
from pages.input.positions.head import KEPT, choose_mask, example, one_of, signed, slide
from ui import explain
from ui.figures.patterns import pattern_table
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

BUCKETS = (4, 8, 16, 32, 64, 128)
FARTHEST = (8, 16, 32, 64, 128, 256, 512, 1_024)
T5_TOPICS = ("Buckets", "Learned bias")


def draw_t5(subject: Subject) -> None:
    """Buckets of distances, or the bias that was learned for each."""
    topic = one_of("Topic", T5_TOPICS, "t5_topic")
    (_buckets if topic == T5_TOPICS[0] else _learned)(subject)


def _buckets(subject: Subject) -> None:
    one, two, three = st.columns([3, 3, 2.4], gap="medium", vertical_alignment="bottom")
    with one:
        buckets = slide("Buckets", BUCKETS, T5Bias.buckets, "t5_buckets")
    with two:
        asked = slide("Maximum distance", FARTHEST, T5Bias.max_distance, "t5_far")
    with three:
        both = not choose_mask(subject.config.causal, "t5_mask")
    exact = measured.exact_buckets(buckets, both)
    far = asked if asked > exact else min(f for f in FARTHEST if f > exact)
    if far != asked:
        st.caption(
            f":material/info: {exact} distances have a bucket of their own, so a maximum of {asked} leaves"
            f" none to share: {far} is used instead."
        )
    reach = round(1.25 * far)
    offsets = np.arange(-reach, (reach if both else 0) + 1)
    ranges = measured.bucket_ranges(both, buckets, far)
    last = next(b for b in reversed(ranges) if b.last is None)
    left, right = st.columns([3, 1.7], gap="medium")
    with left:
        number = measured.bucket_of(offsets, both, buckets, far)
        plot(
            figures.bucket_steps(offsets, number, exact, abs(last.first)),
            key="t5_steps",
            height=430,
            name="t5-buckets",
            data=pd.DataFrame({"offset": offsets, "bucket": number}),
            alt=(
                f"Steps: the bucket of each offset from {offsets[0]} to {offsets[-1]}: one each up to"
                f" distance {exact - 1}, then ever wider ones up to {far}."
            ),
        )
    with right:
        table = pd.DataFrame(
            {"bucket": [b.number for b in ranges], "key − query": [b.words.replace("-", "−") for b in ranges]}
        )
        st.dataframe(table, hide_index=True, height=430)
    unused = buckets - len(ranges)
    ratio = f"exact + ⌊ln(distance / exact) / ln(maximum / exact) · {exact}⌋"
    explain.takeaway(
        f"Distances 0 to {exact - 1} have a bucket each{' on either side' if both else ''}; the next {exact}"
        f" buckets share the distances from {exact} on, wider and wider: bucket = {ratio}. The last takes"
        f" everything from **{abs(last.first)}** on. "
        + (
            f"**{len(ranges)} of {buckets}** buckets are ever used: bucket {buckets // 2}, for 'later at"
            " distance 0', is never reached. "
            if unused
            else ""
        )
        + (
            ""
            if both
            else "With a causal mask the buckets of later tokens are not needed, so all are for the past. "
        )
        + "Far away, a model rarely needs to know exactly how far."
    )


def _learned(subject: Subject) -> None:
    weight, causal, context, title = (
        measured.t5_weights(subject.model),
        subject.config.causal,
        subject.config.context,
        subject.title,
    )
    if weight is None:
        found = _example()
        if found is None:
            st.info(
                f"The model in the bar has positions of another kind ({subject.config.position}), so it has"
                " no such bias. Choose “t5” under Positions on the Train page, train for some seconds, and"
                " look at it here."
            )
            return
        weight, causal, context, title = found
        st.info(
            f"The model in the bar has positions of another kind ({subject.config.position}). Shown instead:"
            f" {title}."
        )
    reach = min(2 * context, 160)
    offsets = np.arange(-reach, (0 if causal else reach) + 1)
    bias = measured.t5_bias(weight, offsets, not causal)
    heads = [f"head_{h}" for h in range(weight.shape[1])]
    table = pd.DataFrame({"offset": offsets} | dict(zip(heads, bias, strict=True)))
    plot(
        figures.bias_lines(bias, offsets, context),
        key="t5_lines",
        height=370,
        name="t5-bias",
        data=table,
        alt=f"Lines: the bias that each of {len(heads)} heads adds at each offset, of {title}.",
    )
    st.caption(
        f"**{safe(title)}**: {weight.shape[0]} buckets × {weight.shape[1]} heads = {weight.size} learned"
        f" numbers, shared by all layers (Raffel et al. 2020). Dotted: the end of its context of {context}."
        " Buckets that lie wholly beyond it are never used in training and keep the values they were born"
        " with."
    )
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
        head = _choose_bias_head(len(heads))
        matrix = measured.t5_matrix(weight, head, min(context, 64), not causal)
        plot(
            figures.bias_heatmap(matrix, reach=float(np.abs(bias).max())),
            key="t5_matrix",
            height=340,
            name=f"t5-bias-head-{head}",
            data=pattern_table(matrix, [""] * len(matrix)),
            alt=f"Heatmap: the bias of head {head} as it is added to the scores, queries down.",
        )
    explain.takeaway(_learned_words(weight, causal, context))


def _choose_bias_head(count: int) -> int:
    head = st.selectbox("As it is added to the scores, head", list(range(count)), key="t5_head", **KEPT)
    return head if isinstance(head, int) and 0 <= head < count else 0


def _learned_words(weight: np.ndarray, causal: bool, context: int) -> str:
    """Which heads look near and which far, read off the trained part of the bias."""
    past = np.arange(min(context, 64))
    bias = measured.t5_bias(weight, -past, not causal)  # (head, distance)
    slope = measured.slope_of_learned(bias, past) if len(past) > 1 else np.zeros(len(bias))
    spread = bias.max(1) - bias.min(1)
    best = past[bias.argmax(1)]
    told = "; ".join(
        f"head {h}: distance {best[h]}, {-slope[h]:+.3f}" for h in range(min(len(best), 8))
    ).replace("-", "−")
    loud = int(spread.argmax())
    words = (
        f"Between distance 0 and {past[-1]}, head {loud} varies the most: its bias spans"
        f" **{spread[loud]:.2f}**, which is a factor of about"
        f" {float(f'{math.exp(min(float(spread[loud]), 50.0)):.2g}'):,.0f} between weights. The distance each"
        f" head favours, and the mean fall of its bias per token (ALiBi would call it its slope): {told}."
    )
    beyond = [
        b
        for b in measured.bucket_ranges(not causal, T5Bias.buckets, T5Bias.max_distance)
        if b.first <= -context
    ]
    if not beyond:
        return words
    new, old = float(weight[[b.number for b in beyond]].mean()), float(bias[:, -1].mean())
    return (
        words
        + f" The {len(beyond)} buckets from distance {-beyond[0].first} on are never used within the context:"
        f" they average {signed(new)}, where distance {past[-1]} has {signed(old)}. So a text longer than"
        " the context meets numbers that nobody taught."
    )


def _example() -> tuple[np.ndarray, bool, int, str] | None:
    """(bias, causal, context, name) of the small trained model, where it is there."""
    found = example("t5")
    weight = None if found is None else measured.t5_weights(found.model)
    if found is None or weight is None:
        return None
    return (
        weight,
        found.config.causal,
        found.config.context,
        f"a small model trained with T5's bias (checkpoints/positions/t5, context {found.config.context})",
    )
