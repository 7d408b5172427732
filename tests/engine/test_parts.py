"""Each part against a second, independent account of it; and the probe, which hears and edits what flows between."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ConfigError, ShapeError
from engine.model import build
from engine.parts.attention import causal_mask, window_mask
from engine.parts.blocks import PassContext
from engine.parts.feedforward import gelu_tanh, relu2
from engine.parts.positions import PositionHooks, alibi_slopes, t5_bucket
from engine.parts.registry import FEEDFORWARDS, MIXERS, NORMS, POSITIONS
from engine.probe import AXES, Patcher, Recorder, axes_of, identity
from studies.costs.cards.table import card_of
from studies.lab.raw_values import QueriesAndKeys, SharedQKRawValues
from studies.pairs.config import Seq2SeqConfig
from studies.pairs.seq2seq import build_classifier, build_pair
from studies.residual.norm_example import norm_example
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def _normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@for_each("causal", [True, False])
@for_each("n_kv_heads", [1, 2, 4])
@for_each("position", ["none", "rope", "alibi", "t5"])
def test_written_out_attention_equals_the_fused_kernel(position: str, n_kv_heads: int, causal: bool) -> None:
    model = loud(tiny(n_kv_heads=n_kv_heads, causal=causal, position=position))
    recorder = Recorder()
    model(some_tokens(model.config), recorder)
    for layer in range(model.config.n_layers):
        q, k, v, z = (recorder[f"blocks.{layer}.{name}"] for name in ("q_rot", "k_rot", "v", "z"))
        hooks = model.positions.prepare(6, z)
        bias = hooks.bias(torch.zeros(1, 4, 6, 6)).detach() + (causal_mask(6, z) if causal else 0)
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
        assert torch.allclose(z, fused, atol=1e-5)


def test_the_matrix_in_holds_queries_keys_and_values_and_without_one_out_heads_stand_side_by_side() -> None:
    mixer = MIXERS["attention"](tiny(n_kv_heads=2).resolved())
    x, recorder = _normal(1, 5, 16), Recorder()
    mixer(x, PassContext(probe=recorder))
    w_q, w_k, w_v = mixer.w_qkv.weight.split(mixer.w_qkv.row_blocks)
    for name, weight in (("q", w_q), ("k", w_k), ("v", w_v)):
        heads = (x @ weight.T).view(1, 5, -1, 4).transpose(1, 2)
        assert torch.allclose(recorder[name], heads, atol=1e-6), name
    mixer = MIXERS["attention"](tiny(output_projection=False).resolved())
    recorder = Recorder()
    mixer(_normal(2, 5, 16), PassContext(probe=recorder))
    assert torch.equal(recorder["attn_out"], recorder["z"].transpose(1, 2).flatten(2))


def test_rope_turns_by_complex_multiplication() -> None:
    x = _normal(1, 2, 9, 8)
    turned, _ = _hooks("rope", 9, d_head=8).rotate(x, x)
    theta = 10_000 ** (-torch.arange(0, 8, 2) / 8)
    turns = torch.polar(torch.ones(9, 4), torch.outer(torch.arange(9.0), theta))
    expected = torch.view_as_real(torch.complex(x[..., :4], x[..., 4:]) * turns)
    assert torch.allclose(turned, torch.cat((expected[..., 0], expected[..., 1]), -1), atol=1e-5)


def test_the_ladder_of_mixers() -> None:
    x = _normal(2, 5, 16)
    config = tiny().resolved()
    mask = causal_mask(5, x)
    recorder = Recorder()
    mean = MIXERS["mean"](config)(x, PassContext(mask=mask, probe=recorder))
    running = x.cumsum(1) / torch.arange(1, 6).view(1, 5, 1)
    assert torch.allclose(mean, running, atol=1e-6)

    MIXERS["similarity"](config)(x, PassContext(probe=recorder))
    heads = x.view(2, 5, 4, 4).transpose(1, 2)
    assert torch.allclose(recorder["scores"], heads @ heads.transpose(2, 3) / 2, atol=1e-6)

    MIXERS["shared_qk"](config)(x, PassContext(probe=recorder))
    assert torch.equal(recorder["q"], recorder["k"])
    assert torch.allclose(recorder["scores"], recorder["scores"].transpose(2, 3), atol=1e-6)

    assert MIXERS["none"](config)(x, PassContext(mask=mask)) is None


def _hooks(position: str, length: int, **fields: object) -> PositionHooks:
    config = tiny(position=position, **fields).resolved()
    return POSITIONS[position](config).prepare(length, torch.zeros(1))


def test_formulas_say_what_is_added_and_what_turns() -> None:
    for mixer, name in (
        (MIXERS["attention"], "qkv_flat"), (MIXERS["shared_qk"], "qk_flat"), (SharedQKRawValues, "qk_flat"),
        (QueriesAndKeys, "qk_flat"),
    ):  # fmt: skip
        for bias in (False, True):
            latex, words = card_of(mixer).formulas(tiny(attention_bias=bias).resolved())[name]
            assert (" + b" in latex) == (" + b" in words) == bias
    config = tiny(position="rope", d_model=32, rope_fraction=0.5, rope_theta=50.0).resolved()
    latex, words = card_of(POSITIONS["rope"]).turned(("q", "query"), config)
    assert latex.endswith("= 50^{-2i/4}") and words.endswith("frequency, the first 4 of 8 dimensions")
    whole = card_of(POSITIONS["rope"]).turned(("q", "query"), replace(config, rope_fraction=1.0))
    assert whole[0].endswith("{-2i/d_{head}}") and whole[1].endswith("frequency")
    added = card_of(POSITIONS["t5"]).biased(("s", "score"), config)
    assert added == ("s + b_h(i - j)", "score + bias for the distance")


@for_each("position", ["alibi", "t5"])
def test_the_bias_at_a_place_is_its_row(position: str) -> None:
    scheme = POSITIONS[position](tiny(position=position).resolved())
    for parameter in scheme.parameters():
        torch.nn.init.normal_(parameter)
    hooks = scheme.prepare(5, torch.zeros(1))
    whole = hooks.bias(torch.zeros(1, 4, 5, 5))
    assert torch.equal(hooks.at(3).bias(torch.zeros(1, 4, 1, 4)), whole[:, :, 3:4, :4])


def test_alibi_takes_its_slope_off_for_each_token_of_distance() -> None:
    bias = _hooks("alibi", 5).bias(torch.zeros(1, 4, 5, 5))[0]
    for head, slope in enumerate(alibi_slopes(4)):
        away = (torch.arange(5.0) - torch.arange(5.0)[:, None]).abs()
        assert torch.allclose(bias[head], -slope * away)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "reach"), [(32, 128), (16, 64), (8, 20)])
def test_t5_buckets_equal_t5_s(buckets: int, reach: int, bidirectional: bool) -> None:
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5", reason="transformers is not installed")
    offsets = torch.arange(-300, 301)
    theirs = t5.T5Attention._relative_position_bucket(offsets, bidirectional, buckets, reach)
    assert torch.equal(t5_bucket(offsets, bidirectional, buckets, reach), theirs)


def test_dyt_is_a_tanh_of_its_own_slope_and_measures_nothing() -> None:
    model = build(tiny(norm="dyt", norm_bias=True))
    dyt = model.blocks[0].norm1
    assert dyt.alpha.item() == 0.5 and (dyt.gain == 1).all() and (dyt.bias == 0).all()
    x = _normal(3, 5, 16) * 4 + 2
    with torch.no_grad():
        torch.testing.assert_close(dyt(x), torch.tanh(x / 2))
        for parameter in dyt.parameters():
            torch.nn.init.normal_(parameter)
        torch.testing.assert_close(dyt(x), dyt.gain * torch.tanh(dyt.alpha * x) + dyt.bias)
        small = 1e-4 * x
        torch.testing.assert_close(dyt(small) - dyt.bias, dyt.linear_part(small), rtol=1e-3, atol=1e-6)
    assert dyt.with_fixed_divisor(x[0, 0].double(), x[0, 1].double()) is None
    assert norm_example((1.0, 2.0)).outputs["dyt"] == pytest.approx([math.tanh(0.5), math.tanh(1.0)])


def test_norms_and_activations_equal_their_formulas() -> None:
    x = _normal(3, 5, 16) * 4 + 2
    layer = NORMS["layernorm"](tiny(norm_bias=True))
    torch.nn.init.normal_(layer.gain)
    torch.nn.init.normal_(layer.bias)
    assert torch.allclose(layer(x), F.layer_norm(x, (16,), layer.gain, layer.bias, 1e-5), atol=1e-5)
    rms = NORMS["rmsnorm"](tiny(norm="rmsnorm"))
    torch.nn.init.normal_(rms.gain)
    assert torch.allclose(rms(x), F.rms_norm(x, (16,), rms.gain, 1e-5), atol=1e-5)
    bare = NORMS["layernorm"](tiny(norm_gain=False))
    assert not list(bare.parameters())
    assert torch.allclose(bare(x).mean(-1), torch.zeros(3, 5), atol=1e-5)
    assert torch.equal(NORMS["none"](tiny(norm="none"))(x), x)
    x = torch.linspace(-4, 4, 81)
    assert torch.equal(relu2(x), torch.where(x > 0, x * x, torch.zeros(())))
    assert torch.allclose(gelu_tanh(x), F.gelu(x, approximate="tanh"), atol=1e-6)


@for_each(("ffn", "activation"), [("swiglu", F.silu), ("geglu", F.gelu)])
def test_the_gate_decides_how_much_passes(ffn: str, activation: object) -> None:
    part, x = FEEDFORWARDS[ffn](tiny(ffn=ffn).resolved()), _normal(2, 3, 16)
    gate, up = part.w_in.weight.split(part.w_in.row_blocks)
    assert torch.allclose(
        part(x, identity), (activation(x @ gate.T) * (x @ up.T)) @ part.w_out.weight.T, atol=1e-5
    )


def test_a_mixer_with_an_output_matrix_needs_no_other_to_say_what_its_heads_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The slices of the stream are (head * d_head)² numbers: made where there is no W_O alone."""
    z = torch.randn(4, 3, 4)
    asked: list[int] = []
    made = torch.eye
    monkeypatch.setattr(torch, "eye", lambda n, **rest: asked.append(n) or made(n, **rest))
    for projected, sizes in ((True, []), (False, [16])):
        mixer: Any = loud(tiny(output_projection=projected)).blocks[0].mixer
        written = mixer.writes(z)
        assert asked == sizes and written.shape == (4, 3, 16)
        side_by_side = z.transpose(0, 1).reshape(3, 16)
        assert torch.allclose(written.sum(0), mixer.output(side_by_side), atol=1e-5)


