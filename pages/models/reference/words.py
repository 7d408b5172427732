"""Sentences of the views about the reference and the export."""

from __future__ import annotations

from engine.lab.reference.mistakes import neighbours_turned, other_eps, tiled
from engine.lab.reference.places import hidden, position_bias, turned
from engine.lab.reference.second import (
    attention,
    block,
    feedforward,
    forward,
    gelu,
    gelu_by_tanh,
    norm,
    shared,
)
from engine.ledger.shares import Line
from engine.parts.cards.norms import NORM_CARDS, norm_title
from engine.weights.export.gather import gather
from engine.weights.export.hugging_face import (
    Plan,
    plan,
    tensors,
    undone,
)
from engine.weights.export.writers import WRITERS
from ui.page_frame import Words
from ui.text.numbers import percent

ASK_DICE = "Do two programs with the same weights give the same numbers?"
ASK_MODEL = "Do they agree on a trained model?"
ASK_EXPORT = "How do I take it along?"
CODE = (
    *(forward, block, norm, attention, feedforward, turned, shared, hidden, position_bias),
    *(gelu, gelu_by_tanh, neighbours_turned, tiled, other_eps),
)
EXPORT_CODE = (plan, tensors, undone, gather)

ASK_VARIATIONS = "What has changed since 2017?"
ASK_QUICK = "What does each part compute?"

DICE = Words(
    see=(
        "A small model with odd sizes and weights drawn by chance. Each point is the residual stream at one"
        " place: how far the two programs are apart there, at the number where they differ most. Above 1"
        " it is"
        " counted as a share of the largest number at that place, since float32 keeps about seven digits."
    ),
    why=(
        "A wrong model often still writes passable text. Held against a second program it cannot hide:"
        " what is"
        " left is rounding, about $10^{-7}$. Equal sizes hide mistakes, odd ones show them."
    ),
    attempt=(
        "Put a mistake into the second program and see where the curve leaves the floor: that is how a"
        " port is"
        " debugged. Then find the family in which the same mistake changes nothing."
    ),
)

MODEL = Words(
    see=(
        "The model chosen above, on the text above, in the engine and in the second program. With mistakes,"
        " the difference begins at one activation and travels from there."
    ),
    why=(
        "Trained weights are larger and more uneven than random ones: they find what random ones do not."
        " The tests hold both programs against Hugging Face's `transformers`, too."
    ),
    attempt=(
        "On a trained model, take the other GELU: the logits hardly move. Such mistakes are in use for years"
        " before anybody sees them."
    ),
)

LIBRARY = (
    "Ten lines of Hugging Face's `transformers` read the unpacked folder and write with the model. The class"
    " is chosen by `config.json`."
)
NO_LIBRARY = (
    "No class of `transformers` is this model. The one file needs torch and safetensors, and nothing else:"
)

EXPORT = Words(
    see=(
        "Two ways out. Hugging Face's layout, if a family there can say what this model is: then"
        " `transformers`"
        " opens it. And one file of PyTorch, cut out of this app's own source, which can say them all. Of an"
        " encoder-decoder both halves go along; it has this app's own folder, too."
    ),
    why=(
        "What you trained here is yours. It opens elsewhere, without this app, and gives the same logits:"
        " the tests open each kind and compare."
    ),
    attempt=(
        "Train a model with squared ReLU, RoPE and QK-norm: no family has all three, and the page says which"
        " is in the way."
    ),
)

NAMES = {  # what an activation is, for a sentence
    "resid_pre": "the embedding",
    "norm1": "the stream after the norm",
    "norm2": "the stream after the norm",
    "q": "the queries",
    "k": "the keys",
    "v": "the values",
    "q_rot": "the queries, once they are turned",
    "k_rot": "the keys, once they are turned",
    "scores": "the scores",
    "pattern": "the attention pattern",
    "z": "the weighted sum of values",
    "attn_out": "what attention writes",
    "resid_mid": "the stream after attention",
    "ffn_pre": "the widened vector",
    "ffn_gate": "the gate",
    "ffn_post": "the neurons' activations",
    "ffn_out": "what the network writes",
    "resid_post": "the stream after the network",
    "norm_final": "the stream after the last norm",
    "logits": "the logits",
}

MADE = {  # what is written where a family has more than the model
    "attention_bias": "biases of zeros",
    "output_bias": "biases of zeros",
    "ffn_bias": "biases of zeros",
    "norm_bias": "biases of zeros",
    "norm_gain": "gains of ones",
    "qk_gain": "gains of ones",
    "position": "its positions as a table, as long as its context",
}


def packed(plan: Plan | str, size: str, dtype: str) -> str:
    """Says whether a family of Hugging Face's is this model, and how large the file is."""
    if isinstance(plan, str):
        return (
            f"No family at Hugging Face is this model, so **the one file is the way out**: {size} in {dtype},"
            " and the parts of the engine that it is made of."
        )
    title = WRITERS[plan.family].title
    text = f"This model **is a {title}**: in {size} of {dtype}, `transformers` opens it"
    made = list(dict.fromkeys(MADE[field] for field in plan.filled))
    if made:
        return (
            f"{text}. What that family has beside is written so that it changes nothing: {', '.join(made)}."
        )
    return f"{text}. Every property and every tensor has its place there."


