"""The view "Round trip": a text into ids and back, and what a letter does that no list has."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from engine.data.tokenizers.published import whole_characters
from engine.measure.tokens.vocabulary import (
    RoundTrip,
    of_characters,
    of_tokens,
    of_words,
)
from pages.input.tokens import shared, words
from pages.input.tokens.chips import Row, token_chips
from pages.input.tokens.special import draw_glitch, draw_special
from ui import explain
from ui.widgets import KEPT

TEXT, EXAMPLE = "trip_text", "trip_example"
FIRST = "To be or not to bé"
EXAMPLES = ("To be or not to be", FIRST, "your smörgåsbord", "你好", "👍🏽", " SolidGoldMagikarp")
MAX_TEXT = 60  # characters
PIECES = 512  # entries of our BPE
SOURCE = "shakespeare"
Tried = dict[str, tuple[RoundTrip, int]]  # title -> (the trip, entries of the vocabulary)


def draw_roundtrip() -> None:
    """Draws the text, its ids by each tokenizer, and what they are decoded to."""
    text = _typed()
    known = shared.source(SOURCE, "")
    if known is None:
        return
    if not text:
        st.info("The box is empty, so there are no ids: type something, or choose an example.")
        return
    tried = _tried(text, known)
    explain.answer(
        words.round_trip(
            {name: one for name, (one, _) in tried.items()}, {n: v for n, (_, v) in tried.items()}
        )
    )
    rows = [
        Row(name, f"{one.cut.tokens:,} ids\n{entries:,} entries", one.cut, words.came_back(one))
        for name, (one, entries) in tried.items()
    ]
    token_chips(text, rows, key="trip_chips", label="The text as ids, by each tokenizer", ids=True)
    st.caption(f"Characters, words and BPE were trained on {shared.SOURCES[known.name]}; gpt2 on web text.")
    explain.measure_it(_measured)


def _typed() -> str:
    """The box and its examples in one line. Returns whole characters."""

    def take() -> None:
        chosen = st.session_state.get(EXAMPLE)
        if chosen in EXAMPLES:
            st.session_state.update({TEXT: chosen, EXAMPLE: None})

    held, halves = whole_characters(str(st.session_state.get(TEXT, "")))
    if halves:  # half a character cannot be sent to the browser
        st.session_state[TEXT] = held
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        typed = st.text_input("Text", FIRST, key=TEXT, label_visibility="collapsed", width=260, **KEPT)
        # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
        st.pills("Examples", EXAMPLES, key=EXAMPLE, on_change=take, label_visibility="collapsed", wrap=True)
    return whole_characters(typed or "")[0][:MAX_TEXT]


def _tried(text: str, known: shared.Sources) -> Tried:
    alphabet = shared.alphabet(known.name, known.custom, known.text)
    tried: Tried = {"Characters": (of_characters(text, alphabet), len(alphabet))}
    listed = shared.known_words(known)
    if listed is not None:
        tried["Words"] = of_words(text, listed), listed.vocab_size
    learned = shared.smaller(known, PIECES)
    tried["BPE"] = of_tokens(text, learned), learned.vocab_size
    gpt2 = shared.at_hand(["gpt2"]).get("gpt2")
    if gpt2 is not None:
        tried["gpt2"] = of_tokens(text, gpt2), gpt2.vocab_size
    return tried


def _measured() -> None:
    """Ids that stand for no text, and one that was hardly ever taught."""
    gpt2 = shared.at_hand(["gpt2"])
    left, right = st.columns(2, gap="medium")
    with left:
        _titled("A token that was never trained", draw_glitch, gpt2)
    with right:
        _titled("Start and end tokens", _begin_end)
    _titled("Special tokens", draw_special, shared.at_hand())


def _titled(title: str, draw: Callable[..., None], *about: object) -> None:
    st.markdown(f"### {title}")
    draw(*about)


def _begin_end() -> None:
    st.table(
        pd.DataFrame(
            [(model, f"`{begin}`", f"`{end}`") for model, begin, end in words.BEGIN_END],
            columns=["", "before a text", "after it"],
        ).set_index("")
    )
