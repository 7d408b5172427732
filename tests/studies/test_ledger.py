"""The ledger counts what the model holds, computes and keeps."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import build, count_parameters
from engine.parts.cache import KVCache
from engine.probe import Recorder
from studies.costs import ledger as ledger_module
from studies.costs.growth import break_even, by_part
from studies.costs.ledger import GB, component_parameters, ledger, parameter_formula, shape_trace
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS
from studies.shapes.operations import totals, trace
from tests.engine.cases import for_each
from tests.engine.saved_for_backward import DTYPES, kept
from tests.engine.toys import TOYS

EVERY = PRESETS | ENCODER_DECODERS
PUBLISHED = {
    "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
    "bert-base": 109_482_240, "t5-base": 222_903_552, "transformer-base": 63_045_632,
    "mistral-7b": 7_241_732_096, "llama3-8b": 8_030_261_248, "qwen2.5-0.5b": 494_032_768,
    "gemma-2b": 2_506_172_416, "pythia-70m": 70_426_624, "gpt3-175b": 174_604_259_328,
    "smollm2-135m": 134_515_008,
}  # fmt: skip


def of(name: str):
    return ledger_module.ledger_of(EVERY[name])


def counted(config: ModelConfig) -> dict[str, int]:
    """The same, by looking at the names of a real model's parameters."""
    places = {"mixer": "attention", "ffn": "feedforward", "norm1": "norm1", "norm2": "norm2"}
    found = dict.fromkeys(component_parameters(config), 0)
    for name, parameter in build(config, device="meta").named_parameters():
        first, *rest = name.split(".")
        ends = {"positions": "position", "token_types": "embedding", "output": "unembedding"}
        part = places[rest[1]] if first == "blocks" else ends.get(first, first)
        found[part] += parameter.numel()
    return found


@st.composite
def legal(draw: st.DrawFn) -> ModelConfig:
    sizes: dict[str, list[Any]] = {
        "n_heads": [1, 2, 4], "n_kv_heads": [None, 1, 2, 4], "d_model": [4, 8, 12], "d_head": [None, 2, 3, 6],
        "d_ff": [None, 5, 16], "rope_fraction": [0.25, 0.5, 1.0], "norm_eps": [1e-5], "dropout": [0.0, 0.1],
        "rope_theta": [100.0, 1e4], "n_experts": [0, 3, 8], "router_scale": [2.5], "balance_rate": [0.01],
    }  # fmt: skip
    simple = {bool: [False, True], int: list(range(1, 10))}
    values = {
        name: st.sampled_from(sizes.get(name) or simple.get(hint) or get_args(hint))
        for name, hint in get_type_hints(ModelConfig).items()
        if name in ModelConfig.__dataclass_fields__
    }
    config = ModelConfig(**draw(st.fixed_dictionaries(values)))
    try:
        return config.validate()
    except ConfigError as error:
        repaired = replace(
            config, norm_bias=False, window=0, n_kv_heads=None, d_head=None, d_model=8, rope_fraction=1.0,
            qk_gain=False, embedding_norm=False, qk_norm=config.qk_norm and config.mixer != "mla", d_rotated=0,
            n_experts=0,
        )  # fmt: skip
        two = error.field == "d_head" or config.position == "rope"
        return (replace(repaired, n_heads=2) if two else repaired).validate()


@settings(max_examples=100, deadline=None)
@given(legal())
def test_any_legal_configuration_is_counted_as_its_model_is_built(config):
    found = ledger(config)
    assert found.total == count_parameters(config) == parameter_formula(config)
    assert component_parameters(config) == counted(config) and sum(found.components.values()) == found.total
    assert sum(row.each * row.copies for row in found.rows) == found.total
    assert {row.component for row in found.rows} <= set(ledger_module.COMPONENTS)


@settings(max_examples=60, deadline=None)
@given(legal(), st.integers(1, 9))
def test_flops_are_those_that_torch_was_asked_for(config, tokens):
    tokens = min(tokens, config.context)
    whole = replace(config, window=0)  # beyond a window the engine computes what it then hides
    assert ledger(whole).flops(tokens).text == totals(trace(config, tokens))["products"]


@for_each("name", PRESETS)
def test_every_preset_is_counted_part_by_part(name):
    config = PRESETS[name].model
    assert component_parameters(config) == counted(config)
    assert PRESETS[name].trainable or name in PUBLISHED
    assert ledger(replace(config, window=0)).flops().text == totals(trace(config, config.context))["products"]


