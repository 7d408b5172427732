"""The view "Shared keys": which query heads read the same keys and values (GQA, MQA), and what that saves."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.scaling import SharedKeys, shared_keys
from engine.parts.attention import Attention
from engine.presets import PRESETS
from pages.inside.attention.figures import shared_figure
from pages.inside.attention.shared import KEPT
from ui import explain
from ui.players.plot import plot
from ui.subject import Subject

PUBLISHED = {"LLaMA-2 70B": "llama2-70b", "LLaMA-2 7B": "llama2-7b", "GPT-2 small": "gpt2"}
MINE, OWN = "this model", "own"
BYTES = {"float32": 4, "16 bits": 2, "8 bits": 1}
MAX_HEADS = 128


def shared_view(subject: Subject) -> None:
    st.markdown(
        "Every query head needs keys to compare with and values to gather. They may be **its own**"
        " (multi-head, MHA), **shared by a group** (grouped-query, GQA) or **one set for all** (multi-query,"
        " MQA). While a model writes, it keeps all keys and values of the text so far: the fewer, the less"
        " memory there is to read."
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        which = st.segmented_control(
            "Sizes of", [MINE, *PUBLISHED, OWN], default=MINE, key="attention_sizes", required=True, **KEPT
        )
        kind = st.segmented_control(
            "A number takes", list(BYTES), default="16 bits", key="attention_bytes", required=True, **KEPT
        )
    config = subject.config if which not in PUBLISHED else PRESETS[PUBLISHED[which]].model.resolved()
    n_heads, n_kv = config.n_heads, config.n_kv_heads or config.n_heads
    if which in PUBLISHED:
        st.caption(f"Published sizes: {PRESETS[PUBLISHED[which]].source}.")
    if which == OWN:
        n_heads, n_kv = _own(n_heads, n_kv)
        st.caption(f"Layers, widths and context are those of {MINE}; d_head stays {config.d_head}.")
    if config.mixer != "attention" and which in (MINE, OWN):
        st.info(
            "This model's mixer has no keys of its own to share; the numbers below are those of attention"
            " with the same sizes."
        )
    size = BYTES.get(kind, 2)
    found = _counted(config, n_heads, n_kv, size)
    group = n_heads // n_kv
    each = "one for each" if group == 1 else f"each serving {group}"
    st.markdown(
        f"**{_kind(n_heads, n_kv)}**: {n_heads} query heads, {n_kv} key-value"
        f" {'head' if n_kv == 1 else 'heads'}, {each}."
    )
    alt = (
        f"{n_heads} query heads in a row above {n_kv} key-value heads; lines lead from each query head to the"
        " keys it reads."
    )
    pairs = pd.DataFrame(
        {"query_head": range(n_heads), "kv_head": [h // (n_heads // n_kv) for h in range(n_heads)]}
    )
    plot(
        shared_figure(n_heads, n_kv),
        key="attention_shared",
        alt=alt,
        height=250,
        data=pairs,
        name="shared-keys",
    )
    st.table(_table(config, n_heads, n_kv, size))
    full = _counted(config, n_heads, n_heads, size)
    saved = 1 - found.cache_bytes_per_token / full.cache_bytes_per_token
    explain.takeaway(
        f"The cache grows by 2 × {config.n_layers} layers × {n_kv} key-value heads × {config.d_head} numbers"
        f" × {size} bytes = **{_bytes(found.cache_bytes_per_token)} for each token**,"
        f" {_bytes(found.cache_bytes)} at the full context of {config.context:,}. "
        + (
            f"That is {saved:.1%} less than with {n_heads} key-value heads."
            if n_kv < n_heads
            else "Nothing is shared here, so nothing is saved."
        )
    )
    explain.reading(
        see=(
            "Above, the query heads; below, the heads that have keys and values. One colour is one group:"
            " those query heads compare with the same keys."
        ),
        why=(
            "Reading the cache, not computing, is what limits how fast large models write. Sharing keys makes"
            " it smaller; the queries stay different."
        ),
        attempt=(
            "LLaMA-2 70B has 64 query heads and 8 key-value heads. Then choose your own numbers, and go down"
            " to 1: multi-query attention."
        ),
    )
    explain.show_code(Attention.scores, Attention.weighted_sum, shared_keys)


def _own(n_heads: int, n_kv: int) -> tuple[int, int]:
    with st.container(horizontal=True, gap="medium"):
        heads = st.number_input("Query heads", 1, MAX_HEADS, 8, key="attention_heads", width=160, **KEPT)
        shared = st.number_input("Key-value heads", 1, MAX_HEADS, 2, key="attention_kv", width=160, **KEPT)
    heads = heads if isinstance(heads, int) and 1 <= heads <= MAX_HEADS else 8
    shared = shared if isinstance(shared, int) and 1 <= shared <= MAX_HEADS else 1
    if heads % shared:
        fits = max(i for i in range(1, min(shared, heads) + 1) if heads % i == 0)
        st.info(
            f"{shared} does not divide {heads}: every key-value head must serve the same number of query"
            f" heads. {fits} is used instead."
        )
        shared = fits
    return heads, shared


def _kind(n_heads: int, n_kv: int) -> str:
    if n_kv == n_heads:
        return "Multi-head attention (MHA)"
    return "Multi-query attention (MQA)" if n_kv == 1 else "Grouped-query attention (GQA)"


@st.cache_data(max_entries=256, show_spinner=False)
def _counted(config: ModelConfig, n_heads: int, n_kv: int, size: int) -> SharedKeys:
    return shared_keys(config, n_heads, n_kv, size)


def _table(config: ModelConfig, n_heads: int, n_kv: int, size: int) -> pd.DataFrame:
    """What is chosen beside no sharing and all sharing."""
    choices = dict.fromkeys((n_heads, n_kv, 1))
    found = [_counted(config, n_heads, kv, size) for kv in choices]
    columns = {
        f"{kv} key-value {'head' if kv == 1 else 'heads'}" + (" (chosen)" if kv == n_kv else ""): [
            f"{f.parameters:,}",
            f"{f.all_parameters:,}",
            _bytes(f.cache_bytes_per_token),
            _bytes(f.cache_bytes),
        ]
        for kv, f in zip(choices, found, strict=True)
    }
    rows = [
        "W_K and W_V, one layer (parameters)",
        "W_K and W_V, all layers (parameters)",
        "cache, one token",
        f"cache, {config.context:,} tokens",
    ]
    return pd.DataFrame(columns, index=pd.Index(rows, name=""))


def _bytes(count: int) -> str:
    """A size that can be read, in units of 1024.

    >>> _bytes(327_680)
    '320 KiB'
    """
    value, unit = float(count), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:,.4g} {unit}"
