"""Every family against transformers on random odd configurations; what is damaged or not built is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save, save_file

from engine.errors import HeadError, PretrainedError, ShapeError
from engine.model import build
from engine.parts.attention import padding_mask
from engine.probe import Recorder
from engine.recording import record
from engine.sample import Decoder
from studies.costs.ledger import parameter_formula
from studies.weights.pretrained.family import GELUS
from studies.weights.pretrained.load import open_model
from tests.engine.cases import for_each
from tests.engine.helpers import some_tokens, tiny
from tests.studies.pretrained.odd import CAUSAL, KINDS, made, said, settings

SEEDS = range(4)
ODD = [(name, seed) for name in KINDS for seed in SEEDS]
ONCE = [(name, place % len(SEEDS)) for place, name in enumerate(KINDS)]


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Within 1e-4 of the largest number there."""
    assert theirs.std() > 0.05
    assert (ours - theirs).abs().max() < 1e-4 * max(1.0, float(theirs.abs().max()))


@for_each("name, seed", ODD, fast=ONCE)
@torch.no_grad()
def test_the_same_numbers(name: str, seed: int, tmp_path: Path) -> None:
    theirs = made(name, seed, tmp_path)
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=2, length=33, seed=seed)
    close(ours(tokens), said(theirs, tokens))


@for_each(
    "name, seed", [one for one in ODD if one[0] in CAUSAL], fast=[one for one in ONCE if one[0] in CAUSAL]
)
@torch.inference_mode()
def test_token_by_token(name: str, seed: int, tmp_path: Path) -> None:
    theirs = made(name, seed, tmp_path)
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=1, length=12, seed=seed)
    decoder, wanted = Decoder(ours), said(theirs, tokens)[0]
    slow = ours.config.window > 0 or ours.config.mixer in ("mla", "gated") or ours.config.n_experts > 0
    assert (decoder._fast is None) == slow  # the fast path serves all others
    found = [decoder.read(tokens[0, :3].tolist()), *(decoder.read([int(t)]) for t in tokens[0, 3:])]
    close(torch.stack(found), wanted[2:])


@for_each("seed", SEEDS, fast=2)
@torch.no_grad()
def test_two_texts_in_a_bert(seed: int, tmp_path: Path) -> None:
    theirs = made("bert, masked", seed, tmp_path)
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=2, length=9)
    types = torch.randint(
        ours.config.token_types, tokens.shape, generator=torch.Generator().manual_seed(seed)
    )
    close(ours(tokens, types=types), said(theirs, tokens, token_type_ids=types))
    with pytest.raises(ShapeError, match="shape of tokens"):
        ours(tokens, types=types[:, 1:])


@torch.no_grad()
def test_an_untied_bert_adds_the_bias_of_its_decoder(tmp_path: Path) -> None:
    theirs = made("bert, masked", 0, tmp_path, sizes={"tie_word_embeddings": False})
    ours = open_model(tmp_path).model()
    tokens = some_tokens(ours.config, batch=2, length=9)
    assert not torch.equal(theirs.cls.predictions.decoder.bias, theirs.cls.predictions.bias)
    close(ours(tokens), said(theirs, tokens))


@for_each("kind", ["BertModel", "BertForPreTraining"])
@for_each("seed", SEEDS[:2])
@torch.no_grad()
def test_a_bert_has_its_pooler(kind: str, seed: int, tmp_path: Path) -> None:
    theirs = made("bert", seed, tmp_path, kind=kind)
    ours = open_model(tmp_path).model()
    head = "none" if kind == "BertModel" else "masked"
    assert (ours.config.pooler, ours.config.output_head) == (True, head)
    tokens = torch.randint(1, ours.config.vocab_size, (3, 11), generator=torch.Generator().manual_seed(seed))
    tokens[1, 6:], tokens[2, 1:] = 0, 0
    body, last = getattr(theirs, "bert", theirs), Recorder({"norm_final"})
    wanted = body(tokens, attention_mask=(tokens != 0).long()).pooler_output
    ours(tokens, last, padding=padding_mask(tokens, 0, ours.embedding))
    close(ours.pooled(last["norm_final"]), wanted)
    assert parameter_formula(ours.config) == sum(p.numel() for p in ours.parameters())


