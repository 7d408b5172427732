"""IsoFLOP curves, and their valleys against the work. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.experiments.scaling import Fit, Plan, ScalingRun
from engine.ledger.budget import LAWS
from pages.lab.ladder.words_scaling import power
from ui.figures import specs as go
from ui.figures.theme import colour

SHADES = ("run1", "run3", "run0", "run2", "run4")
FAINT = 0.45  # opacity of the curves that are not chosen
LOG: dict[str, Any] = {"type": "log", "dtick": "D2", "tickformat": "~s"}
MARGIN = {"l": 52, "r": 12, "t": 8, "b": 44}


def curves(runs: Sequence[ScalingRun], fitted: Fit, plan: Plan, live: ScalingRun | None) -> go.Figure:
    """Draws each run's loss against its parameters, the parabola of each budget with its valley (the spread
    over seeds as a bar), and the run that was trained here as a star; until then its size as a line.
    """
    chosen = plan.budget
    traces = []
    for shade, (budget, valley) in zip(SHADES, fitted.valleys.items(), strict=False):
        alike = [run for run in runs if run.plan.budget == budget]
        marker = {"color": colour(shade), "size": 8, "opacity": 1.0 if budget == chosen else FAINT}
        traces.append(_dots(alike, marker, showlegend=False))
        sizes = [run.parameters for run in alike]
        across = np.geomspace(min(sizes), max(sizes), 60)
        line = {"color": colour(shade), "width": 3 if budget == chosen else 1.5}
        traces.append(_line(across, valley.at(across), power(budget), line, opacity=marker["opacity"]))
    best = [valley.parameters for valley in fitted.valleys.values()]
    losses = [valley.loss for valley in fitted.valleys.values()]
    traces.append(_diamonds(fitted, best, losses, "error_x", name="minimum"))
    if live is None:
        ends, line = _range(runs), {"color": colour("output"), "dash": "dot", "width": 1.5}
        traces.append(_line(np.full(2, plan.parameters), ends, "your model", line))
    else:
        marker = {"symbol": "star", "size": 18, "color": colour("output")}
        traces.append(_dots([live], marker, name="trained here"))
    loss = go.axis("held-out loss (nats per character)", showgrid=True, zeroline=False)
    return go.figure(traces, margin=MARGIN, xaxis=go.axis("parameters N", **LOG), yaxis=loss)


def growth(fitted: Fit) -> go.Figure:
    """Draws N at each valley against the work, the power law through them, and the published exponents, as
    lines through the middle of ours.
    """
    budgets, traces = np.array([*fitted.valleys]), []
    if fitted.law is not None:
        ends, middle = budgets[[0, -1]] * [1 / 1.5, 1.5], np.exp(np.log(budgets).mean())
        slopes = {"ours": (fitted.law.exponent, "solid")} | {
            f"{law} (published)": (exponent, dash)
            for (law, (exponent, _)), dash in zip(LAWS.items(), ("dot", "dash"), strict=True)
        }
        for name, (slope, dash) in slopes.items():
            line = {"color": colour("validation" if name == "ours" else "quiet"), "dash": dash, "width": 2.5}
            label = f"{name}: C<sup>{slope:.2f}</sup>"
            traces.append(_line(ends, fitted.law.at(middle) * (ends / middle) ** slope, label, line))
    best = [valley.parameters for valley in fitted.valleys.values()]
    names = [power(budget) for budget in budgets]
    return go.figure(
        [*traces, _diamonds(fitted, [*fitted.valleys], best, "error_y", showlegend=False)],
        margin=MARGIN,
        xaxis=go.axis("compute C (FLOPs)", type="log", tickvals=budgets, ticktext=names),
        yaxis=go.axis("best size N<sub>opt</sub>", showgrid=True, **LOG),
    )


def _range(runs: Sequence[ScalingRun]) -> np.ndarray:
    """Returns the lowest and the highest loss, float64 (2,)."""
    losses = [run.loss for run in runs]
    return np.array([min(losses), max(losses)])


def _dots(runs: Sequence[ScalingRun], marker: dict[str, Any], **rest: Any) -> go.Trace:
    return go.Scatter(
        x=[run.parameters for run in runs],
        y=[run.loss for run in runs],
        mode="markers",
        marker=marker,
        customdata=[f"{run.tokens:,} characters, seed {run.plan.seed}" for run in runs],
        hovertemplate="%{x:,} parameters, %{customdata}: %{y:.3f}<extra></extra>",
        **rest,
    )


def _line(x: np.ndarray, y: np.ndarray, name: str, line: dict[str, Any], **rest: Any) -> go.Trace:
    return go.Scatter(x=x, y=y, mode="lines", name=name, line=line, hoverinfo="skip", **rest)


def _diamonds(fitted: Fit, x: Sequence[float], y: Sequence[float], bar: str, **rest: Any) -> go.Trace:
    """The valleys, with the range of the seeds' valleys as a bar along the axis of N."""
    best = np.array([valley.parameters for valley in fitted.valleys.values()])
    low, high = np.array([fitted.spread(budget) for budget in fitted.valleys]).T
    ink = colour("validation")
    ranges = {"array": (high - best).clip(0), "arrayminus": (best - low).clip(0), "color": ink}
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": "diamond", "size": 12, "color": ink},
        customdata=best,
        hovertemplate="minimum: %{customdata:,.0f} parameters<extra></extra>",
        **{bar: {"type": "data", "symmetric": False, "thickness": 2} | ranges},
        **rest,
    )
