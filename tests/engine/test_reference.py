"""On the same weights, PyTorch's encoder gives the same logits (other families: pretrained/); windows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.parts.masks import window_mask
from engine.probe import identity
from tests.engine.helpers import loud, tiny

CLOSE = {"atol": 2e-5, "rtol": 1e-4}


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
