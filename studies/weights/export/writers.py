"""Writers of config.json, checked by the readers in `studies.weights.pretrained.families`, their inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.config import ResolvedConfig

Facts = dict[str, Any]
ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "relu2": "relu2"}


@dataclass(frozen=True)
class Writer:
    """`prefix` stands before the names of the body's tensors, not before those of `heads`."""

    title: str
    architecture: str
    facts: Callable[[ResolvedConfig], Facts]
    prefix: str
    heads: tuple[str, ...] = ("lm_head.weight",)
    ffn: str = "gelu"  # a network that the family has in any case

    def full(self, name: str) -> str:
        return name if name in self.heads else self.prefix + name


def _gpt2(c: ResolvedConfig) -> Facts:
    return {
        "model_type": "gpt2",
        "vocab_size": c.vocab_size,
        "n_positions": c.context,
        "n_embd": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "n_inner": c.d_ff,
        "layer_norm_epsilon": c.norm_eps,
        "activation_function": ACTIVATIONS.get(c.ffn, c.ffn),
        "tie_word_embeddings": c.tie_embeddings,
        **{name: c.dropout for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")},
    }


def _llama(c: ResolvedConfig) -> Facts:
    return {
        "model_type": "llama",
        "vocab_size": c.vocab_size,
        "max_position_embeddings": c.context,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "head_dim": c.d_head,
        "intermediate_size": c.d_ff,
        "rms_norm_eps": c.norm_eps,
        "hidden_act": {"swiglu": "silu"}.get(c.ffn, c.ffn),
        "rope_theta": c.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.rope_theta},
        "tie_word_embeddings": c.tie_embeddings,
        "attention_bias": c.attention_bias,
        "mlp_bias": c.ffn_bias,
        "attention_dropout": c.dropout,
    }


def _mistral(c: ResolvedConfig) -> Facts:
    return _llama(c) | {"model_type": "mistral", "sliding_window": c.window or None}


def _qwen2(c: ResolvedConfig) -> Facts:
    return _llama(c) | {"model_type": "qwen2", "attention_bias": True, "use_sliding_window": False}


def _qwen3(c: ResolvedConfig) -> Facts:
    return _llama(c) | {"model_type": "qwen3", "use_sliding_window": False}


def _gemma(c: ResolvedConfig) -> Facts:
    act = {"geglu_tanh": "gelu_pytorch_tanh"}.get(c.ffn, c.ffn)
    return _llama(c) | {"model_type": "gemma", "hidden_act": act, "hidden_activation": act}


def _bloom(c: ResolvedConfig) -> Facts:
    return {
        "model_type": "bloom",
        "vocab_size": c.vocab_size,
        "seq_length": c.context,
        "hidden_size": c.d_model,
        "n_layer": c.n_layers,
        "n_head": c.n_heads,
        "layer_norm_epsilon": c.norm_eps,
        "tie_word_embeddings": c.tie_embeddings,
        **{name: c.dropout for name in ("attention_dropout", "hidden_dropout")},
    }


def _neox(c: ResolvedConfig) -> Facts:
    return {
        "model_type": "gpt_neox",
        "vocab_size": c.vocab_size,
        "max_position_embeddings": c.context,
        "hidden_size": c.d_model,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "intermediate_size": c.d_ff,
        "layer_norm_eps": c.norm_eps,
        "hidden_act": ACTIVATIONS.get(c.ffn, c.ffn),
        "use_parallel_residual": c.wiring == "parallel",
        "rotary_pct": c.rope_fraction,
        "rotary_emb_base": c.rope_theta,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": c.rope_theta,
            "partial_rotary_factor": c.rope_fraction,
        },
        "tie_word_embeddings": c.tie_embeddings,
        "attention_bias": c.attention_bias,
        **{name: c.dropout for name in ("attention_dropout", "hidden_dropout")},
    }


WRITERS: dict[str, Writer] = {  # the plainer of two that say the same comes first
    "gpt2": Writer("GPT-2", "GPT2LMHeadModel", _gpt2, "transformer."),
    "llama": Writer("LLaMA", "LlamaForCausalLM", _llama, "model.", ffn="swiglu"),
    "mistral": Writer("Mistral", "MistralForCausalLM", _mistral, "model.", ffn="swiglu"),
    "qwen2": Writer("Qwen2", "Qwen2ForCausalLM", _qwen2, "model.", ffn="swiglu"),
    "qwen3": Writer("Qwen3", "Qwen3ForCausalLM", _qwen3, "model.", ffn="swiglu"),
    "gemma": Writer("Gemma", "GemmaForCausalLM", _gemma, "model.", ffn="geglu_tanh"),
    "bloom": Writer("BLOOM", "BloomForCausalLM", _bloom, "transformer.", ffn="gelu_tanh"),
    "gpt_neox": Writer(
        "GPT-NeoX", "GPTNeoXForCausalLM", _neox, "gpt_neox.", heads=("embed_out.weight", "lm_head.weight")
    ),
}