@torch.no_grad()
def test_far_apart_in_a_t5(tmp_path: Path) -> None:
    theirs = made("t5", 0, tmp_path).double()
    ours = open_model(tmp_path).model().double()
    tokens = some_tokens(ours.config, batch=1, length=180)
    close(ours(tokens), said(theirs, tokens))


@torch.no_grad()
def test_old_names_of_gains_and_biases(tmp_path: Path) -> None:
    """bert-base-uncased calls them gamma and beta, and holds its places as numbers."""
    theirs = made("bert, masked", 0, tmp_path)
    file = tmp_path / "model.safetensors"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
        for name, x in load_file(file).items()
    }
    save_file(old | {"bert.embeddings.position_ids": torch.arange(40)}, file)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    close(open_model(tmp_path).model()(tokens), said(theirs, tokens))


@torch.no_grad()
def test_the_layout_that_smollm2_has(tmp_path: Path) -> None:
    theirs = made("llama", 0, tmp_path)
    file = tmp_path / "config.json"
    facts = json.loads(file.read_text())
    theta = facts.pop("rope_parameters")["rope_theta"]
    file.write_text(
        json.dumps(facts | {"rope_theta": theta, "rope_scaling": None, "rope_interleaved": False})
    )
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    close(open_model(tmp_path).model()(tokens), said(theirs, tokens))


def test_an_encoder_without_a_head_has_no_logits_and_without_a_pooler_none_of_its_vectors(
    tmp_path: Path,
) -> None:
    made("t5", 0, tmp_path)
    with pytest.raises(HeadError, match="no pooler"):
        open_model(tmp_path).model().pooled(torch.zeros(1, 3, 8))
    recording = record(open_model(tmp_path).model(), [1, 2, 3])
    assert recording["norm_final"].shape[0] == 3
    with pytest.raises(HeadError, match="no output head"):
        _ = recording.logits


