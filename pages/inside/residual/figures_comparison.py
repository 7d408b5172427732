"""Arrays -> figures of two models, one with residual connections and one without. Pure functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.experiments.no_residual import Pair, TrainedStack
from pages.inside.residual.figures import decades
from pages.inside.residual.words_highway import Shown
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.text.numbers import minus

NAMES = {"added": "with residual connections", "replaced": "without"}
TICKS = 7  # on a logarithmic axis, at most
LOOKS = {"added": ("run0", "solid"), "replaced": ("run4", "dash")}
_Y = {
    "losses": "training loss (nats)",
    "gradients": "gradient norm",
    "alike": "similarity of two tokens (cosine)",
}


def pair_lines(pair: Pair, shown: Shown) -> go.Figure:
    """Draws two lines: the loss over the steps of the training, or what stands after each block before it
    begins. A gradient of 0 has no place on its logarithmic axis.
    """
    over_steps = shown == "losses"
    x = pair.points if over_steps else np.arange(pair.depth)
    traces = [_line(name, x, getattr(pair, name), shown) for name in ("added", "replaced")]
    title = "training step" if over_steps else "after block (block 0 is next to the input)"
    return go.figure(
        traces,
        margin={"l": 60, "r": 16, "t": 30, "b": 44},
        hovermode="x unified",
        xaxis=go.axis(title, zeroline=False),
        yaxis={"title": {"text": _Y[shown]}} | _scale(pair, shown),
        shapes=[_level(pair.counting)] if over_steps else [],
        annotations=[_named_level(pair.counting)] if over_steps else [],
        uirevision=f"pair-{shown}-{pair.depth}",
    )


def _line(name: str, x: np.ndarray, trained: TrainedStack, shown: Shown) -> go.Trace:
    (shade, dash), y = LOOKS[name], getattr(trained, shown)
    y = np.where(y > 0, y, np.nan) if shown == "gradients" else y
    points = 0 if shown == "losses" else 6
    return go.line(x, y, shade, NAMES[name], "%{y:.3g}", width=4, dash=dash, points=points)


def _scale(pair: Pair, shown: Shown) -> dict[str, Any]:
    if shown == "alike":
        return {"range": [min(-0.05, *pair.added.alike, *pair.replaced.alike), 1.05]}
    if shown == "losses":
        return {}
    low, high = decades([pair.added.gradients, pair.replaced.gradients])
    powers = np.arange(math.ceil(low), math.floor(high) + 1)
    powers = powers[:: math.ceil(len(powers) / TICKS)]
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": 10.0**powers,
        "ticktext": [power_of_ten(int(power)) for power in powers],
    }


def power_of_ten(power: int) -> str:
    """Returns a power of ten as it is read: in full where that is short.

    >>> power_of_ten(-2), power_of_ten(0), power_of_ten(-20)
    ('0.01', '1', '10<sup>−20</sup>')
    """
    return f"{10.0**power:.{max(0, -power)}f}" if -4 <= power <= 4 else f"10<sup>{minus(str(power))}</sup>"


def _level(y: float) -> dict[str, Any]:
    return go.rule(y=y, line={"color": colour("quiet"), "dash": "dot", "width": 1.5})


def _named_level(y: float) -> dict[str, Any]:
    look = {"xref": "paper", "xanchor": "right", "yanchor": "bottom"}
    font = {"size": 13, "color": colour("quiet")}
    return go.note(f"unigram baseline: {y:.2f}", 1, y, font=font, **look)
