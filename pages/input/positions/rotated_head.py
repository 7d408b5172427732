"""The vectors that RoPE rotates on this page, those of one head of the model, and sizes to choose from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from studies.positions import rope as rotary
from ui import content, memo, widgets
from ui.model_bar import Subject

TEXT = content.beside(__file__)
BASES = (100, 200, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000)
WIDTHS = (4, 8, 16, 32, 48, 64, 96, 128, 256)


@dataclass(frozen=True, eq=False)
class RotatedHead:
    """q and k (position, d_head) of a head before rotation; `words` says whose they are (Markdown). The first
    `rotary` dimensions of a head turn.
    """

    q: np.ndarray
    k: np.ndarray
    base: float
    words: str
    rotary: int

    @property
    def width(self) -> int:
        return self.q.shape[1]


def rotated_head(subject: Subject) -> RotatedHead:
    """Returns q and k of the head that is chosen here, of a model that turns its own."""
    c, rotation = subject.config, rotary.turned_by(subject.model)
    assert rotation is not None
    left, right = st.columns(2, gap="small")
    layer = widgets.select(TEXT["layer"], range(c.n_layers), "rope_layer", kind="list", container=left)
    head = widgets.select(TEXT["head"], range(c.n_heads), "rope_head", kind="list", container=right)
    q, k = _vectors(subject.key, subject.ids, layer, head, subject)
    words = TEXT("head of", layer=layer, head=head, model=subject.title)
    return RotatedHead(q, k, rotation.base, words, rotation.rotary)


@memo.measured()
def _vectors(
    key: tuple[str, int], ids: tuple[int, ...], layer: int, head: int, _subject: Subject
) -> tuple[np.ndarray, np.ndarray]:
    result = rotary.before_rotation(_subject.model, _subject.recording(), layer, head)
    assert result is not None
    return result


def near(value: float, options: tuple[int, ...]) -> int:
    """Returns the option nearest to a value."""
    return min(options, key=lambda o: abs(o - value))


def near_base(value: float) -> int:
    """Returns the base on the sliders that is nearest on a logarithmic scale."""
    return min(BASES, key=lambda b: abs(math.log(b / value)))
