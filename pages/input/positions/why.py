"""The view "Why": the same words in two orders, through attention that knows no positions, and through
attention that does. The measurements: `why_measured`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.permutation import (
    Comparison,
    Move,
    OrderEffect,
    new_order,
    order_effect,
    word_ids,
)
from pages.input.positions import figures_why as figures
from pages.input.positions import guesses, words_measured
from pages.input.positions.why_measured import draw_measured
from pages.input.positions.words_answers import TITLES, order_sentence
from ui import explain, memo, session, widgets
from ui.guess import ask
from ui.players.plot import plot
from ui.text.markdown import safe, whole

FIRST = "dog bites man"
MOVES: tuple[Move, ...] = ("reverse", "rotate", "shuffle")
MAX_WORDS, MAX_LETTERS, MAX_SEED = 16, 200, 9999


def draw_why() -> None:
    """Draws words in two orders, joined by lines that say what became of each."""
    picture, controls = st.columns([3, 1], gap="medium")
    with controls:
        sentence = _choose_words()
        hint = "How order is encoded. Each scheme has its own view on this page."
        scheme = widgets.select("Positions", TITLES, "why_scheme", hint=hint, wrap=True)
        hint = "Each word attends to itself and the words before it."
        causal = widgets.switch("Causal mask", False, "why_causal", hint=hint)
        move, seed = _choose_order()
    order = new_order(len(sentence), move, seed)
    effect = _effect(word_ids(sentence), tuple(order.tolist()))
    with picture:
        _draw_orders(sentence, effect.comparisons[scheme, causal], scheme)
    before, after = (safe(" ".join(sentence[i] for i in at)) for at in (range(len(sentence)), order))
    explain.answer(order_sentence(before, after, scheme, causal, effect))
    ask("order", guesses.order_guess, effect, scheme, causal)
    explain.measure_it(draw_measured, sentence, effect, scheme, causal, move, seed)


def _choose_words() -> list[str]:
    # Streamlit's own: a line of text that a link holds; whatever stands there is cut to words below.
    typed = st.text_input(
        "Sentence",
        FIRST,
        key="why_sentence",
        bind="query-params",
        max_chars=MAX_LETTERS,
        help="Here the words are the tokens.",
    )
    sentence = whole(typed or "").replace("\0", " ")[:MAX_LETTERS].split()
    if len(sentence) < 2:
        st.caption(words_measured.single_word(FIRST))
        sentence = FIRST.split()
    if len(sentence) > MAX_WORDS:
        st.caption(words_measured.first_words(len(sentence), MAX_WORDS))
    return sentence[:MAX_WORDS]


def _choose_order() -> tuple[Move, int]:
    """How the order is changed, and the seed of a shuffle."""
    hint = words_measured.ORDER_HINT
    move = widgets.select("New order", MOVES, "why_order", hint=hint, wrap=True)
    if move != "shuffle":
        return move, 0
    session.drop_endless()
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        seed = widgets.whole("Seed", 0, MAX_SEED, 0, "why_seed", width=110)
        st.button(
            "Another",
            on_click=_next_seed,
            key="why_again",
            icon=":material/shuffle:",
            help="The next seed: another shuffle.",
        )
    return move, seed


def _next_seed() -> None:
    st.session_state["why_seed"] = (int(st.session_state.get("why_seed") or 0) + 1) % (MAX_SEED + 1)


@memo.measured()
def _effect(ids: tuple[int, ...], order: tuple[int, ...]) -> OrderEffect:
    return order_effect(ids, np.array(order, dtype=np.int64))


def _draw_orders(sentence: list[str], comparison: Comparison, scheme: Position) -> None:
    moved = [sentence[i] for i in comparison.order]
    plot(
        figures.two_orders(comparison, sentence),
        key="why_orders",
        height=340,
        name="two-orders",
        data=pd.DataFrame({"word": sentence, "largest_difference": comparison.by_word}),
        alt=(
            f"Attention's output for each word of {' '.join(sentence)} on the left and of {' '.join(moved)}"
            f" on the right, positions: {TITLES[scheme]}. Lines join the same words and give their"
            " difference."
        ),
    )
