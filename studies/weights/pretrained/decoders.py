"""Families of decoders in Hugging Face's layout: GPT-2, LLaMA and its kin, DeepSeek-V3, GPT-NeoX, BLOOM."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from engine.config import ModelConfig
from engine.errors import PretrainedError
from studies.weights.pretrained.family import (
    BIASED,
    Facts,
    Family,
    Pieces,
    activation,
    blocks,
    both,
    checked,
    first_of,
    flag,
    optional,
    real,
    refuse,
    rotations,
    untied_output,
    whole,
)
from studies.weights.pretrained.weights import (
    HalfOfHeads,
    Piece,
    by_head,
    experts_stacked,
    gates_first,
    offset_gain,
    piece,
    transposed,
    turned_apart,
    turned_first,
)

# GPT-2 ------------------------------------------------------------------------------------------


def _gpt2_config(facts: Facts) -> ModelConfig:
    refuse(facts, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    d_model = whole(facts, "n_embd", 768)
    return checked(
        vocab_size=whole(facts, "vocab_size", 50_257),
        context=whole(facts, "n_positions", 1024),
        d_model=d_model,
        n_layers=whole(facts, "n_layer", 12),
        n_heads=whole(facts, "n_head", 12),
        d_ff=optional(facts, "n_inner") or 4 * d_model,
        norm_eps=real(facts, "layer_norm_epsilon", 1e-5),
        ffn=activation(facts, "activation_function", "gelu_new"),
        position="learned",
        tie_embeddings=flag(facts, "tie_word_embeddings", True),
        **BIASED,
    )


def _gpt2_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at = f"h.{i}"
        return (
            both("mixer.w_qkv", f"{at}.attn.c_attn", change=transposed)
            | both("mixer.w_o", f"{at}.attn.c_proj", change=transposed)
            | both("ffn.w_in", f"{at}.mlp.c_fc", change=transposed)
            | both("ffn.w_out", f"{at}.mlp.c_proj", change=transposed)
            | both("norm1", f"{at}.ln_1")
            | both("norm2", f"{at}.ln_2")
        )

    tables = {"embedding": piece("wte.weight"), "positions.weight": piece("wpe.weight")}
    return tables | untied_output(config, "lm_head") | both("norm_final", "ln_f") | blocks(config, block)


def _gpt2_ignored(config: ModelConfig) -> set[str]:
    masks = {f"h.{i}.attn.{name}" for i in range(config.n_layers) for name in ("bias", "masked_bias")}
    return masks | _tied(config, "lm_head")


def _tied(config: ModelConfig, name: str) -> set[str]:
    return {f"{name}.weight"} if config.tie_embeddings else set()


# LLaMA and its kin ------------------------------------------------------------------------------


LLAMA_HEAD = ("lm_head.weight", "embed_tokens.weight")


def _llama_config(facts: Facts, **rest: Any) -> ModelConfig:
    """`rest` is what a family has otherwise than LLaMA."""
    if "ffn" not in rest:
        refuse(facts, hidden_act="silu")
    refuse(facts, use_bidirectional_attention=False)
    if "window" not in rest:
        refuse(facts, use_sliding_window=False)
    if odd := [kind for kind in _kinds(facts) if kind not in ("full_attention", "sliding_attention")]:
        raise PretrainedError(f"it has layers of type {odd[0]!r}; only attention layers are supported")
    rope, heads = rotations(facts), whole(facts, "num_attention_heads")
    if "rope_fraction" not in rest:
        refuse(rope, partial_rotary_factor=1.0)
    biased = flag(facts, "attention_bias", False)
    values = {
        "vocab_size": whole(facts, "vocab_size"),
        "context": whole(facts, "max_position_embeddings", 2048),
        "d_model": whole(facts, "hidden_size"),
        "n_layers": whole(facts, "num_hidden_layers"),
        "n_heads": heads,
        "n_kv_heads": optional(facts, "num_key_value_heads") or heads,
        "d_head": optional(facts, "head_dim"),
        "d_ff": whole(facts, "intermediate_size"),
        "norm": "rmsnorm",
        "norm_eps": real(facts, "rms_norm_eps", 1e-6),
        "ffn": "swiglu",
        "position": "rope",
        "rope_theta": real(rope if "rope_theta" in rope else facts, "rope_theta", 10_000.0),
        "tie_embeddings": flag(facts, "tie_word_embeddings", False),
        "attention_bias": biased,
        "output_bias": biased,
        "ffn_bias": flag(facts, "mlp_bias", False),
    }
    return checked(**(values | rest))


def _kinds(facts: Facts) -> list[Any]:
    kinds = facts.get("layer_types")
    if kinds is not None and not isinstance(kinds, list):
        raise PretrainedError(f"its layer_types are {kinds!r}; they must be a list")
    return kinds or []


def _mistral_config(facts: Facts) -> ModelConfig:
    window, context = optional(facts, "sliding_window"), whole(facts, "max_position_embeddings", 131_072)
    return _llama_config(facts, window=window if window and window < context else 0)


def _qwen2_config(facts: Facts) -> ModelConfig:
    return _llama_config(facts, attention_bias=True, output_bias=False, **_windows(facts))


def _qwen3_config(facts: Facts) -> ModelConfig:
    d_head = optional(facts, "head_dim") or 128
    return _llama_config(facts, d_head=d_head, qk_norm=True, qk_gain=True, **_windows(facts))


def _windows(facts: Facts) -> dict[str, int]:
    """Returns the window and after how many layers one has none; nothing where no layer has one. Raises
    PretrainedError for layers in another order.
    """
    kinds = _kinds(facts)
    if "sliding_attention" not in kinds:
        return {}
    every = kinds.index("full_attention") + 1 if "full_attention" in kinds else 0
    whole_ones = [kind == "full_attention" for kind in kinds]
    if len(kinds) != whole(facts, "num_hidden_layers") or whole_ones != [
        every > 0 and (layer + 1) % every == 0 for layer in range(len(kinds))
    ]:
        raise PretrainedError(
            "its layers with a sliding window are in an order that is not supported: one without must come"
            " at equal intervals, the last of each"
        )
    return {"window": whole(facts, "sliding_window"), "global_every": every}


def _gemma_config(facts: Facts) -> ModelConfig:
    refuse(facts, hidden_activation="gelu_pytorch_tanh")
    activation(facts, "hidden_act", "gelu")  # whichever it says: the tanh form is meant (transformers #29402)
    return _llama_config(
        facts,
        d_head=optional(facts, "head_dim") or 256,
        ffn="geglu_tanh",
        embedding_scale=True,
        tie_embeddings=flag(facts, "tie_word_embeddings", True),
    )


def _llama_pieces(config: ModelConfig, **gains: Any) -> Pieces:
    """`gains` says how the gains of norms are to be changed."""

    def block(i: int) -> Pieces:
        at, mlp = f"layers.{i}.self_attn", f"layers.{i}.mlp"
        read, gated = [f"{at}.{n}_proj" for n in "qkv"], [f"{mlp}.{n}_proj" for n in ("gate", "up")]
        result = {
            "mixer.w_qkv.weight": piece(*(f"{name}.weight" for name in read)),
            "ffn.w_in.weight": piece(*(f"{name}.weight" for name in gated)),
            "norm1.gain": piece(f"layers.{i}.input_layernorm.weight", **gains),
            "norm2.gain": piece(f"layers.{i}.post_attention_layernorm.weight", **gains),
        }
        if config.attention_bias:
            result["mixer.w_qkv.bias"] = piece(*(f"{name}.bias" for name in read))
        if config.ffn_bias:
            result["ffn.w_in.bias"] = piece(*(f"{name}.bias" for name in gated))
        if config.qk_gain:
            result |= {f"mixer.{n}_gain": piece(f"{at}.{n}_norm.weight") for n in "qk"}
        return (
            result
            | both("mixer.w_o", f"{at}.o_proj", config.attention_bias and config.output_bias)
            | both("ffn.w_out", f"{mlp}.down_proj", config.ffn_bias)
        )

    tables = {"embedding": piece("embed_tokens.weight"), "norm_final.gain": piece("norm.weight", **gains)}
    return tables | untied_output(config, "lm_head") | blocks(config, block)


def _llama_ignored(config: ModelConfig) -> set[str]:
    buffers = {f"layers.{i}.self_attn.rotary_emb.inv_freq" for i in range(config.n_layers)}
    return buffers | _tied(config, "lm_head")


def _gemma_pieces(config: ModelConfig) -> Pieces:
    """Gemma multiplies by 1 + gain: here the 1 is in the gain."""
    return _llama_pieces(config, change=offset_gain)


# Mixtures of experts: Qwen3's, DeepSeek-V3 and GLM-4.5 --------------------------------------------


def _experts(facts: Facts, count: str, **rest: Any) -> dict[str, Any]:
    """Returns the fields of a mixture in every layer, of `count` experts."""
    return {
        "d_ff": whole(facts, "moe_intermediate_size"),
        "n_experts": first_of(facts, count, "num_local_experts"),
        "active_experts": whole(facts, "num_experts_per_tok", 8),
    } | rest


def _balanced(facts: Facts) -> dict[str, Any]:
    """Returns those of a mixture as DeepSeek-V3 has it: sigmoids, and a bias that decides on the choice."""
    refuse(facts, n_group=1, n_shared_experts=1)
    return _experts(
        facts,
        "n_routed_experts",
        shared_experts=1,
        router="sigmoid",
        router_norm=flag(facts, "norm_topk_prob", True),
        router_scale=real(facts, "routed_scaling_factor", 1.0),
        balance="bias",
    )


def _qwen3_moe_config(facts: Facts) -> ModelConfig:
    refuse(facts, decoder_sparse_step=1, mlp_only_layers=[])
    chosen = _experts(facts, "num_experts", router_norm=flag(facts, "norm_topk_prob", False))
    d_head = optional(facts, "head_dim") or 128
    return _llama_config(facts, d_head=d_head, qk_norm=True, qk_gain=True, **chosen, **_windows(facts))


def _glm_config(facts: Facts) -> ModelConfig:
    refuse(facts, first_k_dense_replace=0)
    normed, heads = flag(facts, "use_qk_norm", False), whole(facts, "num_attention_heads")
    d_head = optional(facts, "head_dim") or whole(facts, "hidden_size") // heads or 1
    share = real(rotations(facts), "partial_rotary_factor", real(facts, "partial_rotary_factor", 0.5))
    return _llama_config(
        facts,
        d_head=d_head,
        rope_fraction=int(share * d_head) / d_head,  # rounded down there
        output_bias=False,
        qk_norm=normed,
        qk_gain=normed,
        **_balanced(facts),
    )


def _expert_pieces(config: ModelConfig, i: int) -> Pieces:
    """Returns one layer's mixture: gate and up of each expert, one below the other, the shared ones last."""
    at = f"layers.{i}.mlp"
    into = [
        piece(f"{at}.experts.{e}.{n}_proj.weight") for e in range(config.n_experts) for n in ("gate", "up")
    ]
    out = [piece(f"{at}.experts.{e}.down_proj.weight") for e in range(config.n_experts)]
    if config.shared_experts:
        into += [piece(f"{at}.shared_experts.{n}_proj.weight") for n in ("gate", "up")]
        out.append(piece(f"{at}.shared_experts.down_proj.weight"))
    result = {
        "ffn.router.weight": piece(f"{at}.gate.weight"),
        "ffn.w_in.weight": reduce(Piece.__add__, into),
        "ffn.w_out.weight": reduce(Piece.__add__, out),
    }
    if config.balance == "bias":
        result["ffn.preference"] = piece(f"{at}.gate.e_score_correction_bias")
    return result