def test_a_norm_without_its_division_is_linear_and_says_what_is_left() -> None:
    x = torch.tensor([[1.0, 2.0, 6.0], [0.0, 3.0, -3.0]])
    for gain, said in ((True, " and multiplied by its gain"), (False, "")):
        config = tiny(norm="layernorm", norm_gain=gain, norm_bias=False).resolved()
        norm = NORMS["layernorm"](replace(config, d_model=3))
        if norm.gain is not None:
            norm.gain.data = torch.tensor([1.0, 2.0, -1.0])
        expected = torch.tensor([[-2.0, -1.0, 3.0], [0.0, 3.0, -3.0]])
        assert torch.equal(
            norm.linear_part(x), expected * torch.tensor([1.0, 2.0, -1.0]) if gain else expected
        )
        assert card_of(type(norm)).linear_words(config) == "centred" + said
    rms = tiny(norm="rmsnorm").resolved()
    assert card_of(NORMS["rmsnorm"]).linear_words(rms) == "multiplied by its gain"
    assert card_of(NORMS["rmsnorm"]).linear_words(replace(rms, norm_gain=False)) == ""


def test_a_window_by_hand() -> None:
    seen = window_mask(4, torch.zeros(1), 2) == 0
    assert (~seen).int().tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]
    assert (window_mask(1, torch.zeros(1), 2, start=4) == 0).tolist() == [[False, False, False, True, True]]
    for fields in ({"window": -1}, {"window": 4, "causal": False}):
        with pytest.raises(ConfigError, match="window"):
            tiny(**fields).validate()


