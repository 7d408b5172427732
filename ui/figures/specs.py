"""Figures as plain data, under the names of `plotly.graph_objects`, which the modules beside this one use as
`go`.

Plotly's own objects look up a validator for every property and copy every array three times on its way to the
browser: on these pages that was up to half of what a script took. Here a trace is a dict and nothing is
copied. `Figure.checked` is Plotly's own figure with all its checks: tests and notebooks read it, and the
tests hold every figure that a page draws against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ui.figures.axes import symmetric
from ui.figures.theme import DIVERGING, base_layout, colour

Trace = dict[str, Any]


def Bar(**properties: Any) -> Trace:
    return {"type": "bar"} | properties


def Heatmap(**properties: Any) -> Trace:
    return {"type": "heatmap"} | properties


def Scatter(**properties: Any) -> Trace:
    return {"type": "scatter"} | properties


def line(
    x: Any,
    y: Any,
    shade: str,
    name: str = "",
    hover: str = "",
    *,
    width: float = 2,
    dash: str = "solid",
    points: int = 0,
    **properties: Any,
) -> Trace:
    """Returns a line in the palette's colour `shade`, with `points` of that many pixels; its name stands
    beside the `hover`.
    """
    trace = Scatter(x=x, y=y, name=name, mode="lines+markers" if points else "lines")
    trace["line"] = {"color": colour(shade), "width": width, "dash": dash}
    if points:
        trace["marker"] = {"size": points}
    if hover:
        trace["hovertemplate"] = f"{hover}<extra>{name}</extra>"
    return trace | properties


def band(
    x: np.ndarray, first: np.ndarray, second: np.ndarray, shade: str, opacity: int = 20, **properties: Any
) -> Trace:
    """Returns the area between two curves, (n,) each at `x`, in the palette's colour `shade`.

    >>> area = band(np.array([0, 1]), np.array([4, 5]), np.array([2, 3]), "quiet")
    >>> area["x"].tolist(), area["y"].tolist()
    ([0, 1, 1, 0], [4, 5, 3, 2])
    """
    edge = {"x": np.concatenate([x, x[::-1]]), "y": np.concatenate([first, second[::-1]])}
    fill = {"fill": "toself", "fillcolor": colour(shade, opacity), "line": {"width": 0}}
    return Scatter(mode="lines", hoverinfo="skip", **edge, **fill) | properties


def signed(values: np.ndarray, top: float | None = None, **properties: Any) -> Trace:
    """Returns a heatmap of `values` (row, column) around zero: blue below, orange above, blank where infinite
    or NaN. Colours end at `top`, else at the largest.
    """
    top = symmetric(values) if top is None else top
    shown = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    scale = {"zmin": -top, "zmax": top, "colorscale": DIVERGING, "hoverongaps": False}
    return Heatmap(z=shown, **scale | properties)


class Figure:
    """Traces and a layout as Plotly.js takes them; arrays may be NumPy's. Not to be changed once made:
    `changed` makes another.

    >>> Figure([Scatter(x=[0, 1], y=[2, 3], name="a")]).changed(name="b").data[0].name
    'b'
    """

    def __init__(
        self, data: Mapping[str, Any] | Sequence[Trace] = (), layout: Mapping[str, Any] | None = None
    ) -> None:
        """Takes `data`: traces, one trace, or `{"data": traces, "layout": layout}`."""
        traces: Any = data
        if isinstance(data, Mapping) and ("data" in data or "layout" in data):
            traces, layout = data.get("data", ()), data.get("layout")
        self.traces: list[Trace] = [
            dict(trace) for trace in ([traces] if isinstance(traces, Mapping) else traces)
        ]
        self.arrangement: dict[str, Any] = dict(layout or {})

    def changed(self, layout: Mapping[str, Any] | None = None, **properties: Any) -> Figure:
        """Returns the same figure with other `properties` of every trace, and with the axes and other dicts
        of `layout` laid over this one's.
        """
        arrangement = dict(self.arrangement)
        for name, value in (layout or {}).items():
            arrangement[name] = (
                {**arrangement.get(name, {}), **value} if isinstance(value, Mapping) else value
            )
        return Figure([trace | properties for trace in self.traces], arrangement)

    @cached_property
    def checked(self) -> Any:
        """The plotly.graph_objects.Figure. Raises ValueError for what Plotly does not know."""
        import plotly.graph_objects

        return plotly.graph_objects.Figure(self.traces, self.arrangement)

    @property
    def data(self) -> Any:
        """Plotly's checked traces, to read."""
        return self.checked.data

    @property
    def layout(self) -> Any:
        """Plotly's checked layout, to read."""
        return self.checked.layout