def _moe_pieces(config: ModelConfig) -> Pieces:
    """LLaMA's, with experts for its networks."""
    plain = {name: each for name, each in _llama_pieces(config).items() if ".ffn." not in name}
    return plain | blocks(config, partial(_expert_pieces, config))


# Qwen3-Next -------------------------------------------------------------------------------------


def _qwen3_next_config(facts: Facts) -> ModelConfig:
    """Its gated attention; layers of DeltaNet and of experts, whose shared one has a gate, are not built."""
    layers, heads = whole(facts, "num_hidden_layers"), whole(facts, "num_attention_heads")
    if facts.get("mlp_only_layers") != list(range(layers)):
        raise PretrainedError("it has layers of experts whose shared one has a gate; that is not supported")
    if _kinds(facts) != ["full_attention"] * layers:
        raise PretrainedError("it has layers of linear attention; only gated attention is supported")
    d_head = optional(facts, "head_dim") or whole(facts, "hidden_size") // heads or 1
    share = real(rotations(facts), "partial_rotary_factor", real(facts, "partial_rotary_factor", 0.25))
    return _llama_config(
        facts,
        mixer="gated",
        d_head=d_head,
        rope_fraction=int(share * d_head) / d_head,  # rounded down there
        qk_norm=True,
        qk_gain=True,
    )


