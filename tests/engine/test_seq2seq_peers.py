"""The encoder-decoder and the pooled encoder beside other people's code on the same weights, at odd sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from engine.presets import ENCODER_DECODERS
from engine.seq2seq import build_pair
from engine.seq2seq_config import Seq2SeqConfig
from tests.engine.cases import for_each


def torch_weights(theirs: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Of torch.nn.Transformer, whose attentions have biases, by our names."""
    found: dict[str, Tensor] = {}
    for tower in ("encoder", "decoder"):
        for i in range(layers):
            at, own = f"{tower}.layers.{i}", f"{tower}.blocks.{i}"
            attentions = {"mixer": "self_attn"} | ({"cross": "multihead_attn"} if tower == "decoder" else {})
            for name, said in attentions.items():
                found[f"{own}.{name}.w_qkv.weight"] = theirs[f"{at}.{said}.in_proj_weight"]
                found[f"{own}.{name}.w_qkv.bias"] = theirs[f"{at}.{said}.in_proj_bias"]
                for kind in ("weight", "bias"):
                    found[f"{own}.{name}.w_o.{kind}"] = theirs[f"{at}.{said}.out_proj.{kind}"]
            for kind in ("weight", "bias"):
                found[f"{own}.ffn.w_in.{kind}"] = theirs[f"{at}.linear1.{kind}"]
                found[f"{own}.ffn.w_out.{kind}"] = theirs[f"{at}.linear2.{kind}"]
            norms = ("norm1", "norm_cross", "norm2") if tower == "decoder" else ("norm1", "norm2")
            for place, norm in enumerate(norms, 1):
                found[f"{own}.{norm}.gain"] = theirs[f"{at}.norm{place}.weight"]
                found[f"{own}.{norm}.bias"] = theirs[f"{at}.norm{place}.bias"]
    return found


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@for_each("wiring", ["post", "pre"])
def test_blocks_compute_what_torch_nn_transformer_does(wiring: str) -> None:
    d, heads, layers, ff = 18, 3, 2, 29
    theirs = nn.Transformer(
        d, heads, layers, layers, ff, dropout=0.0, batch_first=True, norm_first=wiring == "pre"
    ).eval()
    theirs.encoder.norm = theirs.decoder.norm = None  # of 2017 there was none after the last block
    noisy_norms(theirs)
    base = replace(
        ENCODER_DECODERS["transformer-base"].model,
        vocab_size=17,
        d_model=d,
        n_heads=heads,
        n_layers=layers,
        d_ff=ff,
        wiring=wiring,  # type: ignore[arg-type]
        attention_bias=True,
        position="none",
        dropout=0.0,
    )
    ours = build_pair(Seq2SeqConfig.of(base)).eval().requires_grad_(False)
    ours.load_state_dict(torch_weights(theirs.state_dict(), layers), strict=False)
    if wiring == "pre":  # ours ends with a norm there, which is given to theirs
        for name in ("encoder", "decoder"):
            norm = nn.LayerNorm(d)
            getattr(theirs, name).norm = norm.requires_grad_(False)
    source, target = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]]), torch.tensor([[1, 9, 4], [1, 5, 6]])
    empty = source == 0
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    with torch.no_grad():
        x, y = (ours.embedding[ids] * d**0.5 for ids in (source, target))
        out = theirs(x, y, tgt_mask=causal, src_key_padding_mask=empty, memory_key_padding_mask=empty)
        wanted = out @ ours.embedding.T
    torch.testing.assert_close(ours(source, target), wanted, rtol=1e-4, atol=1e-5)


def noisy_norms(model: nn.Module) -> None:
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_the_count_of_2017_beside_pytorch_s() -> None:
    """Theirs has biases in every attention and a norm after each tower, which the paper's has not, and no
    embedding.
    """
    d = 512
    with torch.device("meta"):
        theirs = sum(p.numel() for p in nn.Transformer(d, 8, 6, 6, 2048).parameters())
    attentions = 6 + 2 * 6
    wanted = theirs - attentions * 4 * d - 2 * 2 * d + 37_000 * d
    pair = ENCODER_DECODERS["transformer-base"].pair
    assert pair is not None
    assert sum(p.numel() for p in build_pair(pair, device="meta").parameters()) == wanted == 63_045_632
