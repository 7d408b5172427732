"""Arrays -> figures of a training: losses, gradient norm, learning rate. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from ui.figures.theme import base_layout, colour

XAxis = Literal["step", "time"]

OTHERS = tuple(f"run{i}" for i in range(6))

BASELINE_WORDS = {"uniform": "knowing nothing (ln {v})", "unigram": "letter frequencies", "bigram": "letter pairs"}


def _empty() -> np.ndarray:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class Curve:
    """One run's losses (nats per token). All arrays are one-dimensional; the `eval_*` belong to each other, the rest too."""

    name: str
    steps: np.ndarray = field(default_factory=_empty)
    seconds: np.ndarray = field(default_factory=_empty)
    losses: np.ndarray = field(default_factory=_empty)
    eval_steps: np.ndarray = field(default_factory=_empty)
    eval_seconds: np.ndarray = field(default_factory=_empty)
    eval_losses: np.ndarray = field(default_factory=_empty)

    def along(self, x: XAxis) -> tuple[np.ndarray, np.ndarray]:
        """(positions of the steps, positions of the evaluations) on the axis asked for."""
        return (self.steps, self.eval_steps) if x == "step" else (self.seconds, self.eval_seconds)


def loss_curves(
    main: Curve | None, baselines: Mapping[str, float], vocab_size: int, *, x: XAxis = "step", others: Sequence[Curve] = (), end: float | None = None
) -> go.Figure:
    """Training and validation loss of `main`, the validation loss of `others`, and what predictors without a network reach.

    `end` is where the x axis stops while the run is still short of it, so that the axis holds still as the curve grows.
    """
    figure = go.Figure()
    for index, other in enumerate(others):
        _add_other(figure, other, x, colour(OTHERS[index % len(OTHERS)]))
    if main is not None:
        _add_main(figure, main, x)
    _add_baselines(figure, baselines, vocab_size)
    hover = "closest" if others else "x unified"
    figure.update_layout(base_layout(uirevision=f"loss-{x}", margin={"l": 48, "r": 92, "t": 8, "b": 40}, showlegend=False, hovermode=hover))
    figure.update_xaxes(title_text="step" if x == "step" else "training time (s)", range=[0, end] if end else None, rangemode="tozero", showgrid=False)
    figure.update_yaxes(title_text="loss (nats per character)", range=_loss_range(main, others, baselines))
    return figure


def _add_main(figure: go.Figure, curve: Curve, x: XAxis) -> None:
    at, eval_at = curve.along(x)
    thin, thick = {"color": colour("training"), "width": 1.2}, {"color": colour("validation"), "width": 3}
    figure.add_scatter(x=at, y=curve.losses, mode="lines", name="training (each batch)", line=thin, opacity=0.75, hovertemplate="%{y:.3f}")
    figure.add_scatter(x=eval_at, y=curve.eval_losses, mode="lines+markers", name="validation", line=thick, marker={"size": 7}, hovertemplate="%{y:.4f}")
    ends = [(name, float(x[-1]), float(y[-1])) for name, x, y in (("training", at, curve.losses), ("validation", eval_at, curve.eval_losses)) if len(y)]
    ends = [end for end in ends if math.isfinite(end[2])]
    for name, where, value in ends:
        rivals = [y for other, _, y in ends if other != name]
        shift = 0 if not rivals else (11 if value >= rivals[0] else -11)  # the two labels never lie on each other
        _label(figure, where, value, f"{name} {value:.2f}", colour(name), yshift=shift)


def _add_other(figure: go.Figure, curve: Curve, x: XAxis, shade: str) -> None:
    _, at = curve.along(x)
    name = plain(curve.name)
    line, hover = {"color": shade, "width": 2}, f"{name}: %{{y:.4f}}<extra></extra>"
    figure.add_scatter(x=at, y=curve.eval_losses, mode="lines+markers", name=name, line=line, marker={"size": 5}, hovertemplate=hover)
    if len(at) and math.isfinite(curve.eval_losses[-1]):
        _label(figure, float(at[-1]), float(curve.eval_losses[-1]), name, shade)