def _qwen3_next_pieces(config: ModelConfig) -> Pieces:
    """W_Q has a query and a gate for each head there; gains are stored minus 1."""

    def block(i: int) -> Pieces:
        at = f"layers.{i}.self_attn"
        gains = {f"mixer.{n}_gain": piece(f"{at}.{n}_norm.weight", change=offset_gain) for n in "qk"}
        for kind in ("weight", "bias") if config.attention_bias else ("weight",):
            queries, gates = (
                piece(f"{at}.q_proj.{kind}", change=HalfOfHeads(config.n_heads, n)) for n in (0, 1)
            )
            gains[f"mixer.w_qkv.{kind}"] = queries + piece(f"{at}.k_proj.{kind}", f"{at}.v_proj.{kind}")
            gains[f"mixer.w_gate.{kind}"] = gates
        return gains

    return _llama_pieces(config, change=offset_gain) | blocks(config, block)


# gpt-oss ----------------------------------------------------------------------------------------


def _gpt_oss_config(facts: Facts) -> ModelConfig:
    refuse(facts, swiglu_alpha=1.702, swiglu_limit=7.0)
    biased = flag(facts, "attention_bias", True)
    return _llama_config(
        facts,
        mixer="sinks",
        attention_bias=biased,
        output_bias=biased,
        ffn="swiglu_clamped",
        ffn_bias=True,
        n_experts=whole(facts, "num_local_experts"),
        active_experts=whole(facts, "num_experts_per_tok", 4),
        **_windows(facts),
    )


