"""What a KV cache takes: the formula with numbers, and how fewer key-value heads shrink it, here and in
published models.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.caching import DTYPES, CacheSize, cache_size
from engine.presets import PRESETS
from pages.output.generation import cache_figures as figures
from ui import explain
from ui.figures.parameters import gigabytes
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe

LENGTHS = tuple(2**k for k in range(3, 18))
MODELS = ("llama2-7b", "llama2-70b", "llama3-8b", "mistral-7b")


def draw_bytes(subject: Subject) -> None:
    """The formula with its numbers, this model with every number of key-value heads, and published models."""
    c = subject.config
    ways = divisors(c.n_heads) if c.mixer == "attention" else [c.n_kv_heads]
    a, b, d = st.columns([3, 4, 3], gap="medium")
    tokens = a.select_slider(
        "Tokens of text T", LENGTHS, 4096, key="kv_tokens", bind="query-params"
    )  # as a link holds it: no commas
    dtype = b.segmented_control(
        "A number is kept as",
        list(DTYPES),
        default="bfloat16",
        required=True,
        key="kv_dtype",
        bind="query-params",
    )
    heads = d.segmented_control(
        "Key-value heads", ways, default=c.n_kv_heads, required=True, key="kv_heads", bind="query-params"
    )
    tokens = tokens if tokens in LENGTHS else 4096
    dtype = dtype if dtype in DTYPES else "bfloat16"
    heads = heads if heads in ways else c.n_kv_heads
    chosen, full = cache_size(c, tokens, dtype, heads), cache_size(c, tokens, dtype, ways[0])
    _formula(chosen, c)
    st.subheader("This model", anchor=False)
    sizes = [cache_size(c, tokens, dtype, n).formula for n in ways]
    plot(
        figures.bytes_by_heads(ways, sizes, c.n_heads, heads),
        key="kv_heads_figure",
        height=70 + 34 * len(ways),
        name="kv-cache-by-heads",
        data=pd.DataFrame({"kv_heads": ways, "bytes": sizes, "chosen": [n == heads for n in ways]}),
        alt="Bytes of the cache: "
        + ", ".join(f"{figures.way(n, c.n_heads)} {gigabytes(s)}" for n, s in zip(ways, sizes, strict=True))
        + ".",
    )
    if c.mixer != "attention":
        st.caption("Only the mixer “attention” can share key-value heads; this one has as many as heads.")
    _published(tokens, dtype)
    saved = full.formula / chosen.formula
    explain.takeaway(
        f"**With {heads} of {c.n_heads} key-value heads the cache of {tokens:,} tokens takes"
        f" {gigabytes(chosen.formula)}"
        + (
            f", {saved:g} times less than with a key head each.**"
            if saved > 1
            else ", the most it can take.**"
        )
        + " The queries keep all their heads: a group of them reads the same keys and values (Shazeer 2019,"
        " MQA; Ainslie et al. 2023, GQA)."
    )


def divisors(heads: int) -> list[int]:
    """
    >>> divisors(12)
    [12, 6, 4, 3, 2, 1]
    """
    return [n for n in range(heads, 0, -1) if heads % n == 0]


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
    titles, own, notes = [], [], []
    sizes: dict[str, list[int]] = {"MHA": [], "GQA": [], "MQA": []}
    for name in MODELS:
        preset = PRESETS[name]
        c = preset.model.resolved()
        title = preset.title.removesuffix(" (published)")
        titles.append(title)
        own.append(figures.way(c.n_kv_heads, c.n_heads)[:3])
        over = f"; beyond its context of {c.context:,}" if tokens > c.context else f"; context {c.context:,}"
        notes.append(
            f"{safe(title)}: {c.n_layers} layers, {c.n_kv_heads} of {c.n_heads} key-value heads of"
            f" {c.d_head}{over} ({safe(preset.source or '')})"
        )
        shared = c.n_kv_heads if c.n_kv_heads < c.n_heads else 8  # what its successors chose
        for way, heads in zip(sizes, (c.n_heads, shared, 1), strict=True):
            sizes[way].append(cache_size(c, tokens, dtype, heads).formula)
    ways = {way: np.array(found, dtype=np.float64) for way, found in sizes.items()}
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
                **{f"{way}_bytes": sizes for way, sizes in ways.items()},
            }
        ),
        alt=f"Cache of published models at {tokens:,} tokens in {dtype}: "
        + ", ".join(
            f"{t} {w} {gigabytes(ways[w][i])}" for i, (t, w) in enumerate(zip(titles, own, strict=True))
        )
        + ".",
    )
    st.caption(
        "Full colour: as published. Pale: the same model with a key head each (MHA), with 8 shared ones"
        " (GQA), or with one for all (MQA). "
        + " · ".join(notes)
        + ". Mistral attends to a window of 4,096, so its own cache need not grow beyond that."
    )
