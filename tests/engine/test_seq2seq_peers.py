"""The encoder-decoder and the pooled encoder beside other people's code on the same weights, at odd sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.model import build
from engine.parts.masks import padding_mask
from engine.presets import ENCODER_DECODERS, PRESETS
from engine.sample.pairs import pair_steps
from engine.seq2seq import Seq2Seq, build_pair
from engine.seq2seq_config import Seq2SeqConfig
from tests.engine.cases import for_each

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
# Odd on purpose: heads that do not fill the stream, other depths, a head width of its own, lengths past a bucket.
T5_SIZES = [
    dict(d_model=22, n_layers=2, n_heads=3, d_head=6, d_ff=35, vocab=29, decoder_layers=3, lengths=(7, 5)),
    dict(d_model=16, n_layers=1, n_heads=1, d_head=5, d_ff=9, vocab=13, decoder_layers=1, lengths=(41, 37)),
    dict(d_model=20, n_layers=3, n_heads=5, d_head=4, d_ff=50, vocab=31, decoder_layers=2, lengths=(1, 150)),
]


def noisy(model: nn.Module, seed: int) -> None:
    """Every parameter at random, gains too, so that each counts."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            gain = "layer_norm" in name or "LayerNorm.weight" in name
            parameter.copy_(1 + 0.3 * noise if gain else 0.3 * noise)


def t5_of(sizes: dict[str, Any], ffn: str = "relu", tied: bool = True) -> Seq2SeqConfig:
    base = ModelConfig(
        vocab_size=sizes["vocab"],
        context=200,
        **{name: sizes[name] for name in ("d_model", "n_layers", "n_heads", "d_head", "d_ff")},
        norm="rmsnorm",
        norm_eps=1e-6,
        ffn=ffn,  # type: ignore[arg-type]
        position="t5",
        score_scale=False,
        tie_embeddings=tied,
        output_head="scaled" if tied else "linear",
    )
    pair = Seq2SeqConfig.of(base, pad=0, begin=0, end=1)
    return replace(pair, decoder=replace(pair.decoder, n_layers=sizes["decoder_layers"]))


def their_t5(sizes: dict[str, Any], ffn: str, tied: bool) -> Any:
    config = transformers.T5Config(
        vocab_size=sizes["vocab"],
        d_model=sizes["d_model"],
        d_kv=sizes["d_head"],
        d_ff=sizes["d_ff"],
        num_layers=sizes["n_layers"],
        num_decoder_layers=sizes["decoder_layers"],
        num_heads=sizes["n_heads"],
        feed_forward_proj={"relu": "relu", "geglu_tanh": "gated-gelu"}[ffn],
        tie_word_embeddings=tied,
        dropout_rate=0.0,
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    noisy(model, 5)
    return model


def t5_weights(theirs: dict[str, Tensor], config: Seq2SeqConfig) -> dict[str, Tensor]:
    """Their tensors by our names."""
    gated = config.decoder.ffn != "relu"
    found = {"embedding": theirs["shared.weight"]}
    if not config.decoder.tie_embeddings:
        found["unembedding"] = theirs["lm_head.weight"]
    for tower, layers in (("encoder", config.encoder.n_layers), ("decoder", config.decoder.n_layers)):
        first = f"{tower}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        found[f"{tower}.positions.weight"] = theirs[first]
        found[f"{tower}.norm_final.gain"] = theirs[f"{tower}.final_layer_norm.weight"]
        for i in range(layers):
            at, own = f"{tower}.block.{i}.layer", f"{tower}.blocks.{i}"
            attentions = [(f"{at}.0.SelfAttention", "mixer", "norm1", 0)]
            if tower == "decoder":
                attentions.append((f"{at}.1.EncDecAttention", "cross", "norm_cross", 1))
            for where, name, norm, place in attentions:
                found[f"{own}.{name}.w_qkv.weight"] = torch.cat(
                    [theirs[f"{where}.{x}.weight"] for x in "qkv"]
                )
                found[f"{own}.{name}.w_o.weight"] = theirs[f"{where}.o.weight"]
                found[f"{own}.{norm}.gain"] = theirs[f"{at}.{place}.layer_norm.weight"]
            last = len(attentions)
            dense = f"{at}.{last}.DenseReluDense"
            read = ("wi_0", "wi_1") if gated else ("wi",)
            found[f"{own}.ffn.w_in.weight"] = torch.cat([theirs[f"{dense}.{x}.weight"] for x in read])
            found[f"{own}.ffn.w_out.weight"] = theirs[f"{dense}.wo.weight"]
            found[f"{own}.norm2.gain"] = theirs[f"{at}.{last}.layer_norm.weight"]
    return found


def t5_pair(sizes: dict[str, Any], ffn: str = "relu", tied: bool = True) -> tuple[Seq2Seq, Any]:
    theirs, ours = their_t5(sizes, ffn, tied), build_pair(t5_of(sizes, ffn, tied)).eval()
    ours.load_state_dict(t5_weights(theirs.state_dict(), ours.config))
    return ours.requires_grad_(False), theirs


@for_each("sizes", T5_SIZES)
@for_each(("ffn", "tied"), [("relu", True), ("geglu_tanh", False)])
def test_t5_says_what_transformers_says(sizes: dict[str, Any], ffn: str, tied: bool) -> None:
    ours, theirs = t5_pair(sizes, ffn, tied)
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(2, sizes["vocab"], (3, n), generator=generator) for n in sizes["lengths"])
    target[:, 0] = 0
    shorter = max(1, source.shape[1] // 2)
    source[1, shorter:] = 0  # padding
    with torch.inference_mode():
        wanted = theirs(
            input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target
        ).logits
        found = ours(source, target)
    assert found.shape == wanted.shape == (3, sizes["lengths"][1], sizes["vocab"])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=2e-5 * float(wanted.abs().max()))


