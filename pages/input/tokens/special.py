"""Tokens that encode no text, and one that was hardly ever trained."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data.tokenizers.published import END_OF_TEXT
from pages.input.tokens import shared, words
from pages.input.tokens.cutting import Encodings
from ui.text.tokens import show_bytes

GLITCHES = (" SolidGoldMagikarp", " petertodd", " Glassformer")


def draw_marks() -> None:
    """Draws ids that stand for no text, and one that was hardly ever trained."""
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("### A token that was never trained")
        draw_glitch(shared.at_hand(["gpt2"]))
    with right:
        st.markdown("### Start and end tokens")
        st.table(
            pd.DataFrame(
                [(model, f"`{begin}`", f"`{end}`") for model, begin, end in words.BEGIN_END],
                columns=["", "before a text", "after it"],
            ).set_index("")
        )
    st.markdown("### Special tokens")
    draw_special(shared.at_hand())


def draw_special(encodings: Encodings) -> None:
    """Draws a user's `<|endoftext|>` in tokens beside the real one."""
    st.markdown(words.SPECIAL.format(end=END_OF_TEXT))
    rows = [
        {
            "encoding": name,
            f"`{END_OF_TEXT}` typed by a person": " ".join(
                f"`{show_bytes(encoding.decode_bytes([i]))}`" for i in ids
            ),
            "its ids": ", ".join(f"{i:,}" for i in ids),
            "the real one": f"{encoding.special[END_OF_TEXT]:,}",
            "other special tokens": (
                ", ".join(f"`{text}`" for text in encoding.special if text != END_OF_TEXT) or "none"
            ),
        }
        for name, encoding in encodings.items()
        for ids in [encoding.encode(END_OF_TEXT)]
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index("encoding"))
    st.caption(words.OUR_SPECIAL if rows else words.NO_SPECIAL)


def draw_glitch(encodings: Encodings) -> None:
    """Draws how gpt2 cuts a user's name that became one token, beside a word that did not."""
    st.markdown(words.GLITCH)
    rows = [
        {
            "": f"`{show_bytes(text.encode())}`",
            "tokens": f"{len(ids)}",
            f"{name}'s ids": ", ".join(f"{i:,}" for i in ids),
        }
        for name, encoding in encodings.items()
        for text in GLITCHES
        for ids in [encoding.encode(text)]
    ]
    if rows:
        st.table(pd.DataFrame(rows).set_index(""))
