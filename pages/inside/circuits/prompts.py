"""The prompts of patching: pairs that are known, those that a tokenizer can take, and a person's own."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.data.tokenizers import Tokenizer
from engine.measure.circuits.prompt_pairs import fits
from pages.inside.circuits import words_patching as words
from ui.widgets import MOST_ANSWER, MOST_PROMPT, line

OWN = "own"


@dataclass(frozen=True)
class Pair:
    """Two prompts, and the answer that each calls for."""

    title: str
    clean: str
    corrupted: str
    answers: tuple[str, str]


PAIRS: dict[str, Pair] = {
    "capital": Pair(
        "France / Italy", "The capital of France is", "The capital of Italy is", (" Paris", " Rome")
    ),
    "name": Pair(
        "Mary / John",
        "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to",
        (" Mary", " John"),
    ),
    "agreement": Pair(
        "Keys / key", "The keys to the old cabinet", "The key to the old cabinet", (" are", " is")
    ),
    "opposite": Pair("Hot / big", "The opposite of hot is", "The opposite of big is", (" cold", " small")),
    "gender": Pair("Anna / Peter", "Anna said that", "Peter said that", (" she", " he")),
    # for models that read letters
    "thou": Pair("Thou art / they are", "thou ar", "they ar", ("t", "e")),
    "hast": Pair("Thou hast / they have", "thou ha", "they ha", ("s", "v")),
    "far": Pair("Thou wert, further off", "thou never wer", "they never wer", ("t", "e")),
}


def pairs_for(tokenizer: Tokenizer) -> dict[str, Pair]:
    """Returns the pairs whose prompts have equally many tokens here, and whose answers are one token each."""
    return {
        name: pair
        for name, pair in PAIRS.items()
        if fits(tokenizer, pair.clean, pair.corrupted, pair.answers)
    }


def custom_pair(first: Pair) -> Pair:
    """Returns the visitor's pair; `first` stands there until one is written."""
    a, b, c, d = st.columns([4, 4, 2, 2], gap="small")
    with a:
        clean = line(words.PROMPT_NAMES[0], first.clean, "patching_first_prompt", MOST_PROMPT)
    with b:
        corrupted = line(words.PROMPT_NAMES[1], first.corrupted, "patching_second_prompt", MOST_PROMPT)
    answers = []
    for column, i, key in ((c, 0, "patching_first_text"), (d, 1, "patching_second_text")):
        with column:
            hint = words.ANSWER_HINTS[i]
            answers.append(line(words.ANSWER_NAMES[i], first.answers[i], key, MOST_ANSWER, hint))
    return Pair(words.YOUR_OWN, clean, corrupted, (answers[0], answers[1]))
