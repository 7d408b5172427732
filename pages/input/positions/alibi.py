"""The view "ALiBi": slopes and how far they let a head see, the bias, and what becomes of a pattern."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import distance as measured
from engine.measure.recording import Recording, record
from engine.model import Transformer
from pages.input.positions import bias_figures as figures
from pages.input.positions.head import KEPT, choose_head, choose_mask, example, one_of, slide
from ui import explain
from ui.figures.patterns import pattern_table
from ui.players.plot import plot
from ui.subject import Subject, most_tokens, read, show_token

ALIBI_TOPICS = ("Slopes and reach", "Bias matrix", "Effect on a pattern")
MULTIPLIERS = (0.25, 0.5, 1, 2, 4, 8, 16)
MOST_HEADS = 32
LENGTHS = (16, 32, 64, 128)


def draw_alibi(subject: Subject) -> None:
    """One of three topics."""
    topic = one_of("Topic", ALIBI_TOPICS, "alibi_topic")
    {ALIBI_TOPICS[0]: _slopes, ALIBI_TOPICS[1]: _matrix, ALIBI_TOPICS[2]: _effect}[topic](subject)


def _heads(subject: Subject) -> int:
    default = min(subject.config.n_heads, MOST_HEADS)
    found = st.slider("Heads", 1, MOST_HEADS, default, key="alibi_heads", **KEPT)
    return found if isinstance(found, int) and 1 <= found <= MOST_HEADS else default


def _multiplier() -> float:
    hint = (
        "1 is the paper's. Models as small as those here, with contexts of 64 or 128, learn better with"
        " steeper ones: in our trials times 4 did better."
    )
    return float(slide("Slopes times", MULTIPLIERS, 1, "alibi_times", help=hint))


def _slopes(subject: Subject) -> None:
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        heads = _heads(subject)
    with right:
        times = _multiplier()
    found, context = measured.slopes(heads, times), subject.config.context
    reaches = {"distance_to_1_over_e": found.to_a_third, "distance_to_1_percent": found.to_a_percent}
    table = pd.DataFrame({"head": np.arange(heads), "slope": found.slope} | reaches)
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("**What a distance costs**: the weight's factor, a line for each head")
        plot(
            figures.decay_curves(found.slope, context),
            key="alibi_decay",
            height=340,
            name="alibi-decay",
            data=table,
            alt=(
                f"Lines: e to the minus slope times distance for each of {heads} heads, over {context}"
                " positions."
            ),
        )
    with right:
        st.caption(f"**Effective reach**; dotted: the context, {context} tokens")
        plot(
            figures.reach_bars(found, context),
            key="alibi_reach",
            height=340,
            name="alibi-reach",
            data=table,
            alt=f"Bars: the distance at which each of {heads} heads is down to 1/e and to 1 percent.",
        )
    st.dataframe(
        pd.DataFrame(
            {
                "head": np.arange(heads),
                "slope": [_power(float(s)) for s in found.slope],
                "as a number": [f"{s:.6g}" for s in found.slope],
                "1/e at distance": [f"{d:,.1f}" for d in found.to_a_third],
                "1 percent at distance": [f"{d:,.1f}" for d in found.to_a_percent],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * heads, 318),
    )
    st.caption(_rule(heads))
    inside = int((found.to_a_percent < context).sum())
    explain.takeaway(
        f"Slopes run from **{found.slope.max():.4g}** to **{found.slope.min():.4g}**. **{inside} of {heads}**"
        f" {_heads_word(heads)} come down to 1 percent within the context of {context}; the flattest"
        f" {_heads_word(1)} is at {math.exp(-found.slope.min() * (context - 1)):.1%} at its far end. Steep"
        " heads read the last few tokens, flat ones the whole text, and nothing of it is learned."
    )


def _heads_word(count: int) -> str:
    return "head" if count == 1 else "heads"


def _power(slope: float) -> str:
    """A slope as a fraction, where it is a whole power of two, else as a power.

    >>> _power(0.25), _power(2**-0.5), _power(2.0)
    ('1/4', '2^(−0.5)', '2')
    """
    exponent = math.log2(slope)
    if exponent != round(exponent):
        return f"2^({exponent:.4g})".replace("-", "−")
    return f"1/{2 ** -round(exponent)}" if exponent < 0 else f"{2 ** round(exponent)}"


def _rule(heads: int) -> str:
    power = 2 ** int(math.log2(heads))
    rule = f"The paper's rule for {power} heads: slopes 2^(−8/{power}), 2^(−16/{power}), …, 2^(−8)."
    if power == heads:
        return f"{rule} For 8 heads these are 1/2, 1/4, …, 1/256."
    count = heads - power
    return (
        f"{heads} is not a power of two. {rule} The other {count} come from the rule for {2 * power} heads:"
        " every second of its slopes, steepest first."
    )


def _matrix(subject: Subject) -> None:
    one, two, three = st.columns([3, 3, 2.2], gap="medium", vertical_alignment="bottom")
    with one:
        heads = _heads(subject)
        length = slide("Length", LENGTHS, 32, "alibi_length")
    with two:
        times = _multiplier()
        head = _matrix_head(heads)
    with three:
        causal = choose_mask(subject.config.causal, "alibi_mask")
    bias = measured.alibi_bias(heads, length, times, causal)[head]
    slope = float(measured.slopes(heads, times).slope[head])
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        plot(
            figures.bias_heatmap(bias),
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
        corner = min(3, length)
        st.caption("Its first corner, in numbers:")
        cells = [
            ["−∞" if not np.isfinite(v) else f"{v + 0.0:.4g}".replace("-", "−") for v in row[:corner]]
            for row in bias[:corner]
        ]
        st.table(
            pd.DataFrame(
                cells,
                index=pd.Index([f"query {i}" for i in range(corner)], name=""),
                columns=[f"key {i}" for i in range(corner)],
            )
        )
    side = (
        "A later key is hidden by the mask (blank)."
        if causal
        else "Without a mask the distance counts both ways: before and after look alike to this head."
    )
    most = slope * (length - 1)
    left_over = f"e^(−{most:.4g}) = {math.exp(-most):.2g}"
    explain.takeaway(
        f"The farthest key of this picture is pushed down by **{most:.4g}**: to {left_over} of what it would"
        f" weigh. {side}"
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
    if trained is not None:
        options = ("the model in the bar", "a small model trained with ALiBi")
        if one_of("Scores of", options, "alibi_source", label_shown=True) == options[1]:
            ids, _, _ = read(subject.text, trained.tokenizer, most_tokens(trained.config))
            labels = [show_token(trained.tokenizer.decode([i])) for i in ids]
            return _Source(
                _trained_recording(ids, trained.model),
                labels,
                f"The small model (checkpoints/positions/alibi, context {trained.config.context})",
            )
    return _Source(subject.recording(), subject.labels, "This model")


@st.cache_resource(max_entries=8, show_spinner=False)
def _trained_recording(ids: tuple[int, ...], _model: Transformer) -> Recording:
    return record(_model, ids)


def _matrix_head(heads: int) -> int:
    key = "alibi_matrix_head"
    if heads == 1:
        return 0
    held = st.session_state.get(key)
    if isinstance(held, int) and held >= heads:
        st.session_state[key] = heads - 1
    head = st.slider("Head", 0, heads - 1, 0, key=key, **KEPT)
    return head if isinstance(head, int) and 0 <= head < heads else 0


def _effect(subject: Subject) -> None:
    c = subject.config
    if c.mixer == "none":
        st.info(
            "This model has no mixer: its tokens never look at each other, so there is no pattern to bend."
            " Choose another model above."
        )
        return
    source = _source(subject)
    c = source.recording.config
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        layer, head = choose_head(c, "alibi")
    with right:
        times = _multiplier()
    recording = source.recording
    slope = float(measured.slopes(c.n_heads, times).slope[head])
    own = measured.own_slope(c, head)
    found = measured.alibi_effect(recording[f"blocks.{layer}.scores"][head], slope, c.causal, own)
    if own:
        st.caption(
            f"{source.title} was trained with ALiBi. “Without” is what its scores would be with its own"
            f" slope, {own:.4g}, taken out."
        )
    else:
        held = {"none": "no positions at all", "t5": "T5's learned bias, which its scores keep"}.get(
            c.position, f"{c.position} positions, which it keeps"
        )
        st.caption(
            f"{source.title} was trained with {held}. The bias is added to its recorded scores by hand: a"
            " what-if, not what it was trained for."
        )
    left, right = st.columns(2, gap="medium")
    for column, name, pattern in (
        (left, "Without the bias", found.before),
        (right, f"With slope {slope:.4g}", found.after),
    ):
        with column:
            st.caption(
                f"**{name}**: softmax of {'the scores' if column is left else 'scores − slope · distance'}"
            )
            plot(
                figures.half_width_pattern(pattern, source.labels),
                key=f"alibi_pattern_{'after' if column is right else 'before'}",
                height=440,
                name=name.replace(" ", "-").lower(),
                data=pattern_table(pattern, source.labels),
                alt=f"{name}: weights from 0 to 1, queries go down.",
            )
    st.caption("Both on one scale: blank is 0, darkest is 1.")
    before, after = measured.distances_of_heads(recording, layer, times)
    st.caption(
        f"**All heads of layer {layer}**, each with its own slope: how far they look, mean over the text"
    )
    plot(
        figures.distance_bars(before, after),
        key="alibi_distances",
        height=270,
        name="alibi-distances",
        data=pd.DataFrame({"head": np.arange(c.n_heads), "without": before, "with": after}),
        alt="Bars: mean distance of each head without and with the bias.",
    )
    changed = float(np.abs(found.after - found.before).sum(-1).mean() / 2)
    explain.takeaway(
        f"Head {head} looks **{found.distance_before:.2f}** tokens away without the bias and"
        f" **{found.distance_after:.2f}** with it; **{changed:.0%}** of its weight has moved. The scores are"
        " the same: the bias is a thumb on the scale, and what is relevant enough still wins against it."
    )
