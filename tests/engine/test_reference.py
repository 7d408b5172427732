"""The strongest check there is: on the same weights, trusted implementations give the same logits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.model import Transformer, build
from engine.probe import identity
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)

CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def shaken(model: nn.Module) -> nn.Module:
    """Random values in every parameter, gains and biases too, in eval mode."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.eval()


def loaded(config: ModelConfig, weights: dict[str, Tensor]) -> Transformer:
    model = build(config).eval()
    model.load_state_dict(weights, strict=True)
    return model


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    assert theirs.std() > 0.1, "a comparison of nearly constant logits would prove nothing"
    assert torch.allclose(ours, theirs, **CLOSE), (ours - theirs).abs().max()


@torch.no_grad()
def test_gpt2() -> None:
    """Learned positions, LayerNorm with bias, tanh-GELU, biases everywhere, tied."""
    theirs = shaken(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=37, n_positions=16, n_embd=24, n_layer=3, n_head=4)
        )
    )
    source = theirs.transformer
    config = ModelConfig(
        vocab_size=37,
        context=16,
        d_model=24,
        n_layers=3,
        n_heads=4,
        ffn="gelu_tanh",
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )
    weights = {"embedding": source.wte.weight, "positions.weight": source.wpe.weight}
    weights |= {"norm_final.gain": source.ln_f.weight, "norm_final.bias": source.ln_f.bias}
    for i, block in enumerate(source.h):
        pairs = {
            "mixer.w_qkv": block.attn.c_attn,
            "mixer.w_o": block.attn.c_proj,
            "ffn.w_in": block.mlp.c_fc,
            "ffn.w_out": block.mlp.c_proj,
        }
        for name, conv in pairs.items():  # GPT-2 keeps its matrices as (in, out)
            weights |= {f"blocks.{i}.{name}.weight": conv.weight.T, f"blocks.{i}.{name}.bias": conv.bias}
        for name, norm in (("norm1", block.ln_1), ("norm2", block.ln_2)):
            weights |= {f"blocks.{i}.{name}.gain": norm.weight, f"blocks.{i}.{name}.bias": norm.bias}
    tokens = some_tokens(config, batch=3, length=16)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@for_each("n_kv_heads", [1, 2, 4])
@torch.no_grad()
def test_llama(n_kv_heads: int) -> None:
    """RoPE, RMSNorm, SwiGLU, no biases, untied; MQA, GQA and MHA."""
    theirs = shaken(
        transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=37,
                hidden_size=32,
                intermediate_size=44,
                num_hidden_layers=3,
                num_attention_heads=4,
                num_key_value_heads=n_kv_heads,
                max_position_embeddings=32,
                rms_norm_eps=1e-5,
                tie_word_embeddings=False,
                attention_bias=False,
            )
        )
    )
    config = ModelConfig(
        vocab_size=37,
        context=32,
        d_model=32,
        n_layers=3,
        n_heads=4,
        n_kv_heads=n_kv_heads,
        d_ff=44,
        norm="rmsnorm",
        ffn="swiglu",
        position="rope",
        tie_embeddings=False,
    )
    weights = {
        "embedding": theirs.model.embed_tokens.weight,
        "unembedding": theirs.lm_head.weight,
        "norm_final.gain": theirs.model.norm.weight,
    }
    for i, block in enumerate(theirs.model.layers):
        attention, mlp = block.self_attn, block.mlp
        weights |= {
            f"blocks.{i}.mixer.w_qkv.weight": torch.cat(
                [attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]
            ),
            f"blocks.{i}.mixer.w_o.weight": attention.o_proj.weight,
            f"blocks.{i}.ffn.w_in.weight": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            f"blocks.{i}.ffn.w_out.weight": mlp.down_proj.weight,
            f"blocks.{i}.norm1.gain": block.input_layernorm.weight,
            f"blocks.{i}.norm2.gain": block.post_attention_layernorm.weight,
        }
    tokens = some_tokens(config, batch=3, length=32)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@torch.no_grad()
