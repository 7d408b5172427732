"""The ledger counts what the model holds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.ledger import component_parameters, shape_trace
from engine.model import build
from engine.presets import PRESETS
from engine.probe import axes_of


def counted(config: ModelConfig) -> dict[str, int]:
    """The same, by looking at the names of a real model's parameters."""
    places = {"mixer": "attention", "ffn": "feedforward", "norm1": "norm1", "norm2": "norm2"}
    found = dict.fromkeys(component_parameters(config), 0)
    for name, parameter in build(config, device="meta").named_parameters():
        first, *rest = name.split(".")
        part = places[rest[1]] if first == "blocks" else {"positions": "position"}.get(first, first)
        found[part] += parameter.numel()
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_counted_part_by_part(name):
    assert component_parameters(PRESETS[name].model) == counted(PRESETS[name].model)


def test_published_totals():
    totals = {name: sum(component_parameters(PRESETS[name].model).values()) for name in ("gpt2", "llama2-7b", "llama2-70b")}
    assert totals == {"gpt2": 124_439_808, "llama2-7b": 6_738_415_616, "llama2-70b": 68_976_648_192}


@given(
    st.sampled_from(["layernorm", "rmsnorm", "none"]), st.sampled_from(["pre", "post", "parallel", "none"]),
    st.sampled_from(["gelu", "swiglu", "none"]), st.sampled_from(["none", "learned", "rope", "t5"]),
    st.sampled_from(["none", "mean", "shared_qk", "attention"]), st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_any_architecture_is_counted_part_by_part(norm, wiring, ffn, position, mixer, flags):
    tied, attention_bias, ffn_bias, gain, projected = flags
    config = ModelConfig(
        vocab_size=7, context=6, d_model=8, n_layers=2, n_heads=2, norm=norm, wiring=wiring, ffn=ffn, position=position, mixer=mixer, tie_embeddings=tied,
        attention_bias=attention_bias, ffn_bias=ffn_bias, norm_gain=gain, norm_bias=gain and norm == "layernorm", output_projection=projected,
    )
    assert component_parameters(config) == counted(config)


def test_shape_trace_is_that_of_a_real_forward_pass():
    from engine.probe import Recorder

    config = ModelConfig(vocab_size=7, context=6, d_model=8, n_layers=1, n_heads=2, n_kv_heads=1, position="rope", ffn="swiglu")
    recorder = Recorder()
    build(config)(torch.zeros(1, 6, dtype=torch.int64), recorder)
    assert shape_trace(config) == {name.removeprefix("blocks.0."): shape for name, shape in recorder.shapes().items()}


def test_shape_trace_of_the_largest_preset():
    trace = shape_trace(PRESETS["llama2-70b"].model)
    assert trace["pattern"] == (1, 64, 4096, 4096) and trace["k"] == (1, 8, 4096, 128)
    assert all(len(shape) == len(axes_of(name)) for name, shape in trace.items())


def test_what_cannot_be_built_cannot_be_counted():
    with pytest.raises(ConfigError, match="n_heads"):
        component_parameters(ModelConfig(n_heads=3))
