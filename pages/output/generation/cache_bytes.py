"""The part "How many bytes" of the KV cache: the formula with numbers, and how fewer key-value heads shrink
it, here and in published models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.generation.kv_cache import (
    DTYPES,
    CacheSize,
    Family,
    Sharing,
    by_family,
    can_share,
    family,
    sharing,
)
from engine.presets import PRESETS, Preset
from pages.output.generation import figures_cache as figures
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe
from ui.text.numbers import gigabytes

LENGTHS = tuple(2**k for k in range(3, 18))
MODELS = ("llama2-7b", "llama2-70b", "llama3-8b", "mistral-7b")
WAYS: tuple[Family, ...] = ("MHA", "GQA", "MQA")


def draw_bytes(subject: Subject, container: Any) -> None:
    """Draws the formula with its numbers, this model with every number of key-value heads, and published
    models.
    """
    a = container
    b, d = st.columns([4, 5], gap="medium")
    # as a link holds it: no commas
    tokens = widgets.slide_over("Tokens of text T", LENGTHS, 4096, "kv_tokens", container=a)
    dtype = widgets.select("A number is kept as", list(DTYPES), "kv_dtype", first="bfloat16", container=b)
    found = sharing(subject.config, tokens, dtype, subject.model.parts)
    heads = widgets.select(
        "Key-value heads", list(found.sizes), "kv_heads", first=found.model_heads, container=d
    )
    chosen = found.sizes[heads]
    _by_heads(found, heads)
    if not can_share(subject.config):
        st.caption("Only the mixer “attention” can share key-value heads; this one has as many as heads.")
    saved = found.saved(heads)
    explain.answer(
        f"**With {heads} of {found.heads} key-value heads the cache of {tokens:,} tokens takes"
        f" {gigabytes(chosen.formula)}"
        + (
            f", {saved:g} times less than with a key head each.**"
            if saved > 1
            else ", the most it can take.**"
        )
        + " The queries keep all their heads: a group of them reads the same keys and values (Shazeer 2019,"
        " MQA; Ainslie et al. 2023, GQA)."
    )
    explain.measure_it(_published, tokens, dtype)
    explain.by_hand(_formula, chosen, subject.config)


def _by_heads(sharing: Sharing, heads: int) -> None:
    ways = list(sharing.sizes)
    sizes = [size.formula for size in sharing.sizes.values()]
    plot(
        figures.bytes_by_heads(ways, sizes, sharing.heads, heads),
        key="kv_heads_figure",
        height=110 + 40 * len(ways),
        name="kv-cache-by-heads",
        data=pd.DataFrame({"kv_heads": ways, "bytes": sizes, "chosen": [n == heads for n in ways]}),
        alt="Bytes of the cache: "
        + ", ".join(
            f"{figures.way(n, sharing.heads)} {gigabytes(s)}" for n, s in zip(ways, sizes, strict=True)
        )
        + ".",
    )


def _formula(size: CacheSize, own: ModelConfig) -> None:
    beyond = (
        f" This model's own context is {own.context:,}; at more the numbers hold for one trained for it."
        if size.tokens > own.context
        else ""
    )
    shape = " × ".join(f"{n:,}" for n in size.shape)
    st.markdown(
        f"layers · 2 · kv_heads · d_head · T · bytes of a number = {size.numbers} = **{size.formula:,} bytes"
        f" = {gigabytes(size.formula)}**\n\n{'✓' if size.tensor == size.formula else '✗'} The tensor that the"
        f" engine's `KVCache` makes for it has the shape {shape} (layer, key or value, text, kv_head,"
        f" position, d_head) in {size.dtype}: {size.tensor:,} bytes.{beyond}"
    )


def _published(tokens: int, dtype: str) -> None:
    st.subheader("Published models, at the same length", anchor=False)
    presets = [PRESETS[name] for name in MODELS]
    configs = [preset.model.resolved() for preset in presets]
    titles = [_title(preset) for preset in presets]
    own = [family(c.n_kv_heads or 0, c.n_heads) for c in configs]
    sizes = [by_family(c, tokens, dtype) for c in configs]
    ways = {way: np.array([size[way] for size in sizes], dtype=np.float64) for way in WAYS}
    plot(
        figures.published(titles, ways, own),
        key="kv_published",
        height=380,
        name="kv-cache-published",
        data=pd.DataFrame(
            {
                "model": titles,
                "has": own,
                "tokens": tokens,
                "dtype": dtype,
                **{f"{way}_bytes": found for way, found in ways.items()},
            }
        ),
        alt=f"Cache of published models at {tokens:,} tokens in {dtype}: "
        + ", ".join(f"{t} {w} {gigabytes(s[w])}" for t, w, s in zip(titles, own, sizes, strict=True))
        + ".",
    )
    st.caption(
        "Full colour: as published. Pale: the same model with a key head each (MHA), with 8 shared ones"
        " (GQA), or with one for all (MQA). "
        + " · ".join(_note(preset, tokens) for preset in presets)
        + ". Mistral attends to a window of 4,096, so its own cache need not grow beyond that."
    )


def _title(preset: Preset) -> str:
    return preset.title.removesuffix(" (published)")


def _note(preset: Preset, tokens: int) -> str:
    c = preset.model.resolved()
    over = f"; beyond its context of {c.context:,}" if tokens > c.context else f"; context {c.context:,}"
    return (
        f"{safe(_title(preset))}: {c.n_layers} layers, {c.n_kv_heads} of {c.n_heads} key-value heads of"
        f" {c.d_head}{over} ({safe(preset.source or '')})"
    )