@for_each("name", KINDS, fast=4)
def test_every_tensor_is_needed_and_no_other_is_taken(name: str, tmp_path: Path) -> None:
    made(name, 1, tmp_path)
    file = tmp_path / "model.safetensors"
    whole = load_file(file)
    for n in list(whole)[:: max(1, len(whole) // 6)]:
        spoilt = whole[n].clone()
        spoilt.view(-1)[-1] = torch.nan
        for changed in (None, torch.cat([whole[n], whole[n]]), spoilt, whole[n].long()):
            rest = {other: x for other, x in whole.items() if other != n}
            save_file(rest if changed is None else rest | {n: changed}, file)
            with pytest.raises(PretrainedError) as error:
                open_model(tmp_path).weights()
            assert n.split(".", 1)[1] in str(error.value) or "family's table" in str(error.value), n
    save_file(whole | {"one.more": torch.zeros(3)}, file)
    with pytest.raises(PretrainedError, match=r"no part takes: one\.more"):
        open_model(tmp_path).weights()


@for_each("name", KINDS, fast=4)
def test_in_several_files(name: str, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    made(name, 2, whole)
    made(name, 2, cut, max_shard_size="2KB")
    assert len(list(cut.glob("model-*.safetensors"))) > 1
    one, many = open_model(whole).weights(), open_model(cut).weights()
    assert one.keys() == many.keys() and all(torch.equal(one[n], many[n]) for n in one)


@for_each("name, facts, says", [
    ("llama", {"model_type": "mamba"}, "family 'mamba'"),
    ("llama", {"model_type": ["llama"]}, "family ['llama']"),
    ("llama", {"hidden_size": "many"}, "hidden_size = 'many'"),
    ("llama", {"num_attention_heads": 0}, "num_attention_heads = 0"),
    ("llama", {"num_key_value_heads": 5}, "cannot be built"),
    ("llama", {"num_hidden_layers": 4}, "lacks the tensor"),
    ("llama", {"num_hidden_layers": 10**9}, "1,000,000,000 layers"),
    ("llama", {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "scales the rotations"),
    ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5}}, "scales the rotations"),
    ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_type is 'linear'"),
    ("llama", {"rope_parameters": [1, 2]}, "one set of numbers"),
    ("llama", {"rope_parameters": {"rope_theta": 10**400}}, "must be a number"),
    ("llama", {"rms_norm_eps": float("nan")}, "must be a number"),
    ("llama", {"tie_word_embeddings": "no"}, "must be true or false"),
    ("llama", {"hidden_size": 2**40}, "are accepted"),
    ("llama", {"head_dim": 2**28}, "are accepted"),
    ("qwen2", {"layer_types": ["full_attention", "sliding_attention"]}, "sliding window"),
    ("qwen3", {"use_sliding_window": True}, "use_sliding_window is True"),
    ("deepseek", {"num_hidden_layers": 9}, "only some of its layers have experts"),
    ("deepseek, experts", {"n_shared_experts": 2}, "only 1 is supported"),
    ("deepseek, experts", {"n_group": 2}, "only 1 is supported"),
    ("qwen3-next", {"mlp_only_layers": []}, "layers of experts"),
    ("qwen3-next", {"layer_types": ["linear_attention"]}, "linear attention"),
    ("glm", {"first_k_dense_replace": 1}, "only 0 is supported"),
    ("qwen3, experts", {"mlp_only_layers": [0]}, "mlp_only_layers"),
    ("deepseek", {"v_head_dim": 9}, "not supported"),
    ("deepseek", {"rope_interleave": False}, "only True is supported"),
    ("qwen3, windows", {"sliding_window": None}, "sliding_window"),
    ("qwen3, windows", {"layer_types": ["sliding_attention", "full_attention"] * 40}, "not supported"),
    ("qwen3", {"layer_types": "full_attention"}, "must be a list"),
    ("qwen3", {"layer_types": ["linear_attention"]}, "type 'linear_attention'"),
    ("gemma", {"hidden_act": "silu"}, "hidden_act is 'silu'"),
    ("gemma", {"use_bidirectional_attention": True}, "only False is supported"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "only False is supported"),
    ("neox", {"rope_scaling": {"type": "dynamic"}}, "rope_type is 'dynamic'"),
    ("neox", {"rope_parameters": {"partial_rotary_factor": 0.01}}, "cannot be built"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "only False is supported"),
    ("bert", {"is_decoder": True}, "only False is supported"),
    ("bert", {"position_embedding_type": "relative_key"}, "only 'absolute' is supported"),
    ("bert, masked", {"hidden_act": "relu"}, "masked-token head uses relu"),
    ("t5", {"feed_forward_proj": "gated-silu"}, "feed_forward_proj is 'gated-silu'"),
    ("t5", {"relative_attention_num_buckets": 16}, "only 32 is supported"),
])  # fmt: skip
def test_what_is_not_built_is_said(name: str, facts: dict[str, Any], says: str, tmp_path: Path) -> None:
    made(name, 0, tmp_path)
    settings(tmp_path, **facts)
    with pytest.raises(PretrainedError) as error:
        open_model(tmp_path).weights()
    assert says in str(error.value)


def renamed(folder: Path, change: Callable[[str], str], **more: torch.Tensor) -> None:
    file = folder / "model.safetensors"
    save_file({change(name): x for name, x in load_file(file).items()} | more, file)


@for_each("name", [name for name in KINDS if name != "t5" and name != "bert"])
@torch.no_grad()
def test_an_output_matrix_in_the_file_is_used_whatever_the_configuration_says(
    name: str, tmp_path: Path
) -> None:
    theirs = made(name, 1, tmp_path, sizes={"tie_word_embeddings": False})
    settings(tmp_path, tie_word_embeddings=True)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    head = theirs.get_output_embeddings().weight
    assert not torch.equal(head, theirs.get_input_embeddings().weight)
    opened = open_model(tmp_path)
    assert not opened.config.tie_embeddings
    close(opened.model()(tokens), said(theirs, tokens))
    # the embedding once more is no other matrix
    head_name, table = opened.family.head
    full = {opened.source.where[each][1]: each for each in (head_name, table)}
    file = tmp_path / "model.safetensors"
    whole = load_file(file)
    named = {short: long for long, short in full.items()}
    save_file(whole | {named[head_name]: whole[named[table]].clone()}, file)
    assert open_model(tmp_path).config.tie_embeddings


def test_another_bias_or_table_than_the_tied_one_is_refused(tmp_path: Path) -> None:
    made("bert, masked", 0, tmp_path / "bert")
    renamed(tmp_path / "bert", str, **{"cls.predictions.decoder.bias": torch.ones(37)})
    made("t5", 0, tmp_path / "t5")
    width = open_model(tmp_path / "t5").config.d_model
    renamed(tmp_path / "t5", str, **{"encoder.embed_tokens.weight": torch.ones(37, width)})
    for name in ("bert", "t5"):
        with pytest.raises(PretrainedError, match="is another matrix"):
            open_model(tmp_path / name).weights()


@for_each("change", [
    lambda name: f"_orig_mod.{name}",
    lambda name: f"module.{name}",
    lambda name: f"module._orig_mod.{name}",
    lambda name: f"student.net.{name}",
    lambda name: name.replace("layers.", "layers._orig_mod.").replace(".h.", "._fsdp_wrapped_module.h."),
])  # fmt: skip
@for_each("name", ["llama", "gpt2", "bert"])
def test_what_others_put_before_names_is_taken_off(
    name: str, change: Callable[[str], str], tmp_path: Path
) -> None:
    theirs = made(name, 0, tmp_path)
    renamed(tmp_path, change)
    tokens = torch.tensor([[3, 1, 4, 1, 5]])
    close(open_model(tmp_path).model()(tokens), said(theirs, tokens))


METHODS: list[tuple[dict[str, Any], str]] = [
    ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "with bitsandbytes to 4 bits"),
    ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "with bitsandbytes to 8 bits"),
    ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "with gptq to 3 bits"),
    ({"quantization_config": {"quant_method": "awq", "w_bit": 4}}, "with awq to 4 bits"),
    ({"quantization_config": {"quant_method": "fp8"}}, "with fp8, as"),
    ({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {}}}, "with compressed-tensors"),
    ({"compression_config": {"quant_method": "sparseml"}}, "with sparseml"),
    ({"quantization": {"group_size": 64, "bits": 4}}, "with MLX to 4 bits"),
    ({"quantization_config": "yes"}, "are quantised, as"),
]  # fmt: skip


