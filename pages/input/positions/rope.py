"""The view "RoPE": arrows that turn, the score against distance, turns within the context; the two layouts
are in pages/input/positions/layouts.py.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import rotary
from pages.input.positions import rope_figures as figures
from pages.input.positions.arrows import rope_arrows
from pages.input.positions.head import choose_head, one_of, signed, slide
from pages.input.positions.layouts import Turning, draw_diagram, draw_layouts
from ui import explain
from ui.players.plot import plot
from ui.players.tokens import token_strip
from ui.subject import Subject

TOPICS = ("Arrows that turn", "Score and distance", "Turns in the context", "Two layouts")
BASES = (100, 200, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
SHIFTS = (1, 10, 100, 1_000, 10_000, 100_000)
WIDTHS = (4, 8, 16, 32, 48, 64, 96, 128, 256)
REACHES = (64, 128, 256, 512, 1_024, 4_096, 16_384)
CONTEXTS = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
ONES = "q = k = ones"
DRAWN = 2_000  # points of a curve, at most
# name -> (d_head, base, context, source)
PUBLISHED = {
    "LLaMA 2 7B": (128, 10_000, 4_096, "Touvron et al. 2023"),
    "Llama 3 8B": (128, 500_000, 8_192, "Llama Team 2024"),
}


def draw_rope(subject: Subject) -> None:
    """One of four topics, each on its own screen."""
    topic = one_of("Topic", TOPICS, "rope_topic")
    if topic == TOPICS[2]:
        return _turns(subject)
    if topic == TOPICS[3]:
        draw_diagram()
    turning = _turning(subject)
    {TOPICS[0]: _arrows, TOPICS[1]: _distance, TOPICS[3]: draw_layouts}[topic](subject, turning)


def _turning(subject: Subject) -> Turning:
    """q and k of the chosen head when the model turns its own; else seeded vectors, and a sentence that says
    so.
    """
    c = subject.config
    if c.position == "rope" and subject.model.parts.mixer(c).scored:
        layer, head = choose_head(c, "rope")
        q, k = _vectors(subject.key, subject.ids, layer, head, subject)
        words = f"layer {layer}, head {head} of {subject.title}"
        return Turning(q, k, c.rope_theta, True, words, c.d_rotary)
    width = c.d_head if c.d_head and c.d_head % 2 == 0 else 32
    why = (
        "compares no queries with keys"
        if c.position == "rope"
        else f"has positions of another kind ({c.position})"
    )
    st.info(
        f"The model in the bar {why}, so nothing in it turns. Shown instead: vectors of width {width} drawn"
        " at random (seed 0) for each token, turned by the engine's own RoPE with base 10,000. For a model"
        " that really turns its queries and keys, choose “Shakespeare, modern” in the bar."
    )
    q, k = _random(len(subject.ids), width)
    return Turning(q, k, 10_000.0, False, "random vectors, seed 0", width)


@st.cache_resource(max_entries=32, show_spinner=False)
def _vectors(
    key: tuple[str, int], ids: tuple[int, ...], layer: int, head: int, _subject: Subject
) -> tuple[np.ndarray, np.ndarray]:
    found = rotary.before_rotation(_subject.recording(), layer, head)
    assert found is not None
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
def _random(length: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    q, k = rotary.seeded_pair(length * width)
    return q.reshape(length, width), k.reshape(length, width)


# Arrows -----------------------------------------------------------------------------------------


def _arrows(subject: Subject, turning: Turning) -> None:
    last = len(subject.ids) - 1
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("**Query**: the token whose q is turned")
        m = token_strip(subject.labels, key="rope_query", chosen=last, label="Token of the query")
    with right:
        st.caption("**Key**: the token whose k is turned")
        n = token_strip(subject.labels, key="rope_key", chosen=max(0, last - 3), label="Token of the key")
    q, k = turning.q[m], turning.k[n]
    note = (
        f"All {turning.rotary // 2} pairs of {turning.words}, on one scale: long arrows decide. Below each,"
        " its product; left, the chosen one, enlarged."
    )
    at = rope_arrows(
        q,
        k,
        base=turning.base,
        d_rotary=turning.rotary,
        most=max(subject.config.context - 1, last, 63),
        home=(m, n),
        labels=(subject.labels[m], subject.labels[n]),
        key="rope_at",
        note=note,
    )
    _shift(q, k, at, turning)
    terms = rotary.pair_terms(q, k, at[0], at[1], turning.base, turning.rotary)
    rest = rotary.unturned(q, k, turning.rotary)
    strongest = int(np.abs(terms).argmax())
    explain.takeaway(
        f"At these places the score before its scaling is **{signed(terms.sum() + rest)}**. Pair {strongest}"
        f" says most: {signed(terms[strongest])}. Its arrows lie {'less' if terms[strongest] > 0 else 'more'}"
        " than a quarter turn apart. Turn “move both together” on and play: every arrow moves, no product"
        " does."
    )


def _shift(q: np.ndarray, k: np.ndarray, at: tuple[int, int, int], turning: Turning) -> None:
    st.markdown("**Shift both positions, and the score stays**")
    shift = slide("Shift both by", SHIFTS, 10, "rope_shift")
    found = rotary.shift_check(q, k, at[0], at[1], shift, turning.base, turning.rotary)
    table = pd.DataFrame(
        {
            f"q·k at ({at[0]}, {at[1]})": [signed(s.before, 6) for s in found],
            f"q·k at ({at[0] + shift:,}, {at[1] + shift:,})": [signed(s.after, 6) for s in found],
            "difference": [f"{s.difference:.1e}" for s in found],
        },
        index=pd.Index([s.precision for s in found], name="turned in"),
    )
    st.table(table)
    st.caption(
        "In exact arithmetic the difference is 0. The engine turns in float32; far out, a large position"
        " times θ loses digits, and the score moves a little. In bfloat16, with 8 significant bits for a"
        " sine, it moves at once. Only the turning is rounded here: products are summed in float64."
    )


# Score against distance -------------------------------------------------------------------------


def _distance(subject: Subject, turning: Turning) -> None:
    kinds = (f"mean of {'this head' if turning.own else 'the random vectors'}", ONES)
    kind = one_of("Vectors", kinds if turning.own else kinds[::-1], "rope_vectors", label_shown=True)
    left, middle, right = st.columns(3, gap="medium", vertical_alignment="bottom")
    with left:
        nearest = min(BASES, key=lambda b: abs(math.log(b / turning.base)))
        base = slide("Base", BASES, nearest, "rope_base")
    with middle:
        start = min((r for r in REACHES if r >= subject.config.context), default=REACHES[-1])
        reach = slide("Distances up to", REACHES, start, "rope_reach")
    width, turned = turning.width, turning.rotary
    if kind == ONES:
        with right:
            width = turned = slide("d_head", WIDTHS, _near(turning.rotary, WIDTHS), "rope_width")
        q = k = np.ones(width)
    else:
        q, k = turning.q.mean(0), turning.k.mean(0)
    distances = np.unique(np.linspace(0, reach, min(reach + 1, DRAWN)).round().astype(np.int64))
    others = [
        b for b in (turning.base if turning.own else 10_000.0, 10_000.0, 100.0, 1_000_000.0) if b != base
    ][:1]
    scale = 1 / math.sqrt(width)
    curves = {
        f"base {b:,.0f}{_own(b, turning)}": scale * rotary.score_curve(q, k, b, distances, turned)
        for b in (float(base), *others)
    }
    plot(
        figures.score_curves(distances, curves, subject.config.context),
        key="rope_curve",
        height=400,
        name="rope-score-against-distance",
        data=pd.DataFrame(
            {"distance": distances}
            | {name.replace(" ", "_").replace(",", ""): v for name, v in curves.items()}
        ),
        alt=f"Score q·k/√{width} against the distance of query and key for {kind}, base {base:,}.",
    )
    first = next(iter(curves.values()))
    if kind == ONES:
        pairs = f"{width // 2} pairs" if width > 2 else "one pair"
        st.caption(
            f"q = k = ones: q·k = 2 Σᵢ cos(distance · θᵢ) over {pairs}, divided by √{width}. At distance 0 it"
            f" is √{width} = {math.sqrt(width):.3f}."
        )
    else:
        st.caption(
            f"q and k are the means over {len(subject.ids)} tokens: {turning.words}. Turning is linear, so"
            " this is the mean score of all pairs of these tokens, had each pair that distance. "
            + (
                "Another base than the model's own is a what-if: its weights were trained with theirs."
                if turning.own
                else ""
            )
        )
    explain.takeaway(_decay(distances, first, base))


def _own(base: float, turning: Turning) -> str:
    return " (the model's)" if turning.own and base == turning.base else ""


def _near(value: float, options: tuple[int, ...]) -> int:
    return min(options, key=lambda o: abs(o - value))


def _decay(distances: np.ndarray, values: np.ndarray, base: float) -> str:
    """What the curve does, in numbers."""
    start, low, high = values[0], int(values.argmin()), int(values.argmax())
    words = (
        f"Base {base:,}: at distance 0 the score is **{signed(start)}**, at {distances[-1]:,}"
        f" **{signed(values[-1])}**; "
    )
    words += (
        f"lowest {signed(values[low])} at {distances[low]:,}, highest {signed(values[high])} at"
        f" {distances[high]:,}. "
    )
    if start > 0 and high == 0:
        below = np.flatnonzero(values < start / 2)
        if not below.size:
            return words + "It stays above half."
        again = (
            " It does not stay there: cosines swing."
            if (values[below[0] :] > start / 2).any()
            else f" Up to {distances[-1]:,} it stays there."
        )
        return words + f"It first falls below half at distance **{distances[below[0]]:,}**.{again}"
    return (
        words + "Near is not always best: the content of q and k decides at which distance their pairs agree."
    )


# Turns ------------------------------------------------------------------------------------------


def _turns(subject: Subject) -> None:
    c = subject.config
    own = (c.d_rotary if c.position == "rope" else c.d_head or 32, c.rope_theta, c.context)
    names = ["the model in the bar", *PUBLISHED, "your own"]
    chosen = one_of("Model", tuple(names) if c.position == "rope" else tuple(names[1:]), "rope_sizes")
    if chosen == "your own":
        width, base, context = _sizes(own)
    else:
        width, base, context = own if chosen == names[0] else PUBLISHED[chosen][:3]
    source = f" Published sizes: {PUBLISHED[chosen][3]}." if chosen in PUBLISHED else ""
    found, theta = rotary.turns(width, base, context), rotary.frequencies(width, base)
    slow = int((found < 1).sum())
    plot(
        figures.turn_bars(found, theta),
        key="rope_turns",
        height=400,
        name="rope-turns",
        data=pd.DataFrame(
            {
                "pair": np.arange(len(found)),
                "theta": theta,
                "positions_per_turn": 2 * math.pi / theta,
                "turns_in_context": found,
            }
        ),
        alt=(
            f"Bars: full turns of each of {len(found)} pairs within {context:,} positions, base {base:,.0f};"
            " the dotted line is one turn."
        ),
    )
    st.caption(
        f"turns = context · θᵢ / 2π with θᵢ = base^(−2i/d); {width} dimensions turn, base {base:,.0f},"
        f" context {context:,}.{source}"
    )
    explain.takeaway(
        f"**{slow} of {len(found)} pairs never complete a turn** within {context:,} positions. The fastest"
        f" turns {found[0]:,.1f} times, the slowest {found[-1]:.3g}: it needs {2 * math.pi / theta[-1]:,.0f}"
        " positions for one. "
        + ("A fast pair tells near distances apart and repeats itself far away. " if found[0] > 1 else "")
        + (
            "A slow pair has seen only a part of its circle in training, so beyond the context it comes to"
            " angles that are new to the model."
            if slow
            else "Every pair has seen its whole circle in training."
        )
    )


def _sizes(own: tuple[int, float, int]) -> tuple[int, float, int]:
    left, middle, right = st.columns(3, gap="medium")
    near_base = min(BASES, key=lambda b: abs(math.log(b / own[1])))
    with left:
        width = slide("d_head", WIDTHS, _near(own[0], WIDTHS), "rope_turn_width")
    with middle:
        base = slide("Base", BASES, near_base, "rope_turn_base")
    with right:
        context = slide("Context", CONTEXTS, _near(own[2], CONTEXTS), "rope_turn_context")
    return width, float(base), context