def test_t5_writes_what_transformers_writes() -> None:
    """Greedy, with their cache and ours. (Theirs fails where the decoder is deeper than the encoder.)"""
    ours, theirs = t5_pair(T5_SIZES[0] | {"decoder_layers": 2})
    source = [4, 9, 2, 17, 11]
    wanted = theirs.generate(
        torch.tensor([source]),
        max_new_tokens=12,
        do_sample=False,
        num_beams=1,
        eos_token_id=1,
        pad_token_id=0,
        decoder_start_token_id=0,
    )[0, 1:].tolist()
    assert [record.token for record in pair_steps(ours, source, 12)] == wanted


@for_each("act", ["gelu", "relu"])
def test_bert_pools_as_transformers_does(act: str) -> None:
    config = transformers.BertConfig(
        vocab_size=23,
        hidden_size=18,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=31,
        max_position_embeddings=14,
        hidden_act=act,
    )
    theirs = transformers.BertModel(config).eval()
    noisy(theirs, 2)
    preset = PRESETS["bert-base"].model
    ours = build(
        replace(
            preset,
            vocab_size=23,
            context=14,
            d_model=18,
            n_layers=2,
            n_heads=3,
            d_ff=31,
            ffn=act,  # type: ignore[arg-type]
            dropout=0.0,
        )
    ).eval()
    ours.load_state_dict(bert_weights(theirs.state_dict(), 2))
    tokens = torch.randint(1, 23, (3, 11), generator=torch.Generator().manual_seed(4))
    tokens[1, 6:], tokens[2, 1:] = 0, 0
    types = torch.randint(0, 2, tokens.shape, generator=torch.Generator().manual_seed(5))
    with torch.inference_mode():
        wanted = theirs(input_ids=tokens, attention_mask=(tokens != 0).long(), token_type_ids=types)
        vectors = ours(tokens, types=types, padding=padding_mask(tokens, 0, ours.embedding))
        pooled = ours.pooled(vectors)
    real = tokens != 0  # what stands where no token is, nobody reads
    torch.testing.assert_close(vectors[real], wanted.last_hidden_state[real], rtol=1e-4, atol=2e-5)
    torch.testing.assert_close(pooled, wanted.pooler_output, rtol=1e-4, atol=2e-5)


def bert_weights(theirs: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {
        "embedding": theirs["embeddings.word_embeddings.weight"],
        "positions.weight": theirs["embeddings.position_embeddings.weight"],
        "token_types": theirs["embeddings.token_type_embeddings.weight"],
    }

    def layer(own: str, name: str, kinds: tuple[str, str] = ("weight", "bias")) -> None:
        for kind, said in zip(kinds, ("weight", "bias"), strict=True):
            found[f"{own}.{kind}"] = theirs[f"{name}.{said}"]

    norm = ("gain", "bias")
    layer("norm_embed", "embeddings.LayerNorm", norm)
    layer("pooler.w_pool", "pooler.dense")
    for i in range(layers):
        at, own = f"encoder.layer.{i}", f"blocks.{i}"
        for kind in ("weight", "bias"):
            read = [theirs[f"{at}.attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
            found[f"{own}.mixer.w_qkv.{kind}"] = torch.cat(read)
        layer(f"{own}.mixer.w_o", f"{at}.attention.output.dense")
        layer(f"{own}.norm1", f"{at}.attention.output.LayerNorm", norm)
        layer(f"{own}.ffn.w_in", f"{at}.intermediate.dense")
        layer(f"{own}.ffn.w_out", f"{at}.output.dense")
        layer(f"{own}.norm2", f"{at}.output.LayerNorm", norm)
    return found


# --- the model of 2017, beside PyTorch's --------------------------------------------------------


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


def test_t5_base_and_bert_base_are_as_large_as_published() -> None:
    pair = ENCODER_DECODERS["t5-base"].pair
    assert pair is not None
    t5, bert = build_pair(pair, device="meta"), build(PRESETS["bert-base"].model, device="meta")
    counts = [sum(p.numel() for p in model.parameters()) for model in (t5, bert)]
    assert counts == [222_903_552, 109_482_240]