def _gpt_oss_pieces(config: ModelConfig) -> Pieces:
    """Gate and up are in turn there, and the matrices of experts are transposed."""

    def block(i: int) -> Pieces:
        at, inside = f"layers.{i}", f"layers.{i}.mlp.experts"
        return both("ffn.router", f"{at}.mlp.router") | {
            "mixer.sink": piece(f"{at}.self_attn.sinks"),
            "ffn.w_in.weight": piece(f"{inside}.gate_up_proj", change=gates_first),
            "ffn.w_in.bias": piece(f"{inside}.gate_up_proj_bias", change=gates_first),
            "ffn.w_out.weight": piece(f"{inside}.down_proj", change=experts_stacked),
            "ffn.w_out.bias": piece(f"{inside}.down_proj_bias", change=experts_stacked),
        }

    plain = {name: each for name, each in _llama_pieces(config).items() if ".ffn." not in name}
    return plain | blocks(config, block)


# DeepSeek-V3 ------------------------------------------------------------------------------------


def _deepseek_config(facts: Facts) -> ModelConfig:
    refuse(facts, rope_interleave=True)
    layers, d_head = whole(facts, "num_hidden_layers"), whole(facts, "qk_nope_head_dim", 128)
    if whole(facts, "v_head_dim", 128) != d_head:
        raise PretrainedError(
            "its values are not as wide as its keys before positions; that is not supported"
        )
    dense = 0 if facts.get("first_k_dense_replace") == 0 else whole(facts, "first_k_dense_replace", 3)
    if 0 < dense < layers:
        raise PretrainedError("only some of its layers have experts; that is not supported")
    return _llama_config(
        facts,
        **({} if dense else _balanced(facts)),
        mixer="mla",
        n_kv_heads=None,
        d_head=d_head,
        d_latent=whole(facts, "kv_lora_rank", 512),
        d_rotated=whole(facts, "qk_rope_head_dim", 64),
        d_query=optional(facts, "q_lora_rank") or 0,
    )


