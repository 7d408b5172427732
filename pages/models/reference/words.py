"""Sentences of the views about the reference and the export."""

from __future__ import annotations

from engine.config import ResolvedConfig
from engine.lab.reference.compare import Comparison, Difference
from engine.lab.reference.mistakes import neighbours_turned, other_eps, tiled
from engine.lab.reference.position_schemes import hidden, position_bias, turned
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
from engine.ledger import parameter_formula
from engine.ledger.shares import Line
from engine.weights.export.gather import gather
from engine.weights.export.hugging_face import (
    Plan,
    plan,
    tensors,
    undone,
)
from engine.weights.export.writers import WRITERS
from ui.page_frame import Words
from ui.text.numbers import counted, number, percent

ASK_TWO = "Do two implementations agree?"
ASK_EXPORT = "How do I use this model elsewhere?"
CODE = (
    *(forward, block, norm, attention, feedforward, turned, shared, hidden, position_bias),
    *(gelu, gelu_by_tanh, neighbours_turned, tiled, other_eps),
)
EXPORT_CODE = (plan, tensors, undone, gather)

PRINTED = "All questions, to print"
ASK_QUICK = "What does each part compute?"

WEIGHTS, ABOVE = "Weights", "of the model above"
DICE_HINT = "A different seed gives different sizes, weights and tokens."
MISTAKE = "Mistake inserted"
MISTAKE_HINT = "Common mistakes in ports of a model, inserted into the second program only."
DRAWN = "The random configuration"
AGREE = (
    ":material/check: **Yes, they agree.** {reach} What is left is rounding: float32 keeps about seven"
    " digits."
)
UNSEEN = (
    ":material/warning: **The mistake goes unnoticed here.** {reach} On this model a test would pass: it"
    " takes other weights to reveal the mistake."
)
TWO = Words(
    see=(
        "The model chosen above on the text above, or a small one with odd sizes and random weights, runs in"
        " the engine and in a second program. Each point is one stage of the residual stream: the largest"
        " difference between the two. Where numbers exceed 1, it is relative to the largest, since float32"
        " keeps about seven digits."
    ),
    why=(
        "A model with a bug often still writes passable text. Compared with a second program it cannot hide:"
        " two correct ones differ only by rounding, about $10^{-7}$. When dimensions coincide, mistakes"
        " that unequal dimensions would reveal go unnoticed; trained weights, larger and more uneven, reveal"
        " what random ones do not. The tests also compare both programs with Hugging Face's `transformers`."
    ),
    attempt=(
        "Insert a mistake into the second program and see where the curve leaves the floor: that is how a"
        " port is debugged. Find the family in which the same mistake changes nothing. On a trained model,"
        " choose the other GELU: the logits hardly change, and such mistakes can go unnoticed for years."
    ),
)


def drawn(family: str) -> str:
    return f"random: {family}"


def rolled(c: ResolvedConfig, tokens: int) -> str:
    """Says what was drawn."""
    heads = counted(c.n_heads, "head")
    if c.n_kv_heads < c.n_heads:
        heads += f", {counted(c.n_kv_heads, 'key-value head')}"
    return (
        f"{counted(c.n_layers, 'block')}, {heads} of {c.d_head}, width {c.d_model},"
        f" {counted(parameter_formula(c), 'parameter')},"
        f" {counted(tokens, 'token')}."
    )


def made_wrong(parts: str) -> str:
    return (
        f":material/info: This model has a deliberate bug, `{parts}`, which the second program does not have."
    )


def cannot_run(why: str) -> str:
    return f"The second program cannot run this model: {why}."


def reach(far: str, tolerance: float) -> str:
    return f"The largest difference along the stream is **{far}** (tolerance {tolerance:g})."


def harmless(idle: str) -> str:
    return f":material/check: **The mistake has no effect here:** {idle}."


def differ(comparison: Comparison, first: Difference) -> str:
    """Says where a difference begins, and how large it becomes."""
    end = "the logits" if comparison.last.bare == "logits" else "the final vectors"
    where = "at the end" if first.block is None else f"in block **{first.block}**"
    return (
        f":material/close: **No.** The difference begins {where}, at `{first.bare}` ({NAMES[first.bare]}),"
        f" and grows to **{number(comparison.worst.relative)}** along the stream; {end} are off by up to"
        f" {number(comparison.last.largest)}, where the largest is {comparison.last.size:.3g}."
    )


def along_alt(far: str, tolerance: float) -> str:
    return (
        "Points on a logarithmic scale: the largest difference between the two programs at each stage of the"
        f" residual stream, at most {far}, compared with the tolerance {tolerance:g}."
    )


OPEN = """import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "{folder}"  # where you unpacked the zip
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)  # where there is a tokenizer.json
ids = tokenizer("First Citizen:", return_tensors="pt")
with torch.inference_mode():
    written = model.generate(**ids, max_new_tokens=100, do_sample=True, temperature=0.8)
print(tokenizer.decode(written[0]))
"""
DTYPE_HINT = (
    "float32 is exact. The others take half the space and keep about 3 digits (bfloat16) or 4 (float16)."
)
ZIP, OWN_FOLDER = "Download the zip", "This app's own folder"
HUB, ONE_FILE, A_PROGRAM = "Hugging Face's layout", "A single PyTorch file", "A program to read"
NANO_SIZE = "under 300 lines"
OPENS_FILE = "`python model.py`, with torch and safetensors"
OPENS_FOLDER = "`load_pair`, in this app's engine"
OPENS_NANO = "`python nano.py`, which trains a small GPT and writes with it"
LIBRARY = (
    "Ten lines with Hugging Face's `transformers` load the unpacked folder and generate text. `config.json`"
    " selects the class."
)
NO_LIBRARY = (
    "No class in `transformers` matches this model. The single file needs only torch and safetensors:"
)

