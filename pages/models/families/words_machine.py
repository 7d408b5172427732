"""Sentences of the view of the machine and its variations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.ledger.model_choices import OFFERED, TOKENS, Costs
from engine.parts.cards.norms import NORM_CARDS, norm_title
from engine.presets.published import BY_YEAR
from ui.page_frame import Words
from ui.text.numbers import flop, short

QUESTION = "Which choices turn one model into another?"
TITLES = {name: preset.title.removesuffix(" (published)") for name, preset in BY_YEAR.items()} | {
    "transformer-base": "the original (2017)"
}
SIZES = {name: f"the sizes of {title}" for name, title in TITLES.items()}
SHORT = {
    "transformer-base": "the original",
    "bert-base": "BERT",
    "gpt2": "GPT-2",
    "t5-base": "T5",
    "gpt3-175b": "GPT-3",
    "llama2-7b": "LLaMA-2 7B",
    "llama2-70b": "LLaMA-2 70B",
    "pythia-70m": "Pythia",
    "mistral-7b": "Mistral",
    "gemma-2b": "Gemma",
    "llama3-8b": "Llama 3",
    "qwen2.5-0.5b": "Qwen2.5",
    "smollm2-135m": "SmolLM2",
}
RECIPES = {  # models with choices of their own: buttons
    "transformer-base": "2017",
    "bert-base": "BERT",
    "gpt2": "GPT-2",
    "t5-base": "T5",
    "llama2-7b": "LLaMA-2",
    "pythia-70m": "Pythia",
    "gemma-2b": "Gemma",
    "llama3-8b": "Llama 3",
    "qwen2.5-0.5b": "Qwen",
    "smollm2-135m": "SmolLM2",
}
FACETS = {
    "family": "Family",
    "wiring": "Position of the norm",
    "norm": "Norm",
    "ffn": "Activation",
    "position": "Positions",
    "heads": "Keys and values",
    "tying": "Embedding and output",
    "biases": "Biases",
}
HEADS = FACETS | {"wiring": "Norm position"}
CHOICES = {
    "both": "encoder and decoder",
    "encoder": "encoder",
    "decoder": "decoder",
    "post": "post-norm",
    "pre": "pre-norm",
    "parallel": "parallel",
    **{name: norm_title(name) for name in NORM_CARDS},
    "relu": "ReLU",
    "gelu": "GELU",
    "swiglu": "SwiGLU",
    "geglu": "GEGLU",
    "sinusoidal": "sinusoidal, added",
    "learned": "learned table",
    "t5": "relative bias",
    "rope": "RoPE",
    "alibi": "ALiBi",
    "own": "multi-head",
    "grouped": "grouped-query (GQA)",
    "one": "multi-query (MQA)",
    "tied": "tied embeddings",
    "untied": "untied embeddings",
    "network": "biases in FFN and norms",
    "all": "biases everywhere",
    "qkv": "biases only on q, k, v",
    "none": "no biases",
}
_BEYOND = {"alibi": "none here; BLOOM and MPT (Press et al. 2022)"}


def used(facet: str, names: Sequence[str]) -> str:
    """Names the models of the table that made a choice (Markdown)."""
    if not names:
        return _BEYOND["alibi"] if facet == "position" else "none in the table"
    if len(names) > 5:
        return f"{len(names)} of {len(BY_YEAR)}, e.g. {SHORT[names[0]]}, {SHORT[names[-1]]}"
    return ", ".join(SHORT[name] for name in names)


def choice(value: str, unchanged: bool) -> str:
    """Returns a model's choice, marked where the model of 2017 did the same."""
    return f"{CHOICES[value]} •" if unchanged else CHOICES[value]


def choices_sentence(
    size: str, same: Sequence[str], near: tuple[str, tuple[str, ...]], before: Costs, after: Costs
) -> str:
    """Says which models make these choices, and what they cost at these sizes (Markdown)."""
    if size in same:
        whose = f"**This is {TITLES[size]}**"
    elif same:
        whose = f"These are **the {len(OFFERED)} choices of {_named(same)}**, at the sizes of {TITLES[size]}"
    else:
        other, apart = near
        differences = ", ".join(FACETS[each].lower() for each in apart)
        whose = (
            f"No model in the table matches; the nearest is **{SHORT[other]}**, which differs in"
            f" {len(apart)}: {differences}"
        )
    cache = (
        f"{after.cache:,} numbers per token in the KV cache"
        if after.cache
        else "no KV cache: it does not generate"
    )
    was = "" if after == before else f" ({TITLES[size]}: {short(before.parameters)})"
    return (
        f"{whose}. **{after.parameters:,} parameters**{was}, {flop(after.flops)} per token at T = {TOKENS},"
        f" {cache}."
    )


def _named(names: Sequence[str]) -> str:
    short = [SHORT[name] for name in names]
    return short[0] if len(short) == 1 else f"{', '.join(short[:-1])} and {short[-1]}"


def cannot(why: str) -> str:
    return f"These 8 choices cannot be combined: `{why}` The drawing still shows the previous model."


def sources(published: Mapping[str, str]) -> str:
    """Says where the sizes of each model are published (Markdown)."""
    return "**Publications.** " + " · ".join(f"{TITLES[name]}: {where}" for name, where in published.items())