# Parts of a layout ------------------------------------------------------------------------------


def figure(traces: Sequence[Trace], **layout: Any) -> Figure:
    """Returns a figure whose `layout` is laid over the one that all figures start from."""
    return Figure(traces, base_layout(**layout))


def axis(title: str, *, showgrid: bool = False, **rest: Any) -> dict[str, Any]:
    """Returns an axis with a title, without a grid."""
    return {"title": {"text": title}, "showgrid": showgrid} | rest


def ticks(values: Any, texts: Any, *, title: str = "", **rest: Any) -> dict[str, Any]:
    """Returns an axis of named places: `texts` stand at `values`, and there are no other lines."""
    named = {"tickvals": values, "ticktext": texts, "showgrid": False, "zeroline": False}
    return named | ({"title": {"text": title}} if title else {}) | rest


def rule(*, x: Any = None, y: Any = None, **rest: Any) -> dict[str, Any]:
    """Returns the shape of a line across the whole figure: upright at `x`, or level at `y`."""
    if y is None:
        return {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": x, "x1": x} | rest
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y} | rest


def level(
    text: str, y: float, /, shade: str = "quiet", width: float = 1.5, **rest: Any
) -> dict[str, list[dict[str, Any]]]:
    """Returns the shapes and annotations of a dotted line across the figure at `y`, with a text above its
    right end; `rest` are the text's. On a logarithmic axis its `y` is the logarithm.

    >>> parts = level("one turn", 1, y=0)
    >>> parts["shapes"][0]["y0"], parts["annotations"][0]["y"], parts["annotations"][0]["xanchor"]
    (1, 0, 'right')
    """
    look = {"color": colour(shade), "dash": "dot", "width": width}
    end = {"xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    return {"shapes": [rule(y=y, line=look)], "annotations": [note(text, 1, y) | end | rest]}


def box(x: float, y: float, shade: str, width: float = 3) -> dict[str, Any]:
    """Returns the shape of a line around the cell of a heatmap that is at `x` and `y`."""
    corners = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    return {"type": "rect", "line": {"color": colour(shade), "width": width}} | corners


def note(text: str, x: Any, y: Any, **rest: Any) -> dict[str, Any]:
    """Returns a text at a place of the figure, without an arrow."""
    return {"text": text, "x": x, "y": y, "showarrow": False} | rest


def heading(text: str, x: float = 0, y: float = 1, **rest: Any) -> dict[str, Any]:
    """Returns a text above a panel whose upper left corner is at `x` and `y`, in shares of the figure."""
    above = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "font": {"size": 14}}
    return note(text, x, y, **above | rest)


def scale(title: str) -> dict[str, Any]:
    """Returns a scale of colours with its title at its side."""
    return {"title": {"text": title, "side": "right"}}


def scale_above(title: str, share: float = 0.4, **rest: Any) -> dict[str, Any]:
    """Returns a scale of colours above the figure, over a `share` of its width: the cells get all of that."""
    return {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "bottom",
        "len": share,
        "thickness": 10,
        "title": {"text": title, "side": "top", "font": {"size": 13}},
        "ticklabelposition": "outside top",
        "tickfont": {"size": 12},
    } | (rest or {"nticks": 5})
