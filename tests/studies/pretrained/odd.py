"""Random, odd, small models of every family, made by transformers and saved as its users save them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
Values = dict[str, Any]
VOCAB, CONTEXT = 37, 40


def _plain(rng: random.Random, width: str, heads: str, layers: str, eps: str) -> Values:
    """Heads of odd number and size, in fields of these names."""
    count = rng.choice([1, 3, 5])
    sizes = {width: count * rng.choice([4, 5, 7]), heads: count, layers: rng.choice([1, 3])}
    return sizes | {eps: rng.choice([1e-6, 1e-2])}


def _gpt2(rng: random.Random) -> Values:
    return _plain(rng, "n_embd", "n_head", "n_layer", "layer_norm_epsilon") | {
        "n_positions": CONTEXT,
        "n_inner": rng.choice([None, 29]),
        "activation_function": rng.choice(["gelu_new", "gelu", "relu"]),
        "tie_word_embeddings": rng.random() < 0.5,
    }


def _llama(rng: random.Random) -> Values:
    groups, kv_heads, d_head = rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([4, 6, 10])
    return {
        "hidden_size": groups * kv_heads * rng.choice([4, 5, 7]),
        "intermediate_size": rng.choice([23, 41]),
        "num_hidden_layers": rng.choice([1, 3]),
        "num_attention_heads": groups * kv_heads,
        "num_key_value_heads": kv_heads,
        "head_dim": d_head,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": rng.choice([1e-6, 1e-2]),
        "rope_parameters": {"rope_type": "default", "rope_theta": rng.choice([100.0, 1e4, 1e6])},
        "tie_word_embeddings": rng.random() < 0.5,
    }


def _biased(rng: random.Random, *names: str) -> Values:
    return _llama(rng) | {name: rng.random() < 0.5 for name in names}


def _qwen2(rng: random.Random) -> Values:
    values = _llama(rng)
    del values["head_dim"]
    return values | {"hidden_size": values["num_attention_heads"] * rng.choice([4, 6])}


def _windowed(rng: random.Random) -> Values:
    layers, every = rng.choice([3, 4]), rng.choice([2, 3, 9])
    kinds = ["full" if (i + 1) % every == 0 else "sliding" for i in range(layers)]
    return _llama(rng) | {
        "num_hidden_layers": layers,
        "layer_types": [f"{kind}_attention" for kind in kinds],
        "use_sliding_window": True,
        "sliding_window": rng.choice([1, 5, 12]),
    }


def _deepseek(rng: random.Random) -> Values:
    heads, d_head = rng.choice([1, 3]), rng.choice([4, 6, 7])
    values = _llama(rng)
    del values["head_dim"]
    return values | {
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "qk_nope_head_dim": d_head,
        "v_head_dim": d_head,
        "qk_rope_head_dim": rng.choice([2, 6, 8]),
        "kv_lora_rank": rng.choice([5, 16]),
        "q_lora_rank": rng.choice([None, 9]),
        "attention_bias": rng.random() < 0.5,
        "first_k_dense_replace": 3,
    }


def _experts(rng: random.Random) -> Values:
    count = rng.choice([3, 6])
    return {
        "num_experts": count,
        "n_routed_experts": count,
        "num_experts_per_tok": rng.choice([1, 2, 3]),
        "n_shared_experts": 1,
        "moe_intermediate_size": rng.choice([5, 8]),
        "norm_topk_prob": rng.random() < 0.5,
        "routed_scaling_factor": rng.choice([1.0, 2.5]),
        "n_group": 1,
        "topk_group": 1,
    }


def _glm(rng: random.Random) -> Values:
    values = _biased(rng, "attention_bias", "use_qk_norm") | _experts(rng) | {"first_k_dense_replace": 0}
    rotations = values["rope_parameters"] | {"partial_rotary_factor": rng.choice([0.5, 1.0])}
    return values | {"head_dim": rng.choice([4, 8, 12]), "rope_parameters": rotations}


def _gpt_oss(rng: random.Random) -> Values:
    values = _windowed(rng) | {"attention_bias": rng.random() < 0.5}
    values |= {"num_local_experts": rng.choice([3, 6]), "num_experts_per_tok": rng.choice([1, 2, 3])}
    return values | {"router_aux_loss_coef": 0.0}


def _qwen3_next(rng: random.Random) -> Values:
    values = _biased(rng, "attention_bias")
    rotations = values["rope_parameters"] | {"partial_rotary_factor": rng.choice([0.5, 1.0])}
    layers = values["num_hidden_layers"]
    return values | {
        "head_dim": rng.choice([4, 8, 12]),
        "rope_parameters": rotations,
        "layer_types": ["full_attention"] * layers,
        "mlp_only_layers": list(range(layers)),
    }


def _neox(rng: random.Random) -> Values:
    heads = rng.choice([1, 3, 5])
    d_head, share = rng.choice([(8, 0.25), (12, 0.5), (6, 1.0), (10, 0.25), (14, 0.6)])
    rotations: Values = {"rope_type": "default", "partial_rotary_factor": share}
    rotations["rope_theta"] = rng.choice([100.0, 1e4])
    flags = ("use_parallel_residual", "tie_word_embeddings", "attention_bias")
    return {
        "hidden_size": heads * d_head,
        "intermediate_size": rng.choice([23, 41]),
        "num_hidden_layers": rng.choice([1, 3]),
        "num_attention_heads": heads,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": rotations,
        "hidden_act": rng.choice(["gelu", "gelu_new", "relu"]),
    } | {name: rng.random() < 0.5 for name in flags}


def _bloom(rng: random.Random) -> Values:
    return _plain(rng, "hidden_size", "n_head", "n_layer", "layer_norm_epsilon")


def _bert(rng: random.Random) -> Values:
    return _plain(rng, "hidden_size", "num_attention_heads", "num_hidden_layers", "layer_norm_eps") | {
        "intermediate_size": rng.choice([23, 41]),
        "max_position_embeddings": CONTEXT,
        "type_vocab_size": rng.choice([1, 2, 3]),
    }


def _t5(rng: random.Random) -> Values:
    return _plain(rng, "d_model", "num_heads", "num_layers", "layer_norm_epsilon") | {
        "d_kv": rng.choice([3, 8]),
        "d_ff": rng.choice([23, 41]),
        "feed_forward_proj": rng.choice(["relu", "gated-gelu"]),
    }


# Family -> the name of its configuration, of its model, and how an odd one is drawn.
KINDS: dict[str, tuple[str, str, Callable[[random.Random], Values]]] = {
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", _gpt2),
    "llama": ("LlamaConfig", "LlamaForCausalLM", lambda rng: _biased(rng, "attention_bias", "mlp_bias")),
    "mistral": (
        "MistralConfig",
        "MistralForCausalLM",
        lambda rng: _llama(rng) | {"sliding_window": rng.choice([None, 1, 5, 64])},
    ),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _qwen2),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", lambda rng: _biased(rng, "attention_bias")),
    "qwen3, windows": ("Qwen3Config", "Qwen3ForCausalLM", _windowed),
    "deepseek": ("DeepseekV3Config", "DeepseekV3ForCausalLM", _deepseek),
    "qwen3, experts": ("Qwen3MoeConfig", "Qwen3MoeForCausalLM", lambda rng: _llama(rng) | _experts(rng)),
    "deepseek, experts": (
        "DeepseekV3Config",
        "DeepseekV3ForCausalLM",
        lambda rng: _deepseek(rng) | _experts(rng) | {"first_k_dense_replace": 0},
    ),
    "glm": ("Glm4MoeConfig", "Glm4MoeForCausalLM", _glm),
    "gpt-oss": ("GptOssConfig", "GptOssForCausalLM", _gpt_oss),
    "qwen3-next": ("Qwen3NextConfig", "Qwen3NextForCausalLM", _qwen3_next),
    "gemma": (
        "GemmaConfig",
        "GemmaForCausalLM",
        lambda rng: _biased(rng, "attention_bias") | {"hidden_act": "gelu_pytorch_tanh"},
    ),
    "neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", _neox),
    "bloom": ("BloomConfig", "BloomForCausalLM", _bloom),
    "bert": ("BertConfig", "BertModel", _bert),
    "bert, masked": ("BertConfig", "BertForMaskedLM", _bert),
    "t5": ("T5Config", "T5EncoderModel", _t5),
}
CAUSAL = [name for name in KINDS if not name.startswith(("bert", "t5"))]


def made(
    name: str, seed: int, folder: Path, sizes: Values | None = None, kind: str = "", **options: Any
) -> torch.nn.Module:
    """A model of a family with weights that all matter, in evaluation mode, saved in `folder`; `sizes` stand in
    for those that were drawn, `kind` for the class of the family.
    """
    config, usual, draw = KINDS[name]
    values = {"vocab_size": VOCAB, "attn_implementation": "eager", "experts_implementation": "eager"}
    values |= draw(random.Random(f"{name} {seed}"))
    values |= sizes or {}
    torch.manual_seed(seed)
    theirs = getattr(transformers, kind or usual)(getattr(transformers, config)(**values)).eval()
    with torch.no_grad():
        balance = (each for name, each in theirs.named_buffers() if name.endswith("correction_bias"))
        for parameter in (*theirs.parameters(), *balance):
            parameter.add_(torch.randn_like(parameter) * 0.2)
    theirs.save_pretrained(folder, **options)
    return theirs


def settings(folder: Path, **facts: Any) -> None:
    """Writes other facts into a model's configuration."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))


def said(theirs: torch.nn.Module, tokens: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
    """Logits, or the last vectors of a model that has none."""
    out = theirs(tokens, **more)
    found: torch.Tensor = out.logits if "logits" in out else out.last_hidden_state
    return found
