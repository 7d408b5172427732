"""Heads that form while it trains: the score of every head beside the loss, and what two of them look at: the
one that most reads the letter before, and the one that copies most.

Shown for a run whose text repeats itself (TrainConfig.repeat): there heads learn to copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.data.corpus import Corpus
from engine.data.tokenizers import token_bytes
from engine.errors import GlassformerError
from engine.parts.registry import parts_of
from engine.training.records import HeadScores
from engine.training.repeats import parted
from pages.start.train.shown_runs import compared
from runs.snapshot_series import Lapse
from runs.state import RunSpec, RunView
from studies.attention.head_scores import (
    HALF,
    HeadFormation,
    HeadGrowth,
    Kind,
    RepeatedReading,
    formed,
    grown,
    patterns_twice,
)
from studies.attention.heads import HeadValue
from studies.experiments.race_table import name_of
from studies.shapes.batch_example import shifted_batch
from ui import content, memo, widgets
from ui.fields import NEWLINE
from ui.figures import specs as go
from ui.figures.patterns import named_cells, placed
from ui.figures.theme import SEQUENTIAL, colour
from ui.models import LAPSES, RUN, lapse_of, model_after
from ui.players.plot import plot
from ui.text.tokens import show_bytes
from ui.timeline import DOES

TEXT = content.beside(__file__)
SHIPPED = next(iter(LAPSES))
ACROSS = 52  # letters of a window that are shown in a line
NEAR = 0.08  # of the steps: names of heads that formed so shortly after one another would touch
APART = 2.0  # nats: then there is room between the curves for the name of the lower one
PANEL = 0.86  # of a panel's height is below its title
SHADES: Mapping[Kind, str] = {"induction": "attention", "previous": "run1"}
Looks = Sequence[tuple[int, HeadScores]]


def windows(spec: RunSpec, corpus: Corpus, rows: int) -> str:
    """Returns the first windows of the first step, a line each; a bar where a window begins again."""
    try:
        batch = shifted_batch(corpus, spec.model, spec.train, 1, rows=rows, parts=parts_of(spec.parts))
    except GlassformerError:
        return ""
    lines = ("│".join("".join(piece) for piece in parted(row)) for row in batch.x)
    return "\n".join(line[:ACROSS].replace("\n", NEWLINE) + " …" for line in lines)


def scored(view: RunView) -> HeadGrowth | None:
    """Returns what the heads of a run do now; None where they are not scored, or the training has failed."""
    looks = view.history.evaluations
    failed = bool(looks) and not math.isfinite(looks[-1].validation_loss)
    return None if failed else grown(looks)


def answer(growth: HeadGrowth) -> str:
    """Says whether a head copies, what formed below it, since when, and what that does to the loss."""
    if growth.is_formed:
        said = [
            TEXT(
                "copies",
                order=_order(growth),
                weight=growth.head.value,
                since=growth.since,
                seconds=growth.seconds,
                before=growth.before,
            )
        ]
    else:
        said = [TEXT("none yet", step=growth.step, head=_name(growth.head), weight=growth.head.value)]
        if growth.previous_formed is not None:
            said.append(TEXT("one reads", head=_name(growth.previous), weight=growth.previous.value))
    said.append(TEXT("costs", first=growth.first_loss, second=growth.second_loss))
    return " ".join(said)


def before_another(growth: HeadGrowth, share: float, steps: int) -> str:
    """Returns the sentence before the first run, beside one that is stored."""
    return TEXT(
        "before another",
        order=_order(growth),
        first=growth.first_loss,
        second=growth.second_loss,
        share=share,
        steps=steps,
    )


def _order(growth: HeadGrowth) -> str:
    """Says which of the two formed first: the beginning of a sentence."""
    if growth.previous_formed is None or growth.formed is None:
        return TEXT("order copies", step=growth.step, head=_name(growth.head))
    return TEXT(
        "order reads first" if growth.previous_formed < growth.formed else "order copies first",
        previous=_name(growth.previous),
        previous_formed=growth.previous_formed,
        head=_name(growth.head),
        formed=growth.formed,
    )


def _name(head: HeadValue) -> str:
    return content.Filled(f"{head.layer}.{head.head}")


def looked_at(view: RunView, other: RunView | None) -> tuple[RunView, HeadGrowth] | None:
    """Returns the run whose heads are shown, and what they do: of a pair the one that is chosen,
    above them.
    """
    growths = {run.id: (run, heads) for run in compared(view, other) if (heads := scored(run))}
    if len(growths) < 2:
        return next(iter(growths.values()), None)
    ids = dict(zip(("first", "second"), growths.values(), strict=True))
    names = {name: name_of(run) for name, (run, _) in ids.items()}
    return ids[widgets.select(TEXT["heads of"], names, "heads_of")]


def both(view: RunView, other: RunView) -> str:
    """Says what the heads of two runs do; nothing where those of one are not scored."""
    said = [
        TEXT("one of both", name=name_of(run), head=_name(growth.head), weight=growth.head.value)
        for run in (view, other)
        if (growth := scored(run))
    ]
    return TEXT("both", first=said[0], second=said[1]) if len(said) == 2 else ""


def heads(view: RunView, growth: HeadGrowth, height: int) -> None:
    """Draws scores and the losses of both readings by step; beside them what the two best heads look at."""
    course, pattern = st.columns([8, 5], gap="small")
    looks = [(look.step, look.heads) for look in view.history.evaluations if look.heads is not None]
    with course:
        _scores(looks, growth, view.total_steps, height)
    with pattern:
        _patterns(RUN + view.id, view.snapshots, growth, height)


def shipped() -> Lapse | None:
    """Returns the training that comes with the app, in which heads form; None where it is missing
    or damaged.
    """
    try:
        lapse = lapse_of(SHIPPED)
    except GlassformerError:
        return None
    return lapse if grown(lapse.looks) else None


def went(lapse: Lapse, height: int) -> HeadGrowth | None:
    """Draws what stands there before the first run: how it went in the shipped training."""
    growth = grown(lapse.looks)
    if growth is None:
        return None
    st.markdown(
        TEXT(
            "went",
            layers=lapse.config.n_layers,
            width=lapse.config.d_model,
            share=lapse.train.repeat,
            seed=lapse.train.seed,
            steps=lapse.train.steps,
        )
    )
    course, pattern = st.columns([8, 5], gap="small")
    with course:
        looks = [(look.step, look.heads) for look in lapse.looks if look.heads is not None]
        _scores(looks, growth, lapse.train.steps, height)
    with pattern:
        _patterns(SHIPPED, lapse.steps, growth, height)
    return growth


def _scores(looks: Looks, growth: HeadGrowth, steps: int, height: int) -> None:
    head = growth.head
    plot(
        scores(looks, formed(looks), head, float(steps)),
        key="head_scores",
        height=height,
        alt=TEXT("alt scores", step=growth.step, head=_name(head), weight=head.value),
        name="head-scores",
        data=_scores_table(looks),
    )


def _patterns(name: str, steps: Sequence[int], growth: HeadGrowth, height: int) -> None:
    """The best reader of the letter before and the best copier, at the newest of the `steps` that are kept of
    the training of that `name`.
    """
    step = max((step for step in steps if step <= growth.step), default=None)
    reading = _seen(name, step) if step is not None else None
    if reading is None or step is None:
        return
    labels, twice = reading
    st.caption(TEXT("patterns", step=step))
    best: dict[Kind, HeadValue] = {"previous": growth.previous, "induction": growth.head}
    plot(
        patterns(
            {
                kind: (
                    TEXT("pattern", head=_name(head), does=DOES[kind], weight=head.value),
                    twice.patterns[head.layer, head.head],
                )
                for kind, head in best.items()
            },
            labels,
        ),
        key="head_patterns",
        height=height - 40,
        alt=TEXT(
            "alt patterns",
            step=step,
            previous=_name(growth.previous),
            previous_weight=growth.previous.value,
            head=_name(growth.head),
            weight=growth.head.value,
        ),
        name="head-patterns",
    )


@memo.measured()
def _seen(name: str, step: int) -> tuple[list[str], RepeatedReading] | None:
    """None for a snapshot that has just gone, and where nothing can be read twice."""
    try:
        snapshot = model_after(name, step)
    except GlassformerError:
        return None
    twice = patterns_twice(snapshot.model, snapshot.tokenizer)
    if twice is None:
        return None
    tokens = token_bytes(snapshot.tokenizer)
    return [show_bytes(tokens[i]) for i in twice.ids], twice


def scores(looks: Looks, formations: Sequence[HeadFormation], best: HeadValue, end: float) -> go.Figure:
    """Draws, above, how much of its weight each head gives to copying and to the letter before, by step: bold
    where it ever gave half, with its name where it first did. Below, the losses of both readings, nats.
    """
    steps = np.array([step for step, _ in looks])
    bold = {(f.kind, f.layer, f.head) for f in formations} | {("induction", best.layer, best.head)}
    traces: list[dict[str, Any]] = []
    for kind, shade in SHADES.items():
        grids = np.array([getattr(heads, kind) for _, heads in looks])  # (look, layer, head)
        cells = list(np.ndindex(grids.shape[1:]))
        named = next((at for at in cells if (kind, *at) in bold), cells[0])  # in the legend
        for layer, head in cells:
            strong = (kind, layer, head) in bold
            line = {"color": colour(shade, 100 if strong else 45), "width": 3 if strong else 1}
            legend = {"showlegend": (layer, head) == named, "legendgroup": kind, "name": DOES[kind]}
            hover = TEXT("hover score", head=f"{layer}.{head}", does=DOES[kind])
            values = grids[:, layer, head]
            traces.append(
                go.Scatter(mode="lines", x=steps, y=values, line=line, hovertemplate=hover, **legend)
            )
    first, second = (
        np.array([getattr(heads, name) for _, heads in looks]) for name in ("first_loss", "second_loss")
    )
    traces += [
        _loss(steps, first, TEXT["new"], "quiet"),
        _loss(steps, second, TEXT["again"], "validation"),
    ]
    apart = first[-1] - second[-1] > APART
    return go.figure(
        traces,
        uirevision="head-scores",
        margin={"l": 48, "r": 12, "t": 8, "b": 40},
        legend={"font": {"size": 12}},
        xaxis={"title": {"text": TEXT["step"]}, "range": [0, max(end, float(steps[-1]))], "anchor": "y2"},
        yaxis={"title": {"text": TEXT["weight"]}, "range": [0, 1.02], "domain": [0.44, 1]},
        yaxis2={
            "title": {"text": TEXT["nats"]},
            "range": [0, 1.35 * max(1.0, float(np.nanmax(first)))],
            "domain": [0, 0.34],
            "anchor": "x",
        },
        shapes=[go.rule(y=HALF, line={"color": colour("quiet"), "width": 1, "dash": "dot"})],  # formed
        annotations=[
            go.note(TEXT["formed"], 0, HALF, xref="paper", xanchor="left", yanchor="bottom"),
            *(_named(f, looks, row) for f, row in zip(formations, _rows(formations, end), strict=True)),
            _beside(steps, first, TEXT["new"], "quiet", "bottom", end),
            _beside(steps, second, TEXT["repeated"], "validation", "bottom" if apart else "top", end),
        ],
    )


def _rows(formations: Sequence[HeadFormation], end: float) -> list[int]:
    """How many names each has to stand above: those of heads that formed shortly before it."""
    rows: list[int] = []
    for i, formation in enumerate(formations):
        near = i > 0 and formation.step - formations[i - 1].step < NEAR * end
        rows.append(rows[-1] + 1 if near else 0)
    return rows


def _named(formation: HeadFormation, looks: Looks, row: int) -> dict[str, Any]:
    """A head's name where its score first passed a half."""
    heads = dict(looks)[formation.step]
    side = 1 if formation.kind == "induction" else -1  # below its curve and above: they cross
    return {
        "x": formation.step,
        "y": getattr(heads, formation.kind)[formation.layer][formation.head],
        "text": f"{formation.layer}.{formation.head}",
        "showarrow": True,
        "arrowhead": 0,
        "ax": side * 28,
        "ay": side * (12 + 16 * row),
        "arrowwidth": 1,
        "arrowcolor": colour(SHADES[formation.kind]),
        "font": {"color": colour(SHADES[formation.kind]), "size": 13},
    }


