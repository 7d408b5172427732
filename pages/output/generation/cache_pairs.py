"""The text that the KV cache's parts look at: written twice, once for all of them."""

from __future__ import annotations

import streamlit as st

from engine.config import SampleConfig
from engine.measure.caching import Pair, compare
from ui.subject import Subject

CHUNK = 32  # tokens that are computed at once


def written_twice(subject: Subject, length: int, sampling: SampleConfig) -> tuple[Pair, ...]:
    """A longer text begins like a shorter one, so a few lengths serve all."""
    return _compared(
        subject.key, subject.ids, -(-length // CHUNK) * CHUNK, sampling.temperature, sampling.seed, subject
    )[:length]


@st.cache_resource(max_entries=64, show_spinner="Writing it twice …")
def _compared(
    key: tuple[str, int], ids: tuple[int, ...], length: int, temperature: float, seed: int, _subject: Subject
) -> tuple[Pair, ...]:
    return compare(_subject.model, ids, length, SampleConfig(temperature=temperature, seed=seed))
