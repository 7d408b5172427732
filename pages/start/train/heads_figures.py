"""Arrays -> figures of heads that form. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.attention.head_scores import HALF, HeadFormation, Kind
from engine.measure.attention.heads import HeadValue
from engine.training.records import HeadScores
from ui.figures import specs as go
from ui.figures.patterns import named_cells, placed
from ui.figures.theme import SEQUENTIAL, colour

NEAR = 0.08  # of the steps: names of heads that formed so shortly after one another would touch
APART = 2.0  # nats: then there is room between the curves for the name of the lower one
PANEL = 0.86  # of a panel's height is below its title
KINDS: Mapping[Kind, tuple[str, str]] = {
    "induction": ("copies", "attention"),
    "previous": ("previous token", "run1"),
}
Looks = Sequence[tuple[int, HeadScores]]


def scores(looks: Looks, formations: Sequence[HeadFormation], best: HeadValue, end: float) -> go.Figure:
    """Draws, above, how much of its weight each head gives to copying and to the letter before, by step: bold
    where it ever gave half, with its name where it first did. Below, the losses of both readings, nats.
    """
    steps = np.array([step for step, _ in looks])
    bold = {(f.kind, f.layer, f.head) for f in formations} | {("induction", best.layer, best.head)}
    traces: list[dict[str, Any]] = []
    for kind, (name, shade) in KINDS.items():
        grids = np.array([getattr(heads, kind) for _, heads in looks])  # (look, layer, head)
        cells = list(np.ndindex(grids.shape[1:]))
        named = next((at for at in cells if (kind, *at) in bold), cells[0])  # in the legend
        for layer, head in cells:
            strong = (kind, layer, head) in bold
            line = {"color": colour(shade, 100 if strong else 45), "width": 3 if strong else 1}
            legend = {"showlegend": (layer, head) == named, "legendgroup": kind, "name": name}
            hover = f"head {layer}.{head} {name}: %{{y:.2f}}<extra></extra>"
            values = grids[:, layer, head]
            traces.append(
                go.Scatter(mode="lines", x=steps, y=values, line=line, hovertemplate=hover, **legend)
            )
    first, second = (
        np.array([getattr(heads, name) for _, heads in looks]) for name in ("first_loss", "second_loss")
    )
    traces += [
        _loss(steps, first, "new characters", "quiet"),
        _loss(steps, second, "the same, repeated", "validation"),
    ]
    apart = first[-1] - second[-1] > APART
    return go.figure(
        traces,
        uirevision="head-scores",
        margin={"l": 48, "r": 12, "t": 8, "b": 40},
        legend={"font": {"size": 12}},
        xaxis={"title": {"text": "step"}, "range": [0, max(end, float(steps[-1]))], "anchor": "y2"},
        yaxis={"title": {"text": "attention weight"}, "range": [0, 1.02], "domain": [0.44, 1]},
        yaxis2={
            "title": {"text": "nats"},
            "range": [0, 1.35 * max(1.0, float(np.nanmax(first)))],
            "domain": [0, 0.34],
            "anchor": "x",
        },
        shapes=[go.rule(y=HALF, line={"color": colour("quiet"), "width": 1, "dash": "dot"})],  # formed
        annotations=[
            go.note("formed", 0, HALF, xref="paper", xanchor="left", yanchor="bottom"),
            *(_named(f, looks, row) for f, row in zip(formations, _rows(formations, end), strict=True)),
            _beside(steps, first, "new characters", "quiet", "bottom", end),
            _beside(steps, second, "repeated", "validation", "bottom" if apart else "top", end),
        ],
    )


def _rows(formations: Sequence[HeadFormation], end: float) -> list[int]:
    """How many names each has to stand above: those of heads that formed shortly before it."""
    rows: list[int] = []
    for i, formation in enumerate(formations):
        near = i > 0 and formation.step - formations[i - 1].step < NEAR * end
        rows.append(rows[-1] + 1 if near else 0)
    return rows


def _named(formation: HeadFormation, looks: Looks, row: int) -> dict[str, Any]:
    """A head's name where its score first passed a half."""
    heads = dict(looks)[formation.step]
    side = 1 if formation.kind == "induction" else -1  # below its curve and above: they cross
    return {
        "x": formation.step,
        "y": getattr(heads, formation.kind)[formation.layer][formation.head],
        "text": f"{formation.layer}.{formation.head}",
        "showarrow": True,
        "arrowhead": 0,
        "ax": side * 28,
        "ay": side * (12 + 16 * row),
        "arrowwidth": 1,
        "arrowcolor": colour(KINDS[formation.kind][1]),
        "font": {"color": colour(KINDS[formation.kind][1]), "size": 13},
    }


