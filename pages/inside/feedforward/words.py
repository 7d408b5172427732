"""What the views of Feed-forward say."""

from __future__ import annotations

from ui.look import Words
from ui.subject import Subject

SENTENCE = (
    "After the tokens have exchanged what they know, each thinks alone: its vector meets many neurons, is"
    " bent, and written back into the stream."
)


def neurons(subject: Subject) -> Words | None:
    """Nothing where there are no neurons: the view has said so."""
    return None if subject.config.ffn == "none" else NEURONS


NEURONS = Words(
    see=(
        "Each column of the large picture is a token, each row a neuron of the chosen layer; strong"
        " colour means that the neuron answers to that token. Below is one neuron by itself: where it"
        " fires, what it then writes, and the places in the corpus that excite it most."
    ),
    why=(
        "Two thirds of a block's parameters are here. A neuron works like an entry of a memory (Geva et"
        " al. 2021): its row of $W_{in}$ is the key that recognises something, its column of $W_{out}$"
        " the value that is added to the residual stream."
    ),
    attempt=(
        "Click a bright cell and read its contexts: what do they have in common? Then take an untrained"
        " model, where there is nothing to find. With a run of your own, drag the scrubber and watch a"
        " neuron find its task."
    ),
)

FUNCTIONS = Words(
    see=(
        "Each line is what a function makes of its input; beside it the slope, which is what a gradient"
        " is multiplied by on its way back. The green area is where the inputs of the model in the bar"
        " fall on this text."
    ),
    why=(
        "Without a bend, two matrices in a row would be one. ReLU is 0, and so is its slope, left of"
        " zero: a neuron that only ever gets such inputs learns nothing. The smooth ones let a little"
        " through. A gate goes further: one half of the network decides how much of the other passes."
    ),
    attempt=(
        "Compare a trained model with an untrained one: how far from zero do its inputs spread? "
        "Then show GELU and its tanh approximation alone, and look for the difference."
    ),
)

PARAMETERS = Words(
    see=(
        "The bars are one block, divided among its parts; the lines are the feed-forward network's share"
        " as it gets wider. The two points lie at the same height: three matrices of 8/3·d are as large"
        " as two of 4·d."
    ),
    why=(
        "When a paper says that SwiGLU is better at the same size, this is how the size was kept. "
        "And it says where knowledge can be stored: most of a block is neurons."
    ),
    attempt=(
        "Move the width: the shares hardly change, because all but the norms grow with its square. "
        "Then choose the other shipped model, whose networks are gated."
    ),
)
