"""Vectors for RoPE to rotate on this page: a head of the model in the bar, or random ones where the model
rotates nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from engine.measure.positions import rope as rotary
from ui import widgets
from ui.model_bar import Subject

BASES = (100, 200, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
WIDTHS = (4, 8, 16, 32, 48, 64, 96, 128, 256)


@dataclass(frozen=True, eq=False)
class Turning:
    """Vectors to rotate: q, k (position, d_head) before rotation, and where they are from. `from_model`: they
    belong to the model in the bar.
    """

    q: np.ndarray
    k: np.ndarray
    base: float
    from_model: bool
    words: str
    rotary: int  # dimensions of a head that turn: the first of its `width`

    @property
    def width(self) -> int:
        return self.q.shape[1]


def turning(subject: Subject) -> Turning:
    """Returns q and k of the chosen head when the model turns its own; else seeded vectors, and a sentence
    that says so.
    """
    c = subject.config
    scored, own = subject.model.parts.mixer(c).card.scored, rotary.turned_by(subject.model)
    if own is not None and scored:
        left, right = st.columns(2, gap="small")
        layer = widgets.select("Layer", range(c.n_layers), "rope_layer", kind="list", container=left)
        head = widgets.select("Head", range(c.n_heads), "rope_head", kind="list", container=right)
        q, k = _vectors(subject.key, subject.ids, layer, head, subject)
        words = f"layer {layer}, head {head} of {subject.title}"
        return Turning(q, k, own.base, True, words, own.rotary)
    width = c.d_head if c.d_head % 2 == 0 else 32
    why = (
        "compares no queries with keys"
        if own is not None
        else f"has positions of another kind ({c.position})"
    )
    st.info(
        f"The model in the bar {why}, so nothing in it turns. Shown instead: vectors of width {width} drawn"
        " at random (seed 0) for each token, turned by the engine's own RoPE with base 10,000. For a model"
        " that really turns its queries and keys, choose “Shakespeare, modern” in the bar."
    )
    q, k = _random(len(subject.ids), width)
    return Turning(q, k, 10_000.0, False, "random vectors, seed 0", width)


@st.cache_resource(max_entries=32, show_spinner=False)
def _vectors(
    key: tuple[str, int], ids: tuple[int, ...], layer: int, head: int, _subject: Subject
) -> tuple[np.ndarray, np.ndarray]:
    result = rotary.before_rotation(_subject.model, _subject.recording(), layer, head)
    assert result is not None
    return result


@st.cache_resource(max_entries=8, show_spinner=False)
def _random(length: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    q, k = rotary.seeded_pair(length * width)
    return q.reshape(length, width), k.reshape(length, width)


def near(value: float, options: tuple[int, ...]) -> int:
    """Returns the option nearest to a value."""
    return min(options, key=lambda o: abs(o - value))


def near_base(value: float) -> int:
    """Returns the base on the sliders that is nearest on a logarithmic scale."""
    return min(BASES, key=lambda b: abs(math.log(b / value)))
