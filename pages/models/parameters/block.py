"""One block of a model: mostly its feed-forward network, and how a gate is paid for."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from engine.ledger.block import GatePaid, block_of, gate_paid, known, plain_ratio, rows_of_block, shares
from pages.models.parameters import answers, figures_block, words
from pages.models.parameters.choice import Choice
from pages.models.parameters.figures import NAMES
from ui import explain
from ui.players.plot import plot

RATIOS = tuple(round(0.5 * i, 1) for i in range(1, 17))  # d_ff / d_model of a plain network


def draw_block(choice: Choice) -> None:
    """Draws one of the model's blocks and three of its width as bars; the share by width, published models
    and the arithmetic are folded.
    """
    ratio, this_block = plain_ratio(choice.config), block_of(choice.ledger)
    paid = gate_paid(choice.config.d_model, ratio)
    rows = [
        ("this model's", this_block),
        (f"plain, {ratio:.3g}·d", paid.plain),
        (f"gated, {ratio * 2 / 3:.3g}·d", paid.gated),
        (f"gated, {ratio:.3g}·d", paid.full),
    ]
    explain.answer(answers.in_a_block(choice, this_block))
    sentence = "; ".join(f"{name} {counts.share:.1%} in the feed-forward network" for name, counts in rows)
    plot(
        figures_block.block_bars(rows),
        key="parameters_block",
        alt=f"Parameters of one block: {sentence}.",
        height=370,
        data=pd.DataFrame([{"block": name, **asdict(counts)} for name, counts in rows]),
        name="block-parameters",
    )
    explain.measure_it(_more, choice.config.d_model)
    explain.by_hand(_hand, choice, ratio, paid)


def _more(d: int) -> None:
    """The share by width, and the models that are known here."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.caption(words.SHARE_BY_WIDTH)
        _shares(d)
    with right:
        st.caption(words.EVERY_BLOCK)
        table = pd.DataFrame(
            [
                {
                    "model": model.name,
                    "d_model": model.d_model,
                    "d_ff": model.d_ff,
                    "d_ff / d_model": round(model.times, 2),
                    "matrices": 3 if model.gated else 2,
                    "block": model.block.total,
                    "feed-forward": f"{model.block.share:.1%}",
                }
                for model in known()
            ]
        )
        st.dataframe(table, hide_index=True, height=440)


def _shares(d: int) -> None:
    curves = shares(d, RATIOS)
    plot(
        figures_block.share_line(curves),
        key="parameters_shares",
        alt=(
            f"Share of the feed-forward network in a block of width {d}: {curves.four:.1%} at 4 d with two"
            f" matrices, {curves.eight_thirds:.1%} at 8/3 d with three."
        ),
        height=440,
        data=pd.DataFrame({"ratio": curves.ratios, "plain": curves.plain, "gated": curves.gated}),
        name="share",
    )


def _hand(choice: Choice, ratio: float, paid: GatePaid) -> None:
    """The block's tensors, and how a gate is paid for."""
    rows = [
        {
            "part": NAMES[row.component],
            "tensor": row.name,
            "in symbols": row.formula,
            "in numbers": row.numbers,
            "parameters": f"{row.each:,}",
        }
        for row in rows_of_block(choice.ledger)
        if row.each
    ]
    total = {"part": "total", "parameters": f"{block_of(choice.ledger).total:,}"}
    st.table(pd.DataFrame([*rows, total]).fillna("").set_index("part"), border="horizontal")
    st.caption(words.LETTERS)
    st.markdown(words.gate(ratio, paid))
