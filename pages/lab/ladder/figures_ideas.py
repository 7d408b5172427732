"""The rungs and their losses. A pure function."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from engine.measure.slices import seed_median
from engine.presets.ladder import LADDER
from ui.figures import specs as go
from ui.figures.theme import colour

LINES = {"unigram": "unigram", "bigram": "bigram", "trigram": "trigram"}


def rungs(
    seeds: Mapping[str, Sequence[float]],
    chosen: str,
    lines: Mapping[str, float],
    drawn: Collection[str] | None = None,
) -> go.Figure:
    """Draws the losses of each rung by seed, lowest rung at the bottom: the median as a point, the range as a
    thin line; `lines` (n-gram -> loss) across; the chosen rung's step from the one below as a bar. Rungs that
    are not `drawn` keep their place, and tell no loss.
    """
    losses = {name: seed_median(over) for name, over in seeds.items()}
    names = list(losses)
    rows = {name: i for i, name in enumerate(names)}
    quiet, loud = colour("quiet"), colour("validation")
    shown = [name for name in names if drawn is None or name in drawn]
    sides = [_beside(name, chosen, losses) for name in shown]
    traces = [
        go.Scatter(
            x=[losses[name] for name in shown],
            y=[rows[name] for name in shown],
            mode="markers",
            marker={
                "size": [15 if name == chosen else 10 for name in shown],
                "color": [loud if name == chosen else quiet for name in shown],
            },
            customdata=[f"{LADDER[name].title}: {losses[name]:.3f} nats" for name in shown],
            hovertemplate="%{customdata}<extra></extra>",
            cliponaxis=False,
            error_x={
                "symmetric": False,
                "array": [max(seeds[name]) - losses[name] for name in shown],
                "arrayminus": [losses[name] - min(seeds[name]) for name in shown],
                "thickness": 1.5,
                "width": 4,
                "color": quiet,
            },
        )
    ]
    ends = [
        max(seeds[name]) if side.endswith("right") else min(seeds[name])
        for name, side in zip(shown, sides, strict=True)
    ]
    traces.append(
        go.Scatter(
            x=ends,  # beside the range, not on it
            y=[rows[name] for name in shown],
            mode="text",
            text=[f"  {losses[name]:.2f}  " for name in shown],
            textposition=sides,
            textfont={"size": 12},
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    below = LADDER[chosen].below
    if below is not None and chosen in losses and below in losses:
        traces.insert(
            0,
            go.Scatter(
                x=[losses[name] for name in (below, below, chosen)],
                y=[rows[below], rows[chosen], rows[chosen]],
                mode="lines",
                line={"color": loud, "width": 4},
                hoverinfo="skip",
            ),
        )
    across = {name: at for name, at in lines.items() if name in LINES}
    return go.figure(
        traces,
        margin={"l": 140, "r": 40, "t": 24, "b": 40},
        showlegend=False,
        xaxis={
            "title": {"text": "validation loss (nats per character)"},
            "range": [
                min([*losses.values(), 2.0]) - 0.22,
                max([*losses.values(), *across.values(), 3.0]) + 0.25,
            ],
            "zeroline": False,
        },
        yaxis=go.ticks(
            list(rows.values()),
            [f"<b>{LADDER[n].title}</b>" if n == chosen else LADDER[n].title for n in names],
            range=[-0.8, len(names) - 0.3],
        ),
        shapes=[
            go.rule(x=at, line={"color": quiet, "width": 1.2, "dash": "dot"}, layer="below")
            for at in across.values()
        ],
        annotations=[
            go.note(LINES[name], at, 1, yref="paper", yanchor="bottom", font={"size": 12, "color": quiet})
            for name, at in across.items()
        ],
    )


def _beside(name: str, chosen: str, losses: Mapping[str, float]) -> str:
    """The side of a point on which its number is free: not over the chosen step, nor out of the picture."""
    from_right = name == chosen and losses[name] < losses.get(LADDER[name].below or "", 0.0)
    return "middle left" if from_right else "middle right"
