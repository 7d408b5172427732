"""Sentences of the view about the time before the Transformer."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.families.influence_by_distance import LayerInfluence
from ui.page_frame import Words
from ui.text.numbers import number

ASK = "Why did attention replace recurrent networks?"
NAMES = {"rnn": "RNN", "lstm": "LSTM", "attention": "attention"}
LENGTH = "Sequence length T"
COUNTED = (
    "Counted for one layer of width 64. Up to constant factors, this is Table 1 of Vaswani et al. 2017:"
    " $T^2 d$ against $T d^2$. Attention costs more once a text is longer than the vectors are wide."
)
SETTING = (
    "Four layers of each kind before training, on random vectors; weights uniform in ±1/√d, the LSTM's forget"
    " bias 1 (Jozefowicz et al. 2015)."
)

BEFORE = Words(
    see=(
        "The effect of each earlier token on the last output, relative to that of its nearest"
        " neighbour. A recurrent layer passes it on step by step, multiplying by a matrix each time;"
        " attention reaches every position at once. An LSTM adds to a cell state instead of replacing it, as"
        " the residual stream does across layers."
    ),
    why=(
        "Recurrent networks translated by compressing a sentence into one vector. Bahdanau et al. 2014 let"
        " the decoder attend to every source word, on top of the recurrence; Vaswani et al. 2017 dropped the"
        " recurrence. Attention won for five reasons: all positions train at once, any two are one step"
        " apart, the loss falls with scale, one pretrained model serves many tasks, and a single repeated"
        " block is simple, which suits chip makers too."
    ),
    attempt=(
        "Set the length to 8 tokens: the RNN copes well there. Then keep doubling the length and watch"
        " its line."
    ),
)


def carried_far(layers: Sequence[LayerInfluence]) -> str:
    """Returns the answer: steps and influence, by name."""
    rnn, attention = (next(layer for layer in layers if layer.layer == kind) for kind in ("rnn", "attention"))
    return (
        f"Attention links the first token to the last in **{attention.path} step** and keeps"
        f" {attention.left:.1f} times the influence of a neighbour. An untrained RNN needs **{rnn.path}"
        f" sequential steps** and keeps {number(rnn.left)}."
    )


def alt(layers: Sequence[LayerInfluence]) -> str:
    text = ", ".join(f"{NAMES[layer.layer]} {number(layer.left)}" for layer in layers)
    distance = layers[0].length - 1
    return f"Influence on the last output over {distance} positions, as a share of the neighbour's: {text}."
