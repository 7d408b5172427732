"""The view "ALiBi": what a distance costs each head. Measured: how far that lets a head see, the bias, and
what becomes of a pattern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import alibi as measured
from engine.measure.recording import Recording, record
from engine.model import Transformer
from pages.input.positions import figures_alibi as figures
from pages.input.positions import words_answers, words_measured
from pages.input.positions.bias_map import bias_map, choose_mask
from pages.input.positions.maps import half_width_pattern
from pages.input.positions.schemes import example
from pages.input.positions.shared import thousands
from pages.input.positions.words_answers import alibi_sentence
from ui import explain, memo, widgets
from ui.figures.patterns import pattern_table
from ui.fit_text import most_tokens, read, show_token
from ui.model_bar import Subject, subject_bar
from ui.players.plot import plot
from ui.text.numbers import minus

MOST_HEADS, FIRST_HEADS = 32, 8
LENGTH = 128  # of the text over which the curves are drawn
CONTEXTS = (16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)
LENGTHS = (16, 32, 64, 128)
MULTIPLIERS = (0.25, 0.5, 1, 2, 4, 8, 16)
IN_THE_BAR, TRAINED = "the model in the bar", "a small model trained with ALiBi"
CORNER = 3  # rows and columns of the bias that are written out


def draw_alibi() -> None:
    """Draws the cost of distance in each head."""
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        heads = widgets.slide("Heads", 1, MOST_HEADS, FIRST_HEADS, "alibi_heads")
        times = choose_multiplier()
        distance = widgets.slide("Tokens back", 1, LENGTH - 1, 10, "alibi_distance")
    slopes = measured.slopes(heads, times)
    left = measured.factors(slopes.slope, np.array([distance]))[:, 0]
    with figure:
        plot(
            figures.decay_curves(slopes.slope, LENGTH, distance),
            key="alibi_decay",
            height=400,
            name="alibi-decay",
            data=pd.DataFrame({"head": np.arange(heads), "slope": slopes.slope, f"left_at_{distance}": left}),
            alt=(
                f"Lines: e to the minus slope times distance for each of {heads} heads, over {LENGTH}"
                f" positions; a vertical line at {distance}."
            ),
        )
    explain.answer(alibi_sentence(heads, distance, float(left.min()), float(left.max())))
    explain.measure_it(_draw_measured, heads, times)


def _draw_measured(heads: int, times: float) -> None:
    """One of three topics."""
    titles = {name: title for name, (title, _) in TOPICS.items()}
    TOPICS[widgets.select("Topic", titles, "alibi_topic", hidden=True)][1](heads, times)


def draw_slopes(heads: int, times: float) -> None:
    """Draws how far each head reaches, and where its slope is from."""
    context = widgets.slide_over("Context", CONTEXTS, LENGTH, "alibi_context", written=thousands)
    slopes = measured.slopes(heads, times)
    reaches = {"distance_to_1_over_e": slopes.to_a_third, "distance_to_1_percent": slopes.to_a_percent}
    st.caption(f"**Effective reach**; dotted: the context, {context:,} tokens")
    plot(
        figures.reach_bars(slopes, context),
        key="alibi_reach",
        height=340,
        name="alibi-reach",
        data=pd.DataFrame({"head": np.arange(heads), "slope": slopes.slope} | reaches),
        alt=f"Bars: the distance at which each of {heads} heads has decayed to 1/e and to 1 percent.",
    )
    st.markdown(words_measured.slopes_and_reach(slopes, heads, context))
    _list_slopes(slopes)


def _list_slopes(slopes: measured.Slopes) -> None:
    heads = len(slopes.slope)
    st.dataframe(
        pd.DataFrame(
            {
                "head": np.arange(heads),
                "slope": [words_answers.slope_power(float(s)) for s in slopes.slope],
                "decimal": [f"{s:.6g}" for s in slopes.slope],
                "1/e at distance": [f"{d:,.1f}" for d in slopes.to_a_third],
                "1 percent at distance": [f"{d:,.1f}" for d in slopes.to_a_percent],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * heads, 318),
    )
    st.caption(words_answers.slope_rule_words(heads))


def draw_matrix(heads: int, times: float) -> None:
    """Draws what one head adds to the scores."""
    first, second, third = st.columns([3, 3, 2.2], gap="medium", vertical_alignment="bottom")
    length = widgets.slide_over("Sequence length T", LENGTHS, 32, "alibi_length", container=first)
    head = widgets.slide("Head", 0, heads - 1, 0, "alibi_matrix_head", container=second) if heads > 1 else 0
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
            alt=(
                f"Heatmap: minus {slope:.4g} times the distance for {length} queries and keys, zero on the"
                " diagonal."
            ),
        )
    with right:
        st.markdown(f"**Head {head} of {heads}**: slope $m$ = {slope:.6g}")
        st.markdown("$$\\text{scores}_{ij} = \\frac{q_i \\cdot k_j}{\\sqrt{d_{head}}} - m\\,|i - j|$$")
        st.caption("Its top left corner in numbers:")
        st.table(_corner(bias))
    side = "Later keys are hidden by the mask (blank)." if causal else words_measured.BOTH_WAYS
    far = measured.farthest_key(slope, length)
    st.markdown(words_measured.farthest_key(far, side))


def _corner(bias: np.ndarray) -> pd.DataFrame:
    """The first queries and keys, written out."""
    some = bias[:CORNER, :CORNER]
    cells = [["−∞" if not np.isfinite(v) else minus(f"{v + 0.0:.4g}") for v in row] for row in some]
    return pd.DataFrame(
        cells,
        index=pd.Index([f"query {i}" for i in range(len(some))], name=""),
        columns=[f"key {i}" for i in range(len(some))],
    )


def choose_multiplier() -> float:
    """Returns the multiplier of all slopes."""
    hint = words_measured.STEEPER_SLOPES
    return float(
        widgets.slide_over("Slope multiplier", MULTIPLIERS, 1, "alibi_times", hint=hint, written=thousands)
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
    if (
        trained is not None
        and widgets.select("Scores from", (IN_THE_BAR, TRAINED), "alibi_source") == TRAINED
    ):
        ids, _, _ = read(subject.text, trained.tokenizer, most_tokens(trained.config))
        labels = [show_token(trained.tokenizer.decode([i])) for i in ids]
        return _Source(
            _trained_recording(ids, trained.model),
            labels,
            words_measured.alibi_example(trained.config.context),
        )
    return _Source(subject.recording(), subject.labels, "This model")


@memo.measured()
def _trained_recording(ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


def draw_effect(heads: int, times: float) -> None:
    """Draws a head's pattern without the bias and with it, and how far all heads of its layer look: of the
    heads that the model has.
    """
    with subject_bar() as subject:
        _draw_effect(subject, times)


def _draw_effect(subject: Subject, times: float) -> None:
    if subject.config.mixer == "none":
        st.info(words_measured.NO_ATTENTION)
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
    st.markdown(words_measured.distances(effect, head))


def _provenance(source: _Source, slope: float) -> str:
    """Where the scores are from. `own` is the slope that they hold already."""
    if slope:
        return (
            f"{source.title} was trained with ALiBi. “Without” shows its scores with its own slope,"
            f" {slope:.4g}, removed."
        )
    kind = source.recording.config.position
    held = {"none": "no positions at all", "t5": "T5's learned bias, which its scores keep"}.get(
        kind, f"{kind} positions, which it keeps"
    )
    return (
        f"{source.title} was trained with {held}. The bias is added to its recorded scores: a what-if, not"
        " what it was trained for."
    )


def _draw_patterns(effect: measured.Effect, slope: float, labels: list[str]) -> None:
    left, right = st.columns(2, gap="medium")
    for column, key, name, of, pattern in (
        (left, "before", "Without the bias", "the scores", effect.before),
        (right, "after", f"With slope {slope:.4g}", "scores − slope · distance", effect.after),
    ):
        with column:
            st.caption(f"**{name}**: softmax of {of}")
            plot(
                half_width_pattern(pattern, labels),
                key=f"alibi_pattern_{key}",
                height=440,
                name=name.replace(" ", "-").lower(),
                data=pattern_table(pattern, labels),
                alt=f"{name}: weights from 0 to 1, queries down.",
            )
    st.caption("Both on the same scale: blank is 0, the strongest colour is 1.")


def _draw_distances(recording: Recording, layer: int, times: float) -> None:
    before, after = measured.distances_of_heads(recording, layer, times)
    st.caption(words_measured.all_heads(layer))
    plot(
        figures.distance_bars(before, after),
        key="alibi_distances",
        height=270,
        name="alibi-distances",
        data=pd.DataFrame({"head": np.arange(len(before)), "without": before, "with": after}),
        alt="Bars: mean distance of each head without and with the bias.",
    )


TOPICS = {
    "slopes": ("Slopes and reach", draw_slopes),
    "matrix": ("Bias matrix", draw_matrix),
    "effect": ("Effect on a pattern", draw_effect),
}
