"""Families of encoders in Hugging Face's layout: BERT, with the head that guesses hidden tokens where a file
has it, and the encoder of a T5.
"""

from __future__ import annotations

from engine.config import ModelConfig
from engine.errors import PretrainedError
from engine.pretrained.family import (
    TENSORS,
    Facts,
    Family,
    Pieces,
    activation,
    blocks,
    both,
    checked,
    flag,
    optional,
    real,
    refuse,
    whole,
)
from engine.pretrained.weights import piece

# BERT -------------------------------------------------------------------------------------------

HEAD = "cls.predictions"


def _bert_config(facts: Facts) -> ModelConfig:
    refuse(facts, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    guesses = f"{HEAD}.transform.dense.weight" in facts.get(TENSORS, ())
    ffn = activation(facts, "hidden_act", "gelu")
    if guesses and ffn != "gelu":
        raise PretrainedError(f"its head for hidden tokens bends by {ffn}; only 'gelu' is built here")
    return checked(
        vocab_size=whole(facts, "vocab_size", 30_522),
        context=whole(facts, "max_position_embeddings", 512),
        d_model=whole(facts, "hidden_size", 768),
        n_layers=whole(facts, "num_hidden_layers", 12),
        n_heads=whole(facts, "num_attention_heads", 12),
        d_ff=whole(facts, "intermediate_size", 3072),
        norm_eps=real(facts, "layer_norm_eps", 1e-12),
        wiring="post",
        ffn=ffn,
        position="learned",
        causal=False,
        embedding_norm=True,
        token_types=whole(facts, "type_vocab_size", 2),
        output_head="masked" if guesses else "none",
        tie_embeddings=flag(facts, "tie_word_embeddings", True),
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def _bert_pieces(config: ModelConfig) -> Pieces:
    def block(i: int) -> Pieces:
        at = f"encoder.layer.{i}"
        read = [f"{at}.attention.self.{name}" for name in ("query", "key", "value")]
        return {
            "mixer.w_qkv.weight": piece(*(f"{name}.weight" for name in read)),
            "mixer.w_qkv.bias": piece(*(f"{name}.bias" for name in read)),
            **both("mixer.w_o", f"{at}.attention.output.dense"),
            **both("norm1", f"{at}.attention.output.LayerNorm"),
            **both("ffn.w_in", f"{at}.intermediate.dense"),
            **both("ffn.w_out", f"{at}.output.dense"),
            **both("norm2", f"{at}.output.LayerNorm"),
        }

    tables = {
        "embedding": piece("embeddings.word_embeddings.weight"),
        "positions.weight": piece("embeddings.position_embeddings.weight"),
        "token_types": piece("embeddings.token_type_embeddings.weight"),
        **both("norm_embed", "embeddings.LayerNorm"),
    }
    return tables | _bert_head(config) | blocks(config, block)


def _bert_head(config: ModelConfig) -> Pieces:
    if config.output_head == "none":
        return {}
    found = {"output.bias": piece(f"{HEAD}.bias")}
    if not config.tie_embeddings:
        found["unembedding"] = piece(f"{HEAD}.decoder.weight")
    transform = f"{HEAD}.transform"
    return found | both("output.w_in", f"{transform}.dense") | both("output.norm", f"{transform}.LayerNorm")


def _bert_ignored(config: ModelConfig) -> set[str]:
    """The head that says whether two texts follow each other, with its pooler; and what is stored twice."""
    tied = {f"{HEAD}.decoder.weight"} if config.tie_embeddings else set()
    return {"pooler.", "cls.seq_relationship.", "embeddings.position_ids", f"{HEAD}.decoder.bias"} | tied


# T5 ---------------------------------------------------------------------------------------------

FEED_FORWARD = {"relu": "relu", "gated-gelu": "geglu_tanh"}


def _t5_config(facts: Facts) -> ModelConfig:
    refuse(facts, relative_attention_num_buckets=32, relative_attention_max_distance=128, is_decoder=False)
    said = facts.get("feed_forward_proj", "relu")
    if not isinstance(said, str) or said not in FEED_FORWARD:
        raise PretrainedError(f"its feed_forward_proj is {said!r}; known here are {', '.join(FEED_FORWARD)}")
    return checked(
        vocab_size=whole(facts, "vocab_size", 32_128),
        context=optional(facts, "n_positions") or 512,
        d_model=whole(facts, "d_model", 512),
        n_layers=whole(facts, "num_layers", 6),
        n_heads=whole(facts, "num_heads", 8),
        d_head=whole(facts, "d_kv", 64),
        d_ff=whole(facts, "d_ff", 2048),
        norm="rmsnorm",
        norm_eps=real(facts, "layer_norm_epsilon", 1e-6),
        ffn=FEED_FORWARD[said],
        position="t5",
        score_scale=False,
        causal=False,
        output_head="none",
    )


def _t5_pieces(config: ModelConfig) -> Pieces:
    gated = config.ffn == FEED_FORWARD["gated-gelu"]

    def block(i: int) -> Pieces:
        at = f"encoder.block.{i}.layer"
        dense = f"{at}.1.DenseReluDense"
        names = ("wi_0", "wi_1") if gated else ("wi",)
        return {
            "mixer.w_qkv.weight": piece(*(f"{at}.0.SelfAttention.{n}.weight" for n in "qkv")),
            "mixer.w_o.weight": piece(f"{at}.0.SelfAttention.o.weight"),
            "ffn.w_in.weight": piece(*(f"{dense}.{name}.weight" for name in names)),
            "ffn.w_out.weight": piece(f"{dense}.wo.weight"),
            "norm1.gain": piece(f"{at}.0.layer_norm.weight"),
            "norm2.gain": piece(f"{at}.1.layer_norm.weight"),
        }

    first = "encoder.block.0.layer.0.SelfAttention"  # the first layer's buckets serve all of them
    tables = {
        "embedding": piece("shared.weight"),
        "positions.weight": piece(f"{first}.relative_attention_bias.weight"),
        "norm_final.gain": piece("encoder.final_layer_norm.weight"),
    }
    return tables | blocks(config, block)


def _t5_ignored(config: ModelConfig) -> set[str]:
    """The decoder, and copies of the one embedding."""
    return {"decoder.", "lm_head.weight", "encoder.embed_tokens.weight"}


ENCODERS: dict[str, Family] = {
    "bert": Family(_bert_config, _bert_pieces, _bert_ignored),
    "t5": Family(_t5_config, _t5_pieces, _t5_ignored),
}
