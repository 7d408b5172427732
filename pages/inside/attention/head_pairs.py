"""Two numbers of each head: a point for each, in the colour of its block; a click opens its pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from engine.slices import extent
from studies.attention.head_patterns import TwoNumbers, two_numbers
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.charts import head_table
from ui.figures.theme import SEQUENTIAL
from ui.players.plot import plot

TEXT = content.beside(__file__)
PLOT = "attention_pairs"
FIRST = ("previous", "induction", "first")  # the first two of these that were measured
HEIGHT = 400
SEEN = SEQUENTIAL[2:]  # paler points could not be seen on the page
SCALE = [[i / (len(SEEN) - 1), shade] for i, (_, shade) in enumerate(SEEN)]
Pair = tuple[str, str]


def clicked(layers: int, heads: int) -> tuple[int, int] | None:
    """Returns the head whose point was clicked, once; else None."""
    where = widgets.indexes_of(widgets.picked(PLOT, "clicked"), (layers, heads), ".")
    return None if where is None else (where[0], where[1])


def choose(arrays: Mapping[str, np.ndarray], titles: Mapping[str, str]) -> Pair | None:
    """Draws the choice of two of `arrays` (layer, head); None where there are no two to choose from."""
    there = {name: titles[name] for name, values in arrays.items() if np.isfinite(values).any()}
    if len(there) < 2:
        return None
    first = [name for name in FIRST if name in there] or [*there]
    hint = TEXT["x hint"]
    x = widgets.select(TEXT["x"], there, "attention_x", first=first[0], kind="list", width=220, hint=hint)
    others = {name: title for name, title in there.items() if name != x}
    upward = next(name for name in (*first[1:], *others) if name in others)
    return x, widgets.select(TEXT["y"], others, "attention_y", first=upward, kind="list", width=220)


def draw(
    pair: Pair | None, arrays: Mapping[str, np.ndarray], titles: Mapping[str, str], units: Mapping[str, str]
) -> None:
    """Draws a `pair` of the `arrays` (layer, head) against each other."""
    compared = pair and two_numbers(arrays[pair[0]], arrays[pair[1]])
    if pair is None or compared is None:
        st.info(TEXT["too few"])
        return
    (x, y), names = (arrays[name] for name in pair), [titles[name] for name in pair]
    (least_x, most_x), (least_y, most_y) = extent(x), extent(y)
    plot(
        scatter(x, y, names, [TEXT("axis", measure=titles[name], unit=units[name]) for name in pair]),
        key=PLOT,
        alt=TEXT(
            "alt",
            heads=compared.heads,
            layers=len(x),
            x=names[0],
            y=names[1],
            least_x=least_x,
            most_x=most_x,
            least_y=least_y,
            most_y=most_y,
        ),
        height=HEIGHT,
        data=head_table(arrays),
        name="heads-by-two-numbers",
    )
    explain.answer(answer(compared, names[0].lower(), names[1].lower()))


def answer(compared: TwoNumbers, x: str, y: str) -> str:
    """Says whether the two numbers hang together, and which heads have most of them (Markdown)."""
    a, b = compared.most_x, compared.most_y
    most = TEXT(
        "most of both" if (a.layer, a.head) == (b.layer, b.head) else "most of each",
        layer=a.layer,
        head=a.head,
        other_layer=b.layer,
        other_head=b.head,
    )
    how = f"together {compared.direction}"
    return f"{TEXT(how, heads=compared.heads, x=x, y=y, r=compared.correlation)} {most}"


def scatter(x: np.ndarray, y: np.ndarray, names: Sequence[str], axes: Sequence[str]) -> go.Figure:
    """Draws a point for each head, of x and y (layer, head). `names` stand in the hover, `axes` outside."""
    layers, heads = (grid.ravel() for grid in np.indices(x.shape))
    labels = [f"{layer}.{head}" for layer, head in zip(layers.tolist(), heads.tolist(), strict=True)]
    last = max(1, len(x) - 1)
    points = go.Scatter(
        x=x.ravel().astype(np.float32),
        y=y.ravel().astype(np.float32),
        mode="markers+text" if x.size <= 16 else "markers",
        text=labels,
        textposition="top center",
        customdata=labels,
        marker={
            "size": 12 if x.size <= 64 else 9,
            "color": layers.astype(np.float32),
            "cmin": 0,
            "cmax": last,
            "colorscale": SCALE,
            "colorbar": go.scale(TEXT["block"]) | {"tickvals": np.unique(np.linspace(0, last, 6).round())},
        },
        hovertemplate=TEXT("hover", x=names[0], y=names[1]),
    )
    return go.figure(
        [points],
        showlegend=False,
        margin={"l": 56, "r": 8, "t": 16, "b": 44},
        xaxis=go.axis(axes[0], showgrid=True),
        yaxis=go.axis(axes[1], showgrid=True),
    )
