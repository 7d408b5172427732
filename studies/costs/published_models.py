"""Models that others have published, by their sizes. Each is its differences from a base."""

from __future__ import annotations

from dataclasses import replace

from engine.config import ModelConfig
from engine.presets.preset import Preset, derived

_PUBLISHED = Preset("", "", ModelConfig())

_GPT2 = derived(
    _PUBLISHED,
    "GPT-2 small (published)",
    "12 layers, 768 wide: the model that the classic recipe is named after.",
    model={
        "vocab_size": 50_257,
        "context": 1024,
        "d_model": 768,
        "n_layers": 12,
        "n_heads": 12,
        "ffn": "gelu_tanh",
        "attention_bias": True,
        "ffn_bias": True,
        "norm_bias": True,
        "dropout": 0.1,
    },
    source="Radford et al. 2019; openai/gpt-2",
    published="117M in the paper, corrected to 124M in openai/gpt-2",
)

_LLAMA2 = derived(
    _PUBLISHED,
    "LLaMA-2 7B (published)",
    "32 layers, 4,096 wide: RoPE, RMSNorm, SwiGLU, untied.",
    model={
        "vocab_size": 32_000,
        "context": 4096,
        "d_model": 4096,
        "n_layers": 32,
        "n_heads": 32,
        "d_ff": 11_008,
        "norm": "rmsnorm",
        "ffn": "swiglu",
        "position": "rope",
        "tie_embeddings": False,
    },
    source="Touvron et al. 2023",
    published="7B",
)

PUBLISHED: dict[str, Preset] = {
    "gpt2": _GPT2,
    "gpt2-medium": derived(
        _GPT2,
        "GPT-2 medium (published)",
        "24 layers, 1,024 wide.",
        model={"d_model": 1024, "n_layers": 24, "n_heads": 16},
        source="Radford et al. 2019; huggingface.co/openai-community/gpt2-medium",
        published="345M in the paper, corrected to 355M in openai/gpt-2",
    ),
    "gpt2-large": derived(
        _GPT2,
        "GPT-2 large (published)",
        "36 layers, 1,280 wide.",
        model={"d_model": 1280, "n_layers": 36, "n_heads": 20},
        source="Radford et al. 2019; huggingface.co/openai-community/gpt2-large",
        published="762M in the paper, corrected to 774M in openai/gpt-2",
    ),
    "gpt2-xl": derived(
        _GPT2,
        "GPT-2 XL (published)",
        "48 layers, 1,600 wide, 25 heads.",
        model={"d_model": 1600, "n_layers": 48, "n_heads": 25},
        source="Radford et al. 2019; huggingface.co/openai-community/gpt2-xl",
        published="1,542M in the paper, 1558M in openai/gpt-2",
    ),
    "gpt3-175b": derived(
        _GPT2,
        "GPT-3 175B (published)",
        "96 layers, 12,288 wide: GPT-2 scaled up 100 times. Every other layer has banded attention, which"
        " does not change the parameter count and is left out here.",
        model={"context": 2048, "d_model": 12_288, "n_layers": 96, "n_heads": 96, "dropout": 0.0},
        source="Brown et al. 2020, table 2.1",
        published="about 175 billion",
    ),
    "bert-base": derived(
        _PUBLISHED,
        "BERT base (published)",
        "12 layers, 768 wide, no mask: an encoder that reads in both directions, with an output per token"
        " and one per text.",
        model={
            "vocab_size": 30_522,
            "context": 512,
            "d_model": 768,
            "n_layers": 12,
            "n_heads": 12,
            "wiring": "post",
            "causal": False,
            "norm_eps": 1e-12,
            "attention_bias": True,
            "ffn_bias": True,
            "norm_bias": True,
            "embedding_norm": True,
            "token_types": 2,
            "output_head": "none",
            "pooler": True,
            "dropout": 0.1,
        },
        source="Devlin et al. 2018",
        published="110M, without an output head",
    ),
    "llama2-7b": _LLAMA2,
    "llama2-13b": derived(
        _LLAMA2,
        "LLaMA-2 13B (published)",
        "40 layers, 5,120 wide.",
        model={"d_model": 5120, "n_layers": 40, "n_heads": 40, "d_ff": 13_824},
        source="Touvron et al. 2023; huggingface.co/meta-llama/Llama-2-13b",
        published="13B",
    ),
    "llama2-70b": derived(
        _LLAMA2,
        "LLaMA-2 70B (published)",
        "80 layers, 8,192 wide, 64 query heads that share 8 key-value heads.",
        model={"d_model": 8192, "n_layers": 80, "n_heads": 64, "n_kv_heads": 8, "d_ff": 28_672},
        source="Touvron et al. 2023",
        published="70B",
    ),
    "mistral-7b": derived(
        _LLAMA2,
        "Mistral 7B (published)",
        "LLaMA with 8 key-value heads for 32 query heads and wider feed-forward networks; it attends to a"
        " window of 4,096.",
        model={"context": 32_768, "window": 4096, "n_kv_heads": 8, "d_ff": 14_336},
        source="Jiang et al. 2023; huggingface.co/mistralai/Mistral-7B-v0.1",
        published="7B",
    ),
    "llama3-8b": derived(
        _LLAMA2,
        "Llama 3 8B (published)",
        "LLaMA with a vocabulary four times as large, and 8 key-value heads for 32 query heads.",
        model={
            "vocab_size": 128_256,
            "context": 8192,
            "n_kv_heads": 8,
            "d_ff": 14_336,
            "rope_theta": 500_000.0,
        },
        source="Dubey et al. 2024; huggingface.co/meta-llama/Meta-Llama-3-8B",
        published="8B",
    ),
    "qwen2.5-0.5b": derived(
        _LLAMA2,
        "Qwen2.5 0.5B (published)",
        "24 layers, 896 wide: biases on queries, keys and values only, and tied embeddings.",
        model={
            "vocab_size": 151_936,
            "context": 32_768,
            "d_model": 896,
            "n_layers": 24,
            "n_heads": 14,
            "n_kv_heads": 2,
            "d_ff": 4864,
            "norm_eps": 1e-6,
            "rope_theta": 1e6,
            "attention_bias": True,
            "output_bias": False,
            "tie_embeddings": True,
        },
        source="Qwen team 2024; huggingface.co/Qwen/Qwen2.5-0.5B",
        published="0.49B, 0.36B of it outside the embedding",
    ),
    "gemma-2b": derived(
        _LLAMA2,
        "Gemma 2B (published)",
        "18 layers, 2,048 wide: 8 heads of 256 share one key and value, GEGLU 8 times as wide as the stream,"
        " embeddings times √d.",
        model={
            "vocab_size": 256_000,
            "context": 8192,
            "d_model": 2048,
            "n_layers": 18,
            "n_heads": 8,
            "n_kv_heads": 1,
            "d_head": 256,
            "d_ff": 16_384,
            "norm_eps": 1e-6,
            "ffn": "geglu_tanh",
            "embedding_scale": True,
            "tie_embeddings": True,
        },
        source="Gemma team 2024; huggingface.co/google/gemma-2b",
        published="2.5B: 525M in the embedding, 1,982M elsewhere",
    ),
    "smollm2-135m": derived(
        _LLAMA2,
        "SmolLM2 135M (published)",
        "30 layers, 576 wide: LLaMA's recipe scaled down, 9 query heads that share 3 key-value heads,"
        " tied embeddings.",
        model={
            "vocab_size": 49_152,
            "context": 8192,
            "d_model": 576,
            "n_layers": 30,
            "n_heads": 9,
            "n_kv_heads": 3,
            "d_ff": 1536,
            "rope_theta": 100_000.0,
            "tie_embeddings": True,
        },
        source="Ben Allal et al. 2025; huggingface.co/HuggingFaceTB/SmolLM2-135M",
        published="135M",
    ),
    "pythia-70m": derived(
        _GPT2,
        "Pythia 70M (published)",
        "6 layers, 512 wide: attention and feed-forward in parallel, RoPE on the first quarter of each head,"
        " untied.",
        model={
            "vocab_size": 50_304,
            "context": 2048,
            "d_model": 512,
            "n_layers": 6,
            "n_heads": 8,
            "ffn": "gelu",
            "wiring": "parallel",
            "position": "rope",
            "rope_fraction": 0.25,
            "tie_embeddings": False,
            "dropout": 0.0,
        },
        source="Biderman et al. 2023; huggingface.co/EleutherAI/pythia-70m",
        published="70,426,624",
    ),
}