def alt(layers: int, boxes: Sequence[str]) -> str:
    parts = "; ".join(box.replace("<br>", ", ") for box in boxes)
    return f"A drawing of the model from top to bottom, its block {layers} times: {parts}."


MACHINE = Words(
    see=(
        "One architecture, drawn from its configuration: the stream runs down, and each part reads from it"
        " and writes back. Beside each switch are the models in the table that made the same choice."
    ),
    why=(
        "GPT, BERT and LLaMA sound like different inventions. They are one design with about eight choices"
        " and a size."
    ),
    attempt=(
        "Keep GPT-2's sizes and press *LLaMA-2*, then *BERT*, then *T5*: see which parts change, and how"
        " little the parameter count changes. Then choose its sizes too: now it is that model, to the last"
        " parameter. *Measure it* has all models side by side; a dot marks what has not changed since 2017."
    ),
    texts=(
        "A lab course counts LLaMA and Mistral among the models with tied embeddings; by their published"
        " configurations both are untied. A textbook calls stacked pre-norm blocks unchanged from 2017; in"
        " 2017 the norm came after each sublayer (post-norm)."
    ),
)
BY_HAND = (
    "With a gate the network has three matrices instead of two, so its width shrinks to two thirds: $3 \\cdot"
    " d \\cdot \\tfrac{8}{3} d = 2 \\cdot d \\cdot 4d = 8 d^2$. Sharing keys shrinks $W_K$ and $W_V$ from"
    " $d^2$ to $d^2 \\cdot H_{kv}/H$ each, and the cache by the same factor. A second matrix at the output"
    " costs $V \\cdot d$. RMSNorm and LayerNorm, before or after, cost a few thousand: the choice between"
    " them matters for training, not for size.\n\nAnything not covered by the eight choices comes from"
    " the model whose sizes were picked:"
    " Mistral's window of 4,096, BERT's token types, Gemma's embeddings times $\\sqrt d$, the base of RoPE."
)
REASONS = (
    "**Why each was changed, and where.** Pre-norm: deep models train without warm-up (Xiong et al. 2020);"
    " used since GPT-2. RMSNorm: cheaper, equally good (Zhang & Sennrich 2019); T5, LLaMA. Parallel: two"
    " products run at once (GPT-J; Wang & Komatsuzaki 2021); GPT-NeoX, Pythia, PaLM. GELU (Hendrycks & Gimpel"
    " 2016); BERT, GPT-2. Gated networks (Shazeer 2020); LLaMA, Gemma. RoPE (Su et al. 2021); a relative bias"
    " (Raffel et al. 2020). Multi-query (Shazeer 2019); grouped-query (Ainslie et al. 2023); LLaMA-2 70B,"
    " Mistral. Tied embeddings (Press & Wolf 2017); small models keep them. RMSNorm and LayerNorm compared on"
    " real numbers: [Residual stream, its norms](/residual?residual_view=norms&hand=true)."
)
READING = (
    "**Further reading.** Books and code: [Understanding Deep Learning, chapter"
    " 12](https://udlbook.github.io/udlbook/) (Prince 2023); [The Annotated"
    " Transformer](https://nlp.seas.harvard.edu/annotated-transformer/);"
    " [nanoGPT](https://github.com/karpathy/nanoGPT), [Let's build"
    " GPT](https://www.youtube.com/watch?v=kCc8FmEb1nY) and, on bugs, [A recipe for training neural"
    " networks](https://karpathy.github.io/2019/04/25/recipe/) (Karpathy 2023, 2023, 2019).\n\n"
    "Models: [Attention is all you need](https://arxiv.org/abs/1706.03762) (Vaswani et al. 2017);"
    " [GPT-1](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf)"
    " (Radford et al. 2018);"
    " [GPT-2](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf)"
    " (Radford et al. 2019); [BERT](https://arxiv.org/abs/1810.04805) (Devlin et al. 2018);"
    " [T5](https://arxiv.org/abs/1910.10683) (Raffel et al. 2020); [LLaMA](https://arxiv.org/abs/2302.13971)"
    " and [Llama 2](https://arxiv.org/abs/2307.09288) (Touvron et al. 2023).\n\n"
    "Parts: [RoFormer](https://arxiv.org/abs/2104.09864) (RoPE; Su et al. 2021);"
    " [RMSNorm](https://arxiv.org/abs/1910.07467) (Zhang & Sennrich 2019); [pre-norm and"
    " post-norm](https://arxiv.org/abs/2002.04745) (Xiong et al. 2020); [tied"
    " embeddings](https://arxiv.org/abs/1608.05859) (Press & Wolf 2017);"
    " [AdamW](https://arxiv.org/abs/1711.05101) (Loshchilov & Hutter 2019).\n\n"
    "Interpretability and scaling: [What does BERT look at?](https://arxiv.org/abs/1906.04341) (Clark et"
    " al. 2019); [A mathematical framework for Transformer"
    " circuits](https://transformer-circuits.pub/2021/framework/index.html) (Elhage et al. 2021); [Scaling"
    " laws](https://arxiv.org/abs/2001.08361) (Kaplan et al. 2020) and"
    " [Chinchilla](https://arxiv.org/abs/2203.15556) (Hoffmann et al. 2022)."
)
