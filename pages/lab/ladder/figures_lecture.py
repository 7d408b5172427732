"""The lecture's losses beside ours; curves. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from engine.experiments.ladder import Experiment, Overfit
from engine.presets.ladder import LECTURE
from pages.lab.ladder.words_lecture import hover, row_label
from ui.figures import specs as go
from ui.figures.theme import colour

SHADES = ("run0", "run1", "run2", "run3", "run4", "run5", "validation", "training")


def beside(experiment: Experiment) -> go.Figure:
    """Draws a row for each rung of the lecture, in the order of its cost; losses across."""
    names = list(LECTURE)[::-1]
    rows = {name: i for i, name in enumerate(names)}
    published = [name for name in names if LECTURE[name].loss is not None]
    ran = [name for name in names if name in experiment.rungs]

    def points(label: str, xs: Sequence[float | None], at: Sequence[str], **marker: object) -> go.Trace:
        return go.Scatter(
            x=list(xs),
            y=[rows[name] for name in at],
            mode="markers",
            name=label,
            marker={"size": 12} | marker,
            customdata=[_where(experiment, name, label) for name in at],
            hovertemplate="%{customdata}: %{x:.3f}<extra></extra>",
            cliponaxis=False,
        )

    loud, quiet = colour("training"), colour("quiet")
    traces = [
        points(
            "published (training)",
            [LECTURE[n].loss for n in published],
            published,
            symbol="diamond-open",
            size=15,
            color=quiet,
            line={"width": 2},
        ),
        points("ours, training", [experiment.rungs[n].train[-1] for n in ran], ran, color=loud),
        points(
            "ours, held-out text",
            [experiment.rungs[n].validation[-1] for n in ran],
            ran,
            symbol="circle-open",
            color=colour("validation"),
            line={"width": 2},
        ),
    ]
    return go.figure(
        traces,
        margin={"l": 210, "r": 20, "t": 30, "b": 40},
        xaxis={"title": {"text": "nats per character"}, "zeroline": False},
        yaxis={
            "tickmode": "array",
            "tickvals": list(rows.values()),
            "ticktext": [row_label(name, experiment.rungs.get(name)) for name in names],
            "range": [-0.7, len(names) - 0.3],
            "zeroline": False,
        },
    )


def _where(experiment: Experiment, name: str, label: str) -> str:
    """A rung with a loss; one of ours with its precision and processor."""
    title, each = LECTURE[name].rung.title, experiment.rungs.get(name)
    return f"{title}, {label}" + (f" ({hover(each)})" if each and label.startswith("ours") else "")


def over_steps(experiment: Experiment, names: Sequence[str]) -> go.Figure:
    """Draws some of the rungs that were run: full on training text, dashed on unseen text; diamonds
    published. The legend has a line for each rung.
    """
    traces = []
    shown = {name: experiment.rungs[name] for name in names}
    end = max((each.of for each in shown.values()), default=1)
    for shade, (name, each) in zip(map(colour, SHADES), shown.items(), strict=False):
        title = LECTURE[name].rung.title
        for losses, dash, label in ((each.train, "solid", "training"), (each.validation, "dash", "held-out")):
            traces.append(
                go.Scatter(
                    x=list(each.steps)[1:],
                    y=list(losses)[1:],
                    mode="lines",
                    name=title if label == "training" else f"{title}, {label}",
                    legendgroup=name,
                    showlegend=label == "training",
                    line={"color": shade, "width": 2, "dash": dash},
                    hovertemplate=f"{title}, {label}: %{{y:.3f}}<extra></extra>",
                )
            )
        if each.published is not None:
            traces.append(
                go.Scatter(
                    x=[end],
                    y=[each.published],
                    mode="markers",
                    name=f"{title}, published",
                    legendgroup=name,
                    showlegend=False,
                    marker={"symbol": "diamond-open", "size": 14, "color": shade, "line": {"width": 2}},
                    cliponaxis=False,
                )
            )
    return go.figure(
        traces,
        margin={"l": 50, "r": 20, "t": 10, "b": 40},
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1, "yanchor": "top"},
        xaxis={"title": {"text": "steps"}, "range": [0, end], "zeroline": False},
        yaxis={"title": {"text": "loss (nats per character)"}},
    )


def readings(overfit: Overfit) -> go.Figure:
    """Draws both losses of one training over how often its text was read."""
    traces = [
        go.Scatter(
            x=list(overfit.passes)[1:],
            y=list(losses)[1:],
            mode="lines+markers",
            name=label,
            line={"color": colour(shade), "width": 2.5},
        )
        for losses, label, shade in (
            (overfit.train, "on training text", "training"),
            (overfit.validation, "on held-out text", "validation"),
        )
    ]
    return go.figure(
        traces,
        xaxis={"title": {"text": "epochs"}, "zeroline": False},
        yaxis={"title": {"text": "loss (nats per character)"}},
    )
