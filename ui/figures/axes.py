"""Axes that several figures have: tokens, rows with names, a scale with zero in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures.labels import MOST_LETTERS, plain, short

MONO = {"family": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", "size": 13}


def token_axis(
    labels: Sequence[str], title: str = "token of the text", *, upright: bool = False
) -> dict[str, Any]:
    """Returns an x axis whose ticks are tokens: numbers underneath, because equal tokens would fall on one
    another. `upright` turns them.
    """
    texts = [plain(short(label, MOST_LETTERS)) for label in labels]
    return {
        "title": {"text": title},
        "tickvals": np.arange(len(labels)),
        "ticktext": texts,
        "tickangle": -90 if upright else 0,
        "tickfont": MONO,
        "showgrid": False,
        "zeroline": False,
        "range": [-0.5, len(labels) - 0.5],
    }


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
