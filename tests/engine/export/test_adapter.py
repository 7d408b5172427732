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
from engine.training.finetune import Adapter, Recipe, adapters, changed, merged
from engine.weights.export import pack
from engine.weights.export.adapter import PREFIX, adapter_tensors, peft
from engine.weights.export.hugging_face import plan, tensors
from tests.engine.export.test_hugging_face import LLAMA, letters, unpacked
from tests.engine.helpers import loud, some_tokens, tiny

FIELDS = {**LLAMA, "n_kv_heads": 2}


def tuned(**fields):
    """A model, and adapters that change it."""
    model = loud(tiny(**fields)).requires_grad_(False).eval()
    generator = torch.Generator().manual_seed(0)
    drawn = adapters(model, Recipe(rank=2))
    return model, {
        name: Adapter(torch.randn(a.up.shape, generator=generator) / 4, a.down.detach())
        for name, a in drawn.items()
    }


@pytest.mark.parametrize("fields", [FIELDS, {**FIELDS, "attention_bias": True, "output_bias": False}])
def test_the_exported_matrices_change_by_the_exported_adapters(fields):
    model, drawn = tuned(**fields)
    before, after = (tensors(each, plan(each)) for each in (model, merged(model, changed(model, drawn))))
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
        adapter_tensors(model, adapters(model, Recipe(rank=1)))


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
    expected = merged(model, changed(model, drawn))(ids)
    torch.testing.assert_close(theirs(ids).logits, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(model(ids), expected, atol=1e-2)
