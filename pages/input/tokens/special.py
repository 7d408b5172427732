"""Tokens that stand for no text."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.tokenizers.published import END_OF_TEXT
from pages.input.tokens import words
from pages.input.tokens.cutting import Encodings
from ui.text.tokens import show_bytes


def draw_special(encodings: Encodings) -> None:
    """What a user's `<|endoftext|>` becomes, and what the real one is."""
    st.markdown("##### Special tokens")
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
        st.caption(
            "Computed now, by tiktoken. Our own BPE has no special tokens at all: it learned from one long"
            " text."
        )
    else:
        st.caption(
            "Choose a published encoding to see it done. Our own BPE has no special tokens at all: it learned"
            " from one long text."
        )
