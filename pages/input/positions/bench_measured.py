"""Losses by position of six small models, measured live up to four times their training context, for the view
"Extrapolation": which curves are drawn, the curves, the table below, and what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from torch import Tensor

from engine.config import Position
from engine.data import corpora
from engine.data.progress import Progress, Steps
from engine.errors import CorpusError
from engine.measure.positions.extrapolation import (
    TAIL,
    TIMES,
    UNITS,
    Curve,
    Unit,
    above_tail,
    costs,
    curve,
    in_unit,
    position_losses,
    stopgap,
    window_starts,
)
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions import figures_bench as figures
from pages.input.positions import words_answers, words_measured
from pages.input.positions.figures_bench import Line
from pages.input.positions.words_answers import STOPGAPS, Variant, name_of
from ui import memo, session, widgets
from ui.background_jobs import measured
from ui.players.plot import plot
from ui.text.markdown import safe

ABOVE = "Above own last 64"
SHOWN = {"Loss": "Loss", ABOVE: "Excess loss"}  # id in links -> what is written
WINDOWS = {"128": 128, "256": 256, "all": 0}  # 0: every one there is
WIDTHS = ("1", "4", "8", "16")


@dataclass(frozen=True)
class Choice:
    """`windows` are read, and each point is a mean over `width` positions; `above`: what is above a model's
    own sliding window is drawn.
    """

    variants: tuple[Variant, ...]
    above: bool
    unit: Unit
    windows: int
    width: int


def choose(chosen: Sequence[Position], schemes: set[Position], live: bool) -> Choice:
    """Reads the choice from the widgets. `chosen` are drawn as they are; `schemes` are those with a model;
    `live`: something can be measured here.
    """
    variants: list[Variant] = [(name, None) for name in chosen]
    row = st.container(horizontal=True, gap="medium")
    hint = words_measured.EXCESS_HINT
    above = widgets.select("Show", SHOWN, "bench_show", container=row, hint=hint) == ABOVE
    hint = "1 bit is ln 2 = 0.693 nats."
    unit = widgets.select("Unit", tuple(UNITS), "bench_unit", container=row, hint=hint)
    if not live:
        return Choice(tuple(variants), above, unit, 0, TAIL)
    hint = words_measured.WINDOWS_HINT
    windows = widgets.select(
        "Windows", tuple(WINDOWS), "bench_windows", first="256", container=row, hint=hint
    )
    hint = "Positions averaged in each point. 1: no smoothing."
    width = widgets.select(
        "Positions per point", WIDTHS, "bench_bin", first=str(TAIL), container=row, hint=hint
    )
    names = [name for name, (scheme, _) in STOPGAPS.items() if scheme in schemes]
    hint = words_measured.STOPGAPS_HINT
    variants += [
        STOPGAPS[name] for name in widgets.select_several("Stopgaps", names, "bench_stopgaps", hint=hint)
    ]
    return Choice(tuple(variants), above, unit, WINDOWS[windows], int(width))


def draw_curves(
    models: dict[Position, Checkpoint],
    curves: dict[Variant, Curve],
    choice: Choice,
    context: int,
    partial: dict[Variant, Curve],
) -> None:
    """Draws the curves that are measured, and those that are being measured, in nats; and what the former
    say.
    """
    shown = {v: in_unit(c, choice.unit) for v, c in (curves | partial).items()}
    _draw_figure(shown, choice, context, set(partial))
    if ("learned", None) in shown:
        st.caption(words_measured.table_ends(context))
    if any(scheme == "t5" for scheme, _ in shown):
        st.caption(f":material/info: {words_answers.unmet_buckets(models['t5'].model)}")
    if curves and not partial:
        st.table(_numbers(models, curves, choice.unit, context))
        st.caption(words_measured.numbers(context))
        st.markdown(words_answers.bench_summary(models, curves, context))


def _draw_figure(shown: dict[Variant, Curve], choice: Choice, context: int, partial: set[Variant]) -> None:
    """Curves in the unit that was chosen."""
    lines = [Line(name_of(v), v[0], c, v[1] is not None, v in partial) for v, c in shown.items()]
    what = f"excess loss over the model's own last {context}" if choice.above else "loss"
    plot(
        figures.position_losses(lines, context, unit=choice.unit, above=choice.above),
        key="bench_losses",
        height=460,
        name="loss-by-position",
        data=above_rows(shown, choice.unit),
        alt=(
            f"Lines: {what} by position up to {TIMES * context} for {', '.join(line.name for line in lines)};"
            f" a vertical line at {context} marks the training length."
        ),
    )
    base = "" if choice.above else (words_measured.sliding(context))
    st.caption(words_measured.points(choice.width, base, context))


def above_rows(curves: dict[Variant, Curve], unit: Unit) -> pd.DataFrame:
    """Returns a row for each point: what the CSV button saves."""
    frames = [
        pd.DataFrame(
            {
                "scheme": name_of(v),
                "first_position": c.first,
                "last_position": c.first + c.width - 1,
                f"loss_{unit}": c.mean,
                f"standard_error_{unit}": c.error,
                f"above_own_tail_{unit}": above_tail(c),
                "windows": c.windows,
            }
        )
        for v, c in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _numbers(
    models: dict[Position, Checkpoint], curves: dict[Variant, Curve], unit: Unit, context: int
) -> pd.DataFrame:
    """A row for each scheme or stopgap."""
    none = models["none"].metrics["validation_loss"] if "none" in models else None
    rows = {}
    for variant, c in curves.items():
        cost = costs(c, models[variant[0]].metrics["validation_loss"], none, unit)
        mean, error = cost.tail
        row = {
            f"validation loss ({unit})": f"{cost.validation:.3f}",
            "vs no positions": "" if cost.against_none is None else f"{cost.against_none:+.3f}",
            f"end of {context}": f"{mean:.3f} ± {error:.3f}",
        }
        for times, more in cost.more.items():
            answer = "n/a" if more is None else f"{more[0]:+.3f} ± {more[1]:.3f}"
            row[f"more at {times * context}"] = answer
        rows[name_of(variant)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def draw_extrapolation(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws the controls, and the curves as far as they are measured."""
    context = next(iter(models.values())).config.context
    st.markdown(f"### Measured: texts up to {TIMES} times as long as in training")
    problem = _no_corpus(models)
    choice = choose(chosen, set(models), live=not problem)
    if problem:
        date = next(iter(models.values())).metrics.get("date", "an unknown date")
        st.info(words_measured.recorded(problem, date))
        curves = {
            v: Curve.from_dict(models[v[0]].metrics["extrapolation"]) for v in choice.variants if v[1] is None
        }
        draw_curves(models, curves, choice, context, {})
        return
    finished, starts = _kept(choice.windows), _starts(choice.windows, context)
    missing = [v for v in choice.variants if v not in finished]

    def draw(so_far: tuple[Variant, tuple[np.ndarray, ...]] | None) -> None:
        read = np.concatenate(so_far[1]) if so_far else starts[:0]
        begun = {so_far[0]: curve(read, starts[: len(read)], context, choice.width)} if so_far else {}
        known = [v for v in choice.variants if v in finished]
        curves = {v: _curve(v, choice.windows, choice.width, context) for v in known}
        draw_curves(models, curves, choice, context, {v: c for v, c in begun.items() if v not in curves})

    if missing:
        tokens = session.corpus("shakespeare").validation
        key = ("extrapolation", choice.windows, *choice.variants)
        todo = {variant: _model(models, variant) for variant in missing}
        steps = partial(_measuring, todo, tokens, starts, context, finished)
        read = measured(key, steps, f"Reading windows of {TIMES * context} characters", draw)
        if read is None:
            return
        finished |= read
    st.caption(words_measured.measured_now(len(starts), context))
    draw(None)