# Variations -------------------------------------------------------------------------------------

ASPECTS = {
    "norm": "Norm",
    "wiring": "Where the norm stands",
    "position": "Positions",
    "ffn": "Activation",
    "heads": "Keys and values",
    "tying": "Embedding and output",
}
CHOICES = {
    **{name: norm_title(name) for name in NORM_CARDS},
    "none": "none",
    "pre": "before each sublayer",
    "post": "after each sublayer",
    "parallel": "before both at once",
    "sinusoidal": "sines, added",
    "learned": "a learned table",
    "rope": "RoPE",
    "t5": "a bias by distance",
    "alibi": "ALiBi",
    "relu": "ReLU",
    "relu2": "squared ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "swiglu": "SwiGLU",
    "geglu": "GeGLU",
    "geglu_tanh": "GeGLU",
    "own": "for each head",
    "grouped": "shared in groups (GQA)",
    "one": "one for all (MQA)",
    "tied": "one matrix",
    "untied": "two matrices",
}
REASONS = {
    "norm": ("The mean need not be taken off: less work, as good.", "Zhang & Sennrich 2019"),
    "wiring": ("Deep models train without warm-up.", "Xiong et al. 2020"),
    "position": ("A score depends on the distance alone, and there is no table to learn.", "Su et al. 2021"),
    "ffn": (
        "A smooth bend, then a gate: less loss for the same work.",
        "Hendrycks & Gimpel 2016; Shazeer 2020",
    ),
    "heads": ("The KV cache shrinks by as much as heads share keys.", "Shazeer 2019; Ainslie et al. 2023"),
    "tying": ("Large models can afford two matrices.", "Press & Wolf 2017, for one matrix"),
}
READING = (
    "**To read on.** [Attention is all you need](https://arxiv.org/abs/1706.03762) (Vaswani et al. 2017);"
    " [GPT-2](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)"
    " (Radford et al. 2019); [BERT](https://arxiv.org/abs/1810.04805) (Devlin et al. 2018);"
    " [T5](https://arxiv.org/abs/1910.10683) (Raffel et al. 2020);"
    " [LLaMA 2](https://arxiv.org/abs/2307.09288) (Touvron et al. 2023);"
    " [A mathematical framework for Transformer circuits](https://transformer-circuits.pub/2021/framework/index.html)"
    " (Elhage et al. 2021); [Pre-norm and post-norm](https://arxiv.org/abs/2002.04745) (Xiong et al. 2020);"
    " [Scaling laws](https://arxiv.org/abs/2001.08361) (Kaplan et al. 2020) and"
    " [Chinchilla](https://arxiv.org/abs/2203.15556) (Hoffmann et al. 2022)."
)
VARIATIONS = Words(
    see=(
        "Six choices, one a row, as the configurations of these models have them. A dot marks what is as in"
        " the original."
    ),
    why="The block is the same since 2017; what differs between models is a handful of choices in it.",
    attempt="Choose BERT, the model that kept most, and then Gemma, whose heads share one key.",
)


def choice(aspect: str, value: str, same: bool) -> str:
    """Returns a model's choice for one of the six, marked where the original did the same."""
    return f"{CHOICES[value]} •" if same else CHOICES[value]


def changed(title: str, same: tuple[str, ...]) -> str:
    if not same:
        return f"{title} keeps **none of the 6 choices** of the original."
    left = ", ".join(ASPECTS[aspect].lower() for aspect in same)
    return f"{title} keeps **{len(same)} of the 6 choices** of the original (•): {left}."


# Quick reference --------------------------------------------------------------------------------

PARTS = {
    "embedding": "Embedding",
    "position": "Positions",
    "norm": "Norms",
    "scores": "Attention weights",
    "attention": "Attention",
    "feedforward": "Feed-forward",
    "unembedding": "Unembedding",
}
FORMULAS = {
    "embedding": "$x = E[t]$",
    "position": "$x + P$, or $q$ and $k$ turned by their place",
    "norm": (
        "$g \\odot (x - \\mu) / \\sigma + b$; RMSNorm without $\\mu$ and $b$; DyT: $g \\odot"
        " \\tanh(\\alpha x) + b$"
    ),
    "scores": "$A = \\mathrm{softmax}(q k^\\top / \\sqrt{d_{head}} + M)$",
    "attention": "$x + (A v)\\, W_O$",
    "feedforward": "$x + f(x W_1)\\, W_2$",
    "unembedding": "$\\mathrm{norm}(x)\\, W_U$, then softmax",
}
SIZES = "Shapes for one text as long as the context: (token, width), for the weights (head, query, key)."
QUICK = Words(
    see="A row for each part: what it computes, the shape of what it makes, its parameters in all blocks.",
    why="These seven rows are the whole model. All blocks are alike, so the rows do not grow with its depth.",
    attempt="Go from GPT-2 small to GPT-3: not a formula changes, only numbers.",
)


def most_of(title: str, rows: tuple[Line, ...]) -> str:
    """Says which part holds most parameters."""
    largest = max(rows, key=lambda row: row.parameters)
    total = sum(row.parameters for row in rows)
    return (
        f"Seven rows are all of {title}'s {total:,} parameters; the largest is"
        f" {PARTS[largest.part].lower()} with **{percent(largest.parameters, total)}**."
    )
