"""The part "How many bytes" of the KV cache: the formula with numbers, and how fewer key-value heads shrink
it, here and in published models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

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
from pages.output.generation import words
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe

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
    tokens = widgets.slide_over("Sequence length T", LENGTHS, 4096, "kv_tokens", container=a)
    dtype = widgets.select("Precision", list(DTYPES), "kv_dtype", first="bfloat16", container=b)
    by_heads = sharing(subject.config, tokens, dtype, subject.model.parts)
    heads = widgets.select(
        "Key-value heads", list(by_heads.sizes), "kv_heads", first=by_heads.model_heads, container=d
    )
    _by_heads(by_heads, heads)
    if not can_share(subject.config):
        st.caption(words.CANNOT_SHARE)
    explain.answer(words.bytes_taken(by_heads, heads, tokens))
    explain.measure_it(_published, tokens, dtype)
    explain.by_hand(_formula, by_heads.sizes[heads], subject.config.context)


def _by_heads(sharing: Sharing, heads: int) -> None:
    ways = list(sharing.sizes)
    sizes = [size.formula for size in sharing.sizes.values()]
    plot(
        figures.bytes_by_heads(ways, sizes, sharing.heads, heads),
        key="kv_heads_figure",
        height=110 + 40 * len(ways),
        name="kv-cache-by-heads",
        data=pd.DataFrame({"kv_heads": ways, "bytes": sizes, "chosen": [n == heads for n in ways]}),
        alt=words.bytes_alt([figures.way(n, sharing.heads) for n in ways], sizes),
    )


def _formula(size: CacheSize, context: int) -> None:
    st.markdown(words.bytes_by_hand(size, context))


def _published(tokens: int, dtype: str) -> None:
    st.subheader(words.PUBLISHED, anchor=False)
    presets = [PRESETS[name] for name in MODELS]
    configs = [preset.model.resolved() for preset in presets]
    titles = [_title(preset) for preset in presets]
    families = [family(c.n_kv_heads or 0, c.n_heads) for c in configs]
    sizes = [by_family(c, tokens, dtype) for c in configs]
    ways = {way: np.array([size[way] for size in sizes], dtype=np.float64) for way in WAYS}
    plot(
        figures.published(titles, ways, families),
        key="kv_published",
        height=380,
        name="kv-cache-published",
        data=pd.DataFrame(
            {
                "model": titles,
                "has": families,
                "tokens": tokens,
                "dtype": dtype,
                **{f"{way}_bytes": way_sizes for way, way_sizes in ways.items()},
            }
        ),
        alt=words.published_alt(
            titles, families, [s[w] for w, s in zip(families, sizes, strict=True)], tokens, dtype
        ),
    )
    st.caption(words.published([(safe(_title(preset)), preset) for preset in presets], tokens))


def _title(preset: Preset) -> str:
    return preset.title.removesuffix(" (published)")