def _measuring(
    todo: dict[Variant, Transformer],
    tokens: Tensor,
    starts: np.ndarray,
    context: int,
    finished: dict[Variant, np.ndarray],
) -> Steps[dict[Variant, np.ndarray]]:
    """Puts the losses (window, position) of each variant `todo` among the `finished` ones; returns these."""
    done = 0
    for variant, model in todo.items():
        parts: tuple[np.ndarray, ...] = ()
        for part in position_losses(model, tokens, starts, TIMES * context):
            parts, done = (*parts, part), done + len(part)
            yield Progress(done, len(todo) * len(starts), (variant, parts))
        finished[variant] = np.concatenate(parts)
    return dict(finished)


def _no_corpus(models: dict[Position, Checkpoint]) -> str:
    """Why nothing can be measured here; empty where it can."""
    if corpora.shakespeare_path() is None:
        return words_measured.NO_SHAKESPEARE
    try:
        corpus = session.corpus("shakespeare")
    except CorpusError as error:
        return safe(f"{error}.")
    same = all(corpus.tokenizer == checkpoint.tokenizer for checkpoint in models.values())
    return "" if same else "The text on this machine has a different alphabet from these models."


@memo.measured()
def _kept(windows: int) -> dict[Variant, np.ndarray]:
    """Where finished losses (window, position) are put."""
    return {}


@memo.measured()
def _curve(variant: Variant, windows: int, width: int, context: int) -> Curve:
    return curve(_kept(windows)[variant], _starts(windows, context), context, width)


def _starts(windows: int, context: int) -> np.ndarray:
    return window_starts(len(session.corpus("shakespeare").validation), context, windows)


def _model(models: dict[Position, Checkpoint], variant: Variant) -> Transformer:
    scheme, kind = variant
    return models[scheme].model if kind is None else stopgap(models[scheme].model, kind)
