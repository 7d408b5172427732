"""The prompts of steering: pairs that were tried, and a person's own."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.measure.circuits.steering import Where
from pages.inside.circuits import words_weights as words
from ui.widgets import line

OWN = "own"
MOST_PROMPT = 200  # characters
COEFFICIENTS: dict[Where, tuple[float, ...]] = {
    "front": (-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0),
    "every": (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0),
}


@dataclass(frozen=True)
class Preset:
    """Two prompts, a text to go on with, and where and how strongly to add. `depth` is the block as a share
    of all blocks; `note` says what to expect where that is not what one hopes for.
    """

    title: str
    plus: str
    minus: str
    text: str
    where: Where = "every"
    coefficient: float = 1.0
    depth: float = 1 / 3
    note: str = ""

    def block(self, n_layers: int) -> int:
        return min(n_layers - 1, round(self.depth * n_layers))


WORDS: dict[str, Preset] = {
    "weather": Preset(
        "Fine weather",
        "The weather is wonderful",
        "The weather is terrible",
        "This morning I looked out of the window and",
        coefficient=2.0,
    ),
    "wedding": Preset(
        "Weddings",
        "wedding bride groom",
        "car road engine",
        "I went up to my friend and said",
        coefficient=0.5,
    ),
    "magic": Preset(
        "Magic",
        "Dragons, magic and wizards",
        "Computers, money and offices",
        "Yesterday I met a man who",
    ),
    "french": Preset(
        "French", "Je suis allé à la maison et", "I went to the house and", "My name is", depth=0.4
    ),
    "love": Preset(
        "Love / hate",
        " Love",
        " Hate",
        "I hate you because",
        where="front",
        coefficient=4.0,
        depth=0.2,
        note=(
            "The paper's own example, on GPT-2 XL (1.5 billion parameters). On a model this small it changes"
            " the text, but seldom its mood."
        ),
    ),
}
LETTERS: dict[str, Preset] = {
    "capitals": Preset(
        "CAPITALS", "THE KING IS HERE", "the king is here", "The king is", coefficient=1.0, depth=0.5
    ),
    "question": Preset("Questions", "?", ".", "Is it you", coefficient=2.0, depth=0.5),
    "joy": Preset(
        "Joy / war",
        "Love and sweet joy",
        "Death and bloody war",
        "My lord, ",
        coefficient=2.0,
        depth=0.5,
        note=("It hardly steers: a character model this small represents spelling, not meaning."),
    ),
}


def custom_preset(first: Preset) -> Preset:
    """Returns the visitor's preset; `first` stands there until one is written."""
    a, b, c = st.columns([3, 3, 4], gap="small")
    with a:
        plus = line(words.TOWARDS, first.plus, "steering_plus", MOST_PROMPT)
    with b:
        minus = line(words.AWAY, first.minus, "steering_minus", MOST_PROMPT)
    with c:
        text = line(words.TEXT, first.text, "steering_text", MOST_PROMPT)
    return Preset(words.YOUR_OWN, plus, minus, text, first.where, first.coefficient, first.depth)
