"""The view "Shared keys": which query heads read the same keys and values (GQA, MQA), and what that saves."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.config import ModelConfig
from engine.measure.shared_keys import SharedKeys, fitting, kind, saved, served_by, shared_keys
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY
from engine.presets import PRESETS
from pages.inside.attention.figures import shared_figure
from ui import explain, widgets
from ui.players.plot import plot
from ui.subject import Subject

PUBLISHED = {"LLaMA-2 70B": "llama2-70b", "LLaMA-2 7B": "llama2-7b", "GPT-2 small": "gpt2"}
MINE, OWN = "this model", "own"
BYTES = {"float32": 4, "16 bits": 2, "8 bits": 1}
MAX_HEADS = 128
KINDS = {
    "multi-head": "Multi-head attention (MHA)",
    "grouped-query": "Grouped-query attention (GQA)",
    "multi-query": "Multi-query attention (MQA)",
}


def draw_shared_keys(subject: Subject) -> None:
    st.markdown(
        "Every query head needs keys to compare with and values to gather. They may be **its own**"
        " (multi-head, MHA), **shared by a group** (grouped-query, GQA) or **one set for all** (multi-query,"
        " MQA). While a model writes, it keeps all keys and values of the text so far: the fewer, the less"
        " memory there is to read."
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        which = widgets.one_of("Sizes of", (MINE, *PUBLISHED, OWN), "attention_sizes")
        size = BYTES[widgets.one_of("A number takes", list(BYTES), "attention_bytes", first="16 bits")]
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
    parts = HEALTHY if which in PUBLISHED else subject.model.parts
    found = _counted(config, n_heads, n_kv, size, parts.name, parts)
    group = n_heads // n_kv
    each = "one for each" if group == 1 else f"each serving {group}"
    st.markdown(
        f"**{KINDS[kind(n_heads, n_kv)]}**: {n_heads} query heads, {n_kv} key-value"
        f" {'head' if n_kv == 1 else 'heads'}, {each}."
    )
    alt = (
        f"{n_heads} query heads in a row above {n_kv} key-value heads; lines lead from each query head to the"
        " keys it reads."
    )
    pairs = pd.DataFrame({"query_head": range(n_heads), "kv_head": served_by(n_heads, n_kv)})
    plot(
        shared_figure(n_heads, n_kv),
        key="attention_shared",
        alt=alt,
        height=250,
        data=pairs,
        name="shared-keys",
    )
    st.table(_table(config, n_heads, n_kv, size, parts))
    full = _counted(config, n_heads, n_heads, size, parts.name, parts)
    explain.takeaway(
        f"The cache grows by 2 × {config.n_layers} layers × {n_kv} key-value heads × {config.d_head} numbers"
        f" × {size} bytes = **{_bytes(found.cache_bytes_per_token)} for each token**,"
        f" {_bytes(found.cache_bytes)} at the full context of {config.context:,}. "
        + (
            f"That is {saved(found, full):.1%} less than with {n_heads} key-value heads."
            if n_kv < n_heads
            else "Nothing is shared here, so nothing is saved."
        )
    )


def _own(n_heads: int, n_kv: int) -> tuple[int, int]:
    with st.container(horizontal=True, gap="medium"):
        heads = widgets.whole("Query heads", 1, MAX_HEADS, 8, "attention_heads", width=160)
        wanted = widgets.whole("Key-value heads", 1, MAX_HEADS, 2, "attention_kv", width=160)
    shared = fitting(heads, wanted)
    if shared != wanted:
        st.info(
            f"{wanted} does not divide {heads}: every key-value head must serve the same number of query"
            f" heads. {shared} is used instead."
        )
    return heads, shared


@st.cache_data(max_entries=256, show_spinner=False)
def _counted(
    config: ModelConfig, n_heads: int, n_kv: int, size: int, made_of: str, _parts: Parts
) -> SharedKeys:
    """`made_of`, the parts' name, stands for them in the key."""
    return shared_keys(config, n_heads, n_kv, size, _parts)


def _table(config: ModelConfig, n_heads: int, n_kv: int, size: int, parts: Parts) -> pd.DataFrame:
    """What is chosen beside no sharing and all sharing."""
    choices = dict.fromkeys((n_heads, n_kv, 1))
    found = [_counted(config, n_heads, kv, size, parts.name, parts) for kv in choices]
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