EXPORT = Words(
    see=(
        "Two formats: Hugging Face's layout, which `transformers` loads, if an architecture there matches"
        " this model; and for any model a single PyTorch file, extracted from this app's source. An"
        " encoder-decoder is exported with both halves, and can also be saved in this app's own format."
    ),
    why=(
        "What you trained here is yours. It opens elsewhere, without this app, and gives the same logits: the"
        " tests open each kind and compare."
    ),
    attempt=(
        "Train a model with squared ReLU, RoPE and QK-norm: no family has all three, and the page says which"
        " one prevents the export."
    ),
    texts=(
        "A lab loads `gpt2` by name and calls `generate` with `temperature=0.8`, but without"
        " `do_sample=True`: `transformers` then decodes greedily and ignores the temperature. The lines under"
        " *By hand* have both."
    ),
)

NAMES = {  # what an activation is, for a sentence
    "resid_pre": "the embedding",
    "norm1": "the stream after the norm",
    "norm2": "the stream after the norm",
    "q": "the queries",
    "k": "the keys",
    "v": "the values",
    "q_rot": "the queries, rotated",
    "k_rot": "the keys, rotated",
    "scores": "the scores",
    "pattern": "the attention pattern",
    "z": "the weighted sum of values",
    "attn_out": "attention's output",
    "resid_mid": "the stream after attention",
    "ffn_pre": "the pre-activation",
    "ffn_gate": "the gate",
    "ffn_post": "the neurons' activations",
    "ffn_out": "the feed-forward output",
    "resid_post": "the stream after the feed-forward network",
    "norm_final": "the stream after the final norm",
    "logits": "the logits",
}

MADE = {  # what is written where a family has more than the model
    "attention_bias": "zero biases",
    "output_bias": "zero biases",
    "ffn_bias": "zero biases",
    "norm_bias": "zero biases",
    "norm_gain": "unit gains",
    "qk_gain": "unit gains",
    "position": "its positions as a table, as long as its context",
}


def packed(plan: Plan | str, size: str, dtype: str) -> str:
    """Says whether a family of Hugging Face's is this model, and how large the file is."""
    if isinstance(plan, str):
        return (
            f"No Hugging Face architecture matches, so **export the single file**: {size} in {dtype}, with"
            " the parts of the engine that it uses."
        )
    title = WRITERS[plan.family].title
    text = f"This model **is a {title}**: `transformers` opens it, {size} in {dtype}"
    filled = list(dict.fromkeys(MADE[field] for field in plan.filled))
    if filled:
        return (
            f"{text}. Parts that only that family has are filled in so that they change nothing:"
            f" {', '.join(filled)}."
        )
    return f"{text}. Every property and every tensor has a counterpart there."


# Quick reference --------------------------------------------------------------------------------

PARTS = {
    "embedding": "Token embedding",
    "position": "Positions",
    "attention": "Self-attention",
    "feedforward": "Feed-forward",
    "norm": "Norm",
    "residual": "Residual stream",
    "unembedding": "Output head",
}
# part -> (its role, what most decoders of today choose)
ROLES = {
    "embedding": ("id → vector", "learned table (V, d)"),
    "position": ("encode order", "RoPE"),
    "attention": ("mix positions", "causal, grouped heads (GQA)"),
    "feedforward": ("compute per position", "SwiGLU, 8/3 d wide"),
    "norm": ("control scale", "RMSNorm, before each sublayer"),
    "residual": ("carry information", "identity path, only added to"),
    "unembedding": ("vector → logits", "linear; tied in small models"),
}
FORMULAS = {
    "embedding": "$x = E[t]$",
    "position": "$x + P$, or $q$ and $k$ rotated by their position",
    "attention": "$\\mathrm{softmax}(q k^\\top / \\sqrt{d_{head}} + M)\\, v\\, W_O$",
    "feedforward": "$f(x W_1)\\, W_2$",
    "norm": "$g \\odot (x - \\mu) / \\sigma + b$; RMSNorm without $\\mu$ and $b$",
    "residual": "$x + f(\\mathrm{norm}(x))$; in 2017 $\\mathrm{norm}(x + f(x))$",
    "unembedding": "$\\mathrm{norm}(x)\\, W_U$, then softmax",
}
SIZES = "Shapes for one text as long as the context: (token, width), at the end (token, vocabulary)."
QUICK = Words(
    see=(
        "A row for each part: what it is for, its formula, its output shape and its parameters in all blocks;"
        " on the right, what most decoders since 2023 use (Llama 2, Mistral, Gemma)."
    ),
    why=(
        "These seven rows are the whole model. Five are the ingredients of a block: attention, feed-forward"
        " network, norms, the residual stream, and positions, which today act on queries"
        " and keys. All blocks have the same structure, so the table has the same rows at any depth."
    ),
    attempt="Go from GPT-2 small to GPT-3: no formula changes, only the numbers.",
)


def most_of(title: str, rows: tuple[Line, ...]) -> str:
    """Says which part holds most parameters."""
    largest = max(rows, key=lambda row: row.parameters)
    total = sum(row.parameters for row in rows)
    return (
        f"Seven rows account for all of {title}'s {total:,} parameters; the largest is"
        f" {PARTS[largest.part].lower()} with **{percent(largest.parameters, total)}**."
    )
