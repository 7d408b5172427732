"""The view "Q and K": why tokens are not compared as they are. It needs no model."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.measure.attention.scaling import WAYS, compare_tokens
from pages.inside.attention import words_scores as words
from pages.inside.attention.scaling_figures import compared_map
from ui import explain, widgets
from ui.players.plot import plot

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


def draw_queries_keys() -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        width = widgets.slide_over("d, numbers in a vector", WIDTHS, 256, "attention_width", width=330)
        seed = widgets.whole("Seed", 0, 9999, 0, "attention_self_seed", hint=words.SEED_HINT, width=140)
    found = compare_tokens(width, seed, len(words.SELF_TOKENS))
    for column, way, title in zip(st.columns(3), WAYS, words.SELF_TITLES, strict=True):
        one = found[way]
        with column:
            plot(
                compared_map(one, title, words.SELF_TOKENS),
                key=f"attention_self_{way}",
                alt=words.self_alt(title, one),
                height=360,
                data=pd.DataFrame(one.weights, columns=list(words.SELF_TOKENS)).assign(
                    query=words.SELF_TOKENS
                ),
                name=f"self-term-{way}",
            )
    explain.answer(words.self_term(found, width))
    explain.measure_it(lambda: st.table(words.self_table(found)))
    explain.by_hand(lambda: (st.markdown(words.SELF_BY_HAND), st.caption(words.SELF_SETTING)))