def _add_baselines(figure: go.Figure, baselines: Mapping[str, float], vocab_size: int) -> None:
    """Dotted lines right across, each with its name and value above its right end, where the curves have long gone below."""
    line, font = {"color": colour("quiet"), "width": 1.2, "dash": "dot"}, {"color": colour("quiet"), "size": 12}
    for name, value in baselines.items():
        words = f"{BASELINE_WORDS.get(name, name).format(v=vocab_size)}: {value:.2f}"
        figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=value, y1=value, line=line, layer="below")
        figure.add_annotation(xref="paper", x=1, y=value, text=words, showarrow=False, xanchor="right", yanchor="bottom", font=font)


def _label(figure: go.Figure, x: float, y: float, text: str, shade: str, *, yshift: int = 0) -> None:
    """To the right of a curve's end."""
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, xanchor="left", xshift=6, yshift=yshift, font={"color": shade, "size": 13})


def _loss_range(main: Curve | None, others: Sequence[Curve], baselines: Mapping[str, float]) -> list[float]:
    """Holds still as far as it can: from a little above ln V down to the lowest loss, in steps of half a nat.

    A loss that explodes is left to run out of the picture; the range stays readable, and a double click shows all.
    """
    top = max(baselines.values(), default=4.0)
    values = [curve.eval_losses for curve in (*others, *([main] if main else []))] + ([main.losses] if main else [])
    finite = np.concatenate([np.asarray(v, dtype=np.float64) for v in values]) if values else _empty()
    finite = finite[np.isfinite(finite)]
    lowest = min([*baselines.values(), *([float(finite.min())] if finite.size else [])], default=0.0)
    highest = float(np.quantile(finite, 0.95)) if finite.size else top
    return [max(0.0, math.floor((lowest - 0.1) * 2) / 2), min(max(top, highest), 3 * top) * 1.06]


def small_curve(x: np.ndarray, y: np.ndarray, *, title: str, shade: str = "quiet", log: bool = False, end: float | None = None) -> go.Figure:
    """One thin line over steps: x (n,), y (n,)."""
    figure = go.Figure()
    figure.add_scatter(x=x, y=y, mode="lines", name=title, line={"color": colour(shade), "width": 1.5}, hovertemplate="%{y:.4g}<extra></extra>")
    figure.update_layout(base_layout(uirevision=title, margin={"l": 48, "r": 12, "t": 8, "b": 34}, showlegend=False))
    figure.update_xaxes(title_text="step", range=[0, end] if end else None, rangemode="tozero", showgrid=False)
    figure.update_yaxes(type="log" if log else "linear", title_text=title, nticks=4)
    if not log:
        figure.update_yaxes(rangemode="tozero")
    return figure


def curve_table(history: Any) -> pd.DataFrame:
    """One row for each kept step and each evaluation, ordered by step: what the CSV holds. Empty cells where a quantity was not measured."""
    steps = pd.DataFrame(
        {
            "step": np.asarray(history.steps), "seconds": history.seconds, "tokens": history.tokens,
            "batch_loss": history.losses, "grad_norm": history.grad_norms, "learning_rate": history.learning_rates,
        }
    )
    looked = pd.DataFrame(
        [(e.step, e.train_loss, e.validation_loss, e.complete) for e in history.evaluations],
        columns=["step", "train_loss", "validation_loss", "validation_complete"],
    ).drop_duplicates("step", keep="last")
    return steps.merge(looked, on="step", how="outer").sort_values("step", ignore_index=True)


def curve_of(name: str, history: Any) -> Curve:
    """The arrays of a run's history (engine.history.History) that the loss chart draws."""
    seen = {e.step: e for e in history.evaluations}  # a complete evaluation replaces the quick one of the same step
    looked = [seen[step] for step in sorted(seen)]
    return Curve(
        name, history.steps, history.seconds, history.losses,
        np.array([e.step for e in looked], dtype=np.int64),
        np.array([e.seconds for e in looked], dtype=np.float32),
        np.array([e.validation_loss for e in looked], dtype=np.float32),
    )


def plain(text: str) -> str:
    """A name that Plotly draws as it stands: it would take <b> and the like for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