def _deepseek_pieces(config: ModelConfig) -> Pieces:
    """Rows of queries are turned ones first here, and pairs that are turned together lie half apart."""
    c = config.resolved()

    def block(i: int) -> Pieces:
        at = f"layers.{i}.self_attn"
        queries = turned_first(c.n_heads, c.d_rotated)
        latent = turned_apart(c.d_rotated)
        result = both("mixer.w_dkv", f"{at}.kv_a_proj_with_mqa", c.attention_bias, change=latent)
        result["mixer.latent_gain"] = piece(f"{at}.kv_a_layernorm.weight")
        result["mixer.w_ukv.weight"] = piece(f"{at}.kv_b_proj.weight")
        if c.d_query:
            result |= both("mixer.w_dq", f"{at}.q_a_proj", c.attention_bias)
            result["mixer.query_gain"] = piece(f"{at}.q_a_layernorm.weight")
        name = "q_b_proj" if c.d_query else "q_proj"
        result["mixer.w_q.weight"] = piece(f"{at}.{name}.weight", change=queries)
        return result

    others = _moe_pieces(config) if config.n_experts else _llama_pieces(config)
    plain = {name: each for name, each in others.items() if ".w_qkv." not in name}
    return plain | blocks(config, block)


# GPT-NeoX (Pythia) ------------------------------------------------------------------------------


def _neox_config(facts: Facts) -> ModelConfig:
    rope, heads, d_model = rotations(facts), whole(facts, "num_attention_heads"), whole(facts, "hidden_size")
    share = real(rope, "partial_rotary_factor", real(facts, "rotary_pct", 0.25))
    d_head = d_model // heads or 1
    biased = flag(facts, "attention_bias", True)
    return checked(
        vocab_size=whole(facts, "vocab_size"),
        context=whole(facts, "max_position_embeddings", 2048),
        d_model=d_model,
        n_layers=whole(facts, "num_hidden_layers"),
        n_heads=heads,
        d_ff=whole(facts, "intermediate_size"),
        norm_eps=real(facts, "layer_norm_eps", 1e-5),
        wiring="parallel" if flag(facts, "use_parallel_residual", True) else "pre",
        ffn=activation(facts, "hidden_act", "gelu"),
        position="rope",
        rope_theta=real(rope, "rope_theta", real(facts, "rotary_emb_base", 10_000.0)),
        rope_fraction=int(share * d_head) / d_head,  # rounded down there
        tie_embeddings=flag(facts, "tie_word_embeddings", False),
        attention_bias=biased,
        output_bias=biased,
        ffn_bias=True,
        norm_bias=True,
    )


def _neox_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at, change, biased = f"layers.{i}", by_head(config.n_heads), config.attention_bias
        return (
            both("mixer.w_qkv", f"{at}.attention.query_key_value", biased, change=change)
            | both("mixer.w_o", f"{at}.attention.dense", biased)
            | both("ffn.w_in", f"{at}.mlp.dense_h_to_4h")
            | both("ffn.w_out", f"{at}.mlp.dense_4h_to_h")
            | both("norm1", f"{at}.input_layernorm")
            | both("norm2", f"{at}.post_attention_layernorm")
        )

    tables = {"embedding": piece("embed_in.weight")} | untied_output(config, "embed_out")
    return tables | both("norm_final", "final_layer_norm") | blocks(config, block)


