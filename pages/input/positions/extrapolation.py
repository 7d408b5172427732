"""The view "Extrapolation": six schemes by what they cost and how far beyond their training they reach, as it
was measured when their models were trained. Measurements to repeat are folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine import checkpoints
from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.errors import CheckpointError
from engine.model import build
from engine.slices import seed_median
from pages.input.positions import stretched
from pages.input.positions.loss_by_position import Line, above_rows, losses_figure
from pages.input.positions.measured_losses import draw_measured_losses
from pages.input.positions.schemes import COLOURS, TITLES
from studies.costs.presets import PRESETS
from studies.experiments.extrapolation import Plan, SchemeRun, shipped_runs
from studies.experiments.ladder_gains import separate
from studies.positions.extrapolation import (
    TIMES,
    Curve,
    Reach,
    above_trained,
    costs,
    curve,
    least,
    position_losses,
    reach_of,
    stopgap,
    window_starts,
)
from studies.positions.schemes import HOOK_NAMES, SCHEMES, Similarity, parameters_added, similarity
from studies.positions.stretched_rope import StretchedRope, stretched_frequencies, temperature_gain
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import base_layout, colour
from ui.layout import scrolled, wide_table
from ui.page_frame import Code, View
from ui.players.plot import plot
from ui.site import ROOT

TEXT = content.beside(__file__)
COMPARE, SCHEMES_ALONE, STRETCHED = "bench_compare", "schemes", "stretched"
TABLE = 760  # pixels of the table: a narrower screen scrolls it
FOLDER = ROOT / "checkpoints" / "positions"
Similarities = dict[Position, tuple[Similarity, Similarity]]  # (untrained, trained)


def draw() -> None:
    """Draws the loss by position of the six schemes, and a table of them."""
    models = _models()
    if not models:
        st.error(TEXT["no models"])
        return
    figure, controls = st.columns([4, 1], gap="medium")
    context = next(iter(models.values())).config.context
    with controls:
        shown = widgets.select(TEXT["compare"], _compared(), COMPARE, kind="list", hidden=True)
    if shown == STRETCHED:
        stretched.draw(figure, controls, context)
        return
    with controls:
        titles = {TITLES[name]: name for name in SCHEMES if name in models}
        wanted = widgets.select_several(TEXT["schemes"], [*titles], "bench_schemes", first=titles, wrap=True)
        chosen = [titles[title] for title in wanted]
        repeats = _repeats()
        seeds = 1 + min(len(repeats.get(name, ())) for name in models)
        date = next(iter(models.values())).metrics.get("date", TEXT["unknown date"])
        said = [TEXT("measured on", date=date)]
        if seeds > 1:
            said.append(TEXT("thin lines", others=seeds - 1))
    if not chosen:
        st.info(TEXT["none chosen"])
        return
    runs = {name: (_shipped_run(name, models[name]), *repeats.get(name, ())) for name in chosen}
    with figure:
        _draw_curves(runs, context)
    losses = {name: [run.validation_loss for run in each] for name, each in runs.items()}
    trained = {name: seed_median(each) for name, each in losses.items()}
    best = losses[least(trained)]
    tied = {
        name: trained[name]
        for name in sorted(trained, key=trained.__getitem__)
        if losses[name] is best or not separate(losses[name], best)
    }
    reach = reach_of({name: [run.curve for run in each] for name, each in runs.items()})
    explain.answer(_answer(reach, context, "learned" in runs, tied, seeds))
    _draw_table(models, runs, context)
    explain.measure_it(_draw_measured, models, tuple(chosen), " ".join(said))


def _compared() -> dict[str, str]:
    return {name: TEXT[f"compare {name}"] for name in (SCHEMES_ALONE, STRETCHED)}


def _answer(
    reach: Reach[Position], context: int, ends: bool, best: Mapping[Position, float], seeds: int
) -> str:
    """Says which schemes hold beyond their training and which do not. `ends`: the learned table is among
    them. `best`: the schemes of least validation loss, in nats, those that seeds do not tell apart. With
    several `seeds` the numbers are medians.
    """
    so = {"holds": reach.held, "fails": reach.lost, "ends": ends}
    case = " ".join(name for name, some in so.items() if some) if reach.held or reach.lost else "ends"
    beyond = TEXT(
        f"reach {case}",
        holding=_risen(reach.held),
        schemes=len(reach.held),
        failing=_risen(reach.lost),
        context=context,
        far=TIMES * context,
    )
    ahead = (TEXT("best one", scheme=TITLES[name], loss=loss) for name, loss in best.items())
    within = TEXT(
        "best medians" if seeds > 1 else "best",
        context=context,
        best=content.Filled(f" {TEXT['and']} ".join(ahead)),
        schemes=len(best),
        seeds=seeds,
    )
    return f"{beyond} {within}"


def _risen(some: Mapping[Position, float]) -> content.Filled:
    names = TITLES | {"none": TEXT["no positions"]}
    return content.Filled(
        ", ".join(TEXT("risen", scheme=names[name], more=more) for name, more in some.items())
    )


@memo.loaded(TEXT["reading"])
def _models() -> dict[Position, Checkpoint]:
    """The shipped models, by scheme; one that is missing or damaged is left out."""
    result: dict[Position, Checkpoint] = {}
    for scheme in SCHEMES:
        try:
            result[scheme] = checkpoints.load(FOLDER / scheme)
        except CheckpointError:
            continue
    return result


def _shipped_run(name: Position, model: Checkpoint) -> SchemeRun:
    """The shipped model as a run among those of other seeds."""
    seed, curve = model.metrics["train"]["seed"], Curve.from_dict(model.metrics["extrapolation"])
    return SchemeRun(Plan(name, seed), model.metrics["validation_loss"], curve)


@memo.measured()
def _repeats() -> dict[Position, list[SchemeRun]]:
    """The runs with other seeds, by scheme; none where their file is missing or damaged."""
    with suppress(CheckpointError):
        runs = shipped_runs()
        return {name: [run for run in runs if run.plan.scheme == name] for name in SCHEMES}
    return {}


def _draw_curves(runs: dict[Position, tuple[SchemeRun, ...]], context: int) -> None:
    lines = [
        Line((name, None), first.curve, others=[run.curve for run in others])
        for name, (first, *others) in runs.items()
    ]
    plot(
        losses_figure(lines, context),
        key="bench_record",
        height=265,
        name="loss-by-position",
        data=above_rows({(name, None): each[0].curve for name, each in runs.items()}, "nats"),
        alt=TEXT("alt", context=context, far=TIMES * context, schemes=", ".join(line.name for line in lines)),
    )


def _draw_table(
    models: dict[Position, Checkpoint], runs: dict[Position, tuple[SchemeRun, ...]], context: int
) -> None:
    """Draws who uses which scheme, what it costs, and what a longer text costs more: medians of the seeds,
    with their range.
    """
    rows = {}
    for name, each in runs.items():
        each_cost = [costs(run.curve, run.validation_loss, None) for run in each]
        more = {times: [of.more[times] for of in each_cost] for times in each_cost[0].more}
        rows[TITLES[name]] = (
            {TEXT("column loss", context=context): f"{seed_median(of.validation for of in each_cost):.3f}"}
            | {
                TEXT("column at", length=times * context): _over_seeds(
                    [pair[0] for pair in pairs if pair], len(each)
                )
                for times, pairs in more.items()
            }
            | {
                TEXT["column parameters"]: f"{parameters_added(models[name].config, name):,}",
                TEXT["column used"]: SCHEMES[name].used_by,
            }
        )
    # On a phone the losses are seen at once, and the table scrolls to the rest.
    wide_table("bench_table", TABLE)
    with st.container(key="bench_table"):
        st.table(pd.DataFrame.from_dict(rows, orient="index"))


def _over_seeds(values: Sequence[float], seeds: int) -> str:
    """Writes the median to two decimals, and the range where it can be seen at that precision; n/a unless
    every seed has a value.
    """
    if len(values) < seeds:
        return TEXT["not available"]
    low, high = min(values), max(values)
    same = f"{low:.2f}" == f"{high:.2f}"
    return TEXT("median" if same else "median and range", median=seed_median(values), low=low, high=high)


def _draw_measured(models: dict[Position, Checkpoint], chosen: tuple[Position, ...], about: str) -> None:
    """Draws what can be measured anew, and all that is known of the schemes, below what the curves are."""
    st.caption(about)
    draw_measured_losses(models, chosen)
    _draw_sensitivity(models)
    _draw_facts(models)


def _draw_facts(models: dict[Position, Checkpoint]) -> None:
    here, published = next(iter(models.values())).config, PRESETS["gpt2"].model
    st.markdown(TEXT["facts"])
    rows = {
        scheme.title: {
            TEXT["enters at"]: HOOK_NAMES[scheme.hook],
            TEXT["tells"]: TEXT[f"tells {scheme.carries}"],
            TEXT["parameters here"]: f"{parameters_added(here, name):,}",
            TEXT["parameters published"]: f"{parameters_added(published, name):,}",
            TEXT["longest"]: scheme.limit,
            TEXT["introduced"]: scheme.source,
        }
        for name, scheme in SCHEMES.items()
    }
    st.table(pd.DataFrame.from_dict(rows, orient="index"))
    st.caption(
        TEXT(
            "costs",
            context=here.context,
            width=here.d_model,
            heads=here.n_heads,
            published_context=published.context,
            published_width=published.d_model,
            published_heads=published.n_heads,
        )
    )


@memo.measured()
def _similarities(_models: dict[Position, Checkpoint]) -> Similarities:
    """Measures similarity by distance for each scheme, as far as the texts below are long."""
    result = {}
    for scheme, checkpoint in _models.items():
        reach, seed = TIMES * checkpoint.config.context, int(checkpoint.metrics["train"]["seed"])
        fresh = build(checkpoint.config, seed).requires_grad_(False).eval()
        result[scheme] = similarity(fresh, reach), similarity(checkpoint.model, reach)
    return result


def _draw_sensitivity(models: dict[Position, Checkpoint]) -> None:
    """Draws a panel for each scheme, and a sentence of what they make of near and far."""
    st.markdown(TEXT["heading"])
    context = next(iter(models.values())).config.context
    trained = widgets.switch(TEXT["trained"], False, "bench_trained")
    similarities = _similarities(models)
    with st.container(key="bench_panels"):
        scrolled("bench_panels", 700)
        plot(
            similarity_panels(similarities, trained, context, TIMES * context),
            key="bench_similarity",
            height=430,
            name="similarity-by-distance",
            data=_similarity_rows(similarities),
            alt=TEXT["alt sensitivity"],
        )
    st.caption(" ".join([TEXT("quantities", context=context), *_untrained(similarities)]))


def _untrained(similarities: Similarities) -> list[str]:
    """Says what the untrained schemes make of near and far, in numbers."""
    each = []
    names: tuple[Position, ...] = ("sinusoidal", "rope")
    for name in names:
        if name in similarities:
            fresh, _ = similarities[name]
            near, far = fresh.range_at(1)[0], fresh.range_at(16)[0]
            each.append(TEXT("near and far", title=TITLES[name], near=near, far=far))
    if "alibi" in similarities:
        low, high = similarities["alibi"][0].range_at(16)
        each.append(TEXT("far in ALiBi", low=low, high=high))
    said: list[str] = [TEXT("differ", each=content.Filled("; ".join(each)))] if each else []
    if "learned" in similarities:
        low, high = similarities["learned"][0].range_apart
        said.append(TEXT("untrained table", low=low, high=high))
    return said


def _similarity_rows(similarities: Similarities) -> pd.DataFrame:
    """A row for each distance, a column for each line."""
    columns = {
        f"{TITLES[scheme]}, {name}, {when}": pd.Series(values.astype(np.float32), index=s.distance)
        for scheme, (fresh, trained) in similarities.items()
        for when, s in (("untrained", fresh), ("trained", trained))
        for name, values in zip(s.lines, s.values, strict=True)
    }
    return pd.DataFrame(columns).rename_axis("distance").reset_index()


# Figures ------------------------------------------------------------------------------------------


def similarity_panels(panels: Similarities, both: bool, context: int, reach: int) -> go.Figure:
    """Draws a panel for each scheme, three in a row, all on one axis from 0 to `reach`: untrained, and after
    training where it is `both`.
    """
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    notes, shapes = [], []
    rows = -(-len(panels) // 3)
    for i, (scheme, (fresh, trained)) in enumerate(panels.items()):
        axis, column, row = "" if i == 0 else str(i + 1), i % 3, i // 3
        left, top = column * 0.35, 1 - 0.09 - row * 1.09 / rows
        bottom = max(0.0, top - 1 / rows + 0.19)
        shade = COLOURS[scheme]
        traces += _panel_lines(trained, "trained", shade, axis) if both else []
        traces += _panel_lines(fresh, "untrained", shade, axis)
        lowest = row == rows - 1 or i + 3 >= len(panels)
        axes[f"xaxis{axis}"] = {
            "domain": [left, left + 0.3],
            "range": [0, reach],
            "anchor": f"y{axis}",
            "showgrid": False,
            "zeroline": False,
            "tickvals": [0, context, 2 * context, 4 * context],
            "title": {"text": TEXT["distance"] if lowest else "", "standoff": 4},
        }
        axes[f"yaxis{axis}"] = dict(
            domain=[bottom, top], range=[-0.35, 1.12], anchor=f"x{axis}", tickvals=[0, 0.5, 1]
        )
        where = {
            "xref": "paper",
            "yref": "paper",
            "x": left,
            "y": top + 0.01,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
        }
        notes.append({"text": f"<b>{TITLES[scheme]}</b> · {fresh.quantity}", "font": {"size": 13}} | where)
        shapes.append(
            {
                "type": "line",
                "xref": f"x{axis}",
                "yref": f"y{axis} domain",
                "x0": context,
                "x1": context,
                "y0": 0,
                "y1": 1,
                "line": {"color": colour("quiet"), "width": 1, "dash": "dot"},
            }
        )
    layout = base_layout(
        margin={"l": 36, "r": 8, "t": 4, "b": 40}, showlegend=False, annotations=notes, shapes=shapes
    )
    return go.Figure({"data": traces, "layout": layout | axes})


def _panel_lines(similarity: Similarity, when: str, shade: str, axis: str) -> list[dict[str, Any]]:
    fresh = when == "untrained"
    return [
        go.Scatter(
            mode="lines",
            x=similarity.distance,
            y=values.astype(np.float32),
            xaxis=f"x{axis}",
            yaxis=f"y{axis}",
            name=name,
            line=dict(color=colour(shade), width=2 if fresh else 1.5, dash="solid" if fresh else "dot"),
            opacity=1 if fresh else 0.9,
            hovertemplate=TEXT(f"hover {when}", name=name),
        )
        for name, values in zip(similarity.lines, similarity.values, strict=True)
    ]


def _variant() -> str:
    return "stretched" if widgets.settled(_compared(), COMPARE) == STRETCHED else ""


def _code() -> Code:
    if _variant():
        return stretched_frequencies, temperature_gain, StretchedRope, above_trained
    return similarity, position_losses, curve, window_starts, stopgap


VIEW = View(
    "bench",
    TEXT,
    draw,
    code=_code,
    needs_model=False,
    variant=_variant,
    variants={"stretched": ((COMPARE, STRETCHED),)},
    shows=("position interpolation", "YaRN", "NTK-aware", "longer context", "context extension"),
)
