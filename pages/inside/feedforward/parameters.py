"""Where the parameters of a block are: mostly in its feed-forward network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import GATED, ModelConfig, gated_width
from engine.ledger import component_parameters, parameter_rows
from pages.inside.feedforward import figures
from ui import explain
from ui.players.plot import plot
from ui.subject import Subject

WIDTHS = (32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
RATIOS = tuple(round(0.5 * i, 1) for i in range(1, 17))  # d_ff / d_model of a plain network


def parameters_view(subject: Subject) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        d = st.select_slider("Width d_model", WIDTHS, 512, key="feedforward_width", bind="query-params")
    with right:
        hint = "The gated network beside it gets two thirds of this, so that both have as many parameters."
        ratio = st.select_slider(
            "d_ff / d_model of the plain network",
            RATIOS,
            4.0,
            key="feedforward_ratio",
            bind="query-params",
            format_func=lambda r: f"{r:g}",
            help=hint,
        )
    d, ratio = d if d in WIDTHS else 512, ratio if ratio in RATIOS else 4.0
    plain, gated = block(d, round(ratio * d), "gelu"), block(d, gated_width(round(ratio * d)), "swiglu")
    own = subject_block(subject.config)
    full = block(d, round(ratio * d), "swiglu")
    rows = [
        ("this model", own),
        (f"plain, {ratio:g}·d", plain),
        (f"gated, {ratio * 2 / 3:.3g}·d", gated),
        (f"gated, {ratio:g}·d", full),
    ]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.caption(f"One block of the model in the bar, and three of width {d:,}.")
        table = pd.DataFrame([{"block": name, **counts} for name, counts in rows])
        alt = (
            "Parameters of one block: "
            + "; ".join(f"{name} {share(counts):.1%} in the feed-forward network" for name, counts in rows)
            + "."
        )
        plot(
            figures.block_bars(rows[1:]),
            key="feedforward_bars",
            alt=alt,
            height=270,
            data=table,
            name="block-parameters",
        )
        alt = f"This model: {share(own):.1%} in the feed-forward network."
        plot(
            figures.block_bars(rows[:1]),
            key="feedforward_own",
            alt=alt,
            height=170,
            data=table[:1],
            name="own-block",
        )
    with right:
        st.caption("The feed-forward network's share of a block, by its width.")
        _shares(d, ratio)
    st.markdown(
        f"**Two matrices of {ratio:g}·d:** $2\\cdot d\\cdot {ratio:g}d = {2 * ratio:g}\\,d^2$ ="
        f" {plain['feedforward']:,}. **Three of {ratio * 2 / 3:.3g}·d:** $3\\cdot"
        f" d\\cdot\\tfrac23\\cdot{ratio:g}d = {2 * ratio:g}\\,d^2$ ≈ {gated['feedforward']:,};"
        f" {signed(gated['feedforward'] - plain['feedforward'])} by rounding up to a multiple of 8 neurons. A"
        f" gate at the full {ratio:g}·d would cost half as much again: {full['feedforward']:,}."
    )
    _worked()
    _takeaway(subject, own)
    explain.reading(
        see=(
            "The bars are one block, divided among its parts; the lines are the feed-forward network's share"
            " as it gets wider. The two points lie at the same height: three matrices of 8/3·d are as large"
            " as two of 4·d."
        ),
        why=(
            "When a paper says that SwiGLU is better at the same size, this is how the size was kept. "
            "And it says where knowledge can be stored: most of a block is neurons."
        ),
        attempt=(
            "Move the width: the shares hardly change, because all but the norms grow with its square. "
            "Then choose the other shipped model, whose networks are gated."
        ),
    )
    explain.show_code(component_parameters, parameter_rows)


def block(d: int, d_ff: int, ffn: str) -> dict[str, int]:
    """Parameters of one block without biases, with two LayerNorms of gain and bias. The number of heads
    changes nothing.
    """
    return subject_block(
        ModelConfig(
            vocab_size=1,
            context=1,
            d_model=d,
            n_layers=1,
            n_heads=1,
            d_ff=max(d_ff, 1),
            ffn=ffn,  # type: ignore[arg-type]
            norm_bias=True,
        )
    )


def subject_block(config: ModelConfig) -> dict[str, int]:
    """Parameters of one of a model's blocks, by part."""
    counts = component_parameters(config)
    per = {part: counts[part] // config.n_layers for part in ("attention", "feedforward", "norm1", "norm2")}
    return {
        "attention": per["attention"],
        "feedforward": per["feedforward"],
        "norm": per["norm1"] + per["norm2"],
    }


def signed(count: int) -> str:
    """A difference with its sign.

    >>> signed(-512), signed(0)
    ('−512', '±0')
    """
    return f"{'−' if count < 0 else '+' if count else '±'}{abs(count):,}"


def share(counts: dict[str, int]) -> float:
    return counts["feedforward"] / max(sum(counts.values()), 1)


def _shares(d: int, ratio: float) -> None:
    ratios = np.array(RATIOS)
    both = [np.array([share(block(d, round(r * d), ffn)) for r in RATIOS]) for ffn in ("gelu", "swiglu")]
    eight_thirds = share(block(d, gated_width(4 * d), "swiglu"))
    marks = [
        (4.0, share(block(d, 4 * d, "gelu")), "4·d", "bottom right"),
        (8 / 3, eight_thirds, "8/3·d", "top left"),
    ]
    table = pd.DataFrame({"ratio": ratios, "plain": both[0], "gated": both[1]})
    alt = (
        f"Share of the feed-forward network in a block of width {d}: {marks[0][1]:.1%} at 4 d with two"
        f" matrices, {eight_thirds:.1%} at 8/3 d with three."
    )
    plot(
        figures.share_line(ratios, both[0], both[1], marks),
        key="feedforward_shares",
        alt=alt,
        height=440,
        data=table,
        name="share",
    )


def _worked() -> None:
    counts = block(512, 2048, "gelu")
    st.subheader("By hand: d = 512, d_ff = 2,048", anchor=False)
    columns = [*st.columns(2), *st.columns(2)]
    formulas = {
        "attention": ("Attention", r"$4\,d^2$: $W_Q$, $W_K$, $W_V$ and $W_O$, without biases"),
        "feedforward": ("Feed-forward", r"$2\,d\,d_{ff}$: $W_{in}$ and $W_{out}$, without biases"),
        "norm": ("Norms", r"$2\cdot 2\,d$: two LayerNorms, each with a gain and a bias"),
    }
    for column, (part, (label, formula)) in zip(columns, formulas.items(), strict=False):
        with column:
            explain.worked(label, f"{counts[part]:,}", formula)
    with columns[3]:
        explain.worked(
            "One block",
            f"{sum(counts.values()):,}",
            f"The feed-forward network has **{share(counts):.2%}** of it",
        )


def _takeaway(subject: Subject, own: dict[str, int]) -> None:
    c = subject.config
    if c.ffn == "none":
        explain.takeaway(
            "The model in the bar has no feed-forward networks: all of a block's parameters are in its"
            " attention and its norms."
        )
        return
    kind = "three matrices" if c.ffn in GATED else "two matrices"
    explain.takeaway(
        f"In the model in the bar, **{share(own):.1%}** of a block's {sum(own.values()):,} parameters are in"
        f" the feed-forward network: {kind} with $d_{{ff}}$ = {c.d_ff:,} = {(c.d_ff or 0) / c.d_model:.3g}·d."
        " At 4·d it is two thirds, because attention has $4d^2$ and the network $8d^2$."
    )
