"""The part "Step by step" of the KV cache: the same text written twice, its costs, and the speed of both."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.measure.generation.kv_cache import (
    CacheStep,
    Speed,
    Totals,
    cache_size,
    comparing,
    filled_bytes,
    first_refill,
    speed,
    totals,
)
from pages.output.generation import figures_cache as figures
from pages.output.generation import words
from pages.output.generation.settings import conversation
from ui import explain, memo, widgets
from ui.background_jobs import measured
from ui.figures import theme
from ui.model_bar import Subject
from ui.players.component import mounted
from ui.players.plot import plot

LONGEST, FIRST = 128, 24  # tokens that are written: at most, and at first
MAX_SEED = 2**31 - 1
STEP = "kv_step"  # in the URL, where the browser itself writes it
CHUNK, SLOW_CHUNK = 32, 8  # tokens that are computed at once; by a large model
SPEED_TOKENS, SPEED_SECONDS = 128, 1.0


def draw_steps(subject: Subject, container: Any) -> None:
    """Draws the player, what both ways cost, and whether they agree; the controls stand in `container`."""
    a, b, c = container.columns([4, 2, 3], gap="small", vertical_alignment="bottom")
    speaking, _, about = conversation(subject, c)
    length, sampling = _controls(a, b)
    if about:
        st.caption(about)
    pairs = written_twice(speaking, length, sampling)
    if pairs is None:
        return
    costs = totals(pairs)
    _player(speaking, pairs)
    explain.answer(words.cached(costs, pairs[-1]))
    explain.measure_it(_measured, speaking, pairs, costs)


def _measured(subject: Subject, pairs: tuple[CacheStep, ...], totals: Totals) -> None:
    _say_refill(subject, pairs)
    _totals(subject, pairs, totals)
    _identical(subject, totals)
    _speed(subject)


def _controls(a: Any, b: Any) -> tuple[int, SampleConfig]:
    hint = words.LENGTH_HINT
    length = widgets.slide("Tokens to write", 4, LONGEST, FIRST, "kv_length", container=a, hint=hint)
    # Streamlit's own: a box that opens over the page and takes no room on it
    with b.popover("Sampling", width="stretch"):
        warm = widgets.slide("Temperature", 0.0, 2.0, 0.0, "kv_temperature", step=0.1, hint=words.GREEDY)
        seed = widgets.whole("Seed", 0, MAX_SEED, 0, "kv_seed", hint=words.DRAWS_SEED, disabled=warm == 0)
    return length, SampleConfig(temperature=warm, seed=seed)


def _say_refill(subject: Subject, pairs: tuple[CacheStep, ...]) -> None:
    if (refill := first_refill(pairs)) is not None:
        st.caption(words.refilled(*refill, subject.config.context))


def _player(subject: Subject, pairs: tuple[CacheStep, ...]) -> None:
    c, vocabulary = subject.config, subject.vocabulary
    size = cache_size(c, 1, parts=subject.model.parts)
    data = {
        "labels": [*subject.labels, *(vocabulary[p.token] for p in pairs)],
        "without": [vocabulary[p.token_without] for p in pairs],
        "same": [p.token == p.token_without for p in pairs],
        "prompt": len(subject.ids),
        "context": c.context,
        "per_position": size.formula,
        "letters": words.LETTERS,
        "numbers": f"{size.each} · T · 4",
        "name": STEP,
        "step": linked(widgets.read_url(STEP), len(pairs)),
        "plays": not widgets.read_url(STEP),
        "palette": theme.palette(),
        "steps": [
            {
                "position": p.position,
                "begin": p.begin,
                "computed": p.computed,
                "refilled": p.refilled,
                "flops": p.flops,
                "flops_without": p.flops_without,
            }
            for p in pairs
        ],
    }
    mounted("kvcache", stepper=True)(key="kv_player", data=data)


def written_twice(subject: Subject, length: int, sampling: SampleConfig) -> tuple[CacheStep, ...] | None:
    """Writes with a cache and without. A longer text begins like a shorter one, so a few lengths serve all.
    None while it is still being written.
    """
    chunk = SLOW_CHUNK if subject.is_pretrained else CHUNK
    whole = -(-length // chunk) * chunk
    pairs = measured(
        ("kv", subject.key, subject.ids, whole, sampling.temperature, sampling.seed),
        lambda: comparing(subject.model, subject.ids, whole, sampling),
        words.WRITING_TWICE,
        offer=words.write_twice(whole) if subject.is_pretrained else "",
    )
    return None if pairs is None else pairs[:length]


def linked(text: str, steps: int) -> int:
    """Returns the step in the URL, which may be anything; the first where there is none.

    >>> linked("3", 24), linked("-1", 24), linked("9999", 24), linked("", 24)
    (3, 0, 23, 0)
    """
    step = widgets.number_of(text)
    return 0 if step is None else min(step, steps - 1)


def _totals(subject: Subject, pairs: tuple[CacheStep, ...], totals: Totals) -> None:
    tokens = [subject.vocabulary[p.token] for p in pairs]
    table = pd.DataFrame(
        {
            "step": range(len(pairs)),
            "token": tokens,
            "flops_with_cache": totals.cached,
            "flops_without": totals.uncached,
            "total_with_cache": totals.cached_sum,
            "total_without": totals.uncached_sum,
            "computed": [p.computed for p in pairs],
            "computed_without": [p.computed_without for p in pairs],
            "refilled": totals.refilled,
        }
    )
    plot(
        figures.flops_by_step(totals.cached, totals.uncached, tokens, totals.refilled),
        key="kv_flops",
        height=280,
        data=table,
        name="kv-cache-flops",
        alt=words.flops_alt(pairs),
    )
    st.markdown(words.in_total(totals, pairs[-1]))


def _identical(subject: Subject, totals: Totals) -> None:
    filled, whole = _filled(subject.key, subject.ids, subject)
    formula = cache_size(subject.config, len(subject.ids), parts=subject.model.parts).formula
    st.markdown(words.identical(totals, filled, whole, formula, len(subject.ids)))


@memo.measured(copied=True)
def _filled(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> tuple[int, int]:
    return filled_bytes(_subject.model, ids)


def _speed(subject: Subject) -> None:
    """The speed does not depend on the weights: it is measured once for a model's sizes."""
    columns = st.columns([3, 3, 3, 4], gap="medium", vertical_alignment="center")
    if columns[3].button("Measure again", key="kv_again", icon=":material/timer:"):
        st.session_state["kv_turn"] = (st.session_state.get("kv_turn", 0) + 1) % 100
    with st.spinner(words.TIMING):
        speed = _speed_of(repr(subject.config), st.session_state.get("kv_turn", 0), subject)
    for column, (name, value) in zip(columns, words.rates(speed), strict=False):
        column.metric(name, value)
    st.caption(words.measured(speed, subject.is_pretrained))


@memo.measured(copied=True)
def _speed_of(config: str, turn: int, _subject: Subject) -> Speed:
    return speed(_subject.model, min(SPEED_TOKENS, _subject.config.context), SPEED_SECONDS)