def _neox_ignored(config: ModelConfig) -> set[str]:
    names = ("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq")
    result = {f"layers.{i}.{name}" for i in range(config.n_layers) for name in names}
    return result | _tied(config, "embed_out")


# BLOOM ------------------------------------------------------------------------------------------


def _bloom_config(facts: Facts) -> ModelConfig:
    refuse(facts, apply_residual_connection_post_layernorm=False)
    d_model = first_of(facts, "hidden_size", "n_embed")
    return checked(
        vocab_size=whole(facts, "vocab_size"),
        context=whole(facts, "seq_length", 2048),
        d_model=d_model,
        n_layers=first_of(facts, "n_layer", "num_hidden_layers"),
        n_heads=first_of(facts, "n_head", "num_attention_heads"),
        d_ff=4 * d_model,
        norm_eps=real(facts, "layer_norm_epsilon", 1e-5),
        ffn="gelu_tanh",
        position="alibi",
        embedding_norm=True,
        tie_embeddings=flag(facts, "tie_word_embeddings", True),
        **BIASED,
    )


def _bloom_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at, change = f"h.{i}", by_head(config.n_heads)
        return (
            both("mixer.w_qkv", f"{at}.self_attention.query_key_value", change=change)
            | both("mixer.w_o", f"{at}.self_attention.dense")
            | both("ffn.w_in", f"{at}.mlp.dense_h_to_4h")
            | both("ffn.w_out", f"{at}.mlp.dense_4h_to_h")
            | both("norm1", f"{at}.input_layernorm")
            | both("norm2", f"{at}.post_attention_layernorm")
        )

    tables = {"embedding": piece("word_embeddings.weight")} | untied_output(config, "lm_head")
    normed = both("norm_embed", "word_embeddings_layernorm") | both("norm_final", "ln_f")
    return tables | normed | blocks(config, block)


def _bloom_ignored(config: ModelConfig) -> set[str]:
    return _tied(config, "lm_head")


DECODERS: dict[str, Family[ModelConfig]] = {
    "gpt2": Family(_gpt2_config, _gpt2_pieces, _gpt2_ignored, head=("lm_head.weight", "wte.weight")),
    "llama": Family(_llama_config, _llama_pieces, _llama_ignored, head=LLAMA_HEAD),
    "mistral": Family(_mistral_config, _llama_pieces, _llama_ignored, head=LLAMA_HEAD),
    "qwen2": Family(_qwen2_config, _llama_pieces, _llama_ignored, head=LLAMA_HEAD),
    "qwen3": Family(_qwen3_config, _llama_pieces, _llama_ignored, head=LLAMA_HEAD),
    "qwen3_moe": Family(_qwen3_moe_config, _moe_pieces, _llama_ignored, head=LLAMA_HEAD),
    "glm4_moe": Family(_glm_config, _moe_pieces, _llama_ignored, head=LLAMA_HEAD),
    "qwen3_next": Family(_qwen3_next_config, _qwen3_next_pieces, _llama_ignored, head=LLAMA_HEAD),
    "gpt_oss": Family(_gpt_oss_config, _gpt_oss_pieces, _llama_ignored, head=LLAMA_HEAD),
    "deepseek_v3": Family(_deepseek_config, _deepseek_pieces, _llama_ignored, head=LLAMA_HEAD),
    "gemma": Family(_gemma_config, _gemma_pieces, _llama_ignored, head=LLAMA_HEAD),
    "gpt_neox": Family(
        _neox_config, _neox_pieces, _neox_ignored, head=("embed_out.weight", "embed_in.weight")
    ),
    "bloom": Family(
        _bloom_config, _bloom_pieces, _bloom_ignored, head=("lm_head.weight", "word_embeddings.weight")
    ),
}
