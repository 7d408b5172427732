"""Sentences of the views of Feed-forward."""

from __future__ import annotations

from engine.measure.feedforward.activation_functions import Inputs
from engine.measure.feedforward.neurons import FavouriteToken
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus

QUESTIONS = {
    "neurons": "What makes a neuron fire?",
    "functions": "Why a nonlinearity?",
}
MASSIVE = (
    "The first token excites a few neurons more than ten times as much as any other token does: massive"
    " activations (Sun et al. 2024), which accompany attention sinks. Off: the strongest activations are"
    " those at the first token."
)


NEURONS = Words(
    see=(
        "Left, the corpus positions where this neuron fires most strongly: the token is framed, with its"
        " activation in front of it. Right, its direct effect on the logits: tokens it promotes in orange,"
        " tokens it suppresses in blue."
    ),
    why=(
        "A neuron works like an entry of a key-value memory (Geva et al. 2021): its row of $W_{in}$ is the"
        " key that detects a pattern, its column of $W_{out}$ the value that is added to the stream. Facts"
        " can be edited there: ROME and MEMIT (Meng et al. 2022, 2023) change what a model says about a city"
        " by editing one such matrix, or a few. In large models, single neurons have been found for the past"
        " tense or for Canada. Attention moves information between positions; the feed-forward network"
        " transforms each position on its own."
    ),
    attempt=(
        "Go through the neurons of a block: what do the framed tokens have in common? Early blocks often"
        " respond to characters, later ones to what comes next. Then take an untrained model, where there is"
        " nothing to find. With a run of your own, drag the scrubber and watch a neuron specialise."
    ),
)

FUNCTIONS = Words(
    see=(
        "Each line is an activation function, or its derivative, the factor that backpropagation applies to"
        " the gradient. The green area is the distribution of the model's inputs on this text."
    ),
    why=(
        "Without a nonlinearity, two matrices in a row collapse into one. Left of zero, ReLU and its slope"
        " are 0: a neuron that only ever gets such inputs learns nothing. The smooth functions let a little"
        " through. A gate goes further: one half of the network decides how much of the other half passes."
    ),
    attempt=(
        "Compare a trained model with an untrained one: how far from zero do its inputs spread? Then show"
        " only GELU and its tanh approximation, and look for the difference."
    ),
)

# Neurons ------------------------------------------------------------------------------------------


def _raises(raised: list[str]) -> str:
    return ", ".join(f"“{safe(word)}”" for word in raised)


MAJORITY = 0.75  # of the strongest positions: below it, a neuron does not "fire mainly on" a token


def likes(layer: int, neuron: int, liked: FavouriteToken, word: str, raised: list[str]) -> str:
    """Says what excites a neuron in the corpus, and what it raises."""
    where = (
        f"all {liked.positions} of its strongest positions"
        if liked.count == liked.positions
        else f"**{liked.count}** of its {liked.positions} strongest positions"
    )
    does = "fires mainly on" if MAJORITY * liked.positions <= liked.count else "fires most strongly on"
    if liked.count == 1:
        return (
            f"Neuron {neuron} of block {layer} has no favourite token: its {liked.positions} strongest"
            f" positions (up to **{minus(f'{liked.value:.2f}')}**) hold {liked.positions} different tokens."
            f" It promotes {_raises(raised)}."
        )
    return (
        f"Neuron {neuron} of block {layer} {does} **“{safe(word)}”**, the token at {where} (up to"
        f" **{minus(f'{liked.value:.2f}')}**). It promotes {_raises(raised)}."
    )


def on_this_text(layer: int, neuron: int, word: str, value: float, raised: list[str]) -> str:
    """Returns the same, from the text alone."""
    return (
        f"On this text neuron {neuron} of block {layer} fires most strongly on **“{safe(word)}”**"
        f" (**{minus(f'{value:.2f}')}**). It promotes {_raises(raised)}."
    )


def how_read(total: int, window: int, positive: float) -> str:
    """Says how the places in the corpus were found."""
    return (
        f"From {total:,} tokens read, {window} at a time. Shading: activation (orange above zero, blue"
        f" below); the strongest token is framed. It was positive at {positive:.1%} of the tokens. Of any 16"
        " neighbouring tokens only the strongest is listed. Tokens at the start of a window have little"
        " context."
    )


def what_is_written(how: str, is_signed: bool, norm_step: str) -> str:
    """Says how the raised and lowered tokens come about."""
    said = (
        f"Its column of $W_{{out}}$ times the unembedding, minus the mean over the vocabulary. {how} The"
        f" norm's {norm_step}, which depends on the token, and effects through later blocks are left out."
    )
    if not is_signed:
        return said
    return (
        f"{said} When its activation is negative, as a gated neuron's can be, promoted and suppressed tokens"
        " swap."
    )


def norm_words(subject: Subject) -> str:
    """Says what the final norm does to a neuron's output."""
    c, parts = subject.config, subject.model.parts
    norm, at_the_end = parts.norm(c).card, not parts.wiring(c).ends_normed
    if not norm.present:
        return "There is no final norm to apply: this model has no norms."
    if not at_the_end:
        return (
            "There is no final norm to apply: post-norm models have none at the end, and the norms inside the"
            " blocks are left out too."
        )
    words = norm.linear_words(c)
    if not words:
        return f"Apart from its {norm.nonlinearity}, the final {norm.title} does not change it."
    return f"As in the final {norm.title}, it is first {words}."


# Functions ----------------------------------------------------------------------------------------


def functions_answer(through: str, inputs: Inputs) -> str:
    """Says where a model's inputs fall on its own function."""
    outside = f" {inputs.outside:.1%} of all inputs lie outside the plot." if inputs.outside else ""
    return (
        "Without a nonlinearity two matrices in a row collapse into one. This model's activation function is"
        f" **{through}**: **{inputs.negative:.0%}** of its inputs are below zero, where little"
        f" passes.{outside}"
    )


def no_inputs(has_network: bool) -> str:
    """Says where there is nothing of the model's own to draw."""
    lacks = "single activation function to draw" if has_network else "feed-forward networks"
    return (
        f"Without a nonlinearity two matrices in a row collapse into one. This model has no {lacks}, so its"
        " inputs are not shown."
    )
