"""The encoder-decoder: what reaches what, masks, names, costs, refusals, and PyTorch's own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.data.tokenizers.bpe import train
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import ConfigError, ShapeError, TokenizerError
from engine.model import build
from engine.parts.attention import causal_mask, check_causal, check_padding, decoder_masks, padding_mask
from engine.parts.registry import HEALTHY, swapped
from engine.probe import AXES, Recorder, axes_of
from studies.costs.cards import BatchShape
from studies.costs.ledger import ledger
from studies.costs.memory import activations
from studies.costs.published_models import ENCODER_DECODERS
from studies.pairs.config import Seq2SeqConfig, seq2seq_config
from studies.pairs.seq2seq import Memory, build_pair, reader_of
from studies.pairs.tokenizer import END, PairTokenizer, SourceTokenizer
from studies.shapes.operations import totals, trace_pair
from studies.tokens.blanks import BlankTokenizer
from tests.engine.cases import for_each
from tests.studies.seq2seq_toys import BASE, KINDS, attending, kinds, loud_pair, pair_config, some


@kinds
def test_padding_changes_nothing_for_anybody(fields: dict[str, Any]) -> None:
    model, target = loud_pair(**fields), torch.cat((torch.tensor([[1]]), some(1, 4)), dim=1)
    short, long = some(1, 3, 1), some(1, 7, 2)
    filled = torch.cat((short, torch.zeros(1, 4, dtype=torch.int64)), dim=1)
    together = model(torch.cat((filled, long)), target.expand(2, -1))
    torch.testing.assert_close(together[:1], model(short, target), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(together[1:], model(long, target), rtol=1e-4, atol=1e-5)


def test_the_source_is_read_both_ways_and_the_target_one_way() -> None:
    model, source, target = loud_pair(), some(1, 5), torch.tensor([[1, 4, 5, 6]])
    before, memory = model(source, target), model.encode(source)
    other = source.clone()
    other[0, -1] = 3 + (source[0, -1] - 2) % 10
    changed = model.encode(other).vectors - memory.vectors
    assert (changed.abs().amax(dim=-1) > 1e-3).all(), "the last token reaches the first place of the source"
    assert ((model(other, target) - before).abs().amax(dim=-1) > 1e-3).all(), "and every place of the target"
    later = target.clone()
    later[0, 2] = 9
    difference = (model(source, later) - before).abs().amax(dim=-1)[0]
    assert (difference[:2] == 0).all() and (difference[2:] > 1e-3).all()


def test_cross_attention_sees_every_token_but_padding_and_its_keys_are_the_encoders() -> None:
    model, recorder = loud_pair(), Recorder()
    source, target = some(2, 6), some(2, 3)
    source[1, 4:] = 0
    model(source, target, recorder)
    pattern = recorder["decoder.blocks.2.cross_pattern"]
    assert pattern.shape == (2, 3, 3, 6)
    torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 3, 3))
    assert (pattern[1, ..., 4:] == 0).all() and (pattern[1, ..., :4] > 0).all() and (pattern[0] > 0).all()
    own = recorder["decoder.blocks.0.pattern"]
    assert (own.triu(1) == 0).all() and (recorder["encoder.blocks.0.pattern"][0] > 0).all()
    assert (recorder["encoder.blocks.0.pattern"][1, ..., 4:] == 0).all()
    other = Recorder()
    later = target.clone()
    later[:, 1:] = 9
    model(source, later, other)
    for name in ("cross_k", "cross_v"):
        assert torch.equal(recorder[f"decoder.blocks.0.{name}"], other[f"decoder.blocks.0.{name}"])
    assert not torch.equal(recorder["decoder.blocks.0.cross_q"], other["decoder.blocks.0.cross_q"])
    w_k = model.decoder.blocks[0].cross.w_qkv.weight[18:36]
    k = torch.nn.functional.linear(recorder["encoder.norm_final"], w_k)
    torch.testing.assert_close(recorder["decoder.blocks.0.cross_k"].transpose(1, 2).flatten(2), k)


@for_each("fields", KINDS[:-2])  # averages need no queries, and without a mixer nobody is read
def test_gradient_reaches_every_parameter(fields: dict[str, Any]) -> None:
    model = build_pair(pair_config(**fields), init="fan_in")
    source, target = some(3, 6), some(3, 5, 3)
    source[0, 3:] = 0
    model(source, target).square().mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name


def test_both_masks_by_hand_and_swapped_ones_are_a_sentence() -> None:
    like = torch.empty(0)
    padding = padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), 0, like)
    assert padding.shape == (2, 1, 1, 3)
    assert padding[:, 0, 0].tolist() == [[0, 0, -math.inf], [0, -math.inf, -math.inf]]
    causal = causal_mask(3, like)
    assert causal.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]
    assert decoder_masks(causal, padding) == (causal, padding)
    padding = padding[:1]
    check_causal(causal, 3)
    check_causal(None, 3)
    check_padding(padding, 1, 3)
    with pytest.raises(
        ShapeError, match=r"causal mask must be of shape \(query, key\) = \(3, 3\), not \(1, 1, 1, 3\)"
    ):
        check_causal(padding, 3)
    with pytest.raises(ShapeError, match=r"= \(1, 1, 1, 3\), not \(3, 3\).*is the causal one"):
        check_padding(causal, 1, 3)
    model, source, target = loud_pair(), some(1, 3), some(1, 3)
    with pytest.raises(ShapeError, match="causal one"):
        model(source, target, padding=causal)
    memory = model.encode(source)
    with pytest.raises(ShapeError, match="causal one"):
        model.decode(target, Memory(memory.vectors, causal))
    wrong = loud_pair(swapped(HEALTHY, "a mask for each text", mask=lambda n, like, start=0: padding))
    with pytest.raises(ShapeError, match="every text has the same one"):
        wrong(source, target)


def test_what_a_padding_mask_hides_is_as_good_as_not_there() -> None:
    model, source, target = loud_pair(), some(1, 5), torch.tensor([[1, 4]])
    hidden = torch.zeros(1, 1, 1, 5)
    hidden[..., 3:] = -math.inf
    torch.testing.assert_close(model(source, target, padding=hidden), model(source[:, :3], target))
    assert not torch.allclose(model(source, target), model(source[:, :3], target))
    config = replace(BASE, causal=False, output_head="none", pooler=True)
    alone = build(config, init="fan_in").eval().requires_grad_(False)
    filled = torch.tensor([[4, 5, 6, 0, 0]])
    mask = padding_mask(filled, 0, alone.embedding)
    torch.testing.assert_close(alone(filled, padding=mask)[:, :3], alone(filled[:, :3]))
    assert not torch.allclose(alone(filled)[:, :3], alone(filled[:, :3]))
    with pytest.raises(ShapeError, match="must be of shape"):
        alone(filled, padding=causal_mask(5, alone.embedding))


@for_each("wiring", ["pre", "post"])
def test_activations_of_a_decoder_block_come_in_the_order_of_the_data(wiring: str) -> None:
    model, recorder = loud_pair(wiring=wiring), Recorder()
    model(some(1, 4), some(1, 3), recorder)
    at = "decoder.blocks.1."
    names = [name.removeprefix(at) for name in recorder.tensors if name.startswith(at)]
    if wiring == "pre":
        assert names == [name for name in AXES if name in names]
    crossed = [name for name in names if name.startswith("cross_")]
    inner = ["q", "k", "v", "q_rot", "k_rot", "scores", "masked_scores", "pattern", "z", "out", "resid"]
    norm_first = wiring == "pre"
    wanted = [*(["norm"] if norm_first else []), *inner, *([] if norm_first else ["norm"])]
    assert crossed == [f"cross_{name}" for name in wanted]
    stream = recorder[f"{at}resid_mid"] if norm_first else recorder[f"{at}norm1"]
    torch.testing.assert_close(recorder[f"{at}cross_resid"], stream + recorder[f"{at}cross_out"])
    norm = model.decoder.blocks[1].norm_cross
    read = stream if norm_first else recorder[f"{at}cross_resid"]
    torch.testing.assert_close(recorder[f"{at}cross_norm"], norm(read))


def test_flops_are_those_of_the_products() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    config, n = pair_config(), 7
    model = build_pair(config).eval()
    with FlopCounterMode(display=False) as counter:
        model(some(1, n), some(1, n))
    assert ledger(config.decoder, config.encoder).flops(n).forward * n == counter.get_total_flops()
    assert totals(trace_pair(config, n, n))["products"] == counter.get_total_flops()
    kept = activations(config.decoder.resolved(), BatchShape(1, n), encoder=config.encoder.resolved())
    assert set(kept) == {"norm", "attention", "feedforward", "output"}


@kinds
def test_every_step_is_traced(fields: dict[str, Any]) -> None:
    config = pair_config(**fields)
    steps = trace_pair(config, 7, 4)
    recorder = Recorder()
    loud_pair(**fields)(some(1, 7), some(1, 4), recorder)
    real, made, c = recorder.shapes(), set(), config.resolved().decoder
    sizes = {"batch": 1, "d_model": 18, "head": 3, "kv_head": c.n_kv_heads, "d_head": c.d_head}
    sizes |= {"d_ff": c.d_ff, "vocab": 13}
    for name, shape in real.items():
        source = name.startswith("encoder.")
        keys = 7 if source or name.rpartition(".")[2].startswith("cross_") else 4
        places = {"query": 7 if source else 4, "key": keys}
        assert shape == tuple((sizes | places)[axis] for axis in axes_of(name)), name
    for step in steps:
        assert all(shape.name in made for shape in step.inputs), step.name
        made.add(step.name)
        if step.bare in AXES:
            assert step.output.sizes == real[step.name] and step.output.axes == AXES[step.bare], step.name
        assert step.words and step.formula, step.name
        assert len(step.output.axes) == len(step.output.sizes) or "×" in " ".join(step.output.axes)
    assert made >= {name for name in real if name.endswith(("cross_pattern", "resid_post", "logits"))} or (
        fields.get("mixer") == "none"
    )
    counts = totals(steps)
    found = ledger(config.decoder, config.encoder)
    built = build_pair(config, device="meta")
    assert counts["parameters"] == found.total == sum(p.numel() for p in built.parameters())
    cross = sum(p.numel() for n, p in built.named_parameters() if ".cross." in n)
    assert found.components.get("cross_attention", 0) == cross
    kinds = {step.stack for step in steps}
    assert kinds == {"encoder", "decoder", ""}


def test_the_memory_is_that_of_the_last_block() -> None:
    (reads,) = {
        shape.name
        for step in trace_pair(pair_config(wiring="post"), 5, 3)
        if step.bare == "cross_kv_flat"
        for shape in step.inputs
    }
    assert reads == "encoder.blocks.1.norm2"


def test_one_seed_one_model() -> None:
    one, again, other = (build_pair(pair_config(), seed) for seed in (3, 3, 4))
    for (name, a), b in zip(one.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b), name
    assert not torch.equal(one.embedding, other.embedding)
    deep, wide = (build_pair(pair_config(n_layers=n, d_model=180, d_ff=999)) for n in (1, 1))
    del wide
    writes = deep.decoder.blocks[0].cross.w_o.weight.std()
    assert float(writes.detach()) == pytest.approx(0.02 / math.sqrt(3 * 2), rel=0.05), (
        "three writes a block, two blocks"
    )
    assert float(deep.encoder.blocks[0].mixer.w_o.weight.detach().std()) == pytest.approx(
        0.02 / math.sqrt(2), rel=0.05
    )


@for_each(("changes", "field"), [
    ({"encoder": {"causal": True}}, "causal"),
    ({"decoder": {"causal": False}}, "causal"),
    ({"encoder": {"output_head": "linear"}}, "output_head"),
    ({"decoder": {"output_head": "none"}}, "output_head"),
    ({"decoder": {"wiring": "parallel"}}, "wiring"),
    ({"decoder": {"d_model": 36}}, "d_model"),
    ({"encoder": {"vocab_size": 9}}, "vocab_size"),
    ({"encoder": {"token_types": 2}}, "token_types"),
    ({"decoder": {"window": 2}}, "window"),
    ({"encoder": {"pooler": True}}, "pooler"),
    ({"decoder": {"n_heads": 4}}, "n_heads"),
    ({"end": 13}, "end"),
    ({"end": 1}, "end"),
    ({"pad": -1}, "pad"),
])  # fmt: skip
def test_what_does_not_go_together(changes: dict[str, Any], field: str) -> None:
    pair = pair_config()
    made = {
        name: replace(getattr(pair, name), **value) if isinstance(value, dict) else value
        for name, value in changes.items()
    }
    with pytest.raises(ConfigError) as error:
        build_pair(replace(pair, **made))
    assert error.value.field == field


def test_a_configuration_as_plain_values() -> None:
    pair = pair_config(position="t5")
    assert Seq2SeqConfig.from_dict(pair.to_dict()) == pair
    with pytest.raises(ConfigError, match="must have the fields"):
        Seq2SeqConfig.from_dict({"encoder": {}})
    assert Seq2SeqConfig.of(ModelConfig()).resolved().decoder.d_ff == 512


@for_each(("source", "target", "says"), [
    (torch.zeros(1, 3, dtype=torch.int64), some(1, 2), "an empty source"),
    (some(2, 3).masked_fill(torch.tensor([[False], [True]]), 0), some(2, 2), "an empty source"),
    (some(1, 0), some(1, 2), "the source of shape .* cannot be empty"),
    (some(1, 3), some(1, 0), "the target of shape .* cannot be empty"),
    (some(1, 13), some(1, 2), "a source of 13 tokens is too long: .* at most 12"),
    (some(1, 3), some(1, 13), "a target of 13 tokens is too long: .* at most 12"),
    (some(2, 3), some(1, 2), "1 targets do not belong to 2 sources"),
    (some(1, 3).float(), some(1, 2), "source must be int64"),
    (some(1, 3), some(1, 2)[0], "target must be int64"),
])  # fmt: skip
def test_bad_input_is_a_sentence(source: torch.Tensor, target: torch.Tensor, says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        loud_pair(position="rope")(source, target)


BPE = train("that hat hath heath " * 9, 270)


@attending
def test_the_half_that_reads_is_the_encoder_by_itself(fields: dict[str, Any]) -> None:
    model, source = loud_pair(**fields), torch.tensor([[5, 3, 7, 4, 9, 2]])  # no padding
    read, own, whole = reader_of(model), Recorder(), Recorder()
    assert not read.config.causal and not read.output.present and not read.training
    assert torch.equal(read(source, own), model.encode(source, whole).vectors)
    assert {f"encoder.{name}" for name in own.tensors} == set(whole.tensors)
    for name, tensor in own.tensors.items():
        assert torch.equal(tensor, whole[f"encoder.{name}"]), name
    assert read.embedding is model.embedding
    assert read.blocks[0].mixer.w_qkv.weight is model.encoder.blocks[0].mixer.w_qkv.weight


@for_each("text", ["h_t", "_", "__", "_hat_", "hat", ""])
@for_each("inner", [CharTokenizer("aht"), BPE])
def test_gaps_are_one_token_each_and_come_back(inner, text):
    tokenizer = BlankTokenizer(inner)
    ids = tokenizer.encode(text)
    assert tokenizer.encode_array(text).tolist() == ids
    assert ids.count(tokenizer.mask_id) == text.count("_") and tokenizer.decode(ids) == text
    assert tokenizer.mask_id == inner.vocab_size == tokenizer.vocab_size - 1
    assert not tokenizer.unknown(text) and tokenizer.to_dict() == inner.to_dict()
    pieces = [inner.encode(piece) for piece in text.split("_")]
    assert [i for i in ids if i != tokenizer.mask_id] == [i for piece in pieces for i in piece]


def test_what_the_alphabet_lacks_is_still_said():
    tokenizer = BlankTokenizer(CharTokenizer("aht"))
    assert tokenizer.unknown("h_x y") == ["x", " ", "y"]
    with pytest.raises(TokenizerError, match="lacks 'x'"):
        tokenizer.encode("_x")


@for_each("by, text", [("letters", "abba"), ("words", "one two one")])
def test_a_whole_source_ends_with_its_sign(by, text):
    inner = PairTokenizer.train([text], by=by)
    tokenizer = SourceTokenizer.of(inner)
    ids = inner.encode(text)
    assert tokenizer.encode(text) == ids and tokenizer.whole(text) == [*ids, END]
    assert tokenizer.whole(text, 2) == [ids[0], END] and tokenizer.whole("") == [END]
    assert tokenizer.decode(tokenizer.whole(text)) == text
    assert tokenizer.decode_bytes(tokenizer.whole(text)).decode() == text
    assert tokenizer.vocab_size == len(tokenizer.tokens) == inner.vocab_size
    assert tokenizer.to_dict() == inner.to_dict()


def test_words_carry_their_blank_and_what_is_unknown_is_left_out():
    words, letters = (SourceTokenizer.of(PairTokenizer.train(["b a"], by)) for by in ("words", "letters"))
    assert list(words.tokens) == [b"", b"", b"", b" a", b" b"]
    assert list(letters.tokens) == [b"", b"", b"", b" ", b"a", b"b"]
    words, letters = (SourceTokenizer.of(PairTokenizer.train(["one two"], by)) for by in ("words", "letters"))
    assert words.unknown("two or one") == ["or"] and words.without("two or one", ["or"]) == "two one"
    assert letters.unknown("or") == ["r"] and letters.without("for two", ["f", "r"]) == "o two"


OURS = {
    ".layers.": ".blocks.",
    "self_attn": "mixer",
    "multihead_attn": "cross",
    "in_proj_": "w_qkv.",
    "out_proj": "w_o",
    "linear1": "ffn.w_in",
    "linear2": "ffn.w_out",
}


def torch_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of torch.nn.Transformer, whose attentions have biases, by our names."""
    found: dict[str, Tensor] = {}
    for name, weight in theirs.items():
        if name.startswith("decoder."):
            name = name.replace("norm2", "norm_cross").replace("norm3", "norm2")
        if ".norm" in name:
            name = name.replace("weight", "gain")
        for other, own in OURS.items():
            name = name.replace(other, own)
        found[name] = weight
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
    missing, unknown = ours.load_state_dict(torch_weights(theirs.state_dict()), strict=False)
    assert not unknown and all("blocks" not in name for name in missing)
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
    pair = seq2seq_config(ENCODER_DECODERS["transformer-base"])
    assert pair is not None
    assert sum(p.numel() for p in build_pair(pair, device="meta").parameters()) == wanted == 63_045_632
