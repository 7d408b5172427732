"""The view "Shared keys": which query heads read the same keys and values (GQA, MQA), and what that saves."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.config import ModelConfig, ResolvedConfig
from engine.measure.attention.shared_keys import (
    SharedKeys,
    cache_saving,
    fitting,
    kind,
    served_by,
    shared_keys,
)
from engine.parts.registry import HEALTHY, Parts
from engine.presets import PRESETS
from pages.inside.attention import words
from pages.inside.attention.figures import shared_figure
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.numbers import gigabytes

PUBLISHED = {"LLaMA-2 70B": "llama2-70b", "LLaMA-2 7B": "llama2-7b", "GPT-2 small": "gpt2"}
MINE, OWN, FIRST = words.MINE, "own", "LLaMA-2 70B"
BYTES = {"float32": 4, "16 bits": 2, "8 bits": 1}
MAX_HEADS = 128


def draw_shared_keys(subject: Subject) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        sizes = {name: name for name in (MINE, *PUBLISHED)} | {OWN: words.CUSTOM}
        which = widgets.select(words.SIZES, sizes, "attention_sizes", first=FIRST)
        size = BYTES[widgets.select(words.PRECISION, list(BYTES), "attention_bytes", first="16 bits")]
    config = subject.config if which not in PUBLISHED else PRESETS[PUBLISHED[which]].model.resolved()
    n_heads, n_kv = config.n_heads, config.n_kv_heads or config.n_heads
    if which == OWN:
        n_heads, n_kv = _own(n_heads, n_kv)
    parts = HEALTHY if which in PUBLISHED else subject.model.parts
    count = _counted(config, n_heads, n_kv, size, parts.name, parts)
    pairs = pd.DataFrame({"query_head": range(n_heads), "kv_head": served_by(n_heads, n_kv)})
    plot(
        shared_figure(n_heads, n_kv),
        key="attention_shared",
        alt=words.shared_alt(n_heads, n_kv),
        height=300,
        data=pairs,
        name="shared-keys",
    )
    full = _counted(config, n_heads, n_heads, size, parts.name, parts)
    less = cache_saving(count, full) if n_kv < n_heads else 0.0
    named = words.KINDS[kind(n_heads, n_kv)]
    explain.answer(words.shared(named, n_heads, n_kv, gigabytes(count.cache_bytes_per_token), less))
    explain.measure_it(_more, which, config, n_heads, n_kv, size, parts)
    explain.by_hand(st.markdown, words.cache_by_hand(config, n_kv, size, count))


def _more(which: str, config: ResolvedConfig, n_heads: int, n_kv: int, size: int, parts: Parts) -> None:
    if which in PUBLISHED:
        st.caption(words.PUBLISHED.format(source=PRESETS[PUBLISHED[which]].source))
    elif which == OWN:
        st.caption(words.custom_sizes(config.d_head))
    st.table(_table(config, n_heads, n_kv, size, parts))


def _own(n_heads: int, n_kv: int) -> tuple[int, int]:
    with st.container(horizontal=True, gap="medium"):
        heads = widgets.whole(words.QUERY_HEADS, 1, MAX_HEADS, 8, "attention_heads", width=160)
        wanted = widgets.whole(words.KV_HEADS, 1, MAX_HEADS, 2, "attention_kv", width=160)
    shared = fitting(heads, wanted)
    if shared != wanted:
        st.info(words.USED_INSTEAD.format(wanted=wanted, heads=heads, shared=shared))
    return heads, shared


@memo.measured(copied=True)
def _counted(
    config: ModelConfig, n_heads: int, n_kv: int, size: int, made_of: str, _parts: Parts
) -> SharedKeys:
    """`made_of`, the parts' name, stands for them in the key."""
    return shared_keys(config, n_heads, n_kv, size, _parts)


def _table(config: ModelConfig, n_heads: int, n_kv: int, size: int, parts: Parts) -> pd.DataFrame:
    """Tabulates the choice beside no sharing and full sharing."""
    choices = dict.fromkeys((n_heads, n_kv, 1))
    counts = {kv: _counted(config, n_heads, kv, size, parts.name, parts) for kv in choices}
    return words.cache_table(counts, n_kv, config.context)
