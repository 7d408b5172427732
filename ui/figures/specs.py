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

Trace = dict[str, Any]


def Bar(**properties: Any) -> Trace:
    return {"type": "bar"} | properties


def Heatmap(**properties: Any) -> Trace:
    return {"type": "heatmap"} | properties


def Scatter(**properties: Any) -> Trace:
    return {"type": "scatter"} | properties


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
