"""How surprising each token of a written text was to the model that wrote it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, base_layout, colour


def surprise(labels: Sequence[str], nats: np.ndarray, picked: np.ndarray, uniform: float) -> go.Figure:
    """A bar for each token, -ln p in nats, in the colours of the text; over them the mean so far. labels,
    nats, picked: (token,); uniform: ln V.
    """
    count = len(labels)
    depth = np.arange(1, count + 1, dtype=np.int32)
    mean = (np.cumsum(nats) / depth).astype(np.float32)
    words = [plain(label) for label in labels]
    bars = go.Bar(
        x=depth,
        y=nats.astype(np.float32),
        name="this token",
        customdata=np.exp(-nats).astype(np.float32),
        hovertext=words,
        marker={
            "color": np.exp(-nats).astype(np.float32),
            "colorscale": SEQUENTIAL,
            "cmin": 0,
            "cmax": 1,
            "line": {"width": 0.8 if count <= 400 else 0, "color": colour("quiet", 50)},
        },
        hovertemplate=(
            "token %{x}: %{hovertext}<br>p = %{customdata:.4f}, −ln p = %{y:.3f} nats<extra></extra>"
        ),
    )
    traces: list[go.Trace] = [
        bars,
        go.Scatter(
            x=depth,
            y=mean,
            mode="lines",
            name="mean so far",
            line={"color": colour("output"), "width": 2.5},
            hovertemplate="first %{x} tokens: %{y:.3f} nats per token<extra></extra>",
        ),
    ]
    if picked.any():
        traces.append(
            go.Scatter(
                x=depth[picked],
                y=nats[picked].astype(np.float32),
                mode="markers",
                name="picked by you",
                hoverinfo="skip",
                marker={"symbol": "diamond", "size": 10, "color": colour("attention")},
            )
        )
    few = count <= 40
    axis: dict[str, object] = {}
    if few:  # single characters stand upright side by side even on a phone; longer tokens may be turned
        axis = {"tickvals": depth, "ticktext": words, "tickfont": {"family": "monospace"}} | (
            {"tickangle": 0} if max(map(len, labels)) == 1 else {}
        )
    return go.Figure(
        traces,
        base_layout(
            xaxis={"title": {"text": "token written"}, "range": [0.4, count + 0.6], **axis},
            yaxis={"title": {"text": "surprise, −ln p (nats)"}, "rangemode": "tozero"},
            bargap=0.0 if count > 150 else 0.15,
            shapes=[
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": 0,
                    "x1": 1,
                    "y0": uniform,
                    "y1": uniform,
                    "line": {"color": colour("quiet"), "dash": "dot", "width": 1.5},
                }
            ],
            annotations=[
                {
                    "xref": "paper",
                    "x": 1,
                    "y": uniform,
                    "text": f"guessing: ln V = {uniform:.2f}",
                    "showarrow": False,
                    "xanchor": "right",
                    "yanchor": "bottom",
                }
            ],
        ),
    )