def _loss(steps: np.ndarray, losses: np.ndarray, name: str, shade: str) -> go.Trace:
    look = {"line": {"color": colour(shade), "width": 2}, "showlegend": False, "mode": "lines"}
    hover = TEXT("hover loss", reading=name)
    return go.Scatter(x=steps, y=losses, yaxis="y2", name=name, hovertemplate=hover, **look)


def _beside(
    steps: np.ndarray, losses: np.ndarray, name: str, shade: str, side: str, end: float
) -> dict[str, Any]:
    """A curve's name and its newest loss, at its end."""
    return go.note(
        TEXT("newest", reading=name, loss=float(losses[-1])),
        float(steps[-1]),
        float(losses[-1]),
        yref="y2",
        xanchor="left" if steps[-1] < end / 2 else "right",
        yanchor=side,
        font={"color": colour(shade), "size": 12},
    )


def _scores_table(looks: Looks) -> dict[str, Any]:
    """Returns one row for each look: what the CSV holds."""
    table: dict[str, Any] = {
        "step": [step for step, _ in looks],
        "first_reading_nats": [heads.first_loss for _, heads in looks],
        "second_reading_nats": [heads.second_loss for _, heads in looks],
    }
    for kind in SHADES:
        for layer, row in enumerate(getattr(looks[0][1], kind)):
            for head in range(len(row)):
                column = [getattr(heads, kind)[layer][head] for _, heads in looks]
                table[f"{kind}_{layer}.{head}"] = column
    return table


