"""Where the parameters of a block are: mostly in its feed-forward network."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from engine.config import GATED
from engine.ledger.block import BlockParameters, block, block_of, gate_paid, shares
from pages.inside.feedforward import parameter_figures as figures
from ui import explain, widgets
from ui.players.plot import plot
from ui.subject import Subject

WIDTHS = (32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
RATIOS = tuple(round(0.5 * i, 1) for i in range(1, 17))  # d_ff / d_model of a plain network


def draw_parameters(subject: Subject) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        d = widgets.slide_over("Width d_model", WIDTHS, 512, "feedforward_width")
    with right:
        hint = "The gated network beside it gets two thirds of this, so that both have as many parameters."
        ratio = widgets.slide_over(
            "d_ff / d_model of the plain network",
            RATIOS,
            4.0,
            "feedforward_ratio",
            written=lambda r: f"{r:g}",
            hint=hint,
        )
    own, paid = block_of(subject.config), gate_paid(d, ratio)
    rows = [
        ("this model", own),
        (f"plain, {ratio:g}·d", paid.plain),
        (f"gated, {ratio * 2 / 3:.3g}·d", paid.gated),
        (f"gated, {ratio:g}·d", paid.full),
    ]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.caption(f"One block of the model in the bar, and three of width {d:,}.")
        table = pd.DataFrame([{"block": name, **asdict(counts)} for name, counts in rows])
        alt = (
            "Parameters of one block: "
            + "; ".join(f"{name} {counts.share:.1%} in the feed-forward network" for name, counts in rows)
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
        alt = f"This model: {own.share:.1%} in the feed-forward network."
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
        _shares(d)
    st.markdown(
        f"**Two matrices of {ratio:g}·d:** $2\\cdot d\\cdot {ratio:g}d = {2 * ratio:g}\\,d^2$ ="
        f" {paid.plain.feedforward:,}. **Three of {ratio * 2 / 3:.3g}·d:** $3\\cdot"
        f" d\\cdot\\tfrac23\\cdot{ratio:g}d = {2 * ratio:g}\\,d^2$ ≈ {paid.gated.feedforward:,};"
        f" {signed(paid.rounding)} by rounding up to a multiple of 8 neurons. A gate at the"
        f" full {ratio:g}·d would cost half as much again: {paid.full.feedforward:,}."
    )
    _worked()
    _takeaway(subject, own)


def signed(count: int) -> str:
    """A difference with its sign.

    >>> signed(-512), signed(0)
    ('−512', '±0')
    """
    return f"{'−' if count < 0 else '+' if count else '±'}{abs(count):,}"


def _shares(d: int) -> None:
    found = shares(d, RATIOS)
    table = pd.DataFrame({"ratio": found.ratios, "plain": found.plain, "gated": found.gated})
    alt = (
        f"Share of the feed-forward network in a block of width {d}: {found.four:.1%} at 4 d with two"
        f" matrices, {found.eight_thirds:.1%} at 8/3 d with three."
    )
    plot(
        figures.share_line(found),
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
            explain.worked(label, f"{getattr(counts, part):,}", formula)
    with columns[3]:
        explain.worked(
            "One block",
            f"{counts.total:,}",
            f"The feed-forward network has **{counts.share:.2%}** of it",
        )


def _takeaway(subject: Subject, own: BlockParameters) -> None:
    c = subject.config
    if c.ffn == "none":
        explain.takeaway(
            "The model in the bar has no feed-forward networks: all of a block's parameters are in its"
            " attention and its norms."
        )
        return
    kind = "three matrices" if c.ffn in GATED else "two matrices"
    explain.takeaway(
        f"In the model in the bar, **{own.share:.1%}** of a block's {own.total:,} parameters are in"
        f" the feed-forward network: {kind} with $d_{{ff}}$ = {c.d_ff:,} = {(c.d_ff or 0) / c.d_model:.3g}·d."
        " At 4·d it is two thirds, because attention has $4d^2$ and the network $8d^2$."
    )
