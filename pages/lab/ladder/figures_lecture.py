"""The lecture's losses beside ours; curves. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from engine.experiments.ladder import Climbed, Experiment, Overfit
from engine.presets.ladder import LECTURE
from pages.lab.ladder.words_lecture import hover, row_label
from ui.figures import specs as go
from ui.figures.theme import colour

SHADES = ("run0", "run1", "run2", "run3", "run4", "run5", "validation", "training")


def beside(experiment: Experiment) -> go.Figure:
    """Draws a row for each rung of the lecture, in the order of its cost; losses across. Where there are
    several seeds, the others are small points; a cross is the lowest loss of a rung that always diverged.
    """
    names = list(LECTURE)[::-1]
    rows = {name: i for i, name in enumerate(names)}
    published = [name for name in names if LECTURE[name].loss is not None]
    ran = [each for name in names if (each := experiment.rungs.get(name))]
    held = [each for each in ran if each.diverged is None]
    lost = [each for each in ran if each.diverged is not None]
    seeds = [each for run in ran for each in experiment.of(run.name) if each is not run and each.finished]

    def points(
        label: str, xs: Sequence[float | None], at: Sequence[str], about: Sequence[str], **marker: object
    ) -> go.Trace:
        return go.Scatter(
            x=list(xs),
            y=[rows[name] for name in at],
            mode="markers",
            name=label,
            marker={"size": 12} | marker,
            customdata=[f"{LECTURE[name].rung.title}, {what}" for name, what in zip(at, about, strict=True)],
            hovertemplate="%{customdata}: %{x:.3f}<extra></extra>",
            cliponaxis=False,
        )

    def ours(label: str, runs: Sequence[Climbed], losses: Sequence[float], **marker: object) -> go.Trace:
        about = [f"{label} ({hover(each)})" for each in runs]
        return points(label, losses, [each.name for each in runs], about, **marker)

    loud, light, quiet = colour("training"), colour("validation"), colour("quiet")
    open_ring = {"symbol": "circle-open", "color": light, "line": {"width": 2}}
    traces = [
        points(
            "published (training)",
            [LECTURE[n].loss for n in published],
            published,
            ["published (training)"] * len(published),
            symbol="diamond-open",
            size=15,
            color=quiet,
            line={"width": 2},
        ),
        ours("ours, training", held, [each.train[-1] for each in held], color=loud),
        ours("ours, held-out text", held, [each.validation[-1] for each in held], **open_ring),
    ]
    if seeds:
        size = {"size": 6}
        traces += [
            ours("other seeds", seeds, [each.train[-1] for each in seeds], color=loud, **size),
            ours("other seeds, held-out", seeds, [each.validation[-1] for each in seeds], **open_ring | size)
            | {"showlegend": False},
        ]
    if lost:
        lowest = [min(each.train) for each in lost]
        traces.append(ours("lowest before it diverged", lost, lowest, symbol="x", color=loud))
    return go.figure(
        traces,
        margin={"l": 210, "r": 20, "t": 30, "b": 40},
        xaxis={"title": {"text": "nats per character"}, "zeroline": False},
        yaxis={
            "tickmode": "array",
            "tickvals": list(rows.values()),
            "ticktext": [row_label(name, experiment) for name in names],
            "range": [-0.7, len(names) - 0.3],
            "zeroline": False,
        },
    )


def over_steps(experiment: Experiment, names: Sequence[str]) -> go.Figure:
    """Draws some of the rungs that were run, as far as they held: full on training text, dashed on unseen
    text; diamonds published. The legend has a line for each rung.
    """
    traces = []
    shown = {name: experiment.rungs[name] for name in names}
    end = max((each.of for each in shown.values()), default=1)
    for shade, (name, each) in zip(map(colour, SHADES), shown.items(), strict=False):
        title = LECTURE[name].rung.title
        held = sum(each.diverged is None or step < each.diverged for step in each.steps)
        for losses, dash, label in ((each.train, "solid", "training"), (each.validation, "dash", "held-out")):
            traces.append(
                go.Scatter(
                    x=list(each.steps)[1:held],
                    y=list(losses)[1:held],
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
