"""The part "Layouts" of "RoPE": which dimensions pair, in two ways, and what mixing them up costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions.maps import draw_pattern
from pages.input.positions.rotated_head import RotatedHead, rotated_head
from studies.positions import rope
from studies.positions.rope import SHIFT, LayoutLoss, Layouts, layout_pattern, rotate_interleaved
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import scientific

TEXT = content.beside(__file__)
WAYS = ("half", "permuted", "wrong", "crossed")  # to rotate q and k
PAIR_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")


def draw(subject: Subject) -> None:
    """Draws eight dimensions, paired in two ways, and what mixing them up costs this model."""
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = rotated_head(subject)
        st.caption(TEXT["conventions"])
    with figure:
        plot(layout_diagram(), key="rope_layout", height=340, name="rope-layouts", alt=TEXT["alt"])
    layouts = _layout_numbers(subject.key, subject.ids, turned.words, turned)
    loss = _layout_loss(subject.key, subject.ids, subject)
    explain.answer(
        TEXT(
            "answer" if loss is None else "answer with loss",
            rounding=layouts.difference("permuted"),
            changed=layouts.difference("wrong"),
            right=None if loss is None else loss.right,
            wrong=None if loss is None else loss.wrong,
        )
    )
    explain.measure_it(_draw_measured, subject, turned, layouts)


@memo.measured()
def _layout_numbers(key: tuple[str, int], ids: tuple[int, ...], words: str, _turning: RotatedHead) -> Layouts:
    return rope.layouts(_turning.q, _turning.k, _turning.base, _turning.rotary)


@memo.measured()
def _layout_loss(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> LayoutLoss | None:
    return rope.wrong_layout_loss(_subject.model, ids)


def _draw_measured(subject: Subject, turned: RotatedHead, layouts: Layouts) -> None:
    """The same scores in both layouts, and mixed up; the head's pattern then."""
    st.markdown(TEXT("four ways", head=turned.words, tokens=len(subject.ids)))
    st.table(
        pd.DataFrame(
            {
                TEXT["largest change"]: [_size(layouts.difference(name)) for name in WAYS],
                TEXT("after shift", shift=SHIFT): [_size(layouts.moved[name]) for name in WAYS],
            },
            index=pd.Index([TEXT[f"way {name}"] for name in WAYS], name=TEXT["layout"]),
        )
    )
    st.caption(TEXT["about ways"])
    _draw_patterns(subject, layouts)


def _size(value: float) -> str:
    """Rounding shows its power of ten, a real change its digits."""
    return f"{value:.2f}" if value > 1e-3 or value == 0 else scientific(value)


def _draw_patterns(subject: Subject, layouts: Layouts) -> None:
    """The head's pattern as trained and with the pairs mixed up."""
    visible = subject.recording().seen()
    for column, name in zip(st.columns(2, gap="medium"), ("half", "wrong"), strict=True):
        pattern = layout_pattern(layouts, name, visible)
        with column:
            st.caption(TEXT(f"pattern {name}"))
            alt = TEXT(f"alt pattern {name}")
            draw_pattern(pattern, subject.labels, f"rope_pattern_{name}", f"pattern-{name}", alt)
    st.caption(TEXT["same scale"])


def layout_diagram(width: int = 8) -> go.Figure:
    """Draws two rows of dimensions, one for each layout; an arc joins the two that turn together, in the
    pair's colour.
    """
    half = width // 2
    rows = {
        TEXT["half-split"]: [(i, i + half) for i in range(half)],
        TEXT["interleaved"]: [(2 * i, 2 * i + 1) for i in range(half)],
    }
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for row, (name, pairs) in enumerate(rows.items()):
        y = 2.2 * (1 - row)
        owner = {d: i for i, pair in enumerate(pairs) for d in pair}
        other = {d: e for a, b in pairs for d, e in ((a, b), (b, a))}
        for i, (a, b) in enumerate(pairs):
            t = np.linspace(0, np.pi, 40)
            x, up = (
                (a + b) / 2 - np.cos(t) * (b - a) / 2,
                y + 0.32 + np.sin(t) * (0.3 + 0.17 * (b - a) + 0.05 * i * (b - a > 1)),
            )
            traces.append(
                go.Scatter(
                    mode="lines",
                    x=x.astype(np.float32),
                    y=up.astype(np.float32),
                    hoverinfo="skip",
                    line={"color": colour(PAIR_COLOURS[i % len(PAIR_COLOURS)]), "width": 2.5},
                )
            )
        traces.append(
            go.Scatter(
                mode="markers+text",
                x=np.arange(width),
                y=np.full(width, y),
                text=[str(d) for d in range(width)],
                textfont={"size": 16, "color": "var(--gf-seq0)"},
                marker={
                    "symbol": "square",
                    "size": 32,
                    "color": [colour(PAIR_COLOURS[owner[d] % len(PAIR_COLOURS)]) for d in range(width)],
                },
                customdata=[TEXT("hover", dimension=d, pair=owner[d], other=other[d]) for d in range(width)],
                hovertemplate="%{customdata}<extra>" + name + "</extra>",
            )
        )
        notes.append(go.note(name, -0.45, y - 0.62, xanchor="left", font={"size": 14}))
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        showlegend=False,
        annotations=notes,
        xaxis={"visible": False, "range": [-0.6, width - 0.4]},
        yaxis={"visible": False, "range": [-0.95, 3.75]},
    )


PART = View("layouts", TEXT, draw, (Rope, rotate_half_pairs, rotate_interleaved))
