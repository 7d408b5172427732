"""Gradients -> figures: a backward pass as lanes, the error at the logits, one weight nudged, one optimiser's
step. Pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.measure.shapes.backward import Backward, MatrixGradient, Nudges
from engine.measure.shapes.optimiser_step import RULES, Rule, SingleStep, Spectra
from pages.inside.shapes import words_backward as words
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour

DECADES = 3  # of gradients that are told apart by their colour
WIDE = 60.0  # times the shortest bar: a straight scale shows both
NUMBERED = 22  # bars that have room for their numbers
LANES, BARS = (0.0, 0.76), (0.79, 1.0)  # shares of the width
TICKS = 8
ROOM = 0.3  # of all tokens, after the chosen one, beside which there is room for a note
LOWEST = 1e-3  # of the largest singular value: below it nothing is drawn
RULE_COLOURS: dict[Rule, str] = {"sgd": "run3", "adamw": "run2", "muon": "run0"}
DASHES: dict[Rule, str] = {"sgd": "dot", "adamw": "dash", "muon": "solid"}


def lanes(prediction: Backward, labels: Sequence[str]) -> go.Figure:
    """Draws the gradient's norm for every state of the stream and every token, the logits on top; beside it
    that of all tokens together, in the colour of the part that wrote the state.
    """
    rows = [*prediction.states, words.LOGITS]
    top = np.zeros((1, prediction.norms.shape[1]))
    top[0, prediction.position] = prediction.error_norm
    values = np.vstack([prediction.norms, top])
    totals = np.append(prediction.totals, prediction.error_norm)
    parts = [*prediction.parts, "output"]
    with np.errstate(divide="ignore"):
        logs = np.where(values > 0, np.log10(values), np.nan)
    high = float(np.nanmax(logs)) if values.any() else 0.0  # a prediction that is certain, and right
    marks = np.arange(np.ceil(high - DECADES), np.floor(high) + 1)
    names = [plain(label) for label in labels]
    heat = go.Heatmap(
        z=logs.astype(np.float32),
        zmin=high - DECADES,
        zmax=high,
        colorscale=SEQUENTIAL,
        customdata=values.astype(np.float32),
        text=[names] * len(rows),
        hovertemplate="%{y}, token “%{text}”: %{customdata:.3g}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(words.LANES, tickvals=marks, ticktext=[f"{10.0**mark:g}" for mark in marks]),
    )
    bars = go.Bar(
        x=totals,
        y=np.arange(len(rows)),
        orientation="h",
        xaxis="x2",
        marker={"color": [colour(part) for part in parts]},
        text=[f"{total:.3g}" for total in totals] if len(rows) <= NUMBERED else None,
        textposition="outside",
        cliponaxis=False,
        customdata=rows,
        hovertemplate="%{customdata}: %{x:.4g}<extra></extra>",
    )
    tall = crowded(labels)
    chosen = go.rule(
        x=prediction.position, line={"color": colour("output"), "width": 1.5, "dash": "dot"}, layer="below"
    )
    return go.figure(
        [heat, bars],
        margin={"l": 8, "r": 8, "t": 8, "b": 44 + LETTER * tall},
        showlegend=False,
        bargap=0.25,
        shapes=[chosen],
        xaxis=token_axis(labels, upright=tall > 0) | {"domain": list(LANES)},
        xaxis2={
            "domain": list(BARS),
            "anchor": "y",
            "title": {"text": words.TOTALS},
            "showgrid": False,
        }
        | _length(totals),
        yaxis=_rows(rows) | {"range": [-0.52, len(rows) - 0.48], "title": {"text": words.BACKWARDS}},
        annotations=_untouched(prediction, len(rows)),
    )


def _rows(names: Sequence[str]) -> dict[str, object]:
    """Returns an axis of the states: all, or of a deep model some, from the bottom, and the top one."""
    if len(names) <= NUMBERED:
        return rows_axis(names)
    step = 2 * math.ceil(len(names) / NUMBERED)  # two sublayers a block
    at = [*range(0, len(names) - step // 2, step), len(names) - 1]
    return go.ticks(at, [plain(names[i]) for i in at])


def _length(totals: np.ndarray) -> dict[str, object]:
    """Returns the scale of the bars: logarithmic where a straight one would hide most of them."""
    high = float(totals.max())
    positive = totals[totals > 0]
    if not len(positive) or high <= WIDE * float(positive.min()):
        return {"range": [0, 1.32 * high], "nticks": 4}
    ends = math.log10(float(positive.min())), math.log10(high)
    return {"type": "log", "range": [ends[0] - 0.3, ends[1] + 0.15], "dtick": 1, "exponentformat": "power"}


def _untouched(prediction: Backward, rows: int) -> list[dict[str, object]]:
    """The note on the tokens after the chosen position, where there is room for it."""
    first, count = prediction.position + 1, prediction.norms.shape[1]
    if count - first < ROOM * count:
        return []
    middle = (first + count - 1) / 2
    return [go.note(words.UNTOUCHED, middle, (rows - 1) / 2, font={"size": 13, "color": colour("quiet")})]


def error_bars(tokens: Sequence[str], values: np.ndarray) -> go.Figure:
    """Draws p - y of some tokens, the one that came next on top: it is negative, all others are positive."""
    at = -np.arange(len(tokens))
    bars = go.Bar(
        x=values,
        y=at,
        orientation="h",
        marker={"color": [colour("output"), *[colour("quiet")] * (len(tokens) - 1)]},
        text=[words.error(float(value)) for value in values],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x:+.4f}<extra></extra>",
    )
    low, high = (min(0.0, float(values.min())), max(0.0, float(values.max())))
    room = (0.5 if max(map(len, tokens)) <= 2 else 0.9) * (high - low)  # names of words take its width
    return go.figure(
        [bars],
        margin={"l": 8, "r": 8, "t": 52, "b": 44},
        showlegend=False,
        xaxis=go.axis(words.ERROR, zeroline=True, tickvals=[-1, 0, 1], range=[low - room, high + room]),
        yaxis=go.ticks(at, [plain(short(token, MOST_LETTERS)) for token in tokens], tickfont=MONO),
        annotations=[go.heading(words.error_title(short(tokens[0], MOST_LETTERS)), align="left")],
    )


def gradient_map(gradient: MatrixGradient, entry: tuple[int, int]) -> go.Figure:
    """Draws the rows and columns of a matrix's gradient with its largest entries, a box around `entry`. A
    click gives row * column count + column.
    """
    rows, columns = gradient.rows, gradient.columns
    index = rows[:, None] * gradient.shape[1] + columns[None, :]
    heat = go.signed(
        gradient.values,
        customdata=index.astype(np.int32),
        text=[[f"row {r}, column {c}" for c in columns] for r in rows],
        hovertemplate="%{text}: %{z:.3g}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(words.GRADIENT, 0.6),
    )
    down, across = (
        int(np.flatnonzero(indexes == each)[0]) for indexes, each in zip((rows, columns), entry, strict=True)
    )
    axes = []
    for indexes, title in ((columns, "column"), (rows, "row")):
        every = max(1, len(indexes) // TICKS)
        axes.append(
            go.ticks(
                np.arange(0, len(indexes), every),
                [str(each) for each in indexes[::every]],
                title=title,
                tickfont={"size": 12},
                tickangle=0,
            )
        )
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        shapes=[go.box(across, down, "output")],
        xaxis=axes[0] | {"range": [-0.52, len(columns) - 0.48]},
        yaxis=axes[1] | {"range": [len(rows) - 0.48, -0.52]},
    )


def nudge_curve(nudges: Nudges, at: int, token: str) -> go.Figure:
    """Draws the loss against what is added to the weight: measured, and along the gradient; a mark on each at
    place `at`.
    """
    tangent, hover = nudges.loss + nudges.predicted, "%{x:+.2f}: %{y:.4f} nats"
    lines = [
        go.line(nudges.amounts, tangent, "quiet", words.PREDICTED, hover, dash="dash"),
        go.line(nudges.amounts, nudges.losses, "output", words.MEASURED, hover, width=3),
    ]
    x = float(nudges.amounts[at])
    ends = float(tangent[at]), float(nudges.losses[at])
    gap = go.line([x, x], list(ends), "quiet", width=1.5, showlegend=False, hoverinfo="skip")
    marks = go.Scatter(
        x=[x, x],
        y=list(reversed(ends)),
        mode="markers",
        showlegend=False,
        marker={
            "size": [11, 19],
            "symbol": ["circle", "diamond-open"],
            "color": [colour("output"), colour("quiet")],
            "line": {"width": [0, 2.5]},
        },
        hovertemplate="%{y:.4f} nats<extra></extra>",
    )
    ticks = nudges.amounts[:: len(nudges.amounts) // 4]
    still = go.rule(x=0, line={"color": colour("quiet"), "width": 1, "dash": "dot"}, layer="below")
    return go.figure(
        [*lines, gap, marks],
        margin={"l": 62, "r": 12, "t": 34, "b": 44},
        shapes=[still],
        xaxis=go.ticks(
            ticks, [words.amount(float(tick)) for tick in ticks], title=words.added(nudges.weight)
        ),
        yaxis=go.axis(words.loss_of(plain(token)), showgrid=True, zeroline=False, nticks=7),
    )


def loss_by_rate(taken: SingleStep, scale: float) -> go.Figure:
    """Draws the text's loss after one step against the learning rate, each rule's, marked at `scale`; beyond
    twice the loss before, the scale ends.
    """
    at = np.log2(taken.scales)
    traces = [
        _rule_line(rule, at, taken.after[rule], name=words.rule_loss(rule, taken.at(rule, scale)))
        for rule in RULES
    ]
    x = float(np.log2(scale))
    traces.append(
        go.Scatter(
            x=[x] * len(RULES),
            y=[taken.at(rule, scale) for rule in RULES],
            mode="markers",
            showlegend=False,
            marker={
                "size": 12,
                "color": [colour(RULE_COLOURS[rule]) for rule in RULES],
            },
            hovertemplate="%{y:.4f} nats<extra></extra>",
        )
    )
    top = 2 * taken.before
    before = go.rule(y=taken.before, line={"color": colour("quiet"), "width": 1.5, "dash": "dash"})
    chosen = go.rule(x=x, line={"color": colour("quiet"), "width": 1}, layer="below")
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        shapes=[before, chosen],
        annotations=[
            go.note(
                words.before(taken), 0, taken.before, xref="paper", xanchor="left", yanchor="bottom", xshift=4
            )
        ],
        xaxis=go.ticks(at, [words.multiple(each) for each in taken.scales], title=words.RATE, tickangle=0)
        | {"range": [float(at[0]) - 0.3, float(at[-1]) + 0.3]},
        yaxis=go.axis(words.AFTER, showgrid=True, range=[0, top], nticks=6),
    )


def spectrum_lines(spectra: Spectra) -> go.Figure:
    """Draws each rule's singular values as shares of its largest, on a logarithmic scale, up to the
    gradient's rank by its definition (dotted), and beyond.
    """
    at = np.arange(1, min(spectra.shape) + 1)
    shares = {rule: spectra.relative(rule) for rule in RULES}
    traces = [
        _rule_line(rule, at, np.where(values >= LOWEST, values, np.nan), ".1%")
        for rule, values in shares.items()
    ]
    rank = go.rule(
        x=spectra.rank, line={"color": colour("quiet"), "width": 1.5, "dash": "dot"}, layer="below"
    )
    low = np.log10(LOWEST)
    return go.figure(
        traces,
        margin={"l": 62, "r": 12, "t": 34, "b": 44},
        shapes=[rank],
        annotations=[
            go.note(
                words.RANK,
                spectra.rank,
                float(low) + 0.12,
                xanchor="right" if 2 * spectra.rank > at[-1] else "left",
                yanchor="bottom",
            )
        ],
        xaxis=go.axis(
            words.singular_axis(spectra.matrix), zeroline=False, nticks=7, range=[0, 1.02 * float(at[-1])]
        ),
        yaxis=go.axis(words.SHARE, showgrid=True, type="log", range=[float(low), 0.1])
        | {"tickvals": [0.001, 0.01, 0.1, 1], "ticktext": ["0.1%", "1%", "10%", "100%"]},
    )


def _rule_line(rule: Rule, x: np.ndarray, y: np.ndarray, form: str = ".4f", name: str = "") -> go.Trace:
    name, hover = name or words.RULE_NAMES[rule], "%{y:" + form + "}"
    return go.line(x, y, RULE_COLOURS[rule], name, hover, width=3, dash=DASHES[rule])
