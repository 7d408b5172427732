"""Losses by position of six small models, measured live up to four times their training context, for the view
"Extrapolation".
"""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st
from torch import Tensor

from engine.config import Position
from engine.data import corpora
from engine.data.progress import Progress, Steps
from engine.errors import CorpusError
from engine.measure.positions.extrapolation import (
    TAIL,
    TIMES,
    Curve,
    curve,
    position_losses,
    stopgap,
    window_starts,
)
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.bench_choice import WINDOWS, Variant, choose
from pages.input.positions.bench_curves import draw_curves
from ui import session
from ui.background_jobs import measured
from ui.text.markdown import safe


def draw_extrapolation(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws the controls, and the curves as far as they are measured."""
    context = next(iter(models.values())).config.context
    st.markdown(f"### Measured: texts up to {TIMES} times as long as in training")
    problem = _no_corpus(models)
    choice = choose(chosen, set(models), live=not problem)
    if problem:
        date = next(iter(models.values())).metrics.get("date", "an unknown date")
        st.info(
            f"{problem} These curves were measured when the models were trained, on {date}: the whole"
            f" validation split, in bins of {TAIL} positions."
        )
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
    st.caption(
        f"Measured now, on this machine: {len(starts):,} windows of {TIMES * context} characters of Tiny"
        " Shakespeare's validation split."
    )
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
        return "Tiny Shakespeare is not on this machine, and these models were trained on no other text."
    try:
        corpus = session.corpus("shakespeare")
    except CorpusError as error:
        return safe(f"{error}.")
    same = all(corpus.tokenizer == checkpoint.tokenizer for checkpoint in models.values())
    return "" if same else "The text on this machine has a different alphabet from these models."


@st.cache_resource(max_entries=len(WINDOWS), show_spinner=False)
def _kept(windows: int) -> dict[Variant, np.ndarray]:
    """Where finished losses (window, position) are put."""
    return {}


@st.cache_resource(max_entries=256, show_spinner=False)
def _curve(variant: Variant, windows: int, width: int, context: int) -> Curve:
    return curve(_kept(windows)[variant], _starts(windows, context), context, width)


def _starts(windows: int, context: int) -> np.ndarray:
    return window_starts(len(session.corpus("shakespeare").validation), context, windows)


def _model(models: dict[Position, Checkpoint], variant: Variant) -> Transformer:
    scheme, kind = variant
    return models[scheme].model if kind is None else stopgap(models[scheme].model, kind)
