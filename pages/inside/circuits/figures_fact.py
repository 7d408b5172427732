"""How an answer climbs: its rank and probability by depth, and what each block wrote. A pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour


def answer_by_depth(
    rank: np.ndarray,
    probability: np.ndarray,
    guesses: Sequence[str],
    depths: Sequence[str],
    written: Mapping[str, np.ndarray] | None,
    last: int,
) -> go.Figure:
    """Draws, above, the answer's rank by depth, 1 on top, and its probability; below, what attention and the
    feed-forward network of each block wrote of its logit (layer,). `last` is the lowest rank there is.
    """
    at = np.arange(len(rank))
    words = [f"{depth}: top guess “{plain(word)}”" for depth, word in zip(depths, guesses, strict=True)]
    chance = go.Scatter(
        x=at,
        y=probability.astype(np.float32),
        yaxis="y2",
        name="probability",
        mode="lines",
        fill="tozeroy",
        fillcolor=colour("output", 20),
        line={"color": colour("output", 50), "width": 1},
        hovertemplate="%{y:.3f}<extra>probability</extra>",
        showlegend=False,  # the axis says it
    )
    hover = "%{customdata}<br>rank %{y:,}"
    ranks = go.line(at, rank, "output", "rank", hover, points=5, customdata=words, showlegend=False)
    traces = [chance, ranks]
    for part, shade, name in (
        ("attention", "attention", "attention"),
        ("feedforward", "feedforward", "feed-forward"),
    ):
        if written is not None and part in written:
            traces.append(
                go.Bar(
                    x=at[1:],
                    y=written[part],
                    yaxis="y3",
                    name=name,
                    marker={"color": colour(shade)},
                    hovertemplate="%{customdata}: %{y:+.2f} nats" + f"<extra>{name}</extra>",
                    customdata=[f"block {i}" for i in range(len(rank) - 1)],
                )
            )
    top = [0.44, 1.0] if written is not None else [0.0, 1.0]
    decades = [10**i for i in range(7) if 10**i <= last]
    axes = {
        "yaxis": go.axis(
            "rank (line)",
            showgrid=True,
            type="log",
            range=[float(np.log10(last)), -0.12],
            tickvals=decades,
            ticktext=[f"{n:,}" for n in decades],
            domain=top,
            zeroline=False,
        ),
        "yaxis2": go.axis(
            "probability", overlaying="y", side="right", range=[0, 1.05], tickvals=[0, 0.5, 1], zeroline=False
        ),
    }
    if written is not None:
        axes["yaxis3"] = go.axis(
            "nats",
            showgrid=True,
            domain=[0.0, 0.36],
            zeroline=True,
            zerolinecolor=colour("quiet"),
            zerolinewidth=1,
            nticks=4,
        )
    ticks = [0, *range(1, len(depths), 1 if len(depths) <= 13 else 5)]
    return go.figure(
        traces,
        margin={"l": 56, "r": 52, "t": 26, "b": 40},
        barmode="group",
        bargap=0.2,
        xaxis=go.ticks(
            ticks,
            ["E", *(str(depth - 1) for depth in ticks[1:])],
            title="after the embedding (E) and after each block",
            tickangle=0,
            anchor="y3" if written else "y",
            range=[-0.6, len(rank) - 0.4],
        ),
        **axes,
    )