def test_bert_s_encoder() -> None:
    """Post-norm and no mask. Compared from the stack's input on: BERT's embedding has a norm and a table that
    ours lacks.
    """
    theirs = shaken(
        transformers.BertModel(
            transformers.BertConfig(
                vocab_size=37,
                hidden_size=24,
                num_hidden_layers=3,
                num_attention_heads=4,
                intermediate_size=60,
                layer_norm_eps=1e-5,
            )
        )
    )
    config = ModelConfig(
        vocab_size=37,
        context=16,
        d_model=24,
        n_layers=3,
        n_heads=4,
        d_ff=60,
        wiring="post",
        position="none",
        causal=False,
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )
    model = build(config).eval()
    for ours, block in zip(model.blocks, theirs.encoder.layer, strict=True):
        attention = block.attention.self
        copies = {
            ours.mixer.w_o: block.attention.output.dense,
            ours.ffn.w_in: block.intermediate.dense,
            ours.ffn.w_out: block.output.dense,
        }
        ours.mixer.w_qkv.weight.copy_(
            torch.cat([attention.query.weight, attention.key.weight, attention.value.weight])
        )
        ours.mixer.w_qkv.bias.copy_(
            torch.cat([attention.query.bias, attention.key.bias, attention.value.bias])
        )
        for mine, other in copies.items():
            mine.weight.copy_(other.weight)
            mine.bias.copy_(other.bias)
        for mine, other in (
            (ours.norm1, block.attention.output.LayerNorm),
            (ours.norm2, block.output.LayerNorm),
        ):
            mine.gain.copy_(other.weight)
            mine.bias.copy_(other.bias)
    x = theirs.embeddings(some_tokens(config, batch=2, length=9))
    y = x
    for block in model.blocks:
        y = block(y, model.positions.prepare(9, y), None, identity)
    assert_same(y, theirs.encoder(x).last_hidden_state)


@torch.no_grad()
def test_gpt_neox() -> None:
    """Both sublayers in parallel, with RoPE over the whole head."""
    theirs = shaken(
        transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(
                vocab_size=37,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=48,
                hidden_act="gelu",
                rope_parameters={
                    "rope_type": "default",
                    "rope_theta": 10_000.0,
                    "partial_rotary_factor": 1.0,
                },
                use_parallel_residual=True,
                max_position_embeddings=32,
                tie_word_embeddings=False,
            )
        )
    )
    config = ModelConfig(
        vocab_size=37,
        context=32,
        d_model=32,
        n_layers=2,
        n_heads=4,
        d_ff=48,
        wiring="parallel",
        ffn="gelu",
        position="rope",
        tie_embeddings=False,
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )

    def ungrouped(stacked: Tensor) -> Tensor:
        """NeoX stacks q, k, v head by head: (head, 3, d_head, ...) -> (3, head, d_head, ...)."""
        return stacked.view(4, 3, 8, *stacked.shape[1:]).transpose(0, 1).reshape(stacked.shape)

    body = theirs.gpt_neox
    weights = {"embedding": body.embed_in.weight, "unembedding": theirs.get_output_embeddings().weight}
    weights |= {
        "norm_final.gain": body.final_layer_norm.weight,
        "norm_final.bias": body.final_layer_norm.bias,
    }
    for i, block in enumerate(body.layers):
        attention = block.attention
        weights |= {
            f"blocks.{i}.mixer.w_qkv.{kind}": ungrouped(getattr(attention.query_key_value, kind))
            for kind in ("weight", "bias")
        }
        pairs = {
            "mixer.w_o": attention.dense,
            "ffn.w_in": block.mlp.dense_h_to_4h,
            "ffn.w_out": block.mlp.dense_4h_to_h,
        }
        for name, linear in pairs.items():
            weights |= {f"blocks.{i}.{name}.weight": linear.weight, f"blocks.{i}.{name}.bias": linear.bias}
        for name, norm in (("norm1", block.input_layernorm), ("norm2", block.post_attention_layernorm)):
            weights |= {f"blocks.{i}.{name}.gain": norm.weight, f"blocks.{i}.{name}.bias": norm.bias}
    tokens = some_tokens(config, batch=2, length=20)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@torch.no_grad()
def test_torch_s_own_encoder() -> None:
    """nn.TransformerEncoder, pre-norm and post-norm, with torch's causal mask."""
    for wiring in ("pre", "post"):
        config = ModelConfig(
            vocab_size=11,
            context=8,
            d_model=16,
            n_layers=1,
            n_heads=4,
            d_ff=24,
            wiring=wiring,
            ffn="relu",
            position="none",
            attention_bias=True,
            ffn_bias=True,
            norm_bias=True,
        )
        model = loud(config)
        block = model.blocks[0]
        layer = nn.TransformerEncoderLayer(
            16, 4, 24, dropout=0.0, activation="relu", batch_first=True, norm_first=wiring == "pre"
        ).eval()
        layer.self_attn.in_proj_weight.copy_(block.mixer.w_qkv.weight)
        layer.self_attn.in_proj_bias.copy_(block.mixer.w_qkv.bias)
        for mine, other in (
            (block.mixer.w_o, layer.self_attn.out_proj),
            (block.ffn.w_in, layer.linear1),
            (block.ffn.w_out, layer.linear2),
        ):
            other.weight.copy_(mine.weight)
            other.bias.copy_(mine.bias)
        for mine, other in ((block.norm1, layer.norm1), (block.norm2, layer.norm2)):
            other.weight.copy_(mine.gain)
            other.bias.copy_(mine.bias)
        x = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
        mask = nn.Transformer.generate_square_subsequent_mask(8)
        assert_same(
            block(x, model.positions.prepare(8, x), mask, identity), layer(x, src_mask=mask, is_causal=True)
        )


