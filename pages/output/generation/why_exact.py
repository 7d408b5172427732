"""The part "Why it is exact" of the KV cache: the mask keeps a later token from changing earlier keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import SampleConfig
from pages.output.generation.step_by_step import written_twice
from studies.generation.kv_cache import CacheStability, unchanged
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.players.plot import plot

TEXT = content.beside(__file__)


def draw(subject: Subject, container: Any) -> None:
    """Draws an earlier key and value beside the same one after a further token, with the mask and without."""
    c, pairs = subject.config, written_twice(subject, 4, SampleConfig(temperature=0.0))
    if pairs is None:
        return
    ids = (*subject.ids, pairs[0].token)[-c.context :]
    if len(ids) < 2:
        st.info(TEXT["one token"])
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
        changes((masked.keys, masked.values), (unmasked.keys, unmasked.values)),
        key="kv_changes",
        height=350,
        data=table,
        name="kv-changes",
        alt=TEXT("alt", masked=masked.most, unmasked=unmasked.most),
    )
    kept = TEXT("masked", most=masked.most)
    case = "only block" if unmasked.layers == 1 else "unmasked"
    explain.answer(f"{kept} {TEXT(case, first=unmasked.first, most=unmasked.most)}")
    explain.measure_it(_measured, subject, ids, masked, unmasked)


def _measured(
    subject: Subject, ids: tuple[int, ...], unchanged: CacheStability, lost: CacheStability
) -> None:
    before, after = st.columns(2, gap="medium")
    for column, name, stability in (
        (before, TEXT["with mask"], unchanged),
        (after, TEXT["without mask"], lost),
    ):
        with column:
            explain.worked(
                name,
                f"{stability.most:.2g}" if stability.most else "0",
                TEXT("largest change", tokens=len(ids) - 1, largest=stability.largest),
            )
    said = [TEXT("read twice", newest=subject.vocabulary[ids[-1]])]
    if subject.config.n_layers == 1:
        said.append(TEXT["no second block"])
    if unchanged.most:
        said.append(TEXT["rounding"])
    st.caption(" ".join(said))


@memo.measured()
def _unchanged(key: tuple[str, int], ids: tuple[int, ...], mask: bool, _subject: Subject) -> CacheStability:
    return unchanged(_subject.model, ids, mask=mask)


def changes(with_mask: tuple[np.ndarray, np.ndarray], without: tuple[np.ndarray, np.ndarray]) -> go.Figure:
    """Draws the largest change of an earlier key and value, each (layer,), with the causal mask and without
    it.
    """
    layers = [TEXT("block", number=i) for i in range(len(with_mask[0]))]
    bars = [
        {
            "type": "bar",
            "x": layers,
            "y": values,
            "name": TEXT("bar", what=what, state=state),
            "marker": {"color": colour(shade, opacity)},
            "hovertemplate": TEXT("hover", what=what, state=state),
            "text": [f"{v:.2g}" if v > 0 else "0" for v in values],
            "textposition": "outside",
            "cliponaxis": False,
            "textangle": 0,
        }
        for state, pair, shade in (("on", with_mask, "attention"), ("off", without, "output"))
        for what, values, opacity in (("key", pair[0], 100), ("value", pair[1], 50))
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.2,
        margin={"l": 64, "r": 12, "t": 48, "b": 36},
        xaxis={"showgrid": False},
        yaxis={"title": {"text": TEXT["axis"]}, "rangemode": "tozero"},
    )
