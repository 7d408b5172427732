"""Pictures of a ledger: where parameters, floating-point operations and bytes are. Ledgers in, Plotly figures
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.ledger import COMPONENTS, GB, PER_BLOCK, Ledger, Row
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

NAMES = {
    "embedding": "embedding",
    "position": "positions",
    "norm_embed": "embedding norm",
    "norm1": "norm 1",
    "attention": "attention",
    "norm_cross": "cross norm",
    "cross_attention": "cross-attention",
    "norm2": "norm 2",
    "feedforward": "feed-forward",
    "norm_final": "final norm",
    "pooler": "pooler",
    "unembedding": "unembedding",
}
PART = {name: "norm" if name.startswith("norm") else name for name in COMPONENTS} | {
    "cross_attention": "attention",
    "pooler": "output",
    "unembedding": "output",
}


def short(n: float) -> str:
    """A count with three digits and a letter.

    >>> short(38_597_376), short(2048), short(6.7e9), short(0)
    ('38.6M', '2.05K', '6.7B', '0')
    """
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if n >= size:
            return f"{n / size:.3g}{letter}" if n / size < 1000 else f"{n / size:,.0f}{letter}"
    return f"{n:g}"


def flop(n: float) -> str:
    """
    >>> flop(284_812_800), flop(9e15)
    ('285 MFLOP', '9 PFLOP')
    """
    text = short(n).replace("B", "G")
    return f"{text[:-1]} {text[-1]}FLOP" if text[-1].isalpha() else f"{text} FLOP"


def percent(part: float, whole: float) -> str:
    """
    >>> percent(1, 4), percent(0, 4), percent(1, 9000)
    ('25.0%', '0%', '<0.1%')
    """
    found = part / max(whole, 1)
    return "0%" if not found else "<0.1%" if found < 0.0005 else f"{found:.1%}"


def gigabytes(n: float) -> str:
    """Bytes in words; 1 GB is 2^30 bytes here.

    >>> gigabytes(2 * 2**30), gigabytes(1_536), gigabytes(3.5 * 2**40)
    ('2 GB', '1.5 KB', '3.5 TB')
    """
    for size, letter in ((2**40, "TB"), (GB, "GB"), (2**20, "MB"), (2**10, "KB")):
        if n >= size:
            return f"{n / size:.3g} {letter}" if n / size < 1000 else f"{n / size:,.0f} {letter}"
    return f"{n:.0f} B"


ROOMY = 0.08  # from that share of the model on, an area has room for its share beside its count


def treemap(ledger: Ledger, title: str) -> go.Figure:
    """Areas are parameters: the model, its stacks and blocks, their components, the tensors. Tensors that
    count 0 are left out.
    """
    nodes: dict[str, dict[str, Any]] = {
        "model": {"label": title, "parent": "", "value": 0, "part": "residual", "note": ""}
    }

    def grow(name: str, parent: str, label: str, part: str, note: str, count: int) -> str:
        found = nodes.setdefault(
            name, {"label": label, "parent": parent, "value": 0, "part": part, "note": note}
        )
        found["value"] += count
        return name

    for row in ledger.rows:
        if not row.parameters:
            continue
        above, part = "model", PART[row.component]
        nodes["model"]["value"] += row.parameters
        if row.stack:
            above = grow(row.stack, above, row.stack, "residual", "", row.parameters)
        if row.component in PER_BLOCK:
            above = grow(
                f"{row.stack} blocks", above, f"{row.copies:,} blocks", "residual", "", row.parameters
            )
        above = grow(f"{row.stack} {row.component}", above, NAMES[row.component], part, "", row.parameters)
        grow(
            f"{above} {row.name}",
            above,
            row.name,
            part,
            f"{_times(row)}{row.formula} = {_times(row, number=True)}{row.numbers}<br>",
            row.parameters,
        )
    values, top = list(nodes.values()), max(nodes["model"]["value"], 1)
    trace: dict[str, Any] = {
        "type": "treemap",
        "ids": list(nodes),
        "labels": [v["label"] for v in values],
        "parents": [v["parent"] for v in values],
        "values": np.array([v["value"] for v in values], dtype=np.float64),
        "branchvalues": "total",
        "sort": True,
        "text": [
            short(v["value"]) + (f" · {v['value'] / top:.1%}" if v["value"] >= ROOMY * top else "")
            for v in values
        ],
        "hovertext": [v["note"] for v in values],
        "marker": {
            "colors": [
                colour(v["part"]) if v["parent"] else colour("quiet", 25) for v in values
            ],  # the root's text has the page's own colour
            # Tensors of a part have its colour: a line that is light on any of them holds them apart.
            "line": {"width": 1, "color": "rgba(255,255,255,0.6)"},
            "pad": {"t": 22, "l": 3, "r": 3, "b": 3},
        },
        "texttemplate": "%{label}<br>%{text}",
        "hovertemplate": "<b>%{label}</b><br>%{hovertext}%{value:,.0f} (%{percentRoot:.2%})<extra></extra>",
        "pathbar": {"visible": False},
        "tiling": {"pad": 2},
        # The page's own colour is the one that can be read on every part, light or dark, but for orange on a
        # light page.
        "textfont": {
            "size": 14,
            "color": [_on(v["part"]) if v["parent"] else "var(--gf-seq6)" for v in values],
        },
    }
    return go.Figure(
        {"data": [trace], "layout": base_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, showlegend=False)}
    )


def _on(part: str) -> str:
    """The colour of words on a part's colour."""
    return "#16181D" if part in ("attention", "position", "norm") else "var(--gf-seq0)"


