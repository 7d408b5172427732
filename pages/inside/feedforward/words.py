"""Sentences of the views of Feed-forward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.feedforward.activation_functions import Difference, Inputs
from engine.measure.feedforward.neurons import QUIET, FavouriteToken, NeuronProfile, PromotedTokens
from ui.model_bar import Subject
from ui.page_frame import Words
from ui.text.markdown import safe
from ui.text.numbers import minus, scientific

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
        " tense or for Canada.\n\nAttention moves information between positions, but given its weights its"
        " output is linear in the values: an average. The feed-forward network transforms each position on"
        " its own, and not linearly."
    ),
    attempt=(
        "Go through the neurons of a block: what do the framed tokens have in common? Early blocks often"
        " respond to characters, later ones to what comes next. Then take an untrained model: its neurons"
        " prefer single characters too, by the chance of random vectors. With a run of your own, drag the"
        " scrubber and watch a neuron specialise."
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


EFFECT, TOP = "**Direct effect on the logits**", "**Top activating positions**"
APPLY_NORM, NO_NORM = "Apply the final norm", "No norm is applied."
APPLY_NORM_HINT = "On: through the linear part of the final norm. Off: the column of $W_{out}$ as it is."
SHADED = "Shaded by the size of its activation. Choose a token to read its value."
BLOCK, BLOCK_HINT, NEURON = "Block", "0 is the first block, next to the embedding.", "Neuron"
ROWS, EVERY, WHOLE_MODEL = "Neurons shown", "all", "The whole model on this text"
MOST_ACTIVE = (
    "**The most active neurons** of all blocks. `at` is the token and its position. Click a row to choose it."
)
NEURON_HINT = (
    "One of the {width:,} entries of `ffn_post` in each block. You can also click a cell or a table row"
    " under *Measure it*."
)
BLOCK_TITLE = "Block {layer}"
ON_TEXT_TITLE = "Neuron {neuron} of block {layer} on this text"
STRIP_LABEL = "The text, shaded by the activation of neuron {neuron}"
ACTIVATION_HINT = "position {position}: {value:.4f}"
ACTIVATION_ALT = (
    "Activation of neuron {neuron} of block {layer} at each token; strongest at position {peak.at},"
    " {peak.peak:.3f}."
)
OVERVIEW_ALT = (
    "Heatmap of {layers} blocks by {width} neurons: the strongest activation on the text. The largest is"
    " {largest:.2f}."
)
LAYER_ALT = (
    "Heatmap of {rows} neurons of block {layer} by {tokens} tokens of the text: their activation,"
    " {least:.2f} to {most:.2f}."
)
SCALE_ENDS = "The colour scale ends at {end:.3g}; a few activations lie beyond."


def shown_rows(most: int) -> tuple[str, str]:
    return f"{most} most active", EVERY


def leave_out(label: str) -> str:
    return f"Leave out “{safe(label)}”"


def promoted_alt(promoted: PromotedTokens, vocabulary: Sequence[str]) -> str:
    raised, lowered = (" ".join(vocabulary[i] for i in ids) for ids in (promoted.raised, promoted.lowered))
    return f"The tokens promoted most: {raised}; suppressed most: {lowered}."


def activation_at(label: str, position: int, value: float, peak: NeuronProfile) -> str:
    """Says how active a neuron is at one token, and between which values on the text."""
    return (
        f"At “{safe(label)}” (position {position}) its activation is **{value:.4f}**; on this text it ranges"
        f" from {minus(f'{peak.low:.3f}')} to {minus(f'{peak.high:.3f}')}."
    )


def strongest_of(layers: int, width: int, end: float | None) -> str:
    """Says what the map of the whole model shows; its colour scale may `end` below a few values."""
    ends = (
        "" if end is None else f" The colour scale ends at {end:.3g}: one neuron in a thousand goes beyond."
    )
    return (
        f"The strongest activation of each of the {layers} × {width:,} neurons, anywhere in the text.{ends}"
    )


def sparsity(exact: bool) -> str:
    """Says what counts as quiet: exactly 0 where a function gives that, else small."""
    small = f"smaller than {QUIET:g} × their block's root mean square, since it is hardly ever exactly 0"
    return f"**Sparsity**: share of activations that are {'exactly 0' if exact else small}."


def sparsity_alt(shares: np.ndarray) -> str:
    return f"Sparsity by block: {', '.join(f'block {i} {share:.1%}' for i, share in enumerate(shares))}."


SOURCES = {"python": "the Python reference", "shakespeare": "Tiny Shakespeare"}
SPAN, ACTIVATION, CORPUS = "Tokens read", "Activation", "Corpus"
CORPUS_HINT = "The model was trained on other texts, far too many to include here."
READING, READING_AROUND = "Reading the corpus", "Reading around the strongest positions"
IN_THE_TEXT, READ_CORPUS = "Found in the text above.", "Read the corpus"
NO_TRAINING_TEXT = "The text this model was trained on is not on this server."
NO_SHAKESPEARE = "Tiny Shakespeare, which this model was trained on, is not on this server."
OTHER_CHARACTERS = "None of the corpus's characters are in this model's vocabulary."
TEXT_INSTEAD = "{problem} The text above is searched instead."
SPAN_HINT = "From the start of the validation text: {tokens:,} tokens, held out from training."


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
    sentence = (
        f"Its column of $W_{{out}}$ times the unembedding, minus the mean over the vocabulary. {how} The"
        f" norm's {norm_step}, which depends on the token, and effects through later blocks are left out."
    )
    if not is_signed:
        return sentence
    return (
        f"{sentence} When its activation is negative, as a gated neuron's can be, promoted and suppressed"
        " tokens swap."
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


SHOW, DRAWN = "Show", ("output", "slope")
FUNCTIONS_SHOWN, REACH = "Functions", "Input range (±)"
INPUTS, INPUTS_HINT = "Inputs of block", "The green area: this model's inputs on this text."
GELUS, GATED = "GELU, exact and tanh", "With a gate"
KIND, FORM = "Kind", "Show as"
SLICES = "slices"
FORMS = ("map", SLICES)
SLICES_ALT = "{title} over the gate, for five values."
GATED_ALT = (
    "Heatmap of {title} over gate and value: near zero where the gate is below zero, the product of both"
    " where it is far above."
)


def inputs_spread(inputs: Inputs) -> str:
    return (
        f"The inputs have mean {minus(f'{inputs.mean:.2f}')} and standard deviation {inputs.std:.2f}. Slopes"
        " are computed by automatic differentiation."
    )


def curves_alt(what: str, names: Sequence[str]) -> str:
    return f"{what.capitalize()} of {', '.join(names) or 'no function'} over the input."


def difference_alt(worst: Difference) -> str:
    size = scientific(worst.worst)
    return f"Difference of the two; its largest magnitude is {size}, at ±{worst.where:.2f}."


def differ_by(worst: Difference) -> str:
    """Says how far the tanh approximation of GELU is off."""
    return (
        "Exact: $x\\,\\Phi(x)$. GPT-2's: $\\tfrac x2\\,(1+\\tanh(\\sqrt{2/\\pi}\\,(x+0.044715\\,x^3)))$."
        f" Measured at {len(worst.x):,} points between −6 and 6 they differ by at most **{worst.worst:.6f}**"
        f" (at x = ±{worst.where:.2f})."
    )


def gate_product(activation: str, dots: int) -> str:
    """Says what a gate does; `dots` are the pairs of the model's own that are drawn."""
    drawn = (
        f" The dots are {dots} pairs of this model on this text; some lie outside the plot." if dots else ""
    )
    return (
        f"$\\text{{{activation}}}(\\text{{gate}})\\cdot\\text{{value}}$ (Shazeer 2020): the gate decides how"
        f" much of the value passes.{drawn}"
    )


def functions_answer(activation: str, gated: str, inputs: Inputs) -> str:
    """Says where a model's inputs fall on its own function, of a `gated` network on its gate."""
    through = activation + (f", on the gate of {gated}" if gated else "")
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
