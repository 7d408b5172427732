"""Where the parameters of a block are: mostly in its feed-forward network."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from engine.ledger.block import GatePaid, block, gate_paid, known, shares
from pages.inside.feedforward import parameter_figures as figures
from pages.inside.feedforward import words
from ui import explain, widgets
from ui.players.plot import plot

WIDTHS = (32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
RATIOS = tuple(round(0.5 * i, 1) for i in range(1, 17))  # d_ff / d_model of a plain network


def draw_parameters() -> None:
    """Draws three blocks as bars; the share by width and published models are folded, and the arithmetic."""
    left, right = st.columns([3, 1], gap="medium")
    with right:
        d = widgets.slide_over("Width d_model", WIDTHS, 512, "feedforward_width")
        ratio = widgets.slide_over(
            "d_ff / d_model of the plain network",
            RATIOS,
            4.0,
            "feedforward_ratio",
            written=lambda r: f"{r:g}",
            hint="The gated network gets two thirds of this, so that both have as many parameters.",
        )
    paid = gate_paid(d, ratio)
    rows = [
        (f"plain, {ratio:g}·d", paid.plain),
        (f"gated, {ratio * 2 / 3:.3g}·d", paid.gated),
        (f"gated, {ratio:g}·d", paid.full),
    ]
    with left:
        alt = (
            "Parameters of one block: "
            + "; ".join(f"{name} {counts.share:.1%} in the feed-forward network" for name, counts in rows)
            + "."
        )
        plot(
            figures.block_bars(rows),
            key="feedforward_bars",
            alt=alt,
            height=350,
            data=pd.DataFrame([{"block": name, **asdict(counts)} for name, counts in rows]),
            name="block-parameters",
        )
    explain.answer(words.parameters_answer(paid.plain, ratio))
    explain.measure_it(_more, d)
    explain.by_hand(_hand, ratio, paid)


def _more(d: int) -> None:
    """The share by width, and the models that are known here."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.caption("The feed-forward network's share of a block, by its width.")
        _shares(d)
    with right:
        st.caption("One block of every model of the app.")
        table = pd.DataFrame(
            [
                {
                    "model": one.name,
                    "d_model": one.d_model,
                    "d_ff": one.d_ff,
                    "d_ff / d_model": round(one.times, 2),
                    "matrices": 3 if one.gated else 2,
                    "block": one.block.total,
                    "feed-forward": f"{one.block.share:.1%}",
                }
                for one in known()
            ]
        )
        st.dataframe(table, hide_index=True, height=440)


def _hand(ratio: float, paid: GatePaid) -> None:
    """How a gate is paid for, and the unit's own numbers."""
    st.markdown(
        f"**Two matrices of {ratio:g}·d:** $2\\cdot d\\cdot {ratio:g}d = {2 * ratio:g}\\,d^2$ ="
        f" {paid.plain.feedforward:,}. **Three of {ratio * 2 / 3:.3g}·d:** $3\\cdot"
        f" d\\cdot\\tfrac23\\cdot{ratio:g}d = {2 * ratio:g}\\,d^2$ ≈ {paid.gated.feedforward:,};"
        f" {signed(paid.rounding)} by rounding up to a multiple of 8 neurons. A gate at the"
        f" full {ratio:g}·d would cost half as much again: {paid.full.feedforward:,}."
    )
    _worked()


def signed(count: int) -> str:
    """Returns a difference with its sign.

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
