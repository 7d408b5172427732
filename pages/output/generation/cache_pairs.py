"""The text that the KV cache's parts look at: written twice, once for all of them."""

from __future__ import annotations

import streamlit as st

from engine.config import SampleConfig
from engine.measure.generation.kv_cache import CacheStep, compare, comparing
from ui.background_jobs import measured
from ui.model_bar import Subject

CHUNK, SLOW_CHUNK = 32, 8  # tokens that are computed at once; by a large model


def written_twice(subject: Subject, length: int, sampling: SampleConfig) -> tuple[CacheStep, ...] | None:
    """Writes with a cache and without. A longer text begins like a shorter one, so a few lengths serve all.
    None while a large model is still writing.
    """
    chunk = SLOW_CHUNK if subject.is_pretrained else CHUNK
    whole, free = -(-length // chunk) * chunk, (sampling.temperature, sampling.seed)
    if not subject.is_pretrained:
        return _compared(subject.key, subject.ids, whole, *free, subject)[:length]
    pairs = measured(
        ("kv", subject.key, subject.ids, whole, *free),
        lambda: comparing(subject.model, subject.ids, whole, sampling),
        "Writing the text twice",
    )
    return None if pairs is None else pairs[:length]


@st.cache_resource(max_entries=64, show_spinner="Writing it twice …")
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], length: int, temperature: float, seed: int, _subject: Subject
) -> tuple[CacheStep, ...]:
    return compare(_subject.model, ids, length, SampleConfig(temperature=temperature, seed=seed))
