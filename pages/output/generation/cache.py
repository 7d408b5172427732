"""The view "KV cache": the same text written with and without it, what the cache takes, and why it may be
kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.ledger import kv_numbers
from engine.measure.caching import Pair, Speed, Unchanged, cache_size, compare, filled_bytes, speed, unchanged
from pages.output.generation import cache_figures as figures
from pages.output.generation.cache_bytes import draw_bytes
from ui import explain
from ui.figures import theme
from ui.figures.parameters import flop
from ui.players.component import mounted
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

PARTS = ("Step by step", "How many bytes", "Why it may be kept")
LONGEST, FIRST, CHUNK = (
    128,
    24,
    32,
)  # tokens that are written: at most, at first, and how many more are computed at once
STEP = "kv_step"  # in the URL, where the browser itself writes it
SPEED_TOKENS, SPEED_SECONDS = 128, 1.0


def draw_cache(subject: Subject) -> None:
    """The chosen part. A model that can keep nothing gets a sentence."""
    if not kv_numbers(subject.config):
        why = (
            "its tokens never exchange anything: there are no keys and values to keep."
            if subject.config.mixer == "none"
            else (
                "without a causal mask every later token changes the keys and values of the earlier ones."
                " Choose a causal model."
            )
        )
        st.info(f"This model has no use for a cache: {why}")
        return
    part = st.segmented_control(
        "Part",
        PARTS,
        default=PARTS[0],
        required=True,
        key="kv_part",
        bind="query-params",
        label_visibility="collapsed",
    )
    {PARTS[1]: draw_bytes, PARTS[2]: _why}.get(str(part), _steps)(subject)


# Step by step -----------------------------------------------------------------------------------


def _steps(subject: Subject) -> None:
    length, sampling = _controls()
    pairs = _pairs(subject, length, sampling)
    _player(subject, pairs)
    anew = next((i for i, pair in enumerate(pairs) if pair.refilled), None)
    if anew is not None:
        moved = pairs[anew].begin - pairs[anew - 1].begin
        st.caption(
            f":material/info: Before step {anew} the context of {subject.config.context} tokens was full. The"
            " engine goes on from the last half of them, and positions start anew: the token that stood at"
            f" {moved} now stands at 0, so its kept key and value no longer fit and are computed again. With"
            " absolute positions there is no other way. Systems with relative positions may slide instead"
            " and drop only the oldest; then the kept values still carry something of the tokens that were"
            " dropped."
        )
    _totals(subject, pairs)
    _identical(subject, pairs)
    _speed(subject)


def _controls() -> tuple[int, SampleConfig]:
    a, b, c = st.columns([3, 3, 2], gap="medium")
    length = a.slider(
        "Tokens to write",
        4,
        LONGEST,
        FIRST,
        key="kv_length",
        bind="query-params",
        help="Long enough, and the context is full.",
    )
    temperature = b.slider(
        "Temperature",
        0.0,
        2.0,
        0.0,
        0.1,
        key="kv_temperature",
        bind="query-params",
        help="0 is greedy: always the likeliest token.",
    )
    seed = c.number_input(
        "Seed",
        0,
        2**31 - 1,
        0,
        key="kv_seed",
        bind="query-params",
        help="Of the draws, where the temperature is above 0.",
    )
    length, seed = _whole(length, FIRST, 4, LONGEST), _whole(seed, 0, 0, 2**31 - 1)
    warm = float(temperature) if isinstance(temperature, int | float) and math.isfinite(temperature) else 0.0
    return length, SampleConfig(temperature=min(max(warm, 0.0), 2.0), seed=seed)


def _whole(value: Any, otherwise: int, least: int, most: int) -> int:
    return (
        min(max(int(value), least), most)
        if isinstance(value, int | float) and math.isfinite(value)
        else otherwise
    )


def _pairs(subject: Subject, length: int, sampling: SampleConfig) -> tuple[Pair, ...]:
    """A longer text begins like a shorter one, so a few lengths serve all."""
    return _compared(
        subject.key, subject.ids, -(-length // CHUNK) * CHUNK, sampling.temperature, sampling.seed, subject
    )[:length]


@st.cache_resource(max_entries=64, show_spinner="Writing it twice …")
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], length: int, temperature: float, seed: int, _subject: Subject
) -> tuple[Pair, ...]:
    return compare(_subject.model, ids, length, SampleConfig(temperature=temperature, seed=seed))


def _mount() -> Callable[..., Any]:
    return mounted("kvcache")


def _player(subject: Subject, pairs: tuple[Pair, ...]) -> None:
    c, vocabulary = subject.config, subject.vocabulary
    size = cache_size(c, 1)
    data = {
        "labels": [*subject.labels, *(vocabulary[p.token] for p in pairs)],
        "without": [vocabulary[p.token_without] for p in pairs],
        "same": [p.token == p.token_without for p in pairs],
        "prompt": len(subject.ids),
        "context": c.context,
        "per_position": size.formula,
        "letters": "layers · 2 (keys and values) · kv_heads · d_head · T · bytes of a number",
        "numbers": f"{c.n_layers} · 2 · {c.n_kv_heads} · {c.d_head} · T · 4",
        "name": STEP,
        "step": linked(st.query_params.get(STEP), len(pairs)),
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
    _mount()(key="kv_player", data=data)


def linked(said: str | None, steps: int) -> int:
    """The step in the URL, which may be anything; the last where there is none.

    >>> linked("3", 24), linked("-1", 24), linked("9999", 24), linked(None, 24)
    (3, 23, 23, 23)
    """
    return (
        min(int(said), steps - 1)
        if said and said.isascii() and said.isdecimal() and len(said) < 7
        else steps - 1
    )


def _totals(subject: Subject, pairs: tuple[Pair, ...]) -> None:
    with_cache, without = (
        np.array([getattr(p, name) for p in pairs], dtype=np.int64) for name in ("flops", "flops_without")
    )
    words = [subject.vocabulary[p.token] for p in pairs]
    refilled = np.array([p.refilled for p in pairs])
    table = pd.DataFrame(
        {
            "step": range(len(pairs)),
            "token": words,
            "flops_with_cache": with_cache,
            "flops_without": without,
            "total_with_cache": with_cache.cumsum(),
            "total_without": without.cumsum(),
            "computed": [p.computed for p in pairs],
            "computed_without": [p.computed_without for p in pairs],
            "refilled": refilled,
        }
    )
    last, most = pairs[-1], flop(int(without.sum()))
    plot(
        figures.flops_by_step(with_cache, without, words, refilled),
        key="kv_flops",
        height=280,
        data=table,
        name="kv-cache-flops",
        alt=(
            f"FLOP for each of {len(pairs)} tokens: the last one takes {flop(last.flops)} with the cache and"
            f" {flop(last.flops_without)} without."
        ),
    )
    times = float(without.sum() / with_cache.sum())
    explain.takeaway(
        f"**In total {flop(int(with_cache.sum()))} with the cache, {most} without: {times:.1f} times as"
        " much.** The first step costs the same, since the prompt has to be read either way. The last one"
        f" costs {flop(last.flops)} with the cache and {flop(last.flops_without)} without,"
        f" {last.flops_without / last.flops:.0f} times as much: one position is computed instead of"
        f" {last.computed_without}."
        if not last.refilled and last.computed == 1
        else (
            f"**In total {flop(int(with_cache.sum()))} with the cache, {most} without: {times:.1f} times as"
            " much.**"
        )
    )


def _identical(subject: Subject, pairs: tuple[Pair, ...]) -> None:
    same = sum(p.token == p.token_without for p in pairs)
    most = max(p.difference for p in pairs)
    filled, whole = _filled(subject.key, subject.ids, subject)
    said = cache_size(subject.config, len(subject.ids)).formula
    tick = "✓" if same == len(pairs) else "✗"
    agree = "✓ **Bytes agree.**" if filled == said else "✗ **Bytes differ.**"
    close = "" if same == len(pairs) else " Two tokens were so nearly equal that rounding decided."
    st.markdown(
        f"{tick} **{same} of {len(pairs)} tokens are identical.** The logits they were chosen by differ by at"
        f" most {most:.1e}: the same sums, rounded in another order.{close}\n\n{agree} After the prompt of"
        f" {len(subject.ids)} tokens the formula says {said:,} bytes, and the filled part of the cache's"
        f" tensor has {filled:,}. The whole tensor has {whole:,} bytes: it doubles when it is full."
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _filled(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> tuple[int, int]:
    return filled_bytes(_subject.model, ids)


def _speed(subject: Subject) -> None:
    """The speed does not depend on the weights: it is measured once for a model's sizes."""
    columns = st.columns([3, 3, 3, 4], gap="medium", vertical_alignment="center")
    if columns[3].button("Measure again", key="kv_again", icon=":material/timer:"):
        st.session_state["kv_turn"] = (st.session_state.get("kv_turn", 0) + 1) % 100
    with st.spinner("Measuring the speed of both, for a second …"):
        found = _speed_of(repr(subject.config), st.session_state.get("kv_turn", 0), subject)
    rates = (
        ("With, tokens/s", f"{found.cached:,.0f}"),
        ("Without, tokens/s", f"{found.uncached:,.0f}"),
        ("Times as fast", f"{found.ratio:.1f}"),
    )
    for column, (name, value) in zip(columns, rates, strict=False):
        column.metric(name, value)
    blocks = "one block" if found.blocks == 1 else f"{found.blocks} blocks"
    less = (
        "a small model spends much of its time between the operations, and reading many positions at once"
        " uses the processor better than one."
    )
    st.caption(
        f"Measured on this server: {blocks} of {found.tokens} tokens each way, in turn, after a text of one"
        " token; medians. The server may be shared and busy: trust the ratio more than the speeds. By FLOPs"
        f" it would be {found.work:.1f} times; "
        + (less if found.work > found.ratio else "here the cache gains even more.")
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _speed_of(config: str, turn: int, _subject: Subject) -> Speed:
    return speed(_subject.model, min(SPEED_TOKENS, _subject.config.context), SPEED_SECONDS)


# Why it may be kept -----------------------------------------------------------------------------


def _why(subject: Subject) -> None:
    c, pairs = subject.config, _pairs(subject, 4, SampleConfig(temperature=0.0))
    ids = (*subject.ids, pairs[0].token)[-c.context :]
    if len(ids) < 2:
        st.info("This model sees one token at a time: there is no earlier key to compare.")
        return
    kept, lost = _unchanged(subject.key, ids, True, subject), _unchanged(subject.key, ids, False, subject)
    before, after = st.columns(2, gap="medium")
    for column, name, found in ((before, "With the causal mask", kept), (after, "Mask switched off", lost)):
        with column:
            explain.worked(
                name,
                f"{found.most:.2g}" if found.most else "0",
                f"largest change of any key or value of the first {len(ids) - 1} tokens when one more is"
                f" read; the largest of them is {found.largest:.3g}",
            )
    table = pd.DataFrame(
        {
            "layer": range(c.n_layers),
            "key_mask_on": kept.keys,
            "value_mask_on": kept.values,
            "key_mask_off": lost.keys,
            "value_mask_off": lost.values,
        }
    )
    plot(
        figures.changes((kept.keys, kept.values), (lost.keys, lost.values)),
        key="kv_changes",
        height=320,
        data=table,
        name="kv-changes",
        alt=(
            f"Largest change of an earlier key or value by layer: at most {kept.most:.2g} with the causal"
            f" mask, up to {lost.most:.2g} without."
        ),
    )
    st.caption(
        f"The text is read twice: without its newest token, “{safe(subject.vocabulary[ids[-1]])}”, and with"
        " it. In layer 0 nothing has been mixed yet: its keys and values come from each token's own"
        " embedding, mask or not. "
        + (
            "This model has no layer above it, whose keys and values would change. "
            if c.n_layers == 1
            else ""
        )
        + (
            "Differences around a ten-millionth are rounding: sums of another size are added in another"
            " order."
            if kept.most
            else ""
        )
    )
    explain.takeaway(
        "**Under the causal mask a token reads only what came before it, so a later token cannot change its"
        " stream, nor the keys and values made of it.** What cannot change need not be computed twice."
        " Without the mask (an encoder) one more token changes everything above layer 0: no cache is"
        " possible."
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _unchanged(key: tuple[str, int], ids: tuple[int, ...], mask: bool, _subject: Subject) -> Unchanged:
    return unchanged(_subject.model, ids, mask=mask)
