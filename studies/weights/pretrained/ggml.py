"""Families of models in GGUF files, as llama.cpp's converter names their facts and tensors."""

from __future__ import annotations

from typing import Any

from engine.config import ModelConfig
from engine.errors import PretrainedError
from studies.weights.pretrained.family import (
    BIASED,
    FACTORS,
    Facts,
    Family,
    Pieces,
    blocks,
    both,
    checked,
    real,
    untied_output,
    whole,
)
from studies.weights.pretrained.weights import half_split, piece


def _common(facts: Facts, name: str) -> dict[str, Any]:
    """The fields that both families call alike, but for their own name before each."""
    known = len(facts.get("tokenizer.ggml.tokens", ())) or None
    return {
        "vocab_size": whole(facts, f"{name}.vocab_size", known),
        "context": whole(facts, f"{name}.context_length"),
        "d_model": whole(facts, f"{name}.embedding_length"),
        "n_layers": whole(facts, f"{name}.block_count"),
        "n_heads": whole(facts, f"{name}.attention.head_count"),
        "d_ff": whole(facts, f"{name}.feed_forward_length"),
        "tie_embeddings": bool(facts.get("tied", True)),
    }


def _llama_config(facts: Facts) -> ModelConfig:
    _refuse_scaling(facts)
    if facts.get("llama.expert_count", 0):
        raise PretrainedError(
            f"it has {facts['llama.expert_count']!r} experts in a layer; that is not supported"
        )
    common = _common(facts, "llama")
    heads = common["n_heads"]
    d_head = whole(facts, "llama.attention.key_length", max(common["d_model"] // heads, 1))
    return checked(
        **common,
        n_kv_heads=whole(facts, "llama.attention.head_count_kv", heads),
        d_head=d_head,
        norm="rmsnorm",
        norm_eps=real(facts, "llama.attention.layer_norm_rms_epsilon", 1e-5),
        ffn="swiglu",
        position="rope",
        rope_theta=real(facts, "llama.rope.freq_base", 10_000.0),
        rope_fraction=whole(facts, "llama.rope.dimension_count", d_head) / d_head,
    )


def _refuse_scaling(facts: Facts) -> None:
    """Raises PretrainedError for rotations that are scaled for longer texts; a scale of 1 is none."""
    kind, factor = facts.get("llama.rope.scaling.type", "linear"), facts.get("llama.rope.scaling.factor", 1)
    if kind not in ("none", "linear") or (kind == "linear" and factor not in (0, 1)):  # 0: not said
        raise PretrainedError(
            f"it scales its rotations (llama.rope.scaling.type is {kind!r}); that is not supported"
        )
    if facts.get("llama.rope.scale_linear", 1) != 1:
        raise PretrainedError("it scales its rotations (llama.rope.scale_linear); that is not supported")
    if names := sorted(name for name in facts.get(FACTORS, {}) if name.startswith("rope_f")):
        raise PretrainedError(
            f"it scales its rotations by factors of its own ({names[0]}); that is not supported"
        )


def _llama_ignored(config: ModelConfig) -> set[str]:
    """Factors that are all 1: others are refused."""
    return {"rope_freqs.weight"}


def _llama_pieces(config: ModelConfig) -> Pieces:
    c = config.resolved()

    def block(i: int) -> Pieces:
        at = f"blk.{i}"
        return {
            "mixer.w_qkv.weight": piece(f"{at}.attn_q.weight", change=half_split(c.n_heads))
            + piece(f"{at}.attn_k.weight", change=half_split(c.n_kv_heads or c.n_heads))
            + piece(f"{at}.attn_v.weight"),
            "mixer.w_o.weight": piece(f"{at}.attn_output.weight"),
            "ffn.w_in.weight": piece(f"{at}.ffn_gate.weight", f"{at}.ffn_up.weight"),
            "ffn.w_out.weight": piece(f"{at}.ffn_down.weight"),
            "norm1.gain": piece(f"{at}.attn_norm.weight"),
            "norm2.gain": piece(f"{at}.ffn_norm.weight"),
        }

    tables = {"embedding": piece("token_embd.weight"), "norm_final.gain": piece("output_norm.weight")}
    return tables | untied_output(config, "output") | blocks(config, block)


def _gpt2_config(facts: Facts) -> ModelConfig:
    eps = real(facts, "gpt2.attention.layer_norm_epsilon", 1e-5)
    return checked(**_common(facts, "gpt2"), **BIASED, norm_eps=eps, ffn="gelu_tanh", position="learned")


def _gpt2_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at = f"blk.{i}"
        return (
            both("mixer.w_qkv", f"{at}.attn_qkv")
            | both("mixer.w_o", f"{at}.attn_output")
            | both("ffn.w_in", f"{at}.ffn_up")
            | both("ffn.w_out", f"{at}.ffn_down")
            | both("norm1", f"{at}.attn_norm")
            | both("norm2", f"{at}.ffn_norm")
        )

    tables = {"embedding": piece("token_embd.weight"), "positions.weight": piece("position_embd.weight")}
    return (
        tables | untied_output(config, "output") | both("norm_final", "output_norm") | blocks(config, block)
    )


GGUF: dict[str, Family[ModelConfig]] = {
    "llama": Family(_llama_config, _llama_pieces, _llama_ignored),
    "gpt2": Family(_gpt2_config, _gpt2_pieces),
}
