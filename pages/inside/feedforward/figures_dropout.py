"""Arrays -> figures of dropout: a sum, the probabilities of passes, losses of trainings. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.experiments.dropout_runs import SHARES, DropoutRun
from engine.measure.feedforward.dropout import DroppedSum, PassSpread
from engine.measure.slices import median_curve
from ui.figures import specs as go
from ui.figures.labels import plain as readable
from ui.figures.labels import short
from ui.figures.theme import colour

BINS = 60
TOKENS = 6
SHADES = dict(zip(SHARES, ("quiet", "run0", "run1"), strict=True))


def sum_bars(dropped: DroppedSum) -> go.Figure:
    """Draws how often a sum takes each value under random masks, scaled and not; a line at the full sum."""
    edges, scaled, plain = dropped.histograms(BINS)
    middles, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
    traces = []
    for shares, name, shade in (
        (plain, "not divided", "quiet"),
        (scaled, "divided by 1 − p", "feedforward"),
    ):
        traces.append(
            go.Bar(
                x=middles,
                y=shares,
                width=width,
                name=name,
                marker={"color": colour(shade, 60)},
                hovertemplate=f"{name}, %{{x:.3f}}: %{{y:.1%}}<extra></extra>",
            )
        )
    return go.figure(
        traces,
        barmode="overlay",
        bargap=0,
        margin={"l": 60, "r": 12, "t": 52, "b": 44},
        legend={"y": 1.1},
        xaxis={"title": {"text": "contribution to the logit (nats)"}},
        yaxis=go.axis("share of the masks", tickformat=".0%", showgrid=True),
        shapes=[go.rule(x=dropped.total, line={"color": colour("quiet"), "width": 2, "dash": "dot"})],
        annotations=[go.note("without dropout", dropped.total, 1.0, yref="paper", yanchor="bottom")],
    )


def pass_dots(spread: PassSpread, names: Sequence[str]) -> go.Figure:
    """Draws the probabilities of tokens in each pass as dots, and without dropout as bars."""
    positions = np.arange(len(names))
    count = len(spread.passes)
    scattered = positions + np.linspace(-0.28, 0.28, count)[:, None]
    bars = go.Bar(
        x=positions,
        y=spread.exact,
        name="without dropout",
        marker={"color": colour("quiet", 40)},
        hovertemplate="without dropout: %{y:.1%}<extra></extra>",
    )
    dots = go.Scatter(
        x=scattered.ravel(),
        y=spread.passes.ravel(),
        mode="markers",
        name=f"{count} passes, other masks each",
        marker={"color": colour("output", 70), "size": 6},
        hovertemplate="%{y:.1%}<extra></extra>",
    )
    return go.figure(
        [bars, dots],
        margin={"l": 60, "r": 12, "t": 30, "b": 44},
        xaxis=go.ticks(positions.tolist(), [readable(short(name, 12)) for name in names], title="next token"),
        yaxis=go.axis("probability", tickformat=".0%", range=[0, 1.02], showgrid=True),
    )


def loss_lines(runs: Sequence[DropoutRun]) -> go.Figure:
    """Draws validation losses as full lines, training losses as dotted ones: a thin line for each seed, thick
    the median.
    """
    traces = []
    for share in SHARES:
        some = [run for run in runs if run.plan.dropout == share]
        if not some:
            continue
        steps = list(some[0].steps)[1:]
        for split, label, dash in (("validation", "held out", "solid"), ("train", "training", "dot")):
            lines = [np.array(getattr(run, split))[1:] for run in some]
            name = f"p = {share:g}, {label}"
            shade = SHADES[share]
            thin: go.Trace = {"showlegend": False, "opacity": 0.4, "hoverinfo": "skip"}
            traces += [go.line(steps, values, shade, name, width=1, dash=dash, **thin) for values in lines]
            width, hover = 3 if split == "validation" else 2, "step %{x}: %{y:.3f} (median)"
            traces.append(go.line(steps, median_curve(lines), shade, name, hover, width=width, dash=dash))
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 56, "b": 44},
        xaxis={"title": {"text": "steps"}},
        yaxis=go.axis("loss (nats per character)", showgrid=True, tickmode="auto", nticks=7),
    )
