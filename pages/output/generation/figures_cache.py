"""Arrays -> figures of the KV cache: FLOPs of a token, bytes by the number of key heads, how far earlier keys
move. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.measure.generation.kv_cache import Family, family
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.text.numbers import flop, gigabytes


def flops_by_step(
    with_cache: np.ndarray, without: np.ndarray, words: Sequence[str], refilled: np.ndarray
) -> go.Figure:
    """Draws FLOPs for each token that was written, (step,), on a logarithmic axis; `refilled` (step,) are
    marked.
    """
    at = np.arange(len(words))
    named = [plain(word) for word in words]
    traces = [
        go.Scatter(
            x=at,
            y=y.astype(np.float64),
            name=name,
            mode="lines+markers",
            marker={"size": 5},
            line={"color": colour(shade), "width": 2.5, "dash": dash},
            customdata=[f"“{word}”: {flop(float(v))}" for word, v in zip(named, y, strict=True)],
            hovertemplate=f"{name}, step %{{x}}, %{{customdata}}<extra></extra>",
        )
        for name, y, shade, dash in (
            ("without", without, "quiet", "dash"),
            ("with the cache", with_cache, "attention", "solid"),
        )
    ]
    if refilled.any():
        traces.append(
            go.Scatter(
                x=at[refilled],
                y=with_cache[refilled].astype(np.float64),
                name="cache refilled",
                mode="markers",
                hoverinfo="skip",
                marker={"size": 13, "symbol": "circle-open", "color": colour("output"), "line": {"width": 2}},
            )
        )
    ends = np.log10(
        [max(1.0, float(min(with_cache.min(), without.min()))), float(max(with_cache.max(), without.max()))]
    )
    return go.figure(
        traces,
        margin={"l": 64, "r": 12, "t": 30, "b": 44},
        xaxis=go.axis("step", zeroline=False, range=[-0.6, len(words) - 0.4]),
        yaxis={
            "title": {"text": "FLOP for the token"},
            "type": "log",
            "tickformat": "~s",
            "dtick": 1,
            "range": [float(ends[0]) - 0.25, float(ends[1]) + 0.25],
        },
    )


def bytes_by_heads(kv_heads: Sequence[int], sizes: Sequence[int], heads: int, chosen: int) -> go.Figure:
    """Draws a bar for each number of key-value heads, from one for each of the `heads` (MHA) down to one for
    all (MQA).
    """
    names = [way(n, heads) for n in kv_heads]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": np.array(sizes, dtype=np.float64),
        "text": [gigabytes(n) for n in sizes],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": [colour("attention", 100 if n == chosen else 45) for n in kv_heads]},
        "hovertext": [f"{name}: {n:,} bytes" for name, n in zip(names, sizes, strict=True)],
        "hoverinfo": "text",
    }
    return go.figure(
        [bars],
        margin={"l": 130, "r": 72, "t": 8, "b": 40},
        showlegend=False,
        bargap=0.3,
        yaxis={"autorange": "reversed", "showgrid": False},
        xaxis={
            "title": {"text": "for one text (1 KB = 2¹⁰ bytes)"},
            "rangemode": "tozero",
            **byte_ticks(sizes),
        },
    )


def way(kv_heads: int, heads: int) -> str:
    """
    >>> way(8, 8), way(2, 8), way(1, 8), way(1, 1)
    ('MHA, 8 of 8', 'GQA, 2 of 8', 'MQA, 1 of 8', 'MHA, 1 of 1')
    """
    return f"{family(kv_heads, heads)}, {kv_heads} of {heads}"


def published(titles: Sequence[str], ways: Mapping[Family, np.ndarray], actual: Sequence[str]) -> go.Figure:
    """Draws bytes of published models by way of sharing, way -> (model,); `actual` is each model's way."""
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(titles),
            "x": sizes.astype(np.float64),
            "name": name,
            "cliponaxis": False,
            "textposition": "outside",
            "marker": {
                "color": [colour("attention", 100 if mine == name else 30) for mine in actual],
                "line": {"color": colour("attention"), "width": 1},
            },
            "text": [
                f"<b>{name} {gigabytes(n)}</b>" if mine == name else f"{name} {gigabytes(n)}"
                for n, mine in zip(sizes, actual, strict=True)
            ],
            "hoverinfo": "text",
            "hovertext": [
                f"{title}, {name}{'' if mine == name else ' (hypothetical)'}: {n:,.0f} bytes"
                for title, n, mine in zip(titles, sizes, actual, strict=True)
            ],
        }
        for name, sizes in ways.items()
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.08,
        showlegend=False,
        margin={"l": 104, "r": 104, "t": 8, "b": 40},
        yaxis={"autorange": "reversed", "showgrid": False},
        xaxis={
            "title": {"text": "for one text (1 GB = 2³⁰ bytes)"},
            "rangemode": "tozero",
            **byte_ticks(np.concatenate(list(ways.values()))),
        },
    )


def byte_ticks(sizes: Sequence[int] | np.ndarray) -> dict[str, list[float] | list[str]]:
    """Returns a power of two from tick to tick, at most four after 0, in the words that stand beside the
    bars.

    >>> byte_ticks([2**23, 2**21])["ticktext"]
    ['0', '2 MB', '4 MB', '6 MB', '8 MB']
    """
    top = float(np.max(sizes))
    step = 2.0 ** np.ceil(np.log2(top / 4))  # more would not fit on a phone
    at = np.arange(0, top + step / 2, step)
    return {"tickvals": [float(v) for v in at], "ticktext": [gigabytes(v) if v else "0" for v in at]}


def changes(with_mask: tuple[np.ndarray, np.ndarray], without: tuple[np.ndarray, np.ndarray]) -> go.Figure:
    """Draws the largest change of an earlier key and value, each (layer,), with the causal mask and without
    it.
    """
    layers = [f"block {i}" for i in range(len(with_mask[0]))]
    bars = [
        {
            "type": "bar",
            "x": layers,
            "y": values,
            "name": f"{what}, mask {state}",
            "marker": {"color": colour(shade, opacity)},
            "hovertemplate": f"%{{x}}: largest change of a {what}, mask {state}: %{{y:.3g}}<extra></extra>",
            "text": [f"{v:.2g}" if v > 0 else "0" for v in values],
            "textposition": "outside",
            "cliponaxis": False,
            "textangle": 0,
        }
        for state, pair, shade in (("on", with_mask, "attention"), ("off", without, "output"))
        for what, values, opacity in (("key", pair[0], 100), ("value", pair[1], 50))
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.2,
        margin={"l": 64, "r": 12, "t": 48, "b": 36},
        xaxis={"showgrid": False},
        yaxis={"title": {"text": "largest change"}, "rangemode": "tozero"},
    )
