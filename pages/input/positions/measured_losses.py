"""A part of "Extrapolation": losses by position, measured live up to four times the training context, the
table below, and what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.data import corpora
from engine.data.progress import Progress, Steps
from engine.errors import CorpusError
from engine.model import Transformer
from pages.input.positions.loss_by_position import (
    STOPGAPS,
    Line,
    Variant,
    above_rows,
    losses_figure,
    name_of,
)
from studies.positions.extrapolation import (
    BLOCK,
    HELD,
    TAIL,
    TIMES,
    UNITS,
    Curve,
    Unit,
    costs,
    curve,
    far_buckets,
    in_unit,
    position_losses,
    reach_of,
    stopgap,
    window_starts,
)
from ui import content, memo, session, widgets
from ui.background_jobs import measured
from ui.players.plot import plot
from ui.text.markdown import safe

if TYPE_CHECKING:
    from torch import Tensor

TEXT = content.beside(__file__)
ABOVE = "Above own last 64"
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


def _choose(chosen: Sequence[Position], schemes: set[Position], live: bool) -> Choice:
    """Reads the choice from the widgets. `chosen` are drawn as they are; `schemes` are those with a model;
    `live`: something can be measured here.
    """
    variants: list[Variant] = [(name, None) for name in chosen]
    row = st.container(horizontal=True, gap="medium")
    shown = {"Loss": TEXT["loss"], ABOVE: TEXT["excess loss"]}  # id in links -> what is written
    hint = TEXT["excess hint"]
    above = widgets.select(TEXT["show"], shown, "bench_show", container=row, hint=hint) == ABOVE
    hint = TEXT["unit hint"]
    unit = widgets.select(TEXT["unit"], tuple(UNITS), "bench_unit", container=row, hint=hint)
    if not live:
        return Choice(tuple(variants), above, unit, 0, TAIL)
    read: dict[str, Any] = {"first": "256", "container": row, "hint": TEXT["windows hint"]}
    windows = widgets.select(TEXT["windows"], tuple(WINDOWS), "bench_windows", **read)
    mean: dict[str, Any] = {"first": str(TAIL), "container": row, "hint": TEXT["width hint"]}
    width = widgets.select(TEXT["width"], WIDTHS, "bench_bin", **mean)
    stopgaps = {name_of(each): each for each in STOPGAPS if each[0] in schemes}
    hint = TEXT["stopgaps hint"]
    wanted = widgets.select_several(TEXT["stopgaps"], [*stopgaps], "bench_stopgaps", hint=hint)
    variants += [stopgaps[name] for name in wanted]
    return Choice(tuple(variants), above, unit, WINDOWS[windows], int(width))


def _draw_curves(
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
        st.caption(TEXT("table ends", context=context))
    if any(scheme == "t5" for scheme, _ in shown):
        st.caption(_unmet_buckets(models["t5"].model))
    if curves and not partial:
        st.table(_numbers(models, curves, choice.unit, context))
        st.caption(TEXT("numbers", context=context, tail=TAIL, twice=2 * context, far=TIMES * context))
        st.markdown(_summary(models, curves, context))


def _draw_figure(shown: dict[Variant, Curve], choice: Choice, context: int, partial: set[Variant]) -> None:
    """Curves in the unit that was chosen."""
    lines = [Line(v, c, v in partial) for v, c in shown.items()]
    plot(
        losses_figure(lines, context, unit=choice.unit, above=choice.above),
        key="bench_losses",
        height=460,
        name="loss-by-position",
        data=above_rows(shown, choice.unit),
        alt=TEXT(
            "alt above" if choice.above else "alt",
            context=context,
            far=TIMES * context,
            schemes=", ".join(line.name for line in lines),
        ),
    )
    said = [TEXT("points", width=choice.width, block=BLOCK), TEXT("bumps", context=context)]
    if not choice.above:
        said.insert(1, TEXT("sliding", context=context, tail=TAIL, least=context - TAIL + 1))
    st.caption(" ".join(said))


def _numbers(
    models: dict[Position, Checkpoint], curves: dict[Variant, Curve], unit: Unit, context: int
) -> pd.DataFrame:
    """A row for each scheme or stopgap."""
    none = models["none"].metrics["validation_loss"] if "none" in models else None
    rows = {}
    for variant, c in curves.items():
        cost = costs(c, models[variant[0]].metrics["validation_loss"], none, unit)
        mean, error = cost.tail
        row: dict[str, str] = {
            TEXT("column validation", unit=unit): f"{cost.validation:.3f}",
            TEXT["column none"]: "" if cost.against_none is None else f"{cost.against_none:+.3f}",
            TEXT("column end", context=context): f"{mean:.3f} ± {error:.3f}",
        }
        for times, more in cost.more.items():
            answer = TEXT["not available"] if more is None else f"{more[0]:+.3f} ± {more[1]:.3f}"
            row[TEXT("column more", length=times * context)] = answer
        rows[name_of(variant)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _unmet_buckets(model: Transformer) -> str:
    """Why T5's far buckets matter, in this model's numbers."""
    far = far_buckets(model)
    if far is None:
        return TEXT["buckets met"]
    return TEXT(
        "buckets unmet",
        distance=model.config.context - 1,
        last=far.last,
        first=far.last + 1,
        end=far.end,
        unmet=far.unmet,
        met=far.met,
        power=-far.met,
        factor=far.factor,
    )


def _summary(models: dict[Position, Checkpoint], curves: dict[Variant, Curve], context: int) -> str:
    """Says which hold and which break, as measured on the shipped models, of a single seed."""
    reach = reach_of({v: [c] for v, c in curves.items()})
    held, lost = (
        ", ".join(TEXT("risen", name=name_of(v), more=more) for v, more in some.items())
        for some in (reach.held, reach.lost)
    )
    names = content.Filled(held or TEXT["none of these"])
    said = [TEXT("held", names=names, far=TIMES * context, context=context, held=HELD)]
    if lost:
        said.append(TEXT("lost", names=content.Filled(lost)))
    if ("learned", None) in curves:
        said.append(TEXT("no row", context=context))
    said.append(TEXT["one seed"])
    if "none" in models:
        said.append(TEXT["only the mask"])
    return " ".join(said)


def draw_measured_losses(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws the controls, and the curves as far as they are measured."""
    context = next(iter(models.values())).config.context
    st.markdown(TEXT("heading", times=TIMES))
    problem = _no_corpus(models)
    choice = _choose(chosen, set(models), live=not problem)
    if problem:
        date = next(iter(models.values())).metrics.get("date", TEXT["unknown date"])
        st.info(f"{problem} {TEXT('recorded', date=date, tail=TAIL)}")
        curves = {
            v: Curve.from_dict(models[v[0]].metrics["extrapolation"]) for v in choice.variants if v[1] is None
        }
        _draw_curves(models, curves, choice, context, {})
        return
    finished, starts = _kept(choice.windows), _starts(choice.windows, context)
    missing = [v for v in choice.variants if v not in finished]

    def draw(so_far: tuple[Variant, tuple[np.ndarray, ...]] | None) -> None:
        read = np.concatenate(so_far[1]) if so_far else starts[:0]
        begun = {so_far[0]: curve(read, starts[: len(read)], context, choice.width)} if so_far else {}
        known = [v for v in choice.variants if v in finished]
        curves = {v: _curve(v, choice.windows, choice.width, context) for v in known}
        _draw_curves(models, curves, choice, context, {v: c for v, c in begun.items() if v not in curves})

    if missing:
        tokens = session.corpus("shakespeare").validation
        key = ("extrapolation", choice.windows, *choice.variants)
        todo = {variant: _model(models, variant) for variant in missing}
        steps = partial(_measuring, todo, tokens, starts, context, finished)
        read = measured(key, steps, TEXT("reading", length=TIMES * context), draw)
        if read is None:
            return
        finished |= read
    st.caption(TEXT("measured now", windows=len(starts), length=TIMES * context))
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
        return TEXT["no corpus"]
    try:
        corpus = session.corpus("shakespeare")
    except CorpusError as error:
        return safe(f"{error}.")
    same = all(corpus.tokenizer == checkpoint.tokenizer for checkpoint in models.values())
    return "" if same else TEXT["other alphabet"]


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