def _record(only: set[str] | None = None, **fields: object) -> Recorder:
    model = loud(tiny(**fields))
    recorder = Recorder(only)
    model(some_tokens(model.config), recorder)
    return recorder


def test_names_are_those_of_the_vocabulary() -> None:
    seen = set()
    bert = {"causal": False, "token_types": 2, "embedding_norm": True, "output_head": "masked"}
    for fields in (
        {"position": "learned", "ffn": "swiglu"},
        {"position": "rope", "wiring": "post"},
        bert,
        {"n_experts": 3, "mixer": "gated"},
    ):
        seen |= {name.rpartition(".")[2] for name in _record(**fields).tensors}
    pair = build_pair(Seq2SeqConfig.of(tiny())).eval()
    recorder = Recorder()
    pair(some_tokens(pair.config.encoder), some_tokens(pair.config.decoder), recorder)
    seen |= {name.rpartition(".")[2] for name in recorder.tensors}
    encoder = tiny(causal=False, output_head="none", pooler=True)
    build_classifier(encoder, 3).eval()(some_tokens(encoder), recorder)
    assert seen | {"pooled", "label_logits"} == set(AXES) == seen | set(recorder.tensors) & set(AXES)
    with pytest.raises(
        ShapeError, match=r"q has shape \(2, 3\), but its axes are \(batch, head, query, d_head\)"
    ):
        Recorder()("q", torch.zeros(2, 3))


