"""Axes that several figures have: tokens, rows with names, a scale with zero in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures.labels import MOST_LETTERS, plain, short

MONO = {"family": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", "size": 13}
MOST = 64  # ticks of an axis with tokens


def token_axis(
    labels: Sequence[str],
    title: str = "token of the text",
    size: int = 13,
    most: int = MOST,
    *,
    upright: bool = False,
    **rest: Any,
) -> dict[str, Any]:
    """Returns an axis with a tick for every token; every second, third ... where there are more than `most`.
    Ticks are numbers underneath, because equal tokens would fall on one another. `upright` turns them.
    """
    ticks = range(0, len(labels), max(1, -(-len(labels) // most)))
    axis = {
        "title": {"text": title},
        "tickmode": "array",
        "tickvals": list(ticks),
        "ticktext": [plain(short(labels[i], MOST_LETTERS)) for i in ticks],
        "tickangle": -90 if upright else 0,
        "tickfont": MONO | {"size": size},
    }
    # "allow": without it, Plotly measures every label to hide those that reach over the edge, which takes
    # longer than all the rest (90 of 106 ms).
    still = {"ticklabeloverflow": "allow", "showgrid": False, "zeroline": False, "ticks": ""}
    whole = {} if "autorange" in rest else {"range": [-0.5, len(labels) - 0.5]}
    return axis | still | whole | rest


def rows_axis(names: Sequence[str], **rest: Any) -> dict[str, Any]:
    at = np.arange(len(names))
    step = max(1, round(len(names) / 26))
    return {
        "tickvals": at[::step],
        "ticktext": [plain(n) for n in names][::step],
        "showgrid": False,
        "zeroline": False,
    } | rest


def symmetric(values: np.ndarray) -> float:
    """Returns the end of a colour scale that is centred on zero."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0
