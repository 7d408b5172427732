"""The text that merges are learned from, and the passage in which they are watched."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.data.tokenizers.bpe import Level, Split
from engine.data.tokenizers.bpe_watch import MAX_SYMBOLS, affordable
from pages.input.tokens import words
from pages.input.tokens.shared import corpus
from ui import session

OWN, SHAKESPEARE = "own", "shakespeare"
SHOWN = 2_000  # characters in which merges are watched


@dataclass(frozen=True)
class Texts:
    """`learned` is what merges are learned from, `passage` where they are shown; `name` says whose text it
    is.
    """

    learned: str
    passage: str
    name: str

    @property
    def same(self) -> bool:
        return self.learned == self.passage


def choose_texts(typed: str, level: Level, split: Split, source: str) -> Texts | None:
    """Returns the text to learn from and the passage to watch; says what was left out. None, with a sentence,
    where there is nothing to learn from.
    """
    if source == OWN:
        if not typed:
            st.info(words.NO_MERGES)
            return None
        learned, name = typed, words.TEXTS["yours"]
    else:
        chosen = corpus(source)
        learned, name = chosen.text, words.TEXTS[chosen.name]
        if not typed:
            st.caption(words.BEGINNING_SHOWN)
    passage = (typed or learned)[:SHOWN]
    most = affordable(learned, level, split, min(session.profile().max_watched, MAX_SYMBOLS))
    if most < len(learned):
        st.caption(words.learned_in_part(split == "none", most, len(learned)))
    if len(typed) > SHOWN:
        st.caption(words.shown_in_part(SHOWN, len(typed), source == OWN))
    return Texts(learned[:most], passage, name)
