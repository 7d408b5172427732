"""T5 in Hugging Face's layout (Raffel et al. 2020), version 1.0 and 1.1: whole, or its encoder alone."""

from __future__ import annotations

from typing import Any

from engine.config import ModelConfig
from engine.errors import ConfigError, PretrainedError
from studies.pairs.config import Seq2SeqConfig
from studies.weights.pretrained.family import (
    TENSORS,
    Facts,
    Pieces,
    activation,
    blocks,
    checked,
    flag,
    optional,
    real,
    refuse,
    token,
    whole,
)
from studies.weights.pretrained.weights import piece

FEED_FORWARD = {"relu": "relu", "gated-gelu": "geglu_tanh"}  # of 1.0 and of 1.1
HEAD = "lm_head.weight"
UNREAD = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"  # the first files have it


def encoder_config(facts: Facts) -> ModelConfig:
    refuse(facts, is_decoder=False)
    return _tower(facts, whole(facts, "num_layers", 6), causal=False, output_head="none")


def pair_config(facts: Facts) -> Seq2SeqConfig:
    """Returns both halves. In 1.0 the embedding is the output's matrix too, and the last vectors are made
    smaller for it. 1.1 has a matrix of its own, in the file, and makes nothing smaller.
    """
    scaled = flag(facts, "scale_decoder_outputs", flag(facts, "tie_word_embeddings", True))
    tied = scaled or HEAD not in facts.get(TENSORS, ())
    head = "scaled" if scaled else "linear"
    layers = optional(facts, "num_decoder_layers") or whole(facts, "num_layers", 6)
    decoder = _tower(facts, layers, causal=True, output_head=head, tie_embeddings=tied)
    pad = token(facts, "pad_token_id", 0)
    begin, end = token(facts, "decoder_start_token_id", pad), token(facts, "eos_token_id", 1)
    try:
        return Seq2SeqConfig(encoder_config(facts), decoder, pad, begin, end).validate()
    except ConfigError as error:
        raise PretrainedError(f"its configuration cannot be built: {error}") from error


def _tower(facts: Facts, layers: int, **rest: Any) -> ModelConfig:
    refuse(facts, relative_attention_num_buckets=32, relative_attention_max_distance=128)
    return checked(
        vocab_size=whole(facts, "vocab_size", 32_128),
        context=optional(facts, "n_positions") or 512,
        d_model=whole(facts, "d_model", 512),
        n_layers=layers,
        n_heads=whole(facts, "num_heads", 8),
        d_head=whole(facts, "d_kv", 64),
        d_ff=whole(facts, "d_ff", 2048),
        norm="rmsnorm",
        norm_eps=real(facts, "layer_norm_epsilon", 1e-6),
        ffn=activation(facts, "feed_forward_proj", "relu", FEED_FORWARD),
        position="t5",
        score_scale=False,
        **rest,
    )


def encoder_pieces(config: ModelConfig) -> Pieces:
    return {"embedding": piece("shared.weight")} | _tower_pieces(config, "encoder")


def encoder_ignored(config: ModelConfig) -> set[str]:
    """Returns the decoder."""
    return {"decoder.", HEAD}


def encoder_copies(config: ModelConfig) -> dict[str, str]:
    return {"encoder.embed_tokens.weight": "embedding"}


def pair_pieces(config: Seq2SeqConfig) -> Pieces:
    result = {"embedding": piece("shared.weight")}
    if not config.decoder.tie_embeddings:
        result["unembedding"] = piece(HEAD)
    for tower, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
        result |= {f"{tower}.{name}": each for name, each in _tower_pieces(stack, tower).items()}
    return result


def pair_ignored(config: Seq2SeqConfig) -> set[str]:
    return {UNREAD}


def pair_copies(config: Seq2SeqConfig) -> dict[str, str]:
    """Returns the names under which the shared embedding appears again."""
    own = set() if config.decoder.tie_embeddings else {HEAD}
    names = {HEAD, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"} - own
    return dict.fromkeys(names, "embedding")


def _tower_pieces(config: ModelConfig, tower: str) -> Pieces:
    gated = config.ffn == FEED_FORWARD["gated-gelu"]

    def attention(name: str, norm: str, at: str, called: str) -> Pieces:
        return {
            f"{name}.w_qkv.weight": piece(*(f"{at}.{called}.{n}.weight" for n in "qkv")),
            f"{name}.w_o.weight": piece(f"{at}.{called}.o.weight"),
            f"{norm}.gain": piece(f"{at}.layer_norm.weight"),
        }

    def block(i: int) -> Pieces:
        at = f"{tower}.block.{i}.layer"
        result = attention("mixer", "norm1", f"{at}.0", "SelfAttention")
        if config.causal:  # the half that writes
            result |= attention("cross", "norm_cross", f"{at}.1", "EncDecAttention")
        last = f"{at}.{2 if config.causal else 1}"
        dense, names = f"{last}.DenseReluDense", ("wi_0", "wi_1") if gated else ("wi",)
        return result | {
            "ffn.w_in.weight": piece(*(f"{dense}.{name}.weight" for name in names)),
            "ffn.w_out.weight": piece(f"{dense}.wo.weight"),
            "norm2.gain": piece(f"{last}.layer_norm.weight"),
        }

    # The first layer's buckets serve all of them, of the text's own attention only.
    first = f"{tower}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    tables = {"positions.weight": piece(first), "norm_final.gain": piece(f"{tower}.final_layer_norm.weight")}
    return tables | blocks(config, block)
