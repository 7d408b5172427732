"""The one model definition."""

from __future__ import annotations

import math
from itertools import product
from typing import ClassVar, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.config import GROUPED_MIXERS, Ffn, Init, Mixer, ModelConfig, Norm, Position, Wiring
from engine.errors import ConfigError, ShapeError
from engine.model import build
from engine.parts.cache import KVCache
from engine.parts.norms import RMSNorm
from engine.parts.parameters import InitialValues
from engine.parts.registry import HEALTHY, swapped
from engine.probe import Recorder
from studies.costs.ledger import parameter_formula
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny

CHOICES = {
    "norm": get_args(Norm), "wiring": get_args(Wiring), "ffn": get_args(Ffn), "position": get_args(Position),
    "mixer": get_args(Mixer),
}  # fmt: skip
NORMS, WIRINGS, FFNS, POSITIONS, MIXERS = CHOICES.values()


def _truths(config: ModelConfig) -> None:
    """What must hold for every model, whatever it is made of."""
    model = loud(config, factor=5.0)
    assert sum(p.numel() for p in model.parameters()) == parameter_formula(config)
    tokens = some_tokens(config, batch=1)
    changed = tokens.clone()
    changed[:, -1] = (tokens[:, -1] + 1) % config.vocab_size
    recorder = Recorder({"pattern"})
    logits, other = model(tokens, recorder), model(changed)
    assert logits.shape == (*tokens.shape, config.vocab_size) and torch.isfinite(logits).all()
    assert len(recorder.tensors) == (0 if config.mixer == "none" else config.n_layers)
    for pattern in recorder.tensors.values():
        lacking = 1 - pattern.sum(-1)
        assert (pattern >= 0).all() and lacking.min() > -1e-5
        assert lacking.min() > 0.01 if config.mixer == "sinks" else lacking.max() < 1e-5
        assert not (config.causal and pattern.triu(1).any())
    assert not torch.equal(logits[:, -1], other[:, -1])
    assert not config.causal or torch.equal(logits[:, :-1], other[:, :-1])


NAMED = [
    (*parts, kv_heads)
    for parts in product(POSITIONS, MIXERS, NORMS, WIRINGS, FFNS, (True, False), (True, False))
    for kv_heads in ((1, 2, 4) if parts[1] in GROUPED_MIXERS else (4,))
]
NAMES = ("position", "mixer", "norm", "wiring", "ffn", "causal", "tie_embeddings", "n_kv_heads")


@for_each("combination", NAMED, fast=400)
@torch.inference_mode()
def test_every_combination_of_named_parts(combination: tuple) -> None:
    _truths(tiny(n_layers=1, **dict(zip(NAMES, combination, strict=True))))


FLAGS = (
    "qk_norm", "output_projection", "attention_bias", "ffn_bias", "norm_gain", "norm_bias", "causal",
    "tie_embeddings",
)  # fmt: skip


@given(
    names=st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}),
    flags=st.fixed_dictionaries({name: st.booleans() for name in FLAGS}),
    sizes=st.fixed_dictionaries(
        {
            "n_layers": st.integers(1, 3), "n_heads": st.sampled_from([1, 2, 3, 4, 6]),
            "n_kv_heads": st.none() | st.integers(1, 4), "d_model": st.sampled_from([12, 24]),
            "d_ff": st.none() | st.integers(1, 40), "d_head": st.none() | st.integers(1, 9),
            "vocab_size": st.integers(2, 30), "context": st.integers(6, 12),
        }
    ),
)  # fmt: skip
def test_anything_that_validates_can_be_built_and_run(names: dict, flags: dict, sizes: dict) -> None:
    config = ModelConfig(**names, **flags, **sizes)
    try:
        config.validate()
    except ConfigError as error:
        assert error.field in config.to_dict()
        with pytest.raises(ConfigError):
            build(config)
        return
    with torch.inference_mode():
        _truths(config)


def test_initial_weights_are_the_documented_ones() -> None:
    biases = {"attention_bias": True, "ffn_bias": True, "norm_bias": True}
    config = ModelConfig(d_model=192, n_layers=8, context=128, tie_embeddings=False, **biases)
    for name, parameter in build(config).named_parameters():
        if name.endswith(("gain", "bias")):
            assert (parameter == float(name.endswith("gain"))).all(), name
        else:
            expected = 0.02 / math.sqrt(2 * 8) if name.endswith(("w_o.weight", "w_out.weight")) else 0.02
            assert parameter.std().item() == pytest.approx(expected, rel=0.05), name
            assert abs(parameter.mean().item()) < 6 * expected / math.sqrt(parameter.numel()), name