def _loss(steps: np.ndarray, losses: np.ndarray, name: str, shade: str) -> go.Trace:
    look = {"line": {"color": colour(shade), "width": 2}, "showlegend": False, "mode": "lines"}
    hover = f"{name}: %{{y:.2f}} nats<extra></extra>"
    return go.Scatter(x=steps, y=losses, yaxis="y2", name=name, hovertemplate=hover, **look)


def _beside(
    steps: np.ndarray, losses: np.ndarray, name: str, shade: str, side: str, end: float
) -> dict[str, Any]:
    """A curve's name and its newest loss, at its end."""
    return go.note(
        f"{name} {losses[-1]:.2f}",
        float(steps[-1]),
        float(losses[-1]),
        yref="y2",
        xanchor="left" if steps[-1] < end / 2 else "right",
        yanchor=side,
        font={"color": colour(shade), "size": 12},
    )


def scores_table(looks: Looks) -> dict[str, Any]:
    """Returns one row for each look: what the CSV holds."""
    table: dict[str, Any] = {
        "step": [step for step, _ in looks],
        "first_reading_nats": [heads.first_loss for _, heads in looks],
        "second_reading_nats": [heads.second_loss for _, heads in looks],
    }
    for kind in KINDS:
        for layer, row in enumerate(getattr(looks[0][1], kind)):
            for head in range(len(row)):
                column = [getattr(heads, kind)[layer][head] for _, heads in looks]
                table[f"{kind}_{layer}.{head}"] = column
    return table


def patterns(heads: Mapping[Kind, tuple[str, np.ndarray]], labels: Sequence[str]) -> go.Figure:
    """Draws a panel each, one below the other: its title and its weights (query, key) of a sequence read
    twice, of which lines part the first reading from the second.
    """
    names, each = placed(labels), 1 / len(heads)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    notes, shapes = [], []
    for i, (kind, (title, weights)) in enumerate(heads.items()):
        mark = "" if i == 0 else str(i + 1)
        top = 1 - i * each
        traces.append(
            go.Heatmap(
                z=weights.astype(np.float32),
                zmin=0,
                zmax=1,
                colorscale=SEQUENTIAL,
                showscale=False,
                xaxis=f"x{mark}",
                yaxis=f"y{mark}",
                **named_cells([f"{name} attends" for name in names], names, " to "),
                hovertemplate="%{hovertext}<br>weight %{z:.2f}<extra></extra>",
            )
        )
        layout |= _panel(mark, [top - 0.98 * each, top - (1 - PANEL) * each])
        font = {"color": colour(KINDS[kind][1]), "size": 13}
        notes.append(go.note(title, 0.5, top, xref="paper", yref="paper", yanchor="top", font=font))
        shapes += _parted(len(labels), mark)
    margin = {"l": 22, "r": 4, "t": 2, "b": 2}
    return go.figure(traces, margin=margin, showlegend=False, annotations=notes, shapes=shapes, **layout)


def _panel(mark: str, domain: list[float]) -> dict[str, Any]:
    """The axes of one panel: square cells, no labels but the name of the rows."""
    axis = {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    across = {"anchor": f"y{mark}", "constrain": "domain", **axis}
    down = {
        "title": {"text": "query", "font": {"size": 12}},
        "anchor": f"x{mark}",
        "domain": domain,
        "autorange": "reversed",
        "scaleanchor": f"x{mark}",
        "constrain": "domain",
        "constraintoward": "top",
        **axis,
    }
    return {f"xaxis{mark}": across, f"yaxis{mark}": down}


def _parted(count: int, mark: str) -> list[dict[str, Any]]:
    """Lines between the first reading and the second."""
    half, edge = count / 2 - 0.5, count - 0.5
    line = {"color": colour("quiet"), "width": 1, "dash": "dot"}
    shape = {"type": "line", "xref": f"x{mark}", "yref": f"y{mark}", "line": line}
    return [
        {**shape, "x0": half, "x1": half, "y0": -0.5, "y1": edge},
        {**shape, "x0": -0.5, "x1": edge, "y0": half, "y1": half},
    ]
