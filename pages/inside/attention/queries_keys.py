"""The view "Q and K": why tokens are not compared as they are. It needs no model."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.measure.self_term import WAYS, compared
from pages.inside.attention import words_scores as words
from pages.inside.attention.scaling_figures import compared_maps
from ui import explain, widgets
from ui.players.plot import plot

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


def draw_queries_keys() -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        width = widgets.slide_over("d, numbers in a vector", WIDTHS, 256, "attention_width", width=330)
        seed = widgets.whole("Seed", 0, 9999, 0, "attention_self_seed", hint=words.SEED_HINT, width=140)
    found = compared(width, seed, len(words.SELF_TOKENS))
    frames = [
        pd.DataFrame(one.weights, columns=list(words.SELF_TOKENS)).assign(way=way, query=words.SELF_TOKENS)
        for way, one in found.items()
    ]
    plot(
        compared_maps([found[way] for way in WAYS], words.SELF_TITLES, words.SELF_TOKENS),
        key="attention_self",
        alt=words.SELF_ALT,
        height=370,
        data=pd.concat(frames, ignore_index=True),
        name="self-term",
    )
    explain.answer(words.self_term(found, width))
    explain.measure_it(lambda: st.table(words.self_table(found)))
    explain.by_hand(lambda: (st.markdown(words.SELF_BY_HAND), st.caption(words.SELF_SETTING)))