# `model` is the decoder: studies.pairs.config.seq2seq_config puts both together.
_T5 = ModelConfig(
    vocab_size=32_128,
    context=512,
    d_model=768,
    n_layers=12,
    n_heads=12,
    d_head=64,
    d_ff=3072,
    norm="rmsnorm",
    norm_eps=1e-6,
    ffn="relu",
    position="t5",
    score_scale=False,
    dropout=0.1,
)
_ORIGINAL = ModelConfig(
    vocab_size=37_000,
    context=512,
    d_model=512,
    n_layers=6,
    n_heads=8,
    d_ff=2048,
    norm_bias=True,
    wiring="post",
    ffn="relu",
    ffn_bias=True,
    position="sinusoidal",
    embedding_scale=True,
    dropout=0.1,
)
ENCODER_DECODERS: dict[str, Preset] = {
    "t5-base": Preset(
        "T5 base (published)",
        "12 encoder and 12 decoder layers, 768 wide, with one embedding table shared by both stacks and the"
        " output.",
        replace(_T5, output_head="scaled"),
        source="Raffel et al. 2020; huggingface.co/google-t5/t5-base",
        published="about 220 million",
        encoder=replace(_T5, causal=False, output_head="none"),
    ),
    "transformer-base": Preset(
        "Transformer base (published)",
        "The original Transformer: 6 encoder and 6 decoder layers, 512 wide, post-norm, sinusoidal"
        " positions.",
        _ORIGINAL,
        source="Vaswani et al. 2017, table 3; its vocabulary is about 37,000 (5.1)",
        published="65 million",
        encoder=replace(_ORIGINAL, causal=False, output_head="none"),
    ),
}
# The models of the table of variations, in the order of their years.
BY_YEAR: dict[str, Preset] = {
    name: (PUBLISHED | ENCODER_DECODERS)[name]
    for name in (
        *("transformer-base", "bert-base", "gpt2", "t5-base", "gpt3-175b", "llama2-7b", "llama2-70b"),
        *("pythia-70m", "mistral-7b", "gemma-2b", "llama3-8b", "qwen2.5-0.5b", "smollm2-135m"),
    )
}
