"""Losses by position of six small models, measured live up to four times their training context, for the view
"Side by side".
"""

from __future__ import annotations

import time

import numpy as np
import streamlit as st

from engine.config import Position
from engine.data import corpora
from engine.errors import CorpusError
from engine.measure.positions.extrapolation import (
    TAIL,
    TIMES,
    Curve,
    curve,
    position_losses,
    share_read,
    stopgap,
    window_starts,
)
from engine.model import Transformer
from engine.weights.checkpoints import Checkpoint
from pages.input.positions.bench_choice import WINDOWS, Choice, Variant, choose, name_of
from pages.input.positions.bench_curves import draw_curves
from ui import live, session
from ui.text.markdown import safe

SLICE_SECONDS = 0.25  # of work between two drawings
_WORK = "bench_work"


def draw_extrapolation(models: dict[Position, Checkpoint], chosen: tuple[Position, ...]) -> None:
    """Draws the controls, and a fragment that measures a slice, draws, and comes back until all
    is measured.
    """
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
    st.fragment(_measure_and_draw)(models, choice, context)


def _no_corpus(models: dict[Position, Checkpoint]) -> str:
    """Why nothing can be measured here; empty where it can."""
    if corpora.shakespeare_path() is None:
        return "Tiny Shakespeare is not on this machine, and these models know no other text."
    try:
        corpus = session.corpus("shakespeare")
    except CorpusError as error:
        return safe(f"{error}.")
    same = all(corpus.tokenizer == checkpoint.tokenizer for checkpoint in models.values())
    return "" if same else "The text on this machine has another alphabet than these models."


@st.cache_resource(max_entries=len(WINDOWS), show_spinner=False)
def _kept(windows: int) -> dict[Variant, np.ndarray]:
    """Where finished losses (window, position) are put."""
    return {}


@st.cache_resource(max_entries=256, show_spinner=False)
def _curve(variant: Variant, windows: int, width: int, context: int) -> Curve:
    return curve(_kept(windows)[variant], _starts(windows, context), context, width)


def _starts(windows: int, context: int) -> np.ndarray:
    return window_starts(len(session.corpus("shakespeare").validation), context, windows)


def _measure_and_draw(models: dict[Position, Checkpoint], choice: Choice, context: int) -> None:
    """Measures a slice, draws what is there, and comes back until all is measured."""
    finished, starts = _kept(choice.windows), _starts(choice.windows, context)
    missing = [v for v in choice.variants if v not in finished]
    partial: dict[Variant, Curve] = {}
    if missing:
        losses = _advance(models, missing[0], choice.windows, starts, context)
        if len(losses) == len(starts):
            finished[missing[0]] = losses
            st.session_state.pop(_WORK, None)
            missing = missing[1:]
            if not missing:
                st.rerun()
        else:
            partial[missing[0]] = curve(losses, starts[: len(losses)], context, choice.width)
    place = st.container(height=62, border=False)  # the same height before and after, so that nothing jumps
    if missing:
        live.again("bench_losses")
        done, begun = len(choice.variants) - len(missing), sum(c.windows for c in partial.values())
        place.progress(
            share_read(done, begun, len(starts), len(choice.variants)),
            text=f"Reading {len(starts):,} windows of {TIMES * context} characters: {name_of(missing[0])}",
        )
    else:
        place.caption(
            f"Measured now, on this machine: {len(starts):,} windows of {TIMES * context} characters of Tiny"
            " Shakespeare's validation split."
        )
    curves = {v: _curve(v, choice.windows, choice.width, context) for v in choice.variants if v in finished}
    draw_curves(models, curves, choice, context, partial)


def _advance(
    models: dict[Position, Checkpoint], variant: Variant, windows: int, starts: np.ndarray, context: int
) -> np.ndarray:
    """A slice of the work on a variant: all losses so far, (window, position). The work on another is
    dropped.
    """
    work = st.session_state.get(_WORK)
    if work is None or work["of"] != (variant, windows):
        tokens = session.corpus("shakespeare").validation
        batches = position_losses(_model(models, variant), tokens, starts, TIMES * context)
        work = st.session_state[_WORK] = {"of": (variant, windows), "batches": batches, "parts": []}
    until = time.monotonic() + SLICE_SECONDS
    for part in work["batches"]:
        work["parts"].append(part)
        if time.monotonic() > until:
            break
    return np.concatenate(work["parts"])


def _model(models: dict[Position, Checkpoint], variant: Variant) -> Transformer:
    scheme, kind = variant
    return models[scheme].model if kind is None else stopgap(models[scheme].model, kind)
