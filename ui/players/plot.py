"""Plotly drawn in place: one lasting DOM node per figure, so that nothing blinks and zoom survives updates.

`st.plotly_chart` puts a new node in at every change of its data. This is a component (v2) of its own that
calls `Plotly.react` on one `<div>`. The library itself comes by static serving, once: see
`ui.players.served`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from ui.figures import theme
from ui.figures.specs import Figure
from ui.players import served
from ui.players.component import mounted

if TYPE_CHECKING:
    import plotly.graph_objects

MAX_CELLS = 400_000  # of the table behind the CSV button
Table: TypeAlias = (
    pd.DataFrame | Mapping[str, Any]
)  # columns of one length by name; a plain dict takes a tenth of the time


def plot(
    figure: Figure | plotly.graph_objects.Figure,
    *,
    key: str,
    alt: str,
    height: int = 360,
    data: Table | None = None,
    name: str = "figure",
) -> str | None:
    """Draws `figure`, `height` pixels high and as wide as its place, and keeps its node for as long as `key`
    stays.

    `alt` says in a sentence what is to be seen. `data` is what the CSV button saves; `name` begins the names
    of saved files. Zoom survives updates unless the figure sets a new `layout.uirevision`. Colours may be
    names from `ui.figures.theme`. Returns the customdata of a point that was clicked, once, as text (JSON
    when it is not text itself); else None. Where a trace says so (`meta.moves`: plot_points.js), its points
    are moved; `widgets.picked(key, "moved")` is then all of them, once, as "x y, x y".
    """
    result = mounted("plot", ahead=(served.library(),))(
        key=key,
        data=payload(figure, key=key, alt=alt, height=height, data=data, name=name),
        height=height,
        on_clicked_change=_nothing,
        on_moved_change=_nothing,
    )
    clicked = getattr(result, "clicked", None)
    return clicked[:2000] if isinstance(clicked, str) else None


def payload(
    figure: Figure | plotly.graph_objects.Figure,
    *,
    key: str,
    alt: str,
    height: int,
    data: Table | None,
    name: str,
) -> bytes:
    """Encodes a figure for the browser: UTF-8 JSON in which NumPy arrays stay packed (base64) and NaN becomes
    null.
    """
    if not isinstance(figure, Figure):  # Plotly's own
        figure = Figure(figure.to_dict())
    # Plotly's own template is 7 KB of colours for a light page; plot.js makes one from the page's theme.
    frame = {"uirevision": key} | {
        field: value for field, value in figure.arrangement.items() if field != "template"
    }
    message = {
        "figure": {"data": figure.traces, "layout": frame},
        "alt": alt,
        "height": height,
        "name": name,
        "table": None if data is None else _table(data),
        "palette": theme.palette(),
        "library": served.library(),
    }
    encoder = json.JSONEncoder(default=packed, separators=(",", ":"), allow_nan=False)
    try:
        return encoder.encode(message).encode()
    except ValueError:  # some plain number is not finite
        return encoder.encode(_finite(message)).encode()


def packed(value: Any) -> Any:
    """Returns NumPy's numbers as plain ones, and its arrays as Plotly.js unpacks them: dtype, base64, shape.
    Raises TypeError for anything else.
    """
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{type(value).__name__} cannot be sent to a figure")
    if value.dtype.kind not in "iuf" or not value.size:
        return value.tolist()
    if value.dtype.itemsize == 8 and value.dtype.kind in "iu":  # JavaScript has no 64-bit integers
        value = value.astype(np.int32 if np.abs(value).max() < 2**31 else np.float64)
    elif value.dtype == np.float16:
        value = value.astype(np.float32)
    shape = {"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {}
    return {
        "dtype": f"{value.dtype.kind}{value.dtype.itemsize}",
        "bdata": base64.b64encode(value.tobytes()).decode("ascii"),
    } | shape


def _finite(value: Any) -> Any:
    """The same with None for every plain number that is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = packed(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(data: Table) -> dict[str, Any]:
    """The columns, numbers packed. Tables beyond MAX_CELLS are cut, and the saved file's name says so."""
    columns = [
        (str(name), values.to_numpy() if isinstance(values, pd.Series) else values)
        for name, values in data.items()
    ]
    length = len(columns[0][1]) if columns else 0
    rows = min(length, MAX_CELLS // max(len(columns), 1))
    shown = [_column(values[:rows]) for _, values in columns]
    return {"names": [name for name, _ in columns], "columns": shown, "rows": rows, "cut": rows < length}


def _column(values: Sequence[Any] | np.ndarray) -> Any:
    array = np.asarray(values)
    if array.dtype.kind in "iuf":
        if array.dtype != np.float32:
            array = array.astype(np.float64)  # JavaScript's own number, exact for integers up to 2^53
        return {
            "dtype": "f4" if array.dtype == np.float32 else "f8",
            "bdata": base64.b64encode(array.tobytes()).decode("ascii"),
        }
    # What is not itself is NaN or pandas' own mark of nothing.
    return [None if pd.isna(value) else str(value) for value in values]


def _nothing() -> None:
    """Streamlit hands a trigger's value over only where a callback is named for it."""
