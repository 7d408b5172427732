"""Adapters in PEFT's layout: they change the exported matrices as they change ours."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
import torch
from safetensors.torch import load

from engine.errors import PretrainedError
from engine.model import build
from studies.after import finetune
from studies.after.finetune import Adapter, FinetuneRecipe, adapters, merged, with_weights
from studies.weights.export import pack
from studies.weights.export.adapter import PREFIX, adapter_tensors, peft
from studies.weights.export.hugging_face import plan, tensors
from tests.engine.helpers import loud, some_tokens, tiny
from tests.studies.export.test_hugging_face import LLAMA, letters, unpacked

FIELDS = {**LLAMA, "n_kv_heads": 2}


def tuned(**fields):
    """A model, and adapters that change it."""
    model = loud(tiny(**fields)).requires_grad_(False).eval()
    generator = torch.Generator().manual_seed(0)
    drawn = adapters(model, FinetuneRecipe(rank=2))
    return model, {
        name: Adapter(torch.randn(a.up.shape, generator=generator) / 4, a.down.detach())
        for name, a in drawn.items()
    }


@pytest.mark.parametrize("fields", [FIELDS, {**FIELDS, "attention_bias": True, "output_bias": False}])
def test_the_exported_matrices_change_by_the_exported_adapters(fields):
    model, drawn = tuned(**fields)
    before, after = (tensors(each, plan(each)) for each in (model, with_weights(model, merged(model, drawn))))
    written = adapter_tensors(model, drawn)
    names = {name.rpartition(".lora_")[0] for name in written}
    assert len(names) == 4 * model.config.n_layers  # queries, keys, values and the output
    for place in names:
        product = written[f"{place}.lora_B.weight"] @ written[f"{place}.lora_A.weight"]
        matrix = place.removeprefix(PREFIX) + ".weight"
        torch.testing.assert_close(after[matrix], before[matrix] + product, rtol=1e-4, atol=1e-5)


def test_the_configuration_names_base_rank_and_matrices():
    model, drawn = tuned(**FIELDS)
    with zipfile.ZipFile(io.BytesIO(peft(model, drawn, "some/model"))) as archive:
        config = json.loads(archive.read("adapter_config.json"))
        held = load(archive.read("adapter_model.safetensors"))
    assert (config["base_model_name_or_path"], config["r"], config["lora_alpha"]) == ("some/model", 2, 2)
    assert config["target_modules"] == ["k_proj", "o_proj", "q_proj", "v_proj"]
    assert held.keys() == adapter_tensors(model, drawn).keys()


def test_a_family_whose_matrices_lie_otherwise_is_refused():
    model = build(
        tiny(ffn="gelu_tanh", attention_bias=True, ffn_bias=True, norm_bias=True, position="learned")
    )
    with pytest.raises(PretrainedError, match="gpt2"):
        adapter_tensors(model, adapters(model, FinetuneRecipe(rank=1)))


@pytest.mark.exhaustive
@torch.no_grad()
def test_peft_opens_them_over_the_exported_model(tmp_path):
    transformers, library = pytest.importorskip("transformers"), pytest.importorskip("peft")
    model, drawn = tuned(**FIELDS)
    base = unpacked(pack.hugging_face(model, plan(model), letters(model), "float32"), tmp_path / "base")
    files = unpacked(peft(model, drawn, str(base)), tmp_path / "adapter")
    theirs = library.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(base), files
    ).eval()
    ids = some_tokens(model.config)
    expected = with_weights(model, merged(model, drawn))(ids)
    torch.testing.assert_close(theirs(ids).logits, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(model(ids), expected, atol=1e-2)


def test_loss_and_gradients_of_a_step_are_those_of_peft(tmp_path, monkeypatch):
    transformers, library = pytest.importorskip("transformers"), pytest.importorskip("peft")
    model, drawn = tuned(**FIELDS)
    base = unpacked(pack.hugging_face(model, plan(model), letters(model), "float32"), tmp_path / "base")
    files = unpacked(peft(model, drawn, str(base)), tmp_path / "adapter")
    theirs = library.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(base), files, is_trainable=True
    )
    ids = some_tokens(model.config)
    result = theirs(ids, labels=ids)  # transformers shifts the labels by itself
    result.loss.backward()
    expected = {
        name.replace(".default", ""): p.grad for name, p in theirs.named_parameters() if p.requires_grad
    }

    leaves = {n: Adapter(a.up.requires_grad_(), a.down.requires_grad_()) for n, a in drawn.items()}
    monkeypatch.setattr(finetune, "adapters", lambda model, recipe: leaves)
    looks = finetune.fine_tune_on(
        model, (ids[:, :-1], ids[:, 1:]), FinetuneRecipe(rank=2, steps=1, rate=1e-3)
    )
    first, _ = looks
    assert first.loss == pytest.approx(float(result.loss.detach()), rel=1e-5)
    ups = adapter_tensors(model, {n: Adapter(a.up.grad, a.down.grad) for n, a in leaves.items()})
    for name in (name for name in ups if "lora_B" in name):
        torch.testing.assert_close(ups[name], expected[name], rtol=1e-4, atol=1e-6)
    for i in range(model.config.n_layers):  # ours share one `down`, theirs have three that begin alike
        place = f"{PREFIX}model.layers.{i}.self_attn"
        shared = sum(expected[f"{place}.{each}_proj.lora_A.weight"] for each in "qkv")
        down = leaves[f"blocks.{i}.mixer.w_qkv.weight"].down.grad
        torch.testing.assert_close(down, shared, rtol=1e-4, atol=1e-6)
        assert float(down.abs().max()) > 1e-3
