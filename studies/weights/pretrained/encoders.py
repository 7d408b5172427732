"""Encoders in Hugging Face's layout: BERT, with the head for hidden tokens if there, and T5's encoder."""

from __future__ import annotations

from engine.config import ModelConfig
from engine.errors import PretrainedError
from studies.weights.pretrained import t5
from studies.weights.pretrained.family import (
    BIASED,
    TENSORS,
    Facts,
    Family,
    Pieces,
    activation,
    blocks,
    both,
    checked,
    flag,
    real,
    refuse,
    whole,
)
from studies.weights.pretrained.weights import piece

# BERT -------------------------------------------------------------------------------------------

HEAD, POOLER = "cls.predictions", "pooler.dense"  # a file may have both, one, or neither


def _bert_config(facts: Facts) -> ModelConfig:
    refuse(facts, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    guesses = f"{HEAD}.transform.dense.weight" in facts.get(TENSORS, ())
    ffn = activation(facts, "hidden_act", "gelu")
    if guesses and ffn != "gelu":
        raise PretrainedError(f"its masked-token head uses {ffn}; only 'gelu' is supported")
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
        pooler=any(name.startswith(POOLER) for name in facts.get(TENSORS, ())),
        tie_embeddings=flag(facts, "tie_word_embeddings", True),
        **BIASED,
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
    pooler = both("pooler.w_pool", POOLER) if config.pooler else {}
    return tables | pooler | _bert_head(config) | blocks(config, block)


def _bert_head(config: ModelConfig) -> Pieces:
    if config.output_head == "none":
        return {}
    # An untied head adds a bias of its own; tied, both names are one tensor.
    result = {"output.bias": piece(f"{HEAD}.bias" if config.tie_embeddings else f"{HEAD}.decoder.bias")}
    if not config.tie_embeddings:
        result["unembedding"] = piece(f"{HEAD}.decoder.weight")
    transform = f"{HEAD}.transform"
    return result | both("output.w_in", f"{transform}.dense") | both("output.norm", f"{transform}.LayerNorm")


def _bert_ignored(config: ModelConfig) -> set[str]:
    """The head that says whether two texts follow each other, and what is stored twice."""
    twice = f"{HEAD}.decoder.weight" if config.tie_embeddings else f"{HEAD}.bias"
    return {"cls.seq_relationship.", "embeddings.position_ids", twice}


def _bert_copies(config: ModelConfig) -> dict[str, str]:
    tied = config.tie_embeddings and config.output_head == "masked"
    return {f"{HEAD}.decoder.bias": "output.bias"} if tied else {}


ENCODERS: dict[str, Family[ModelConfig]] = {
    "bert": Family(
        _bert_config,
        _bert_pieces,
        _bert_ignored,
        _bert_copies,
        head=(f"{HEAD}.decoder.weight", "embeddings.word_embeddings.weight"),
    ),
    "t5": Family(t5.encoder_config, t5.encoder_pieces, t5.encoder_ignored, t5.encoder_copies),
}