@for_each("facts, says", METHODS)
def test_quantised_weights_are_refused_for_what_the_configuration_says(
    facts: dict[str, Any], says: str, tmp_path: Path
) -> None:
    made("llama", 0, tmp_path)
    settings(tmp_path, model_type="new", **facts)
    renamed(tmp_path, lambda name: name.replace("q_proj.weight", "q_proj.weight.absmax"))
    with pytest.raises(PretrainedError) as error:
        open_model(tmp_path)
    assert says in str(error.value) and "config.json says" in str(error.value)


@for_each("part", ["qweight", "weight_scale", "weight_packed", "SCB"])
def test_quantised_weights_are_refused_for_their_names(part: str, tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    settings(tmp_path, quantization_config=None)
    renamed(tmp_path, str, **{f"model.layers.0.mlp.down_proj.{part}": torch.ones(1)})
    with pytest.raises(PretrainedError, match=f"are quantised .*{part}"):
        open_model(tmp_path)


@for_each("change", [
    lambda name: f"base_model.model.{name}",
    lambda name: name.replace("q_proj.weight", "q_proj.lora_A.weight"),
    lambda name: name.replace("q_proj.weight", "q_proj.base_layer.weight"),
])  # fmt: skip
def test_an_adapter_is_refused_as_one(change: Callable[[str], str], tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    renamed(tmp_path, change)
    with pytest.raises(PretrainedError, match="an adapter without its base model"):
        open_model(tmp_path)


def test_an_adapter_without_a_configuration_names_its_base(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "meta/llama"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(PretrainedError, match="its base is 'meta/llama'"):
        open_model(tmp_path)


@for_each("scaling", [{"type": "none"}, {"type": "linear", "factor": 1.0}, {"rope_type": None}, {}])
def test_a_scale_of_1_is_none(scaling: dict[str, Any], tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    before = open_model(tmp_path).config
    settings(tmp_path, rope_scaling=scaling)
    assert open_model(tmp_path).config == before


def test_a_byte_order_mark_a_missing_part_and_a_pointer(tmp_path: Path) -> None:
    made("llama", 0, tmp_path, max_shard_size="2KB")
    config = tmp_path / "config.json"
    config.write_bytes(b"\xef\xbb\xbf" + config.read_bytes())
    open_model(tmp_path).weights()
    part = next(tmp_path.glob("model-00002*.safetensors"))
    part.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(PretrainedError, match=f"{part.name} is a pointer of Git LFS"):
        open_model(tmp_path)
    part.unlink()
    with pytest.raises(PretrainedError, match=f"lacks {part.name}"):
        open_model(tmp_path)
    config.write_text(config.read_text("utf-8-sig"), "utf-16")
    with pytest.raises(PretrainedError, match=r"config\.json cannot be read: .* UTF-16"):
        open_model(tmp_path)


HOSTILE: list[Any] = [
    *(None, True, -1, 0, 1.5, "x", "", [], [1], {}, {"a": 1}, 2**70, 10**400, 1e308, float("nan"))
]


@for_each("name", KINDS, fast=2)
def test_a_hostile_configuration_is_no_crash(name: str, tmp_path: Path) -> None:
    made(name, 0, tmp_path)
    file = tmp_path / "config.json"
    facts = json.loads(file.read_text())
    for field in facts:
        for value in HOSTILE:
            file.write_text(json.dumps(facts | {field: value}))
            try:
                open_model(tmp_path)
            except PretrainedError as error:
                assert str(error)


def test_half_precision_becomes_float32(tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({name: x.to(torch.bfloat16) for name, x in load_file(file).items()}, file)
    assert {x.dtype for x in open_model(tmp_path).weights().values()} == {torch.float32}


@for_each("file", ["config.json", "model.safetensors"])
@for_each("damage", [None, b"cut", b"\xff" * 400, b""])
def test_damaged_files_are_refused(file: str, damage: bytes | None, tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    path = tmp_path / file
    data = path.read_bytes()
    path.unlink()
    if damage is not None:
        path.write_bytes(data[: len(data) // 2] if damage == b"cut" else damage)
    with pytest.raises(PretrainedError):
        open_model(tmp_path).weights()


def test_an_index_that_leads_outside(tmp_path: Path) -> None:
    made("llama", 0, tmp_path, max_shard_size="2KB")
    index = tmp_path / "model.safetensors.index.json"
    values = json.loads(index.read_text())
    values["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    index.write_text(json.dumps(values))
    with pytest.raises(PretrainedError, match="outside of the folder"):
        open_model(tmp_path)


def test_a_tensor_of_too_many_dimensions_is_refused(tmp_path: Path) -> None:
    made("llama", 0, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(save({"a": torch.zeros([1] * 9)}))
    with pytest.raises(PretrainedError, match="more than 8 dimensions"):
        open_model(tmp_path)


@for_each("name", GELUS)
def test_a_nonlinearity_is_the_one_that_the_library_knows_by_that_name(name: str) -> None:
    from transformers.activations import ACT2FN

    x = torch.linspace(-4, 4, 101)
    network = build(tiny(ffn=GELUS[name])).blocks[0].ffn
    torch.testing.assert_close(network.activation(x), ACT2FN[name](x), rtol=0, atol=1e-6)
