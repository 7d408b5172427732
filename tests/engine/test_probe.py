"""The probe: names and axes hold for every variant, shapes need no memory, edits take effect."""

from __future__ import annotations

import pytest
import torch

from engine.classifier import build_classifier
from engine.errors import ShapeError
from engine.probe import AXES, Patcher, Recorder, axes_of
from engine.seq2seq import build_pair
from engine.seq2seq_config import Seq2SeqConfig
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def _record(only: set[str] | None = None, **fields: object) -> Recorder:
    model = loud(tiny(**fields))
    recorder = Recorder(only)
    model(some_tokens(model.config), recorder)
    return recorder


@for_each("wiring", ["pre", "parallel", "none"])
@for_each("ffn", ["gelu", "swiglu"])
def test_activations_come_in_the_order_of_the_vocabulary(wiring: str, ffn: str) -> None:
    recorder = _record(wiring=wiring, ffn=ffn, position="rope")
    places = list(AXES)
    for prefix in ("blocks.0.", "blocks.1."):
        block = [
            places.index(name.removeprefix(prefix)) for name in recorder.tensors if name.startswith(prefix)
        ]
        assert block == sorted(block)
    names = [name for name in recorder.tensors if not name.startswith("blocks.")]
    assert names == ["tokens", "embed", "norm_final", "logits"]


def test_names_are_those_of_the_vocabulary() -> None:
    seen = set()
    bert = {"causal": False, "token_types": 2, "embedding_norm": True, "output_head": "masked"}
    for fields in ({"position": "learned", "ffn": "swiglu"}, {"position": "rope", "wiring": "post"}, bert):
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


def test_the_residual_stream_is_a_running_sum() -> None:
    r = _record(position="learned")
    assert torch.allclose(r["embed"] + r["pos_embed"], r["blocks.0.resid_pre"])
    for block in ("blocks.0.", "blocks.1."):
        assert torch.allclose(r[block + "resid_pre"] + r[block + "attn_out"], r[block + "resid_mid"])
        assert torch.allclose(r[block + "resid_mid"] + r[block + "ffn_out"], r[block + "resid_post"])
    assert torch.equal(r["blocks.0.resid_post"], r["blocks.1.resid_pre"])


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
