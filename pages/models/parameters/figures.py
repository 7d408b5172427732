"""Pictures of where the parameters of a model are. Ledgers in, figures out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.ledger import COMPONENTS, PER_BLOCK, Ledger, Row
from engine.ledger.shares import thin
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.text.numbers import percent, short

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


ROOMY = 0.08  # from that share of the model on, an area has room for its share beside its count


def treemap(ledger: Ledger, title: str) -> go.Figure:
    """Areas are parameters: the model, its stacks and blocks, their components, the tensors. Tensors that
    count 0 are left out, and what is too thin for its name has none: it is told when it is pointed at.
    """
    unnamed = thin(ledger)
    nodes: dict[str, dict[str, Any]] = {
        "model": {"label": title, "parent": "", "value": 0, "part": "residual", "note": ""}
    }

    def grow(name: str, parent: str, label: str, part: str, note: str, count: int) -> str:
        node = nodes.setdefault(
            name, {"label": label, "parent": parent, "value": 0, "part": part, "note": note}
        )
        node["value"] += count
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
        nodes[above]["unnamed"] = row.component in unnamed
        tensor = grow(
            f"{above} {row.name}",
            above,
            row.name,
            part,
            f"{_times(row)}{row.formula} = {_times(row, number=True)}{row.numbers}<br>",
            row.parameters,
        )
        nodes[tensor]["unnamed"] = row.component in unnamed
    values, top = list(nodes.values()), max(nodes["model"]["value"], 1)
    trace: dict[str, Any] = {
        "type": "treemap",
        "ids": list(nodes),
        "labels": [_label(name, v, top, nodes) for name, v in nodes.items()],
        "parents": [v["parent"] for v in values],
        "values": np.array([v["value"] for v in values], dtype=np.float64),
        "branchvalues": "total",
        "sort": True,
        "text": [
            ""
            if v.get("unnamed")
            else short(v["value"]) + (f" · {v['value'] / top:.1%}" if v["value"] >= ROOMY * top else "")
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
        "customdata": [v["label"] for v in values],
        "hovertemplate": (
            "<b>%{customdata}</b><br>%{hovertext}%{value:,.0f} (%{percentRoot:.2%})<extra></extra>"
        ),
        "pathbar": {"visible": False},
        "tiling": {"pad": 2},
        # The page's own colour is the one that can be read on every part, light or dark, but for orange on a
        # light page.
        "textfont": {
            "size": 15,
            "color": [_on(v["part"]) if v["parent"] else "var(--gf-seq6)" for v in values],
        },
    }
    return go.figure([trace], margin={"l": 0, "r": 0, "t": 0, "b": 0}, showlegend=False)


def _label(name: str, node: Mapping[str, Any], top: float, nodes: Mapping[str, Any]) -> str:
    """Returns the text of an area. One that holds others shows its first line only: its share
    stands there.
    """
    if node.get("unnamed"):
        return ""
    if any(other["parent"] == name for other in nodes.values()):
        return f"{node['label']} · {short(node['value'])} · {node['value'] / top:.1%}"
    return str(node["label"])


def _on(part: str) -> str:
    """The colour of words on a part's colour."""
    return "#16181D" if part in ("attention", "position", "norm") else "var(--gf-seq0)"


def _times(row: Row, *, number: bool = False) -> str:
    return "" if row.copies == 1 else f"{row.copies:,}·" if number else "L·"


def component_bars(counts: Mapping[str, int]) -> go.Figure:
    """Draws parameters by component, in the order in which data meets them."""
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
    return go.figure(
        [bars],
        margin={"l": 110, "r": 56, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.3,
        xaxis={"title": {"text": "parameters"}, "exponentformat": "B", "nticks": 5},
        yaxis={"autorange": "reversed", "showgrid": False},
    )


def comparison(models: Sequence[tuple[str, Ledger]], *, shares: bool) -> go.Figure:
    """Draws parameters by component, one bar a model; as shares of the whole, or as counts."""
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
    return go.figure(
        bars,
        barmode="stack",
        bargap=0.35,
        margin={"l": 110, "r": 16, "t": 84, "b": 44},
        legend={"xref": "container", "yref": "container", "yanchor": "top", "entrywidth": 96},
        xaxis={
            "title": {"text": "share of all parameters" if shares else "parameters"},
            "nticks": 6,
            "exponentformat": "B",
        }
        | ({"tickformat": ".0%"} if shares else {}),
        yaxis={"autorange": "reversed", "showgrid": False},
    )
