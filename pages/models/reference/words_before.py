"""Sentences of the view about the time before the Transformer."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.families.influence_by_distance import LayerInfluence
from ui.page_frame import Words
from ui.text.numbers import number

ASK = "Why did attention replace recurrent networks?"
NAMES = {"rnn": "RNN", "lstm": "LSTM", "attention": "attention"}
LENGTH = "Tokens"
COUNTED = (
    "Counted for one layer, 64 wide. Without constants this is Table 1 of Vaswani et al. 2017: $T^2 d$"
    " against $T d^2$. Attention is more expensive where a text is longer than the vector is wide: that is"
    " its price."
)
SETTING = (
    "Four layers of each kind before training, on random vectors; weights uniform in ±1/√d, the LSTM's forget"
    " bias 1 (Jozefowicz et al. 2015)."
)

BEFORE = Words(
    see=(
        "How much the last output changes when a token further back does, as a share of what its neighbour"
        " does. A recurrent layer carries it on step by step, and each step multiplies it by a matrix."
        " Attention attends to every position at once. An LSTM adds to a cell state instead of replacing it:"
        " the idea that a residual stream carries to all layers."
    ),
    why=(
        "Translation was done by recurrent networks that pressed a sentence into one vector. Bahdanau et al."
        " 2014 let the decoder look back at every word: attention, beside the recurrence. Vaswani et al. 2017"
        " threw the recurrence away. It won for five reasons: all positions train at once, paths are short,"
        " loss falls with scale, one block serves text, images and audio, and pretrained models transfer."
    ),
    attempt="Go to 8 tokens: the RNN does well enough there. Then double the length and watch its line.",
)


def carried_far(layers: Sequence[LayerInfluence]) -> str:
    """Returns the answer: steps and influence, by name."""
    rnn, attention = (next(layer for layer in layers if layer.layer == kind) for kind in ("rnn", "attention"))
    return (
        f"From the first token to the last, an untrained RNN needs **{rnn.path} sequential steps**, and"
        f" passes on {number(rnn.left)} of a neighbour's influence; attention needs **{attention.path}**, at"
        f" a ratio of {attention.left:.1f}."
    )


def alt(layers: Sequence[LayerInfluence]) -> str:
    text = ", ".join(f"{NAMES[layer.layer]} {number(layer.left)}" for layer in layers)
    places = layers[0].length - 1
    return f"Influence on the last output over {places} positions, as a share of the neighbour's: {text}."
