"""Arrays -> figures of the view "Why": outputs by word, what order changes, scheme by scheme and token by
token. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.positions.permutation import SAME, Comparison
from pages.input.positions.figures_shared import SCALE, counted
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, symmetric, token_axis
from ui.figures.labels import plain
from ui.figures.theme import colour

FLOOR = 1e-8  # where a difference of exactly 0 is drawn on a logarithmic axis


def short(word: str, letters: int = 12) -> str:
    """Returns a word that fits beside a picture.

    >>> short("incomprehensibilities")
    'incomprehen…'
    """
    return word if len(word) <= letters else word[: letters - 1] + "…"


def two_orders(comparison: Comparison, words: Sequence[str]) -> go.Figure:
    """Draws attention's output for each word, as written on the left and in the new order on the right; a
    line joins the rows of the same word. The difference stands on the right if it is more than rounding.
    """
    top = symmetric(np.stack((comparison.before, comparison.after)))
    moved = [words[i] for i in comparison.order]
    heats = [
        _half(values, named, top, axis)
        for values, named, axis in ((comparison.before, words, ""), (comparison.after, moved, "2"))
    ]
    at = -np.arange(len(words))
    side = {"tickvals": at, "tickfont": MONO, "showgrid": False, "zeroline": False}
    side["range"] = [-len(words) + 0.5, 0.5]
    across = {"showticklabels": False, "showgrid": False, "zeroline": False, "fixedrange": True}
    return go.figure(
        heats,
        margin={"l": 8, "r": 8, "t": 30, "b": 8},
        showlegend=False,
        xaxis=across | {"domain": [0, 0.36]},
        xaxis2=across | {"domain": [0.64, 1], "anchor": "y2"},
        yaxis=side | {"ticktext": [plain(short(w)) for w in words], "automargin": True},
        yaxis2=side
        | {
            "ticktext": [
                _told(w, comparison.by_word[old]) for w, old in zip(moved, comparison.order, strict=True)
            ],
            "side": "right",
            "anchor": "x2",
            "automargin": True,
        },
        shapes=[_thread(old, new, comparison.by_word[old]) for new, old in enumerate(comparison.order)],
        annotations=[_title(" ".join(words), 0.18), _title(" ".join(moved), 0.82)],
    )


def _half(values: np.ndarray, words: Sequence[str], top: float, axis: str) -> go.Trace:
    return go.signed(
        values,
        top,
        y=-np.arange(len(words)),
        xaxis=f"x{axis}",
        yaxis=f"y{axis}",
        showscale=False,
        xgap=1,
        ygap=4,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate="“%{customdata}”, dimension %{x}: %{z:.4f}<extra></extra>",
    )


def _thread(old: int, new: int, change: float) -> dict[str, Any]:
    """From the row of a word on the left to its row on the right."""
    same = change < SAME
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0.368,
        "x1": 0.632,
        "y0": -old,
        "y1": -new,
        "line": {
            "color": colour("quiet" if same else "position"),
            "width": 1.5 if same else 3,
            "dash": "solid" if same else "dot",
        },
    }


def _told(word: str, change: float) -> str:
    """A word of the right side, and what became of it."""
    text = "same row" if change < SAME else f"changed: {change:.2f}"
    return f"{plain(short(word))}<br><i>{text}</i>"


def _title(text: str, x: float) -> dict[str, Any]:
    shown = text if len(text) <= 44 else text[:43] + "…"
    return go.note(
        f"<b>{plain(shown)}</b>",
        x,
        1,
        xref="paper",
        yref="paper",
        xanchor="center",
        yanchor="bottom",
        font={"size": 15},
    )


def word_rows(values: np.ndarray, words: Sequence[str], top: float, name: str) -> go.Figure:
    """Draws values (word, dimension), the first word on top; blue below zero, orange above, the scale ending
    at `top`.
    """
    at = -np.arange(len(words))
    heat = go.signed(
        values,
        top,
        y=at,
        xgap=1,
        ygap=2,
        colorbar=SCALE,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate=f"{name}, “%{{customdata}}”, dimension %{{x}}: %{{z:.7g}}<extra></extra>",
    )
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 40},
        showlegend=False,
        xaxis=counted("dimension", values.shape[1], 4),
        yaxis=go.ticks(at, [plain(w) for w in words], tickfont=MONO),
    )


def scheme_dots(largest: Mapping[str, Mapping[str, float]], chosen: tuple[str, str]) -> go.Figure:
    """Draws mask words -> scheme -> largest difference, on a logarithmic axis; `chosen` (mask words, scheme)
    is ringed. 0 is drawn at FLOOR.
    """
    looks = {0: ("circle", "position", -0.09), 1: ("diamond", "attention", 0.09)}
    traces = []
    for row, (name, by_scheme) in enumerate(largest.items()):
        symbol, part, aside = looks[row % 2]
        values = np.array(list(by_scheme.values()))
        ring = [3 if (name, scheme) == chosen else 0 for scheme in by_scheme]
        traces.append(
            go.Scatter(
                x=np.arange(len(by_scheme)) + aside,
                y=np.maximum(values, FLOOR),
                mode="markers",
                name=name,
                text=list(by_scheme),
                customdata=values,
                marker={
                    "symbol": symbol,
                    "size": 15,
                    "color": colour(part),
                    "line": {"width": ring, "color": colour("residual")},
                },
                hovertemplate="%{text}: largest difference %{customdata:.3g}",
            )
        )
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 30},
        xaxis=rows_axis(list(next(iter(largest.values()))), tickfont=MONO, range=[-0.5, 5.5]),
        yaxis=go.axis(
            "largest difference",
            showgrid=True,
            type="log",
            exponentformat="power",
            dtick=2,
            range=[-8.4, 1.0],
        ),
    )


def moved_bars(values: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws how far each token's final vector moved (position,), in units of the usual length of such a
    vector.
    """
    bars = go.Bar(
        x=np.arange(len(labels)),
        y=values.astype(np.float32),
        marker={"color": colour("position")},
        customdata=[plain(label) for label in labels],
        hovertemplate="token %{x} “%{customdata}”: moved by %{y:.3g}<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.15,
        xaxis=token_axis(labels, "token of the text, as written"),
        yaxis={"title": {"text": "moved by"}, "rangemode": "tozero", "exponentformat": "power"},
    )