@for_each("position", ["none", "sinusoidal", "learned", "rope", "alibi", "t5"])
@for_each("n_kv_heads", [1, 2, 4])
def test_sizes_are_those_of_the_axes(position: str, n_kv_heads: int) -> None:
    recorder = _record(position=position, n_kv_heads=n_kv_heads, ffn="geglu")
    sizes = {"batch": 2, "query": 6, "key": 6, "head": 4, "kv_head": n_kv_heads}
    sizes |= {"d_model": 16, "d_head": 4, "d_ff": 24, "vocab": 11}
    for name, shape in recorder.shapes().items():
        assert shape == tuple(sizes[axis] for axis in axes_of(name)), name


def test_recording_changes_nothing_and_keeps_copies_of_what_was_asked_for() -> None:
    model = loud(tiny())
    tokens, recorder = some_tokens(model.config), Recorder()
    logits = model(tokens, recorder)
    assert torch.equal(logits, model(tokens))
    assert not any(tensor.requires_grad for tensor in recorder.tensors.values())
    kept = recorder["logits"].clone()
    with torch.no_grad():
        logits.zero_()
    assert torch.equal(recorder["logits"], kept)
    assert list(_record({"pattern"}).tensors) == ["blocks.0.pattern", "blocks.1.pattern"]
    assert list(_record({"blocks.1.z", "logits"}).tensors) == ["blocks.1.z", "logits"]


def test_an_edit_takes_effect_from_there_on() -> None:
    model, tokens = loud(tiny()), some_tokens(tiny())
    before, after = Recorder(), Recorder()
    model(tokens, before)

    def without_head_2(z: torch.Tensor) -> torch.Tensor:
        z = z.clone()
        z[:, 2] = 0
        return z

    logits = model(tokens, Patcher({"blocks.0.z": without_head_2}, then=after))
    assert torch.equal(before["blocks.0.pattern"], after["blocks.0.pattern"])
    assert not after["blocks.0.z"][:, 2].any()
    assert torch.equal(before["blocks.0.z"][:, 3], after["blocks.0.z"][:, 3])
    assert not torch.equal(before["logits"], after["logits"])
    assert torch.equal(logits, after["logits"])
    assert torch.equal(model(tokens), before["logits"])  # the model itself is as it was


@for_each(
    "name",
    ["blocks.0.resid_post", "embed", "norm_final", "blocks.1.pattern", "blocks.1.masked_scores", "logits"],
)
def test_patching_in_another_prompt_s_activation_gives_its_result(name: str) -> None:
    model = loud(tiny(position="none", n_layers=2))
    source = Recorder()
    one, other = some_tokens(model.config, seed=1), some_tokens(model.config, seed=2)
    expected = model(other, source)
    logits = model(one, Patcher({name: lambda x: source[name]}))
    assert torch.equal(logits, expected) == (name not in ("blocks.1.pattern", "blocks.1.masked_scores"))
    assert not torch.equal(logits, model(one))


@for_each("edit", [lambda z: z[:, :1], lambda z: None, lambda z: 0.0])
def test_an_edit_of_another_shape_is_refused(edit: object) -> None:
    with pytest.raises(
        ShapeError, match=r"the edit of blocks\.0\.z must return a tensor of shape \(2, 4, 6, 4\)"
    ):
        loud(tiny())(some_tokens(tiny()), Patcher({"blocks.0.z": edit}))