def test_published_totals_and_what_a_window_bounds():
    assert {name: of(name).total for name in PUBLISHED} == PUBLISHED
    mistral, whole = of("mistral-7b"), ledger(replace(PRESETS["mistral-7b"].model, window=0))
    assert mistral.config.context == 32_768
    assert mistral.memory("bfloat16").kv_cache == GB // 2 and whole.memory("bfloat16").kv_cache == 4 * GB
    assert mistral.memory("bfloat16", tokens=1000).kv_cache == whole.memory("bfloat16", tokens=1000).kv_cache
    assert mistral.flops().scores == whole.flops(4096).scores == 32 * 2 * 2 * 4096 * 32 * 128
    assert mistral.flops().forward - mistral.flops().scores == whole.flops().forward - whole.flops().scores
    assert mistral.crossover() is None and whole.crossover() > 4096
    flops = of("gpt2").flops(1024)
    assert flops.six_n == 6 * 124_439_808 and flops.training == 3 * flops.forward
    assert flops.forward == 2 * 12 * 12 * 768**2 + 4 * 12 * 1024 * 768 + 2 * 768 * 50_257


@for_each("name", EVERY)
def test_a_formula_says_what_its_number_is(name):
    for row in of(name).rows:
        assert math.prod(int(factor.replace(",", "")) for factor in row.numbers.split("·")) == row.each
        assert row.formula.count("·") == row.numbers.count("·")


def test_layers_with_a_window_and_without_are_counted_apart():
    """As gpt-oss and Gemma 3 have them, against the same model with the window in all layers and in none."""
    every, none = {"window": 100}, {}
    some, windowed, whole = (
        ledger(ModelConfig(65, 4096, 64, 7, 4, **fields))
        for fields in (every | {"global_every": 3}, every, none)
    )
    for tokens in (50, 100, 3000):
        for costs in (
            lambda each, t: each.flops(t).scores,
            lambda each, t: each.memory(tokens=t).kv_cache,
            lambda each, t: by_part(each, np.array([t]))["scores and weighted sums"][0],
        ):
            assert 7 * costs(some, tokens) == 2 * costs(whole, tokens) + 5 * costs(windowed, tokens)
    assert some.total == whole.total and windowed.crossover() is None
    crossing = some.crossover()
    for tokens, beyond in ((crossing - 1, False), (crossing, True)):
        found = some.flops(tokens)
        assert (2 * found.scores >= found.forward) == beyond
    assert break_even(some).window == 0 and break_even(windowed).window == 100
    never = ledger(ModelConfig(65, 4096, 64, 2, 4, global_every=3, **every))  # fewer layers than that
    assert never.crossover() is None and never.config.widest_window == 100


def test_t5_is_an_encoder_and_a_decoder_of_one_embedding():
    found = of("t5-base")
    both = Counter()
    for row in found.rows:
        both[row.stack] += row.parameters
    encoder, decoder = 12 * 7_079_424 + 384 + 768, 12 * 9_439_488 + 384 + 768
    assert both == {"": 32_128 * 768, "encoder": encoder, "decoder": decoder}
    cross = sum(p.flops for p in found.flops(10).rows if p.component == "cross_attention")
    assert cross == 12 * (4 * 2 * 768 * 768 + 2 * 2 * 10 * 768)


def test_a_stack_counts_what_is_its_own():
    t5 = of("t5-base")
    attention = 12 * 4 * 768 * 768  # W_Q, W_K, W_V and W_O of every block
    assert t5.of_stack("encoder", ("attention", "cross_attention")) == attention
    assert t5.of_stack("decoder", ("attention", "cross_attention")) == 2 * attention


@for_each("name", TOYS)
def test_the_ledger_asks_the_parts_that_it_is_given(name):
    config, parts = ModelConfig(n_layers=2, d_model=32, context=16), TOYS[name]
    found = ledger(config, parts=parts)
    assert found.total == count_parameters(config, parts) == sum(component_parameters(config, parts).values())
    with FlopCounterMode(display=False) as counter:
        build(config, device="meta", parts=parts)(torch.empty(1, 16, dtype=torch.int64, device="meta"))
    assert found.flops(16).forward * 16 == counter.get_total_flops()


@for_each("name", ["gpt2", "llama2-70b", "gemma-2b", "t5-base"])
def test_at_the_crossover_scores_cost_as_much_as_the_rest(name):
    found = of(name)
    at = found.crossover()
    after, before = found.flops(at), found.flops(at - 1)
    assert 2 * after.scores >= after.forward and 2 * before.scores < before.forward
    assert ledger(ModelConfig(mixer="none")).crossover() is None


def test_memory_of_llama2_7b():
    memory = of("llama2-7b").memory("bfloat16", batch=1, tokens=4096)
    n = 6_738_415_616
    assert memory.weights == memory.gradients == 2 * n and (memory.master, memory.moments) == (4 * n, 8 * n)
    assert memory.kv_cache == 2 * GB  # 32 layers, 2 x 32 heads x 128, 4,096 tokens, 2 bytes
    assert memory.training - memory.activations == 16 * n and memory.inference == 2 * n + 2 * GB
    full = of("llama2-7b").memory("float32")
    assert full.training - full.activations == 16 * n and full.master == 0
    quarter = of("llama2-7b").memory("int4", tokens=4096)
    assert quarter.weights == n // 2
    assert quarter.kv_cache == 2 * GB
    assert quarter.gradients == quarter.moments == quarter.activations == 0


