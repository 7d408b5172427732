"""The part "Why it may be kept" of the KV cache: the mask keeps a later token from changing earlier keys."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from engine.measure.generation.kv_cache import CacheStability, unchanged
from pages.output.generation import figures_cache as figures
from pages.output.generation import words
from pages.output.generation.cache_steps import written_twice
from ui import explain, memo
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.markdown import safe


def draw_why(subject: Subject, container: Any) -> None:
    """Draws an earlier key and value beside the same one after a further token, with the mask and without."""
    c, pairs = subject.config, written_twice(subject, 4, SampleConfig(temperature=0.0))
    if pairs is None:
        return
    ids = (*subject.ids, pairs[0].token)[-c.context :]
    if len(ids) < 2:
        st.info(words.ONE_TOKEN)
        return
    masked, unmasked = (
        _unchanged(subject.key, ids, True, subject),
        _unchanged(subject.key, ids, False, subject),
    )
    table = pd.DataFrame(
        {
            "layer": range(c.n_layers),
            "key_mask_on": masked.keys,
            "value_mask_on": masked.values,
            "key_mask_off": unmasked.keys,
            "value_mask_off": unmasked.values,
        }
    )
    plot(
        figures.changes((masked.keys, masked.values), (unmasked.keys, unmasked.values)),
        key="kv_changes",
        height=350,
        data=table,
        name="kv-changes",
        alt=words.changes_alt(masked, unmasked),
    )
    explain.answer(words.allowed(masked, unmasked))
    explain.measure_it(_measured, subject, ids, masked, unmasked)


def _measured(
    subject: Subject, ids: tuple[int, ...], unchanged: CacheStability, lost: CacheStability
) -> None:
    before, after = st.columns(2, gap="medium")
    for column, name, stability in (
        (before, "With the causal mask", unchanged),
        (after, "Mask switched off", lost),
    ):
        with column:
            explain.worked(
                name,
                f"{stability.most:.2g}" if stability.most else "0",
                words.largest_change(stability, len(ids) - 1),
            )
    newest = safe(subject.vocabulary[ids[-1]])
    st.caption(words.read_twice(newest, subject.config.n_layers, rounded=bool(unchanged.most)))


@memo.measured()
def _unchanged(key: tuple[str, int], ids: tuple[int, ...], mask: bool, _subject: Subject) -> CacheStability:
    return unchanged(_subject.model, ids, mask=mask)
