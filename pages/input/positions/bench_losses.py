"""The lower part of the view "Side by side": the loss by position of six small models, up to four times their
training context, measured live.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine import corpora
from engine.checkpoints import Checkpoint
from engine.config import Position
from engine.errors import CorpusError
from engine.measure.distance import t5_weights
from engine.measure.extrapolation import (
    BLOCK,
    TAIL,
    TIMES,
    Curve,
    Stopgap,
    curve,
    farthest_bucket,
    position_losses,
    stopgap,
    window_starts,
)
from engine.measure.schemes import SCHEMES
from engine.model import Transformer
from pages.input.positions import bench_figures as figures
from pages.input.positions.bench_figures import Line
from ui import explain, state
from ui.players.plot import plot
from ui.text.markdown import safe

TITLES: dict[str, Position] = {scheme.title: name for name, scheme in SCHEMES.items()}
STOPGAPS: dict[str, tuple[Position, Stopgap]] = {
    "Learned: table repeated": ("learned", "repeat"),
    "Learned: last row held": ("learned", "hold"),
    "RoPE: larger base (NTK)": ("rope", "ntk"),
    "T5: unmet buckets filled": ("t5", "far"),
}
ABOVE = "Above own last 64"
SHOWN = ("Loss", ABOVE)
UNITS = {"nats": 1.0, "bits": 1 / np.log(2)}
WINDOWS = {"128": 128, "256": 256, "all": 0}
WIDTHS = ("1", "4", "8", "16")
HELD = 0.05  # nats: an increase up to this is called holding
SLICE_SECONDS = 0.25  # of work between two drawings
_WORK = "bench_work"

Variant = tuple[Position, Stopgap | None]


@dataclass(frozen=True)
class _Choice:
    variants: tuple[Variant, ...]
    above: bool
    unit: str
    windows: int
    width: int


def draw_extrapolation(models: dict[Position, Checkpoint]) -> None:
    """The controls, and a fragment that measures a slice, draws, and comes back until all is measured."""
    context = next(iter(models.values())).config.context
    st.markdown(f"#### Measured: texts up to {TIMES} times as long as in training")
    problem = _no_corpus(models)
    choice = _choose(models, live=not problem)
    if not choice.variants:
        st.info("Choose at least one scheme.")
        return
    if problem:
        date = next(iter(models.values())).metrics.get("date", "an unknown date")
        st.info(
            f"{problem} These curves were measured when the models were trained, on {date}: the whole"
            f" validation split, in bins of {TAIL} positions."
        )
        curves = {
            v: Curve.from_dict(models[v[0]].metrics["extrapolation"]) for v in choice.variants if v[1] is None
        }
        _draw(models, curves, choice, context, {})
        return
    finished = _kept(choice.windows)
    missing = [v for v in choice.variants if v not in finished]
    st.fragment(_measure_and_draw, run_every=0.1 if missing else None)(models, choice, context)


def _no_corpus(models: dict[Position, Checkpoint]) -> str:
    """Why nothing can be measured here; empty where it can."""
    if corpora.shakespeare_path() is None:
        return "Tiny Shakespeare is not on this machine, and these models know no other text."
    try:
        corpus = state.corpus("shakespeare")
    except CorpusError as error:
        return safe(f"{error}.")
    same = all(corpus.tokenizer == checkpoint.tokenizer for checkpoint in models.values())
    return "" if same else "The text on this machine has another alphabet than these models."


def _choose(models: dict[Position, Checkpoint], live: bool) -> _Choice:
    """From the widgets, whatever the URL says."""
    kept: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    titles = [title for title, name in TITLES.items() if name in models]
    chosen = st.pills("Schemes", titles, default=titles, selection_mode="multi", key="bench_schemes", **kept)
    variants: list[Variant] = [(TITLES[title], None) for title in titles if title in chosen]
    row = st.container(horizontal=True, gap="medium")
    above = _pick(
        row,
        "Show",
        SHOWN,
        SHOWN[0],
        "bench_show",
        "The loss, or what it is above the model's own when a window slides along.",
    )
    unit = _pick(row, "Unit", tuple(UNITS), "nats", "bench_unit", "1 bit is ln 2 = 0.693 nats.")
    windows, width = 0, str(TAIL)
    if live:
        hint = (
            "Windows of 4 contexts that are read. More take longer, about a second per hundred and scheme,"
            " and shrink the bands."
        )
        windows = WINDOWS[_pick(row, "Windows", tuple(WINDOWS), "256", "bench_windows", hint)]
        width = _pick(
            row,
            "Positions in a point",
            WIDTHS,
            str(TAIL),
            "bench_bin",
            "The mean over so many positions is one point. 1: nothing is smoothed.",
        )
        names = [name for name, (scheme, _) in STOPGAPS.items() if scheme in models]
        hint = "Ways to go on without training again. They are no part of the schemes: drawn dashed."
        extra = st.pills("Stopgaps", names, selection_mode="multi", key="bench_stopgaps", help=hint, **kept)
        variants += [STOPGAPS[name] for name in names if name in extra]
    return _Choice(tuple(variants), above == ABOVE, unit, windows, int(width))


def _pick(place: Any, label: str, options: tuple[str, ...], first: str, key: str, hint: str) -> str:
    chosen = place.segmented_control(
        label,
        options,
        default=first,
        required=True,
        key=key,
        bind="query-params",
        persist_state="session",
        help=hint,
    )
    return chosen if chosen in options else first


@st.cache_resource(max_entries=len(WINDOWS), show_spinner=False)
def _kept(windows: int) -> dict[Variant, np.ndarray]:
    """Where finished losses (window, position) are put."""
    return {}


@st.cache_resource(max_entries=256, show_spinner=False)
def _curve(variant: Variant, windows: int, width: int, context: int) -> Curve:
    return curve(_kept(windows)[variant], _starts(windows, context), context, width)


def _starts(windows: int, context: int) -> np.ndarray:
    return window_starts(len(state.corpus("shakespeare").validation), context, windows)


def _measure_and_draw(models: dict[Position, Checkpoint], choice: _Choice, context: int) -> None:
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
        share = (
            len(choice.variants) - len(missing) + sum(c.windows for c in partial.values()) / len(starts)
        ) / len(choice.variants)
        place.progress(
            min(share, 1.0),
            text=f"Reading {len(starts):,} windows of {TIMES * context} characters: {_name(missing[0])}",
        )
    else:
        place.caption(
            f"Measured now, on this machine: {len(starts):,} windows of {TIMES * context} characters of Tiny"
            " Shakespeare's validation split."
        )
    curves = {v: _curve(v, choice.windows, choice.width, context) for v in choice.variants if v in finished}
    _draw(models, curves, choice, context, partial)


def _advance(
    models: dict[Position, Checkpoint], variant: Variant, windows: int, starts: np.ndarray, context: int
) -> np.ndarray:
    """A slice of the work on a variant: all losses so far, (window, position). The work on another is
    dropped.
    """
    work = st.session_state.get(_WORK)
    if work is None or work["of"] != (variant, windows):
        tokens = state.corpus("shakespeare").validation
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


def _name(variant: Variant) -> str:
    scheme, kind = variant
    return (
        SCHEMES[scheme].title
        if kind is None
        else next(name for name, found in STOPGAPS.items() if found == variant)
    )


def _draw(
    models: dict[Position, Checkpoint],
    curves: dict[Variant, Curve],
    choice: _Choice,
    context: int,
    partial: dict[Variant, Curve],
) -> None:
    shown = curves | partial
    lines = [Line(_name(v), v[0], c, v[1] is not None, v in partial) for v, c in shown.items()]
    what = f"above the model's own last {context}" if choice.above else "loss"
    figure = figures.position_losses(
        lines, context, scale=UNITS[choice.unit], unit=choice.unit, above=choice.above
    )
    names = ", ".join(line.name for line in lines)
    alt = (
        f"Lines: {what} by position up to {TIMES * context} for {names}; an upright line at {context} says"
        " how far the models were trained."
    )
    plot(
        figure,
        key="bench_losses",
        height=460,
        name="loss-by-position",
        data=_loss_rows(shown, choice.unit),
        alt=alt,
    )
    base = (
        ""
        if choice.above
        else (
            f" Dotted: the same model, when a window of {context} slides along by {TAIL}, so that each guess"
            f" sees {context - TAIL + 1} to {context} characters."
        )
    )
    st.caption(
        f"Points are means over {choice.width} position{'s' * (choice.width > 1)}, bands one standard error,"
        f" taken over blocks of {BLOCK} neighbouring windows.{base} Bumps that come back every {context}"
        " positions are the text's: the same characters are read there again, with more before them."
    )
    if any(v == ("learned", None) for v in shown):
        st.caption(
            f":material/info: The learned curve ends at {context}: there is no row for position {context},"
            " and the engine refuses to make one up."
        )
    if any(scheme == "t5" for scheme, _ in shown):
        st.caption(f":material/info: {_unmet(models['t5'].model)}")
    if curves and not partial:
        st.table(_numbers(models, curves, choice.unit, context))
        st.caption(
            f"Validation loss: the whole split, in windows of {context}, as measured when they were trained."
            f" Then: the last {TAIL} characters of {context}, and what the very same characters cost more as"
            f" the last of {2 * context} and of {TIMES * context}, ± a standard error. One training of each,"
            " same seed, same batches in the same order: small differences between schemes may be luck, and"
            " so may how high a broken curve climbs."
        )
        explain.takeaway(_summary(models, curves, context))


def _unmet(model: Transformer) -> str:
    """Why T5's far buckets matter, in this model's numbers."""
    last, weights = farthest_bucket(model.config), t5_weights(model)  # (bucket, head)
    if weights is None or last + 1 >= len(weights):
        return "All of T5's buckets were met in training."
    met, unmet = float(weights[last].mean()), float(abs(weights[last + 1 :]).max())
    return (
        f"T5's distances of up to {model.config.context - 1} fall into buckets 0 to {last}; training never"
        f" met buckets {last + 1} to {len(weights) - 1}. They still hold their random start, at most"
        f" {unmet:.2f} in size, where bucket {last} has learned {met:+.2f} (mean over heads). Beside that, a"
        f" bias near 0 gives what is too far e^{-met:.2f} ≈ {np.exp(-met):.0f} times the weight."
    )


def _loss_rows(curves: dict[Variant, Curve], unit: str) -> pd.DataFrame:
    scale = UNITS[unit]
    frames = [
        pd.DataFrame(
            {
                "scheme": _name(v),
                "first_position": c.first,
                "last_position": c.first + c.width - 1,
                f"loss_{unit}": c.mean * scale,
                f"standard_error_{unit}": c.error * scale,
                f"above_own_tail_{unit}": (c.mean - c.tail[0]) * scale,
                "windows": c.windows,
            }
        )
        for v, c in curves.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _numbers(
    models: dict[Position, Checkpoint], curves: dict[Variant, Curve], unit: str, context: int
) -> pd.DataFrame:
    scale, baseline = UNITS[unit], models["none"].metrics["validation_loss"] if "none" in models else None
    rows = {}
    for variant, c in curves.items():
        loss = models[variant[0]].metrics["validation_loss"]
        row = {f"validation loss ({unit})": f"{loss * scale:.3f}"}
        row["against none"] = "" if baseline is None else f"{(loss - baseline) * scale:+.3f}"
        row[f"end of {context}"] = f"{c.tail[0] * scale:.3f} ± {c.tail[1] * scale:.3f}"
        for times in (2, TIMES):
            mean, error = c.excess[times]
            row[f"more at {times * context}"] = (
                f"{mean * scale:+.3f} ± {error * scale:.3f}" if np.isfinite(mean) else "no answer"
            )
        rows[_name(variant)] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _summary(models: dict[Position, Checkpoint], curves: dict[Variant, Curve], context: int) -> str:
    """Which hold, which break, and what the mask alone is worth: from the numbers."""
    far = {v: c.excess[TIMES][0] for v, c in curves.items()}
    told = {
        v: f"{_name(v)} ({far[v]:+.2f})"
        for v in sorted(curves, key=lambda v: far[v] if np.isfinite(far[v]) else np.inf)
    }
    held = [word for v, word in told.items() if far[v] <= HELD]
    lost = [word for v, word in told.items() if far[v] > HELD]
    words = (
        f"**Read at {TIMES * context} instead of {context}, the same characters cost at most {HELD} nats"
        f" more: {', '.join(held) or 'none of these'}.** "
    )
    words += f"They cost more with {', '.join(lost)}. " if lost else ""
    words += f"A learned table has no answer beyond {context}. " if ("learned", None) in curves else ""
    trained = {name: checkpoint.metrics["validation_loss"] for name, checkpoint in models.items()}
    if "none" in trained and len(trained) > 1:
        best = min(trained, key=lambda name: trained[name])
        words += (
            f"Within {context}, {SCHEMES[best].title} is best, at {trained[best]:.3f} nats; with no positions"
            f" it is {trained['none']:.3f}. It has only the causal mask to tell the order by: “Why” measures"
            " how much that leaks."
        )
    return words
