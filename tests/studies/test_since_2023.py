"""Cards of models since 2023 against transformers' models of the same configurations, built on the meta device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.config import ModelConfig
from studies.costs.ledger import kv_numbers, ledger
from studies.costs.since_2023 import CARDS, _dense, _grouped
from tests.engine.cases import for_each

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed (requirements-dev.txt has it)"
)
DEEPSEEK = {"vocab_size": 129_280, "num_hidden_layers": 61}
GEMMA = {"vocab_size": 262_144, "attn_implementation": "eager"}
THEIRS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "deepseek-v3": ("DeepseekV3Config", "DeepseekV3ForCausalLM", DEEPSEEK),
    "kimi-k2": (
        "DeepseekV3Config", "DeepseekV3ForCausalLM",
        DEEPSEEK | {
            "vocab_size": 163_840, "num_attention_heads": 64, "num_key_value_heads": 64,
            "n_routed_experts": 384, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
        },
    ),
    "gemma3-1b": (
        "Gemma3TextConfig", "Gemma3ForCausalLM",
        GEMMA | {
            "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
            "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
        },
    ),
    "gemma3-27b": (
        "Gemma3TextConfig", "Gemma3ForCausalLM",
        GEMMA | {
            "hidden_size": 5376, "intermediate_size": 21_504, "num_hidden_layers": 62,
            "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024,
        },
    ),
    "qwen3-30b-a3b": (
        "Qwen3MoeConfig", "Qwen3MoeForCausalLM",
        {"num_hidden_layers": 48, "head_dim": 128, "num_experts": 128, "moe_intermediate_size": 768},
    ),
    "glm-4.5": (
        "Glm4MoeConfig", "Glm4MoeForCausalLM",
        {
            "hidden_size": 5120, "intermediate_size": 12_288, "num_hidden_layers": 92, "head_dim": 128,
            "n_routed_experts": 160, "moe_intermediate_size": 1536, "first_k_dense_replace": 3,
            "use_qk_norm": True, "attention_bias": True,
        },
    ),
    "gpt-oss-20b": (
        "GptOssConfig", "GptOssForCausalLM", {"num_hidden_layers": 24, "num_local_experts": 32},
    ),
    "gpt-oss-120b": (
        "GptOssConfig", "GptOssForCausalLM", {"num_hidden_layers": 36, "num_local_experts": 128},
    ),
    "qwen3-next-80b-a3b": ("Qwen3NextConfig", "Qwen3NextForCausalLM", {}),
}  # fmt: skip


@lru_cache(2)
def theirs(name: str) -> torch.nn.Module:
    config, kind, values = THEIRS[name]
    values = {"attn_implementation": "eager"} | values
    with torch.device("meta"):
        return getattr(transformers, kind)(getattr(transformers, config)(**values)).eval()


def tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Its parameters, and the bias for balance, which transformers holds as a buffer."""
    balance = {name: each for name, each in model.named_buffers() if "correction_bias" in name}
    return dict(model.named_parameters()) | balance


def chosen(config: Any) -> float:
    count = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    count = count or getattr(config, "n_routed_experts", None)
    return config.num_experts_per_tok / count if count else 1.0


def test_every_card_has_a_model_of_transformers_beside_it():
    assert CARDS.keys() == THEIRS.keys()


@for_each("name", list(CARDS))
def test_a_card_has_as_many_parameters_as_the_model_and_a_token_meets_the_chosen_experts(name):
    card, model = CARDS[name], theirs(name)
    found = tensors(model)
    assert card.total == sum(each.numel() for each in found.values())
    met = {
        key: each.numel() * (chosen(model.config) if ".experts." in key else 1) for key, each in found.items()
    }
    if not card.tied:
        met["model.embed_tokens.weight"] = card.d_model
    assert card.active == sum(met.values())
    assert (card.d_model, card.vocab_size) == (model.config.hidden_size, model.config.vocab_size)
    assert card.tied == (model.lm_head.weight is model.model.embed_tokens.weight)


@for_each("name", list(CARDS))
def test_a_card_has_the_layers_caches_and_windows_of_the_model(name):
    card, model = CARDS[name], theirs(name)
    cached, state, windowed, grows = 0, 0, 0, 0
    for layer in model.model.layers:
        at = getattr(layer, "self_attn", None)
        if at is None:
            at = layer.linear_attn
            state += at.num_v_heads * at.head_k_dim * at.head_v_dim
            continue
        if hasattr(at, "kv_a_proj_with_mqa"):
            numbers = at.kv_a_proj_with_mqa.out_features
        else:
            numbers = at.k_proj.out_features + at.v_proj.out_features
        cached += numbers
        short = bool(getattr(at, "sliding_window", None))
        windowed, grows = windowed + short, grows + numbers * (not short)
    window = model.config.sliding_window if windowed else 0
    assert card.cache(1) == 2 * cached and card.state == 2 * state
    assert card.windows == (windowed, len(model.model.layers), window)
    assert card.cache(100_000) - card.cache(99_999) == 2 * grows


@for_each("name", [name for name in CARDS if name != "qwen3-next-80b-a3b"])
def test_the_products_of_attention_are_those_that_torch_is_asked_for(name):
    card, model, tokens = CARDS[name], theirs(name), 24
    at = model.model.layers[-1].self_attn
    x = torch.empty(1, tokens, card.d_model, device="meta")
    kinds = {"layer_type": at.layer_type} if name.startswith("gemma") else {}
    with torch.device("meta"), torch.no_grad():
        turned = model.model.rotary_emb(x, torch.arange(tokens)[None], **kinds)
        with FlopCounterMode(display=False) as counter:
            at(x, position_embeddings=turned, attention_mask=torch.zeros(1, 1, tokens, tokens))
    found = counter.get_total_flops()
    assert 2 * tokens * card.stack[-1].attention.products(tokens) == found


@for_each("name", list(CARDS))
def test_flops_are_two_for_each_parameter_in_a_matrix_that_is_met_and_those_of_attention(name):
    card, model = CARDS[name], theirs(name)
    matrices = sum(
        each.numel() * (chosen(model.config) if ".experts." in key else 1)
        for key, each in tensors(model).items()
        if each.dim() > 1 and "embed_tokens" not in key and not key.endswith("_bias")
    )
    matrices += card.d_model * card.vocab_size if card.tied else 0
    compared = sum(layers.count * layers.attention.compared for layers in card.stack)
    assert card.flops(1) == 2 * (matrices + compared + 3 * card.state // 2)
    reach = sum(
        layers.count * layers.attention.compared for layers in card.stack if not layers.attention.window
    )
    assert card.flops(50_001) - card.flops(50_000) == 2 * reach


def test_a_plain_layer_is_counted_as_the_ledger_counts_it():
    c = ModelConfig(
        65, 64, 96, 3, n_heads=6, n_kv_heads=2, d_ff=160, ffn="swiglu", norm="rmsnorm", position="rope"
    )
    attention, network = _grouped(96, 6, 2, 16), _dense(96, 160)
    found = ledger(c)
    assert found.components["attention"] == 3 * sum(each.numbers for each in attention.tensors)
    assert found.components["feedforward"] == 3 * sum(each.numbers for each in network)
    assert kv_numbers(c.resolved()) == 3 * attention.cached
    inside = attention.products(40) + sum(each.products for each in network)
    assert found.flops(40).forward == 2 * (3 * inside + 96 * 65)