def _times(row: Row, *, number: bool = False) -> str:
    return "" if row.copies == 1 else f"{row.copies:,}·" if number else "L·"


def component_bars(counts: Mapping[str, int]) -> go.Figure:
    """Parameters by component, in the order in which data meets them."""
    names = [name for name in counts if counts[name]]
    total = max(sum(counts.values()), 1)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": [NAMES[n] for n in names],
        "x": np.array([counts[n] for n in names], dtype=np.float64),
        "marker": {"color": [colour(PART[n]) for n in names]},
        "text": [percent(counts[n], total) for n in names],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{x:,.0f}<extra></extra>",
    }
    layout = base_layout(
        margin={"l": 110, "r": 56, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"title": {"text": "parameters"}, "exponentformat": "B", "nticks": 5},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return go.Figure({"data": [bars], "layout": layout})


def comparison(models: Sequence[tuple[str, Ledger]], *, shares: bool) -> go.Figure:
    """Parameters by component, one bar a model; as shares of the whole, or as counts."""
    names = [f"{title}<br>{short(ledger.total)}" for title, ledger in models]
    bars: list[dict[str, Any]] = []
    named: set[str] = set()  # norms have one colour, and one name in the legend
    for part in COMPONENTS:
        counts = [ledger.components.get(part, 0) for _, ledger in models]
        if not any(counts):
            continue
        share = [count / max(ledger.total, 1) for count, (_, ledger) in zip(counts, models, strict=True)]
        kind = "norms" if PART[part] == "norm" else NAMES[part]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": np.array(share if shares else counts, dtype=np.float64),
                "name": kind,
                "legendgroup": kind,
                "showlegend": kind not in named,
                "marker": {"color": colour(PART[part]), "line": {"width": 1, "color": colour("quiet", 40)}},
                "hovertext": [
                    f"{NAMES[part]}: {count:,} ({s:.2%})" for count, s in zip(counts, share, strict=True)
                ],
                "hoverinfo": "text",
                "text": [f"{s:.0%}" if s > 0.06 and shares else "" for s in share],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "insidetextfont": {"color": _on(PART[part])},
            }
        )
        named.add(kind)
    layout = base_layout(
        barmode="stack",
        bargap=0.35,
        margin={"l": 110, "r": 16, "t": 84, "b": 44},
        legend={
            "orientation": "h",
            "x": 0,
            "xref": "container",
            "y": 1.0,
            "yref": "container",
            "yanchor": "top",
            "traceorder": "normal",
            "entrywidth": 96,
        },
        xaxis={
            "title": {"text": "share of all parameters" if shares else "parameters"},
            "nticks": 6,
            "exponentformat": "B",
        }
        | ({"tickformat": ".0%"} if shares else {}),
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return go.Figure({"data": bars, "layout": layout})


FLOP_LINES = {
    "everything else": ("residual", 3, "solid"),
    "scores and sums": ("attention", 3, "solid"),
    "feed-forward": ("feedforward", 1.5, "dash"),
    "attention's matrices": ("attention", 1.5, "dash"),
    "unembedding": ("output", 1.5, "dash"),
}


def flops_by_length(
    lengths: np.ndarray, parts: Mapping[str, np.ndarray], crossover: tuple[int, int] | None, at: int
) -> go.Figure:
    """Forward FLOPs for one token over the length of the text: parts (of FLOP_LINES -> (lengths,)).

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
            {
                "x": float(np.log10(x)),
                "y": float(np.log10(y)),
                "text": f"T = {x:,}",
                "showarrow": False,
                "xanchor": "right" if left else "left",
                "yanchor": "bottom" if left else "top",
                "xshift": -4 if left else 8,
                "yshift": 8 if left else -4,
            }
        )
    layout = base_layout(
        margin={"l": 72, "r": 16, "t": 62, "b": 48},
        shapes=[_upright(at)],
        annotations=notes,
        xaxis={
            "type": "log",
            "title": {"text": "tokens of text T"},
            "range": [float(np.log10(lengths[0])), float(np.log10(lengths[-1]))],
            **ticks(lengths),
        },
        yaxis={
            "type": "log",
            "title": {"text": "FLOP for one token, forward"},
            "tickformat": "~s",
            "dtick": 1,
        },
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
            "traceorder": "normal",
            "entrywidth": 128,
        },
    )
    return go.Figure({"data": lines, "layout": layout})


def _upright(at: int) -> dict[str, Any]:
    """A line at the chosen length."""
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": colour("quiet"), "width": 2},
    }


def ticks(lengths: np.ndarray) -> dict[str, Any]:
    """Powers of 8 between the ends of a logarithmic axis of lengths, written as people write them."""
    found = [8**k * 2 for k in range(0, 12) if lengths[0] <= 8**k * 2 <= lengths[-1]]
    return {"tickvals": found, "ticktext": [f"{n // 1024}K" if n >= 1024 else str(n) for n in found]}


MEMORY_LINES = {
    "KV cache": ("attention", "solid"),
    "a key head each (MHA)": ("run1", "dash"),
    "one key head (MQA)": ("run2", "dot"),
    "weights + KV cache": ("feedforward", "solid"),
}


def memory_by_length(
    lengths: np.ndarray, lines: Mapping[str, np.ndarray], devices: Mapping[str, int], at: int
) -> go.Figure:
    """Bytes over the length of the text: lines (of MEMORY_LINES -> (lengths,) bytes), and how much each
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
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": size / GB,
            "y1": size / GB,
            "line": {"color": colour("quiet"), "width": 1, "dash": "dot"},
        }
        for size in devices.values()
    ]
    # Side by side, since 8, 16 and 24 GB lie close together.
    names = [
        {
            "xref": "paper",
            "x": i / len(devices),
            "y": float(np.log10(size / GB)),
            "text": f"{name.split()[-1]} {size // GB}",
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "middle",
            "font": {"size": 12},
            "bgcolor": "var(--gf-seq0)",
            "borderpad": 1,
        }
        for i, (name, size) in enumerate(devices.items())
    ]
    layout = base_layout(
        margin={"l": 64, "r": 16, "t": 62, "b": 48},
        shapes=[*rules, _upright(at)],
        annotations=names,
        xaxis={
            "type": "log",
            "title": {"text": "tokens of text T"},
            "range": [float(np.log10(lengths[0])), float(np.log10(lengths[-1]))],
            **ticks(lengths),
        },
        yaxis={"type": "log", "title": {"text": "GB"}, "range": [low, high], "tickformat": ",~g", "dtick": 1},
    )
    return go.Figure({"data": drawn, "layout": layout})


MEMORY_PARTS = {
    "weights": ("feedforward", 100),
    "gradients": ("run4", 100),
    "master copy": ("run2", 100),
    "AdamW averages": ("run2", 60),
    "activations": ("training", 100),
    "KV cache": ("attention", 100),
}


def memory_bars(uses: Mapping[str, Mapping[str, int]]) -> go.Figure:
    """Bytes by what they are for, one bar a use: use -> part of MEMORY_PARTS -> bytes."""
    bars = []
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
    layout = base_layout(
        barmode="stack",
        bargap=0.35,
        margin={"l": 84, "r": 16, "t": 62, "b": 44},
        xaxis={"title": {"text": "GB"}, "nticks": 6, "tickformat": ",~g"},
        yaxis={"autorange": "reversed", "showgrid": False},
        legend={
            "orientation": "h",
            "x": 0,
            "y": 1.0,
            "yanchor": "bottom",
            "traceorder": "normal",
            "entrywidth": 118,
        },
    )
    return go.Figure({"data": bars, "layout": layout})