def patterns(heads: Mapping[Kind, tuple[str, np.ndarray]], labels: Sequence[str]) -> go.Figure:
    """Draws a panel each, one below the other: its title and its weights (query, key) of a sequence read
    twice, of which lines part the first reading from the second.
    """
    names, each = placed(labels), 1 / len(heads)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    notes, shapes = [], []
    for i, (kind, (title, weights)) in enumerate(heads.items()):
        mark = "" if i == 0 else str(i + 1)
        top = 1 - i * each
        traces.append(
            go.Heatmap(
                z=weights.astype(np.float32),
                zmin=0,
                zmax=1,
                colorscale=SEQUENTIAL,
                showscale=False,
                xaxis=f"x{mark}",
                yaxis=f"y{mark}",
                **named_cells([TEXT("attends", token=name) for name in names], names, " to "),
                hovertemplate=TEXT["hover weight"],
            )
        )
        layout |= _panel(mark, [top - 0.98 * each, top - (1 - PANEL) * each])
        font = {"color": colour(SHADES[kind]), "size": 13}
        notes.append(go.note(title, 0.5, top, xref="paper", yref="paper", yanchor="top", font=font))
        shapes += _parted(len(labels), mark)
    margin = {"l": 22, "r": 4, "t": 2, "b": 2}
    return go.figure(traces, margin=margin, showlegend=False, annotations=notes, shapes=shapes, **layout)


def _panel(mark: str, domain: list[float]) -> dict[str, Any]:
    """The axes of one panel: square cells, no labels but the name of the rows."""
    axis = {"showticklabels": False, "showgrid": False, "zeroline": False, "ticks": ""}
    across = {"anchor": f"y{mark}", "constrain": "domain", **axis}
    down = {
        "title": {"text": TEXT["query"], "font": {"size": 12}},
        "anchor": f"x{mark}",
        "domain": domain,
        "autorange": "reversed",
        "scaleanchor": f"x{mark}",
        "constrain": "domain",
        "constraintoward": "top",
        **axis,
    }
    return {f"xaxis{mark}": across, f"yaxis{mark}": down}


def _parted(count: int, mark: str) -> list[dict[str, Any]]:
    """Lines between the first reading and the second."""
    half, edge = count / 2 - 0.5, count - 0.5
    line = {"color": colour("quiet"), "width": 1, "dash": "dot"}
    shape = {"type": "line", "xref": f"x{mark}", "yref": f"y{mark}", "line": line}
    return [
        {**shape, "x0": half, "x1": half, "y0": -0.5, "y1": edge},
        {**shape, "x0": -0.5, "x1": edge, "y0": half, "y1": half},
    ]
