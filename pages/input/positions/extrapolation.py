"""The view "Extrapolation": six schemes by what they cost and how far beyond their training they reach, as it
was measured when their models were trained. Measurements to repeat are folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from engine.config import Position
from engine.errors import CheckpointError
from engine.experiments.extrapolation import Plan, SchemeRun, shipped_runs
from engine.experiments.ladder_gains import separate
from engine.measure.positions.extrapolation import (
    TIMES,
    Curve,
    Reach,
    costs,
    curve,
    least,
    position_losses,
    reach_of,
    stopgap,
    window_starts,
)
from engine.measure.positions.schemes import HOOK_NAMES, SCHEMES, parameters_added, similarity
from engine.measure.slices import seed_median
from engine.presets import PRESETS
from engine.weights import checkpoints
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.loss_by_position import Line, above_rows, losses_figure
from pages.input.positions.measured_losses import draw_measured_losses
from pages.input.positions.schemes import TITLES
from pages.input.positions.sensitivity import draw_sensitivity
from ui import content, explain, memo, widgets
from ui.layout import wide_table
from ui.page_frame import View
from ui.players.plot import plot
from ui.site import ROOT

TEXT = content.beside(__file__)
TABLE = 760  # pixels of the table: a narrower screen scrolls it
FOLDER = ROOT / "checkpoints" / "positions"


def draw() -> None:
    """Draws the loss by position of the six schemes, and a table of them."""
    models = _models()
    if not models:
        st.error(TEXT["no models"])
        return
    figure, controls = st.columns([4, 1], gap="medium")
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
        st.caption(" ".join(said))
    if not chosen:
        st.info(TEXT["none chosen"])
        return
    runs = {name: (_shipped_run(name, models[name]), *repeats.get(name, ())) for name in chosen}
    context = models[chosen[0]].config.context
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
    explain.measure_it(_draw_measured, models, tuple(chosen))


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


def _draw_measured(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws what can be measured anew, and all that is known of the schemes."""
    draw_measured_losses(models, chosen)
    draw_sensitivity(models)
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


VIEW = View(
    "bench",
    TEXT,
    draw,
    code=(similarity, position_losses, curve, window_starts, stopgap),
    needs_model=False,
)
