"""On the same weights as transformers' models of other families: GPT-1, MPT, T5's encoder, Mistral's window."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import Transformer, build
from engine.parts.masks import window_mask
from engine.sample.decoder import Decoder
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.engine.test_reference import assert_same, loaded, shaken, transformers


@torch.no_grad()
def test_gpt_1() -> None:
    """Post-norm and causal: a norm after each sum, none at the end; tanh-GELU, learned positions, tied."""
    sizes = {"vocab_size": 37, "n_positions": 16, "n_embd": 24, "n_layer": 3, "n_head": 4}
    theirs = shaken(transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(**sizes)))
    source = theirs.transformer
    biases = {"attention_bias": True, "ffn_bias": True, "norm_bias": True}
    config = ModelConfig(
        37, 16, 24, 3, 4, wiring="post", ffn="gelu_tanh", position="learned", norm_eps=1e-5, **biases
    )
    weights = {"embedding": source.tokens_embed.weight, "positions.weight": source.positions_embed.weight}
    for i, block in enumerate(source.h):
        pairs = {
            "mixer.w_qkv": block.attn.c_attn,
            "mixer.w_o": block.attn.c_proj,
            "ffn.w_in": block.mlp.c_fc,
            "ffn.w_out": block.mlp.c_proj,
        }
        for name, conv in pairs.items():  # kept as (in, out)
            weights |= {f"blocks.{i}.{name}.weight": conv.weight.T, f"blocks.{i}.{name}.bias": conv.bias}
        for name, norm in (("norm1", block.ln_1), ("norm2", block.ln_2)):
            weights |= {f"blocks.{i}.{name}.gain": norm.weight, f"blocks.{i}.{name}.bias": norm.bias}
    tokens = some_tokens(config, batch=3, length=16)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@for_each("n_heads", [4, 6])  # 6: slopes filled up from the next power of two
@torch.no_grad()
def test_mpt(n_heads: int) -> None:
    """ALiBi; LayerNorm with a gain alone, no biases anywhere, exact GELU, tied."""
    width = 8 * n_heads
    sizes = {"vocab_size": 37, "max_seq_len": 32, "d_model": width, "n_layers": 3, "n_heads": n_heads}
    theirs = shaken(transformers.MptForCausalLM(transformers.MptConfig(**sizes)))
    config = ModelConfig(37, 32, width, 3, n_heads, position="alibi", ffn="gelu")
    source = theirs.transformer
    weights = {"embedding": source.wte.weight, "norm_final.gain": source.norm_f.weight}
    for i, block in enumerate(source.blocks):
        weights |= {
            f"blocks.{i}.mixer.w_qkv.weight": block.attn.Wqkv.weight,
            f"blocks.{i}.mixer.w_o.weight": block.attn.out_proj.weight,
            f"blocks.{i}.ffn.w_in.weight": block.ffn.up_proj.weight,
            f"blocks.{i}.ffn.w_out.weight": block.ffn.down_proj.weight,
            f"blocks.{i}.norm1.gain": block.norm_1.weight,
            f"blocks.{i}.norm2.gain": block.norm_2.weight,
        }
    tokens = some_tokens(config, batch=2, length=24)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@torch.no_grad()
def test_t5_s_encoder() -> None:
    """Both ways, with a bias for each bucket of distances, shared by all layers; RMSNorm, ReLU, no biases. T5
    divides no scores, so W_Q takes the root that ours divides by.
    """
    theirs = shaken(
        transformers.T5EncoderModel(
            transformers.T5Config(vocab_size=37, d_model=32, d_kv=8, d_ff=48, num_layers=3, num_heads=4)
        )
    )
    stack = theirs.encoder
    config = ModelConfig(
        37, 200, 32, 3, 4, d_ff=48, norm="rmsnorm", norm_eps=1e-6, ffn="relu", position="t5", causal=False
    )
    first = stack.block[0].layer[0].SelfAttention
    weights = {
        "embedding": stack.embed_tokens.weight,
        "positions.weight": first.relative_attention_bias.weight,
        "norm_final.gain": stack.final_layer_norm.weight,
    }
    for i, block in enumerate(stack.block):
        (attention, norm1), (dense, norm2) = (
            (block.layer[0].SelfAttention, block.layer[0].layer_norm),
            (block.layer[1].DenseReluDense, block.layer[1].layer_norm),
        )
        weights |= {
            f"blocks.{i}.mixer.w_qkv.weight": torch.cat(
                [attention.q.weight * 8**0.5, attention.k.weight, attention.v.weight]
            ),
            f"blocks.{i}.mixer.w_o.weight": attention.o.weight,
            f"blocks.{i}.ffn.w_in.weight": dense.wi.weight,
            f"blocks.{i}.ffn.w_out.weight": dense.wo.weight,
            f"blocks.{i}.norm1.gain": norm1.weight,
            f"blocks.{i}.norm2.gain": norm2.weight,
        }
    tokens = some_tokens(config, batch=2, length=150)  # past the last bucket's beginning
    ours = loaded(config, weights).double()(tokens)  # T5's scores are large: float32 loses digits of them
    assert_same(ours, theirs.double()(tokens).last_hidden_state @ stack.embed_tokens.weight.T)


def mistral(window: int) -> tuple[ModelConfig, Transformer, torch.nn.Module]:
    """Theirs, which attends to a window, and ours with its weights."""
    theirs = shaken(
        transformers.MistralForCausalLM(
            transformers.MistralConfig(
                vocab_size=37,
                hidden_size=32,
                intermediate_size=44,
                num_hidden_layers=3,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=32,
                rms_norm_eps=1e-5,
                sliding_window=window,
                tie_word_embeddings=False,
                attn_implementation="eager",
            )
        )
    )
    kind = {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "tie_embeddings": False}
    config = ModelConfig(37, 32, 32, 3, 4, 2, d_ff=44, window=window, **kind)
    weights = {
        "embedding": theirs.model.embed_tokens.weight,
        "unembedding": theirs.lm_head.weight,
        "norm_final.gain": theirs.model.norm.weight,
    }
    for i, block in enumerate(theirs.model.layers):
        attention, mlp = block.self_attn, block.mlp
        read = (attention.q_proj, attention.k_proj, attention.v_proj)
        weights |= {
            f"blocks.{i}.mixer.w_qkv.weight": torch.cat([linear.weight for linear in read]),
            f"blocks.{i}.mixer.w_o.weight": attention.o_proj.weight,
            f"blocks.{i}.ffn.w_in.weight": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            f"blocks.{i}.ffn.w_out.weight": mlp.down_proj.weight,
            f"blocks.{i}.norm1.gain": block.input_layernorm.weight,
            f"blocks.{i}.norm2.gain": block.post_attention_layernorm.weight,
        }
    return config, loaded(config, weights), theirs


@for_each("window", [1, 5, 31])
@torch.no_grad()
def test_mistral_s_window_is_shorter_than_the_text(window: int) -> None:
    config, ours, theirs = mistral(window)
    tokens = some_tokens(config, batch=2, length=32)
    assert_same(ours(tokens), theirs(tokens).logits)
    whole = build(replace(config, window=0))
    whole.load_state_dict(ours.state_dict())
    assert (whole.eval()(tokens) - ours(tokens))[:, window:].abs().max() > 0.01
    assert torch.allclose(whole(tokens)[:, :window], ours(tokens)[:, :window], atol=1e-5)


@for_each("position", ["rope", "alibi", "learned"])
@torch.inference_mode()
def test_token_by_token_a_window_is_what_it_is_at_once(position: str) -> None:
    model = loud(tiny(position=position, window=3))
    ids = some_tokens(model.config, batch=1, length=8)
    at_once, decoder = model(ids)[0], Decoder(model)
    decoder.read(ids[0, :2].tolist())
    for i in range(2, 8):
        torch.testing.assert_close(decoder.read([int(ids[0, i])]), at_once[i], atol=1e-4, rtol=1e-4)


def test_a_window_by_hand() -> None:
    seen = window_mask(4, torch.zeros(1), 2) == 0
    assert seen.tolist() == [
        [True, True, True, True],
        [True, True, True, True],
        [False, True, True, True],
        [False, False, True, True],
    ]
    assert (window_mask(1, torch.zeros(1), 2, start=4) == 0).tolist() == [[False, False, False, True, True]]
    for fields in ({"window": -1}, {"window": 4, "causal": False}):
        with pytest.raises(ConfigError, match="window"):
            tiny(**fields).validate()