@for_each("kv", [1, 2, 4])
def test_the_cache_is_as_large_as_the_real_one(kv):
    config = ModelConfig(n_kv_heads=kv, context=24)
    held = KVCache(config, 24, torch.empty(0, dtype=torch.bfloat16), batch=3).held
    assert ledger(config).memory("bfloat16", batch=3, tokens=24).kv_cache == held.nbytes
    assert ledger(ModelConfig(causal=False)).memory().kv_cache == 0


VARIANTS: list[dict[str, Any]] = [
    {}, {"norm": "rmsnorm", "ffn": "swiglu", "position": "rope", "tie_embeddings": False, "n_kv_heads": 2},
    {"wiring": "post", "norm_bias": True}, {"wiring": "parallel"}, {"norm": "none"}, {"ffn": "relu"},
    {"ffn": "relu2", "norm": "rmsnorm", "norm_gain": False}, {"ffn": "none"}, {"mixer": "none"},
    {"output_projection": False}, {"position": "alibi", "ffn": "geglu"},
    {"qk_norm": True, "position": "rope"}, {"mixer": "mean"}, {"wiring": "none"}, {"mixer": "similarity"},
    {"mixer": "shared_qk", "qk_norm": True}, {"attention_bias": True, "ffn_bias": True, "ffn": "gelu_tanh"},
    {"position": "rope", "rope_fraction": 0.5}, {"n_kv_heads": 1}, {"n_kv_heads": 1, "position": "rope"},
    {"n_kv_heads": 2, "qk_norm": True, "position": "rope"}, {"n_kv_heads": 1, "qk_norm": True},
    {"n_heads": 1}, {"mixer": "shared_qk", "position": "rope"},
    {"mixer": "similarity", "position": "rope", "norm": "rmsnorm"}, {"mixer": "similarity", "qk_norm": True},
    {"wiring": "parallel", "norm": "rmsnorm"}, {"wiring": "parallel", "norm": "none"},
    {"wiring": "post", "norm": "rmsnorm", "norm_gain": False, "causal": False},
    {"window": 8, "position": "alibi"}, {"window": 8, "global_every": 2, "position": "rope", "n_kv_heads": 2},
    {"mixer": "gated", "position": "rope", "n_kv_heads": 2}, {"ffn": "swiglu_clamped"}, {"mixer": "mla", "position": "rope"}, {"mixer": "mla", "d_query": 20, "attention_bias": True},
    {"mixer": "mla", "d_latent": 10, "d_rotated": 4, "output_projection": False},
    {"mixer": "sinks", "position": "rope", "n_kv_heads": 2, "attention_bias": True},
    {"qk_norm": True, "qk_gain": True, "position": "rope", "n_kv_heads": 2},
    {"mixer": "shared_qk", "qk_norm": True, "qk_gain": True},
    {"embedding_norm": True, "norm_bias": True, "position": "alibi"},
    {"embedding_norm": True, "norm": "rmsnorm", "token_types": 2},
    {"embedding_norm": True, "token_types": 2, "wiring": "post", "causal": False, "output_head": "masked"},
    {"output_head": "masked", "norm": "rmsnorm", "tie_embeddings": False},
    {"score_scale": False, "position": "t5"}, {"embedding_scale": True, "ffn": "geglu_tanh"},
    {"norm": "dyt", "norm_bias": True}, {"norm": "dyt", "norm_gain": False, "wiring": "post"},
]  # fmt: skip


@for_each("batch", [1, 2], fast=[2])
@for_each("dtype", DTYPES)
@for_each("fields", VARIANTS, ids=str)
def test_activations_are_what_backward_keeps(fields, dtype, batch):
    """Each part's `kept` and `vectors_kept`, within 1%: left over are single numbers and tables of positions."""
    config = ModelConfig(vocab_size=61, context=48, d_model=48, n_layers=3, **({"n_heads": 4} | fields))
    said = ledger(config).memory(dtype, batch=batch).activations
    assert kept(config, batch, 48, dtype) == pytest.approx(said, rel=0.01)


def test_shape_trace_is_that_of_a_real_forward_pass():
    config = ModelConfig(7, 6, d_model=8, n_layers=1, n_heads=2, n_kv_heads=1, position="rope", ffn="swiglu")
    recorder = Recorder()
    build(config)(torch.zeros(1, 6, dtype=torch.int64), recorder)
    shapes = {name.removeprefix("blocks.0."): shape for name, shape in recorder.shapes().items()}
    assert shape_trace(config) == shapes