@for_each("init, table, matrix, write", [
    ("scaled", 0.02, 0.02, 0.02 / math.sqrt(6)), ("plain", 0.02, 0.02, 0.02),
    ("fan_in", 0.02, 1 / 8, 1 / 8), ("normal", 1.0, 1 / 8, 1 / 8), ("torch", 1.0, 3**-0.5 / 8, 3**-0.5 / 8),
])  # fmt: skip
def test_first_weights_as_a_training_asks_for_them(init: Init, table: float, matrix: float, write: float):
    config = ModelConfig(vocab_size=300, d_model=64, n_layers=3, context=128, tie_embeddings=False)
    found = {name: p.std().item() for name, p in build(config, init=init).named_parameters()}
    second = write if init in ("scaled", "plain") else write / 2  # w_out reads d_ff = 4 x 64 numbers
    expected = {
        "embedding": table, "positions.weight": table, "unembedding": matrix,
        "blocks.1.mixer.w_qkv.weight": matrix, "blocks.1.mixer.w_o.weight": write,
        "blocks.2.ffn.w_in.weight": matrix, "blocks.2.ffn.w_out.weight": second,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=0.05)


def test_torch_s_first_weights_are_those_of_its_own_layers() -> None:
    """U(-1/sqrt(inputs), 1/sqrt(inputs)): as `nn.Linear` draws them, whose extremes ours reach and do not pass."""
    config = ModelConfig(vocab_size=300, d_model=64, n_layers=1, context=128, tie_embeddings=False)
    ours = dict(build(config, init="torch").named_parameters())
    for name, inputs in (("blocks.0.mixer.w_qkv.weight", 64), ("blocks.0.ffn.w_out.weight", 256)):
        theirs = torch.nn.Linear(inputs, ours[name].shape[0]).weight
        assert ours[name].abs().max().item() == pytest.approx(theirs.abs().max().item(), rel=1e-3)
        assert ours[name].std().item() == pytest.approx(theirs.std().item(), rel=0.02)


def test_a_parameter_without_a_declared_initial_value_is_refused() -> None:
    class Undeclared(RMSNorm):
        initial_values: ClassVar[InitialValues] = {}

    with pytest.raises(ConfigError, match=r"blocks.0.norm1.gain.*declared by no part"):
        build(tiny(), parts=swapped(HEALTHY, "undeclared", norms={"layernorm": Undeclared}))


def test_the_seed_decides_the_weights_and_leaves_torch_alone() -> None:
    state = torch.random.get_rng_state()
    one, same, other = build(tiny(), seed=3), build(tiny(), seed=3), build(tiny(), seed=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    pairs = list(zip(one.parameters(), same.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert not any(torch.equal(a, c) for a, _, c in pairs if a.dim() == 2)
    model = loud(tiny(dropout=0.5))
    tokens = some_tokens(model.config)
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


def test_tokens_of_another_shape_or_type_are_refused() -> None:
    whole = torch.zeros(1, 4, dtype=torch.int64)
    for tokens in (whole[0], whole[None], whole.float(), whole.int()):
        with pytest.raises(ShapeError, match=r"tokens must be int64 of shape \(batch, position\)"):
            build(tiny())(tokens)


def test_a_cache_and_a_table_have_their_limits() -> None:
    def tokens(length: int) -> torch.Tensor:
        return torch.zeros(1, length, dtype=torch.int64)

    for position in POSITIONS:
        model = build(tiny(position=position))
        if position == "learned":
            with pytest.raises(ShapeError, match="9 positions were given, but the learned table has 8"):
                model(tokens(9))
        else:
            assert model(tokens(9)).shape == (1, 9, 11)
        assert model(tokens(1)).shape == (1, 1, 11)
        for shape in ((0, 3), (1, 0)):
            with pytest.raises(ShapeError, match="at least one token"):
                model(torch.zeros(shape, dtype=torch.int64))
    model, encoder = loud(tiny()), loud(tiny(causal=False))
    cache = KVCache(model.config, 4, model.embedding, batch=1)
    model(tokens(3), cache=cache)
    with pytest.raises(ShapeError, match="3 of them filled, cannot take 2 more"):
        model(tokens(2), cache=cache)
    with pytest.raises(ShapeError, match="only a causal model"):
        encoder(tokens(2), cache=KVCache(encoder.config, 4, encoder.embedding))