@torch.no_grad()
def test_pythia() -> None:
    """The parallel wiring with two norms, RoPE on the first quarter of each head, biases everywhere,
    untied.
    """
    theirs = shaken(
        transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(
                vocab_size=37,
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=3,
                num_attention_heads=4,
                max_position_embeddings=32,
                rotary_pct=0.5,
                use_parallel_residual=True,
                tie_word_embeddings=False,
                hidden_act="gelu",
            )
        )
    )
    config = ModelConfig(
        vocab_size=37,
        context=32,
        d_model=32,
        n_layers=3,
        n_heads=4,
        d_ff=48,
        ffn="gelu",
        wiring="parallel",
        position="rope",
        rope_fraction=0.5,
        tie_embeddings=False,
        attention_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )
    source = theirs.gpt_neox
    weights = {"embedding": source.embed_in.weight, "unembedding": theirs.get_output_embeddings().weight}
    weights |= {
        "norm_final.gain": source.final_layer_norm.weight,
        "norm_final.bias": source.final_layer_norm.bias,
    }
    for i, block in enumerate(source.layers):
        joint = block.attention.query_key_value  # q, k and v of a head lie together
        pairs = {
            "mixer.w_o": block.attention.dense,
            "ffn.w_in": block.mlp.dense_h_to_4h,
            "ffn.w_out": block.mlp.dense_4h_to_h,
        }
        weights[f"blocks.{i}.mixer.w_qkv.weight"] = (
            joint.weight.view(4, 3, 8, 32).transpose(0, 1).reshape(96, 32)
        )
        weights[f"blocks.{i}.mixer.w_qkv.bias"] = joint.bias.view(4, 3, 8).transpose(0, 1).reshape(96)
        for name, linear in pairs.items():
            weights |= {f"blocks.{i}.{name}.weight": linear.weight, f"blocks.{i}.{name}.bias": linear.bias}
        for name, norm in (("norm1", block.input_layernorm), ("norm2", block.post_attention_layernorm)):
            weights |= {f"blocks.{i}.{name}.gain": norm.weight, f"blocks.{i}.{name}.bias": norm.bias}
    tokens = some_tokens(config, batch=3, length=32)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)


@torch.no_grad()
def test_qwen2() -> None:
    """Biases on queries, keys and values only; grouped heads; tied."""
    theirs = shaken(
        transformers.Qwen2ForCausalLM(
            transformers.Qwen2Config(
                vocab_size=37,
                hidden_size=32,
                intermediate_size=44,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=32,
                rms_norm_eps=1e-5,
                tie_word_embeddings=True,
                rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
            )
        )
    )
    config = ModelConfig(
        vocab_size=37,
        context=32,
        d_model=32,
        n_layers=2,
        n_heads=4,
        n_kv_heads=2,
        d_ff=44,
        norm="rmsnorm",
        ffn="swiglu",
        position="rope",
        attention_bias=True,
        output_bias=False,
    )
    weights = {"embedding": theirs.model.embed_tokens.weight, "norm_final.gain": theirs.model.norm.weight}
    for i, block in enumerate(theirs.model.layers):
        attention, mlp = block.self_attn, block.mlp
        read = (attention.q_proj, attention.k_proj, attention.v_proj)
        weights |= {
            f"blocks.{i}.mixer.w_qkv.weight": torch.cat([linear.weight for linear in read]),
            f"blocks.{i}.mixer.w_qkv.bias": torch.cat([linear.bias for linear in read]),
            f"blocks.{i}.mixer.w_o.weight": attention.o_proj.weight,
            f"blocks.{i}.ffn.w_in.weight": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            f"blocks.{i}.ffn.w_out.weight": mlp.down_proj.weight,
            f"blocks.{i}.norm1.gain": block.input_layernorm.weight,
            f"blocks.{i}.norm2.gain": block.post_attention_layernorm.weight,
        }
    tokens = some_tokens(config, batch=3, length=32)
    assert_same(loaded(config, weights)(tokens), theirs(tokens).logits)
