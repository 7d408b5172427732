"""What is exported opens with transformers and gives the same logits; what no family can say is refused by name."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import checkpoints
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import PretrainedError
from engine.model import Transformer, build
from engine.parts.registry import parts_of
from studies.costs.presets import PRESETS
from studies.weights.export import pack
from studies.weights.export.hugging_face import plan, undone
from studies.weights.export.writers import WRITERS
from studies.weights.pretrained.load import open_model
from studies.weights.pretrained.weights import by_head, half_split, transposed
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny
from tests.studies.seq2seq_toys import loud_pair

ROOT = Path(__file__).resolve().parents[3]
GPT2 = {"ffn": "gelu_tanh", "attention_bias": True, "ffn_bias": True, "norm_bias": True}
LLAMA = {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "d_ff": 21}
# fields -> (family, what has to be filled in)
SAID: dict[str, tuple[dict[str, Any], str, set[str]]] = {
    "gpt2": (GPT2, "gpt2", set()),
    "classic, exact GELU": ({"ffn": "gelu"}, "gpt2", {"attention_bias", "output_bias", "ffn_bias", "norm_bias"}),
    "squared ReLU, no gains": (
        {**GPT2, "ffn": "relu2", "norm_gain": False, "norm_bias": False}, "gpt2", {"norm_bias", "norm_gain"}
    ),
    "no output bias": ({**GPT2, "ffn": "relu", "output_bias": False}, "gpt2", {"output_bias"}),
    "sine waves": ({**GPT2, "position": "sinusoidal"}, "gpt2", {"position"}),
    "no positions": ({**GPT2, "position": "none"}, "gpt2", {"position"}),
    "llama": ({**LLAMA, "tie_embeddings": False, "n_kv_heads": 2}, "llama", set()),
    "llama, tied, wide heads": ({**LLAMA, "d_head": 6, "norm_eps": 1e-3, "rope_theta": 77.0}, "llama", set()),
    "no gains": ({**LLAMA, "norm_gain": False}, "llama", {"norm_gain"}),
    "mistral": ({**LLAMA, "window": 3, "n_kv_heads": 1}, "mistral", set()),
    "qwen2": ({**LLAMA, "attention_bias": True, "output_bias": False}, "qwen2", set()),
    "gpt2, untied": ({**GPT2, "tie_embeddings": False}, "gpt2", set()),
    "llama with biases": ({**LLAMA, "attention_bias": True, "ffn_bias": True}, "llama", set()),
    "qwen3": ({**LLAMA, "qk_norm": True, "qk_gain": True, "n_kv_heads": 2}, "qwen3", set()),
    "qwen3, no gains": ({**LLAMA, "qk_norm": True, "norm_gain": False}, "qwen3", {"norm_gain", "qk_gain"}),
    "gemma": ({**LLAMA, "ffn": "geglu_tanh", "embedding_scale": True, "d_head": 6}, "gemma", set()),
    "bloom": (
        {**GPT2, "position": "alibi", "embedding_norm": True, "d_ff": 64, "n_heads": 2}, "bloom", set()
    ),
    "pythia": (
        {**GPT2, "ffn": "gelu", "position": "rope", "rope_fraction": 0.5, "wiring": "parallel",
         "tie_embeddings": False}, "gpt_neox", set(),
    ),
    "neox, one after the other": (
        {"position": "rope", "ffn": "relu", "norm_gain": False}, "gpt_neox",
        {"ffn_bias", "norm_bias", "norm_gain"},
    ),
}  # fmt: skip


def unpacked(data: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return folder


def letters(model: Transformer) -> CharTokenizer:
    return CharTokenizer("".join(chr(97 + i) for i in range(model.config.vocab_size)))


@pytest.mark.parametrize("name", SAID)
@torch.no_grad()
def test_transformers_opens_it(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fields, family, filled = SAID[name]
    model = loud(tiny(context=12, **fields), factor=8.0)
    found = plan(model)
    assert (found.family, set(found.filled)) == (family, filled)
    folder = unpacked(pack.hugging_face(model, found, letters(model), "float32"), tmp_path)
    theirs, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert type(theirs).__name__ == WRITERS[family].architecture
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    tokens = some_tokens(model.config, 2, 12)
    ours, expected = model(tokens), theirs.eval()(tokens).logits
    assert ours.std() > 0.1
    assert torch.allclose(ours, expected, atol=1e-4, rtol=1e-4), (ours - expected).abs().max()
    back = open_model(folder)  # and this app opens it, too
    assert torch.allclose(back.model()(tokens), ours, atol=1e-4, rtol=1e-4)


@for_each("fields, says", [
    ({"position": "t5"}, "has position = 't5'"), ({"output_head": "masked"}, "has output_head = 'masked'"),
    ({"causal": False}, "has causal = False"), ({"wiring": "none"}, "has wiring = 'none'"),
    ({"ffn": "none"}, "has ffn = 'none'"), ({"mixer": "mean"}, "has mixer = 'mean'"),
    ({"norm": "none"}, "has norm = 'none'"), ({"output_projection": False}, "has output_projection = False"),
    ({**LLAMA, "ffn": "relu2"}, "the nearest"), ({**GPT2, "position": "alibi"}, "has no position = 'alibi'"),
    ({**GPT2, "n_kv_heads": 2}, "has no n_kv_heads = 2"),
])  # fmt: skip
def test_what_no_family_has_is_named(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(PretrainedError) as error:
        plan(loud(tiny(**fields)))
    assert says in str(error.value), error.value
    with pytest.raises(PretrainedError, match="unscaled_scores"):
        plan(build(tiny(**GPT2), parts=parts_of("unscaled_scores")))


def test_published_models_are_their_own_families() -> None:
    """Of any size: nothing is allocated."""
    families = {"gpt3-175b": "gpt2", "llama3-8b": "llama", "mistral-7b": "mistral", "pythia-70m": "gpt_neox"}
    for name, family in families.items():
        found = plan(build(replace(PRESETS[name].model, n_layers=1), device="meta"))
        assert (found.family, found.filled) == (family, ())


@for_each("change, shape", [
    (transposed, (6, 4)), (transposed, (4, 4)), (transposed, (5,)), (half_split(2), (8, 3)),
    (by_head(2), (12, 5)), (by_head(2), (12,)),
])  # fmt: skip
def test_changes_are_undone(change: Any, shape: tuple[int, ...]) -> None:
    theirs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(undone(torch.from_numpy(change(theirs.numpy()).copy()), change), theirs)
    assert torch.allclose(undone(theirs + 1, lambda x: x + 1), theirs, atol=1e-6), (
        "a constant, and nothing else"
    )
    with pytest.raises(PretrainedError, match="cannot be undone"):
        undone(theirs, lambda x: 2 * x)


@pytest.mark.parametrize("dtype", pack.DTYPES)
@torch.no_grad()
def test_fewer_bits(dtype: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = loud(tiny(**GPT2), factor=8.0)
    folder = unpacked(pack.hugging_face(model, plan(model), letters(model), dtype), tmp_path)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert theirs.dtype == pack.DTYPES[dtype]
    tokens = some_tokens(model.config)
    off = (theirs.eval()(tokens).logits.float() - model(tokens)).abs().max()
    assert off < {"float32": 1e-4, "float16": 0.05, "bfloat16": 0.5}[dtype]
    size = pack.size(model, dtype)
    assert size.bytes == sum(p.numel() for p in model.parameters()) * (4 if dtype == "float32" else 2)
    size = pack.size(build(tiny(d_model=512, d_ff=2048), device="meta"), dtype)
    size.allow(size.bytes)
    with pytest.raises(PretrainedError, match="Choose fewer bits"):
        size.allow(size.bytes - 1)


@pytest.mark.parametrize("name, family", [("classic", "gpt2"), ("modern", "llama")])
@torch.no_grad()
def test_shipped_models_with_their_tokenizer(name: str, family: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    shipped = checkpoints.load(ROOT / "checkpoints" / f"shakespeare-{name}")
    found = plan(shipped.model)
    assert (found.family, found.filled) == (family, ())
    folder = unpacked(pack.hugging_face(shipped.model, found, shipped.tokenizer, "float32"), tmp_path)
    text = "ROMEO:\nBut soft, what light   through yonder window breaks? & $3"
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ids = theirs(text)["input_ids"]
    assert ids == shipped.tokenizer.encode(text) and theirs.decode(ids) == text
    logits = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()(torch.tensor([ids])).logits
    assert (logits - shipped.model(torch.tensor([ids]))).abs().max() < 1e-4


def test_an_encoder_decoder_is_not_written_and_what_a_t5_lacks_is_named() -> None:
    of_t5 = {"position": "t5", "norm": "rmsnorm", "score_scale": False}
    for fields, says in (
        ({"output_head": "scaled"}, "it is a T5, which can be imported here but not exported"),
        ({"ffn": "geglu_tanh", "tie_embeddings": False}, "it is a T5"),
        ({"ffn": "geglu"}, "has no ffn = 'geglu'"), ({"position": "rope"}, "has no position = 'rope'"),
    ):  # fmt: skip
        with pytest.raises(PretrainedError, match=says):
            plan(loud_pair(**({"ffn": "relu"} | of_t5 | fields)))
