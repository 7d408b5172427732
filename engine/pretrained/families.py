"""The families of published models that this engine's one definition covers: configuration and names of
tensors.

Each family reads the facts of a Hugging Face `config.json`; two of them also those of a GGUF file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.config import ModelConfig
from engine.errors import ConfigError, PretrainedError
from engine.pretrained.weights import Piece, by_head, half_split, piece, transposed

MAX_LAYERS = 1024
Facts = Mapping[str, Any]
Pieces = dict[str, Piece]


@dataclass(frozen=True)
class Family:
    """How one kind of file becomes a model: `config` from its facts, then `pieces` for its tensors.

    `ignored` are tensors that may be there and say nothing: masks kept as buffers, and a tied matrix stored
    twice.
    """

    config: Callable[[Facts], ModelConfig]
    pieces: Callable[[ModelConfig], Pieces]
    ignored: Callable[[ModelConfig], set[str]] = lambda config: set()


def whole(facts: Facts, name: str, otherwise: int | None = None) -> int:
    """A fact that must be a whole number, at least 1. Raises PretrainedError."""
    value = facts.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PretrainedError(
            f"its configuration says {name} = {value!r}; it must be a whole number, at least 1"
        )
    return value


def real(facts: Facts, name: str, otherwise: float) -> float:
    """A fact that must be a number. Raises PretrainedError."""
    value = facts.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PretrainedError(f"its configuration says {name} = {value!r}; it must be a number")
    return float(value)


def refuse(facts: Facts, **allowed: object) -> None:
    """Raises PretrainedError where a fact is there and has another value than the one that is built here."""
    for name, value in allowed.items():
        if facts.get(name, value) not in (value, None):
            raise PretrainedError(f"its {name} is {facts[name]!r}; only {value!r} is built here")


def blocks(config: ModelConfig, one: Callable[[int], Pieces]) -> Pieces:
    """The pieces of every block, scoped."""
    return {f"blocks.{i}.{name}": each for i in range(config.n_layers) for name, each in one(i).items()}


def both(ours: str, theirs: str, **rest: Any) -> Pieces:
    """Weight and bias of a matrix or a norm: `ours` ends in the part's name, `theirs` in the module's."""
    gain = "gain" if "norm" in ours.rpartition(".")[2] else "weight"
    return {
        f"{ours}.{gain}": piece(f"{theirs}.weight", **rest),
        f"{ours}.bias": piece(f"{theirs}.bias", **rest),
    }


# GPT-2 ------------------------------------------------------------------------------------------

GELUS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "relu2": "relu2",
}


def _gpt2_config(facts: Facts) -> ModelConfig:
    refuse(facts, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, tie_word_embeddings=True)
    d_model = whole(facts, "n_embd", 768)
    inner = facts.get("n_inner")
    return _checked(
        vocab_size=whole(facts, "vocab_size", 50_257),
        context=whole(facts, "n_positions", 1024),
        d_model=d_model,
        n_layers=whole(facts, "n_layer", 12),
        n_heads=whole(facts, "n_head", 12),
        d_ff=4 * d_model if inner is None else whole(facts, "n_inner"),
        norm_eps=real(facts, "layer_norm_epsilon", 1e-5),
        ffn=_activation(facts, "activation_function", "gelu_new"),
        position="learned",
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
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
    return tables | both("norm_final", "ln_f") | blocks(config, block)


def _gpt2_ignored(config: ModelConfig) -> set[str]:
    masks = {f"h.{i}.attn.{name}" for i in range(config.n_layers) for name in ("bias", "masked_bias")}
    return masks | {"lm_head.weight"}


# LLaMA and its kin ------------------------------------------------------------------------------


def _llama_config(facts: Facts, qkv_bias: bool = False) -> ModelConfig:
    refuse(facts, mlp_bias=False, rope_scaling=None, hidden_act="silu", use_sliding_window=False)
    if facts.get("attention_bias", False) and not qkv_bias:
        raise PretrainedError("its attention has biases; those of LLaMA are not built here")
    window, context = facts.get("sliding_window"), whole(facts, "max_position_embeddings", 2048)
    if window is not None and facts.get("model_type") == "mistral":
        context = min(context, whole(facts, "sliding_window"))  # up to there the window changes nothing
    rope = facts.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default":
        raise PretrainedError(f"its rope_type is {rope['rope_type']!r}; only 'default' is built here")
    heads = whole(facts, "num_attention_heads")
    return _checked(
        vocab_size=whole(facts, "vocab_size"),
        context=context,
        d_model=whole(facts, "hidden_size"),
        n_layers=whole(facts, "num_hidden_layers"),
        n_heads=heads,
        n_kv_heads=whole(facts, "num_key_value_heads", heads),
        d_head=None if facts.get("head_dim") is None else whole(facts, "head_dim"),
        d_ff=whole(facts, "intermediate_size"),
        norm="rmsnorm",
        norm_eps=real(facts, "rms_norm_eps", 1e-6),
        ffn="swiglu",
        position="rope",
        rope_theta=real(rope if "rope_theta" in rope else facts, "rope_theta", 10_000.0),
        tie_embeddings=bool(facts.get("tie_word_embeddings", False)),
        attention_bias=qkv_bias,
        output_bias=False,
    )


def _llama_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at, mlp = f"layers.{i}.self_attn", f"layers.{i}.mlp"
        found = {
            "mixer.w_qkv.weight": piece(*(f"{at}.{n}_proj.weight" for n in "qkv")),
            "mixer.w_o.weight": piece(f"{at}.o_proj.weight"),
            "ffn.w_in.weight": piece(f"{mlp}.gate_proj.weight", f"{mlp}.up_proj.weight"),
            "ffn.w_out.weight": piece(f"{mlp}.down_proj.weight"),
            "norm1.gain": piece(f"layers.{i}.input_layernorm.weight"),
            "norm2.gain": piece(f"layers.{i}.post_attention_layernorm.weight"),
        }
        if config.attention_bias:
            found["mixer.w_qkv.bias"] = piece(*(f"{at}.{n}_proj.bias" for n in "qkv"))
        return found

    tables = {"embedding": piece("embed_tokens.weight"), "norm_final.gain": piece("norm.weight")}
    if not config.tie_embeddings:
        tables["unembedding"] = piece("lm_head.weight")
    return tables | blocks(config, block)


def _llama_ignored(config: ModelConfig) -> set[str]:
    buffers = {f"layers.{i}.self_attn.rotary_emb.inv_freq" for i in range(config.n_layers)}
    return buffers | ({"lm_head.weight"} if config.tie_embeddings else set())


# GPT-NeoX (Pythia) ------------------------------------------------------------------------------


def _neox_config(facts: Facts) -> ModelConfig:
    refuse(facts, attention_bias=True, rope_scaling=None)
    rope = facts.get("rope_parameters") or {}
    return _checked(
        vocab_size=whole(facts, "vocab_size"),
        context=whole(facts, "max_position_embeddings", 2048),
        d_model=whole(facts, "hidden_size"),
        n_layers=whole(facts, "num_hidden_layers"),
        n_heads=whole(facts, "num_attention_heads"),
        d_ff=whole(facts, "intermediate_size"),
        norm_eps=real(facts, "layer_norm_eps", 1e-5),
        wiring="parallel" if facts.get("use_parallel_residual", True) else "pre",
        ffn=_activation(facts, "hidden_act", "gelu"),
        position="rope",
        rope_theta=real(rope, "rope_theta", real(facts, "rotary_emb_base", 10_000.0)),
        rope_fraction=real(rope, "partial_rotary_factor", real(facts, "rotary_pct", 0.25)),
        tie_embeddings=bool(facts.get("tie_word_embeddings", False)),
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def _neox_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at = f"layers.{i}"
        return (
            both("mixer.w_qkv", f"{at}.attention.query_key_value", change=by_head(config.n_heads))
            | both("mixer.w_o", f"{at}.attention.dense")
            | both("ffn.w_in", f"{at}.mlp.dense_h_to_4h")
            | both("ffn.w_out", f"{at}.mlp.dense_4h_to_h")
            | both("norm1", f"{at}.input_layernorm")
            | both("norm2", f"{at}.post_attention_layernorm")
        )

    tables = {"embedding": piece("embed_in.weight")}
    if not config.tie_embeddings:
        tables["unembedding"] = piece("embed_out.weight")
    return tables | both("norm_final", "final_layer_norm") | blocks(config, block)


def _neox_ignored(config: ModelConfig) -> set[str]:
    names = ("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq")
    found = {f"layers.{i}.{name}" for i in range(config.n_layers) for name in names}
    return found | ({"embed_out.weight"} if config.tie_embeddings else set())


# GGUF -------------------------------------------------------------------------------------------


def _gguf_llama_config(facts: Facts) -> ModelConfig:
    name = "llama"
    if f"{name}.rope.scaling.type" in facts or f"{name}.expert_count" in facts:
        raise PretrainedError("it scales its rotations or has experts; neither is built here")
    heads, d_model = whole(facts, f"{name}.attention.head_count"), whole(facts, f"{name}.embedding_length")
    d_head = whole(facts, f"{name}.attention.key_length", max(d_model // heads, 1))
    return _checked(
        vocab_size=_gguf_vocabulary(facts, name),
        context=whole(facts, f"{name}.context_length"),
        d_model=d_model,
        n_layers=whole(facts, f"{name}.block_count"),
        n_heads=heads,
        n_kv_heads=whole(facts, f"{name}.attention.head_count_kv", heads),
        d_head=d_head,
        d_ff=whole(facts, f"{name}.feed_forward_length"),
        norm="rmsnorm",
        norm_eps=real(facts, f"{name}.attention.layer_norm_rms_epsilon", 1e-5),
        ffn="swiglu",
        position="rope",
        rope_theta=real(facts, f"{name}.rope.freq_base", 10_000.0),
        rope_fraction=whole(facts, f"{name}.rope.dimension_count", d_head) / d_head,
        tie_embeddings=bool(facts.get("tied", True)),
    )


def _gguf_llama_pieces(config: ModelConfig) -> Pieces:
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
    if not config.tie_embeddings:
        tables["unembedding"] = piece("output.weight")
    return tables | blocks(config, block)


def _gguf_gpt2_config(facts: Facts) -> ModelConfig:
    name = "gpt2"
    return _checked(
        vocab_size=_gguf_vocabulary(facts, name),
        context=whole(facts, f"{name}.context_length"),
        d_model=whole(facts, f"{name}.embedding_length"),
        n_layers=whole(facts, f"{name}.block_count"),
        n_heads=whole(facts, f"{name}.attention.head_count"),
        d_ff=whole(facts, f"{name}.feed_forward_length"),
        norm_eps=real(facts, f"{name}.attention.layer_norm_epsilon", 1e-5),
        ffn="gelu_tanh",
        position="learned",
        tie_embeddings=bool(facts.get("tied", True)),
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def _gguf_gpt2_pieces(config: ModelConfig) -> Pieces:
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
    if not config.tie_embeddings:
        tables["unembedding"] = piece("output.weight")
    return tables | both("norm_final", "output_norm") | blocks(config, block)


def _gguf_vocabulary(facts: Facts, name: str) -> int:
    return whole(facts, f"{name}.vocab_size", len(facts.get("tokenizer.ggml.tokens", ())) or None)


def _activation(facts: Facts, name: str, otherwise: str) -> Any:
    said = facts.get(name, otherwise)
    if said not in GELUS:
        raise PretrainedError(f"its {name} is {said!r}; known here are {', '.join(GELUS)}")
    return GELUS[said]


def _checked(**values: Any) -> ModelConfig:
    if values["n_layers"] > MAX_LAYERS:
        raise PretrainedError(f"it claims {values['n_layers']:,} layers; {MAX_LAYERS:,} are believed")
    try:
        return ModelConfig(**values).validate()
    except ConfigError as error:
        raise PretrainedError(f"its configuration cannot be built: {error}") from error


HUGGING_FACE: dict[str, Family] = {
    "gpt2": Family(_gpt2_config, _gpt2_pieces, _gpt2_ignored),
    "llama": Family(_llama_config, _llama_pieces, _llama_ignored),
    "mistral": Family(_llama_config, _llama_pieces, _llama_ignored),
    "qwen2": Family(lambda facts: _llama_config(facts, qkv_bias=True), _llama_pieces, _llama_ignored),
    "gpt_neox": Family(_neox_config, _neox_pieces, _neox_ignored),
}
GGUF: dict[str, Family] = {
    "llama": Family(_gguf_llama_config, _gguf_llama_pieces),
    "gpt2": Family(_gguf_gpt2_config, _gguf_gpt2_pieces),
}
