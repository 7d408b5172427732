"""Attention by hand: which example is worked out."""

from __future__ import annotations

import streamlit as st

from engine.measure.recording import softmax
from engine.measure.shapes import attention_by_hand
from pages.inside.shapes import words
from pages.inside.shapes.masking import draw_mask
from pages.inside.shapes.two_heads import draw_heads
from ui import widgets
from ui.page_frame import Ask, Code, Words

EXAMPLES = {"heads": "Two heads", "mask": "Masking"}
EXAMPLE = "shapes_example"
ASKS = (
    Ask(words.ASK_HAND["heads"], words.HEADS),
    Ask(words.ASK_HAND["mask"], words.MASK, ((EXAMPLE, "mask"),)),
)


def draw_by_hand() -> None:
    line = st.container(horizontal=True, gap="large", vertical_alignment="bottom")
    example = widgets.select("Example", EXAMPLES, EXAMPLE, container=line)
    (draw_mask if example == "mask" else draw_heads)(line)


def ask_by_hand() -> str:
    return words.ASK_HAND[widgets.settled(EXAMPLES, EXAMPLE)]


def words_by_hand() -> Words:
    return words.MASK if _is_mask() else words.HEADS


def code_by_hand() -> Code:
    return (
        attention_by_hand.masking if _is_mask() else attention_by_hand.multi_head,
        softmax,
    )


def _is_mask() -> bool:
    return widgets.settled(EXAMPLES, EXAMPLE) == "mask"
