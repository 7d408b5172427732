"""On the same weights, PyTorch's encoder and transformers' GPT-1 give the same logits (other families: pretrained/); windows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import Transformer, build
from engine.parts.masks import window_mask
from engine.probe import identity
from engine.sample.decoder import Decoder
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny

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
