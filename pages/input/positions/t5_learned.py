"""A topic of the view "T5": the bias that a model has learned for each bucket."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import t5_buckets as measured
from pages.input.positions import figures_t5 as figures
from pages.input.positions import words_answers
from pages.input.positions.figures_shared import bias_heatmap
from pages.input.positions.shared import example
from ui import widgets
from ui.figures.patterns import pattern_table
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

FARTHEST, MOST_DRAWN = 160, 64  # offsets of the lines, of the matrix


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
    reach = min(2 * context, FARTHEST)
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
    st.caption(
        f"**{safe(source.title)}**: {buckets} buckets × {heads} heads = {source.weight.size} learned numbers,"
        f" shared by all layers (Raffel et al. 2020). Dotted: the end of its context of {context}. Buckets"
        " entirely beyond it are never used in training and keep their initial values."
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
        _draw_matrix(source, float(np.abs(bias).max()))
    st.markdown(words_answers.t5_lesson(measured.learned_bias(source.weight, source.causal, context)))


def _source(subject: Subject) -> _Source | None:
    """The model in the bar, else the small trained model, else nothing; with a sentence that says so."""
    c, weight = subject.config, measured.t5_weights(subject.model)
    if weight is not None:
        return _Source(weight, c.causal, c.context, subject.title)
    found = example("t5")
    weight = None if found is None else measured.t5_weights(found.model)
    other = f"The model in the bar uses another scheme ({c.position})"
    if found is None or weight is None:
        st.info(
            f"{other}, so it has no such bias. Choose “t5” under Positions on the Train page, train for a few"
            " seconds, and inspect it here."
        )
        return None
    title = f"a small model trained with T5's bias (checkpoints/positions/t5, context {found.config.context})"
    st.info(f"{other}. Shown instead: {title}.")
    return _Source(weight, found.config.causal, found.config.context, title)


def _draw_matrix(source: _Source, reach: float) -> None:
    """One head's bias as it is added to the scores; colours end at `reach`."""
    heads = range(source.weight.shape[1])
    head = widgets.select("Added to the scores of head", heads, "t5_head", kind="list")
    matrix = measured.t5_matrix(source.weight, head, min(source.context, MOST_DRAWN), not source.causal)
    plot(
        bias_heatmap(matrix, reach),
        key="t5_matrix",
        height=340,
        name=f"t5-bias-head-{head}",
        data=pattern_table(matrix, [""] * len(matrix)),
        alt=f"Heatmap: the bias of head {head} as it is added to the scores, queries down.",
    )
