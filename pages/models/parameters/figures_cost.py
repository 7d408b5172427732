"""Pictures of what a model costs over the length of its text: floating-point operations and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.ledger import GB
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.text.numbers import flop, gigabytes

FLOP_LINES = {
    "everything else": ("residual", 3, "solid"),
    "scores and weighted sums": ("attention", 3, "solid"),
    "feed-forward": ("feedforward", 1.5, "dash"),
    "attention's matrices": ("attention", 1.5, "dash"),
    "unembedding": ("output", 1.5, "dash"),
}


def flops_by_length(
    lengths: np.ndarray, parts: Mapping[str, np.ndarray], crossover: tuple[int, int] | None, at: int
) -> go.Figure:
    """Draws forward FLOPs for one token over the length of the text: parts (of FLOP_LINES -> (lengths,)).

    `crossover` is where the first two meet, (length, FLOPs); `at` is the chosen length.
    """
    lines: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": lengths,
            "y": parts[name],
            "name": name,
            "line": {"width": width, "color": colour(shade), "dash": dash},
            "text": [flop(v) for v in parts[name]],
            "hovertemplate": f"{name} at T = %{{x:,}}: %{{text}}<extra></extra>",
        }
        for name, (shade, width, dash) in FLOP_LINES.items()
        if parts[name].any()
    ]
    notes = []
    if crossover is not None and lengths[0] <= crossover[0] <= lengths[-1]:
        x, y = crossover
        lines.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [x],
                "y": [y],
                "marker": {"size": 11, "color": colour("output")},
                "showlegend": False,
                "hovertemplate": f"crossover at T = {x:,}: {flop(y)} each<extra></extra>",
            }
        )
        left = x > 512  # above the rising line, or below it where there is no room
        notes.append(
            go.note(
                f"T = {x:,}",
                float(np.log10(x)),
                float(np.log10(y)),
                xanchor="right" if left else "left",
                yanchor="bottom" if left else "top",
                xshift=-4 if left else 8,
                yshift=8 if left else -4,
            )
        )
    return go.figure(
        lines,
        margin={"l": 72, "r": 16, "t": 62, "b": 48},
        shapes=[_upright(at)],
        annotations=notes,
        xaxis={
            "type": "log",
            "title": {"text": "sequence length T"},
            "range": [float(np.log10(lengths[0])), float(np.log10(lengths[-1]))],
            **ticks(lengths),
        },
        yaxis={
            "type": "log",
            "title": {"text": "forward FLOPs per token"},
            "tickformat": "~s",
            "dtick": 1,
        },
    )


def _upright(at: int) -> dict[str, Any]:
    """A line at the chosen length."""
    return go.rule(x=at, line={"color": colour("quiet"), "width": 2})


def ticks(lengths: np.ndarray) -> dict[str, Any]:
    """Powers of 8 between the ends of a logarithmic axis of lengths, written as people write them."""
    powers = [8**k * 2 for k in range(0, 12) if lengths[0] <= 8**k * 2 <= lengths[-1]]
    return {"tickvals": powers, "ticktext": [f"{n // 1024}K" if n >= 1024 else str(n) for n in powers]}


MEMORY_LINES = {
    "KV cache": ("attention", "solid"),
    "one KV head each (MHA)": ("run1", "dash"),
    "one KV head (MQA)": ("run2", "dot"),
    "weights + KV cache": ("feedforward", "solid"),
}


def memory_by_length(
    lengths: np.ndarray, lines: Mapping[str, np.ndarray], devices: Mapping[str, int], at: int
) -> go.Figure:
    """Draws bytes over the length of the text: lines (of MEMORY_LINES -> (lengths,) bytes), and how much each
    device has.
    """
    drawn = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": lengths,
            "y": values / GB,
            "name": name,
            "line": {"width": 3 if dash == "solid" else 2, "color": colour(shade), "dash": dash},
            "text": [gigabytes(v) for v in values],
            "hovertemplate": f"{name}, T = %{{x:,}}: %{{text}}<extra></extra>",
        }
        for (name, values), (shade, dash) in zip(
            lines.items(), (MEMORY_LINES[name] for name in lines), strict=True
        )
    ]
    everything = np.concatenate([values for values in lines.values()]) / GB
    positive = everything[everything > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    low, high = np.log10(min(max(low, high / 1e5), 4.0)) - 0.1, np.log10(max(high, 100.0)) + 0.15
    rules = [
        go.rule(y=size / GB, line={"color": colour("quiet"), "width": 1, "dash": "dot"})
        for size in devices.values()
    ]
    # Side by side, since 8, 16 and 24 GB lie close together.
    names = [
        go.note(
            f"{name.split()[-1]} {size // GB}",
            i / len(devices),
            float(np.log10(size / GB)),
            xref="paper",
            xanchor="left",
            yanchor="middle",
            font={"size": 12},
            bgcolor="var(--gf-seq0)",
            borderpad=1,
        )
        for i, (name, size) in enumerate(devices.items())
    ]
    return go.figure(
        drawn,
        margin={"l": 64, "r": 16, "t": 62, "b": 48},
        shapes=[*rules, _upright(at)],
        annotations=names,
        xaxis={
            "type": "log",
            "title": {"text": "sequence length T"},
            "range": [float(np.log10(lengths[0])), float(np.log10(lengths[-1]))],
            **ticks(lengths),
        },
        yaxis={"type": "log", "title": {"text": "GB"}, "range": [low, high], "tickformat": ",~g", "dtick": 1},
    )


MEMORY_PARTS = {
    "weights": ("feedforward", 100),
    "gradients": ("run4", 100),
    "master copy": ("run2", 100),
    "AdamW moments": ("run2", 60),
    "activations": ("training", 100),
    "KV cache": ("attention", 100),
}


VISIBLE = 50  # a device with more times the memory than is needed would leave no bar to see


def memory_bars(uses: Mapping[str, Mapping[str, int]], devices: Mapping[str, int]) -> go.Figure:
    """Draws bytes by what they are for, one bar a use: use -> part of MEMORY_PARTS -> bytes. Upright lines
    are what `devices` have, the smallest always where its line leaves the bars to be seen.
    """
    bars: list[dict[str, Any]] = []
    for part, shade in MEMORY_PARTS.items():
        values = [parts.get(part, 0) for parts in uses.values()]
        if any(values):
            bars.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": list(uses),
                    "x": np.array(values, dtype=np.float64) / GB,
                    "name": part,
                    "marker": {"color": colour(*shade)},
                    "text": [gigabytes(v) for v in values],
                    "textposition": "none",
                    "hovertemplate": f"{part}: %{{text}}<extra></extra>",
                }
            )
    sums = {use: sum(parts.values()) for use, parts in uses.items()}
    most, least = max(sums.values()), min(devices.values())
    end = max(most, least) if most * VISIBLE > least else most
    shown = {name: size for name, size in devices.items() if size <= end}
    apart = _apart(list(shown.values()), end / 3)  # on a phone there is room for three names
    return go.figure(
        bars,
        barmode="stack",
        bargap=0.35,
        margin={"l": 84, "r": 16, "t": 74, "b": 44},
        shapes=[
            go.rule(x=size / GB, line={"color": colour("quiet"), "width": 1.5, "dash": "dot"})
            for size in shown.values()
        ],
        annotations=[
            go.note(
                f"{name.split()[-1]} {size // GB} GB",
                size / GB,
                1.0,
                yref="paper",
                yanchor="bottom",
                xanchor="center" if size * 1.05 < end else "right",
                font={"size": 12},
                name="" if size in apart else "wide",
            )
            for name, size in shown.items()
            if size * 12 > end  # no room beside each other
        ]
        + [
            go.note(gigabytes(total), total / GB, use, xanchor="left", xshift=6, font={"size": 15})
            for use, total in sums.items()
        ],
        xaxis={
            "title": {"text": "GB"},
            "nticks": 6,
            "tickformat": ",~g",
            "range": [0, 1.13 * end / GB],
        },
        yaxis={"autorange": "reversed", "showgrid": False, "tickfont": {"size": 15}},
        legend={"xref": "container", "yref": "container", "yanchor": "top"},
        meta={"narrow": {}},
    )


def _apart(sizes: Sequence[int], room: float) -> list[int]:
    """Returns the sizes, from the largest down, that are at least `room` from each other.

    >>> _apart([8, 16, 24, 80], 12)
    [80, 24, 8]
    """
    kept: list[int] = []
    for size in sorted(sizes, reverse=True):
        if not kept or kept[-1] - size >= room:
            kept.append(size)
    return kept
