"""The view "Extrapolation": six schemes by what they cost and how far beyond their training they reach, as it
was measured when their models were trained. Measurements to repeat are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from engine.config import Position
from engine.errors import CheckpointError
from engine.experiments.extrapolation import Plan, SchemeRun, shipped_runs
from engine.experiments.ladder_gains import separate
from engine.measure.positions.extrapolation import TIMES, Curve, costs, least, reach_of
from engine.measure.positions.schemes import HOOK_NAMES, SCHEMES, parameters_added
from engine.measure.slices import seed_median
from engine.presets import PRESETS
from engine.weights import checkpoints
from engine.weights.checkpoints import Checkpoint
from pages.input.positions import figures_bench as figures
from pages.input.positions import words_measured
from pages.input.positions.bench_measured import above_rows, draw_extrapolation
from pages.input.positions.bench_similarity import draw_similarity
from pages.input.positions.figures_bench import Line
from pages.input.positions.schemes import TITLES
from pages.input.positions.words_answers import reach_sentence
from ui import explain, memo, widgets
from ui.players.plot import plot
from ui.site import ROOT
from ui.text.numbers import minus

TABLE = 760  # pixels of the table: a narrower screen scrolls it
FOLDER = ROOT / "checkpoints" / "positions"


def draw_bench() -> None:
    """Draws the loss by position of the six schemes, and a table of them."""
    models = _models()
    if not models:
        st.error(words_measured.NO_MODELS)
        return
    figure, controls = st.columns([4, 1], gap="medium")
    with controls:
        titles = {TITLES[name]: name for name in SCHEMES if name in models}
        chosen = [
            titles[title]
            for title in widgets.select_several(
                "Schemes", [*titles], "bench_schemes", first=titles, wrap=True
            )
        ]
        repeats = _repeats()
        seeds = 1 + min(len(repeats.get(name, ())) for name in models)
        date = next(iter(models.values())).metrics.get("date", "an unknown date")
        st.caption(
            f"Measured when the models were trained ({date})."
            + (f" Thin lines: the same training with {seeds - 1} other seeds." if seeds > 1 else "")
        )
    if not chosen:
        st.info("Choose at least one scheme.")
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
    ends = "learned" in runs
    explain.answer(reach_sentence(reach, context, TIMES, ends, tied, seeds))
    _draw_table(models, runs, context)
    explain.measure_it(_draw_measured, models, tuple(chosen))


@memo.loaded("Reading the models …")
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
        Line(TITLES[name], name, first.curve, others=[run.curve for run in others])
        for name, (first, *others) in runs.items()
    ]
    plot(
        figures.position_losses(lines, context),
        key="bench_record",
        height=265,
        name="loss-by-position",
        data=above_rows({(name, None): each[0].curve for name, each in runs.items()}, "nats"),
        alt=(
            f"Lines: loss by position up to {TIMES * context} for {', '.join(line.name for line in lines)}; a"
            f" vertical line at {context} marks the training length."
        ),
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
            {f"loss at {context}": f"{seed_median(of.validation for of in each_cost):.3f}"}
            | {
                f"at {times * context}": _over_seeds([pair[0] for pair in pairs if pair], len(each))
                for times, pairs in more.items()
            }
            | {
                "parameters": f"{parameters_added(models[name].config, name):,}",
                "used by (published)": SCHEMES[name].used_by,
            }
        )
    # On a phone the losses are seen at once, and the table scrolls to the rest.
    st.html(
        f"<style>.st-key-bench_table table {{ min-width: {TABLE}px; }}"
        " .st-key-bench_table th, .st-key-bench_table th * { overflow-wrap: normal; word-break: normal; }"
        "</style>"
    )
    with st.container(key="bench_table"):
        st.table(pd.DataFrame.from_dict(rows, orient="index"))


def _over_seeds(values: Sequence[float], seeds: int) -> str:
    """Writes the median to two decimals, and the range where it can be seen at that precision; n/a unless
    every seed has a value.
    """
    if len(values) < seeds:
        return "n/a"
    low, high = (f"{of(values):.2f}" for of in (min, max))
    middle = f"{seed_median(values):+.2f}"
    return minus(middle if low == high else f"{middle} ({low} to {high})")


def _draw_measured(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws what can be measured anew, and all that is known of the schemes."""
    draw_extrapolation(models, chosen)
    draw_similarity(models)
    _draw_facts(models)


# Facts ------------------------------------------------------------------------------------------


def _draw_facts(models: dict[Position, Checkpoint]) -> None:
    here, published = next(iter(models.values())).config, PRESETS["gpt2"].model
    st.markdown("### Where they enter, and what they cost")
    rows = {
        scheme.title: {
            "enters at": HOOK_NAMES[scheme.hook],
            "tells": {
                "nothing": "nothing: only the causal mask",
                "absolute": "absolute position",
                "relative": "relative distance",
            }[scheme.carries],
            "parameters here": f"{parameters_added(here, name):,}",
            "at GPT-2 small's sizes": f"{parameters_added(published, name):,}",
            "longest text": scheme.limit,
            "introduced in": scheme.source,
        }
        for name, scheme in SCHEMES.items()
    }
    st.table(pd.DataFrame.from_dict(rows, orient="index"))
    st.caption(words_measured.costs(here, published))
