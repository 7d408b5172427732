"""The part "One block": mostly its feed-forward network, and how a gate is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import GATED
from pages.models.parameters.choice import Choice
from pages.models.parameters.components import NAMES, draw_letters, signed
from studies.costs.block import (
    BlockParameters,
    GatePaid,
    Shares,
    block_of,
    gate_paid,
    known,
    plain_ratio,
    rows_of_block,
    shares,
)
from ui import content, explain
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
PARTS = {"attention": "attention", "feedforward": "feed-forward", "norm": "norms"}
RATIOS = tuple(round(0.5 * i, 1) for i in range(1, 17))  # d_ff / d_model of a plain network


def draw(choice: Choice) -> None:
    """Draws one of the model's blocks and three of its width as bars; the share by width, published models
    and the arithmetic are folded.
    """
    ratio, this_block = plain_ratio(choice.config), block_of(choice.ledger)
    paid = gate_paid(choice.config.d_model, ratio)
    rows = [
        (TEXT["own"], this_block),
        (TEXT("plain", ratio=ratio), paid.plain),
        (TEXT("gated", ratio=ratio * 2 / 3), paid.gated),
        (TEXT("gated", ratio=ratio), paid.full),
    ]
    explain.answer(_answer(choice, this_block))
    each = "; ".join(TEXT("share", name=name, share=counts.share) for name, counts in rows)
    plot(
        block_bars(rows),
        key="parameters_block",
        alt=TEXT("alt", shares=each),
        height=370,
        data=pd.DataFrame([{"block": name, **asdict(counts)} for name, counts in rows]),
        name="block-parameters",
    )
    explain.measure_it(_more, choice.config.d_model)
    explain.by_hand(_hand, choice, ratio, paid)


def _answer(choice: Choice, block: BlockParameters) -> str:
    """Says what share of a block its feed-forward network has, and why."""
    c = choice.config
    return TEXT(
        "answer" if block.feedforward else "no network",
        share=block.share,
        total=block.total,
        model=choice.title,
        times=c.d_ff / c.d_model,
        matrices=3 if c.ffn in GATED else 2,
    )


def _more(d: int) -> None:
    """The share by width, and the models that are known here."""
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.caption(TEXT["share by width"])
        _shares(d)
    with right:
        st.caption(TEXT["every block"])
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
        share_line(curves),
        key="parameters_shares",
        alt=TEXT("alt shares", d=d, four=curves.four, eight_thirds=curves.eight_thirds),
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
    draw_letters()
    st.markdown(
        TEXT(
            "gate",
            ratio=ratio,
            times=2 * ratio,
            third=ratio * 2 / 3,
            plain=paid.plain.feedforward,
            gated=paid.gated.feedforward,
            rounding=signed(paid.rounding),
            full=paid.full.feedforward,
        )
    )


def block_bars(rows: Sequence[tuple[str, BlockParameters]]) -> go.Figure:
    """Draws parameters of one block, part by part, one bar a row: rows of (name, counts)."""
    names = [name for name, _ in rows]
    bars = []
    for part, label in PARTS.items():
        counts = [getattr(block, part) for _, block in rows]
        shares = [block.share_of(part) for _, block in rows]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": np.array(counts, dtype=np.float64),
                "name": label,
                "marker": {"color": colour(part)},
                "text": [f"{share:.1%}" if share > 0.06 else "" for share in shares],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "customdata": shares,
                "hovertemplate": TEXT("hover bar", part=label),
            }
        )
    return go.figure(
        bars,
        barmode="stack",
        margin={"l": 130, "r": 16, "t": 34, "b": 44},
        bargap=0.3,
        uniformtext={"minsize": 12, "mode": "hide"},
        xaxis={"title": {"text": TEXT["axis block"]}, "tickformat": "~s"},
        yaxis={"autorange": "reversed", "showgrid": False},
    )


def share_line(shares: Shares) -> go.Figure:
    """Draws the feed-forward share of a block over d_ff / d_model, and the two points of the same height."""
    marks = ((4, shares.four, "4·d", "bottom right"), (8 / 3, shares.eight_thirds, "8/3·d", "top left"))
    hover = TEXT["hover line"]
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": shares.ratios,
            "y": y,
            "name": name,
            "hovertemplate": hover,
            "line": {"color": colour("feedforward"), "width": 2, "dash": dash},
        }
        for y, name, dash in (
            (shares.plain, TEXT["two matrices"], "solid"),
            (shares.gated, TEXT["three matrices"], "dash"),
        )
    ]
    dots = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [m[0] for m in marks],
        "y": [m[1] for m in marks],
        "text": [m[2] for m in marks],
        "textposition": [m[3] for m in marks],
        "marker": {"size": 10, "color": colour("output")},
        "showlegend": False,
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{y:.2%}<extra></extra>",
    }
    return go.figure(
        [*lines, dots],
        margin={"l": 56, "r": 16, "t": 34, "b": 44},
        xaxis={"title": {"text": "d_ff / d_model"}},
        yaxis={"title": {"text": TEXT["axis share"]}, "range": [0, 1], "tickformat": ".0%"},
    )


PART = View("block", TEXT, draw, code=(gate_paid,))
