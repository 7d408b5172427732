"""The components of a model, as the views of Parameters name, colour and count them."""

from __future__ import annotations

import streamlit as st

from studies.costs.ledger import COMPONENTS, Ledger
from ui import content
from ui.text.numbers import percent

TEXT = content.beside(__file__)
NAMES = {
    "embedding": "embedding",
    "position": "positions",
    "norm_embed": "embedding norm",
    "norm1": "norm 1",
    "attention": "attention",
    "norm_cross": "cross norm",
    "cross_attention": "cross-attention",
    "norm2": "norm 2",
    "feedforward": "feed-forward",
    "norm_final": "final norm",
    "pooler": "pooler",
    "unembedding": "unembedding",
}
SHADES = {name: "norm" if name.startswith("norm") else name for name in COMPONENTS} | {
    "cross_attention": "attention",
    "pooler": "output",
    "unembedding": "output",
}


def shares_in_words(ledger: Ledger) -> str:
    """Returns each component with its share of the model."""
    return ", ".join(
        f"{NAMES[name]} {percent(count, ledger.total)}" for name, count in ledger.components.items() if count
    )


def colour_on(part: str) -> str:
    """Returns the colour of words on a part's colour."""
    return "#16181D" if part in ("attention", "position", "norm") else "var(--gf-seq0)"


def draw_letters() -> None:
    """Draws what the letters of a formula are."""
    st.caption(TEXT["letters"])


def signed(count: int) -> content.Filled:
    """Returns a difference with its sign.

    >>> signed(-512), signed(0)
    ('−512', '±0')
    """
    return content.Filled(f"{'−' if count < 0 else '+' if count else '±'}{abs(count):,}")
