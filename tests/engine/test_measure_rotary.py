"""RoPE in numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ShapeError
from engine.measure import rotary
from engine.measure.recording import next_token_losses, record
from engine.model import Transformer, build
from engine.parts.positions import Rope, Seams
from engine.parts.registry import HEALTHY, swapped
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def complex_turn(x: np.ndarray, position: float, base: float) -> np.ndarray:
    """The reference: half-split pairs as complex numbers times e^(i position theta)."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * base ** (-2 * np.arange(half) / len(x)))
    return np.concatenate((z.real, z.imag))


def test_frequencies_are_the_paper_s():
    assert rotary.frequencies(8, 10_000.0) == pytest.approx([1.0, 0.1, 0.01, 0.001])
    assert rotary.frequencies(2, 500.0) == pytest.approx([1.0])
    for wrong in (0, 1, 7, -2):
        with pytest.raises(ShapeError, match="pairs"):
            rotary.frequencies(wrong, 10_000.0)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 5000),
    st.integers(0, 2**31),
    st.sampled_from([100.0, 10_000.0, 1_000_000.0]),
    st.sampled_from([2, 4, 32]),
)
def test_vectors_turn_like_complex_numbers(position: int, seed: int, base: float, width: int):
    x = np.random.default_rng(seed).standard_normal(width)
    assert rotary.rotated(x[None], [position], base)[0] == pytest.approx(
        complex_turn(x, position, base), abs=1e-9
    )


def test_the_tables_are_rope_s_own_in_double_precision():
    like = torch.zeros(1, dtype=torch.float32)
    config = ModelConfig(d_model=16, n_heads=1, d_head=16, position="rope", rope_theta=500.0)
    seams = Rope(config.resolved()).prepare(40, like)
    cos, signed = rotary.tables(np.arange(40), 16, 500.0)
    assert torch.allclose(seams.cos.double(), cos, atol=5e-6)
    assert torch.allclose(seams.sin.double(), signed, atol=5e-6)


def test_pair_terms_sum_to_the_score_and_one_of_them_by_hand():
    q, k = rotary.seeded_pair(8)
    terms = rotary.pair_terms(q, k, 9, 4, 100.0)
    assert terms.sum() == pytest.approx(complex_turn(q, 9, 100.0) @ complex_turn(k, 4, 100.0))
    angle = 5 * 100 ** (-2 / 8)  # pair 1: dimensions 1 and 5, distance 5
    a, b = complex(q[1], q[5]), complex(k[1], k[5])
    assert terms[1] == pytest.approx((a * b.conjugate() * complex(math.cos(angle), math.sin(angle))).real)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 100_000), st.integers(0, 2**31))
def test_a_shift_of_both_leaves_the_score(query: int, key: int, shift: int, seed: int):
    q, k = rotary.seeded_pair(32, seed)
    coarse, engine, exact = rotary.shift_check(q, k, query, key, shift, 10_000.0)
    assert [found.precision for found in (coarse, engine, exact)] == ["bfloat16", "float32", "float64"]
    assert exact.difference < 1e-8 and engine.difference < 2.0
    assert engine.before == pytest.approx(exact.before, abs=0.05)
    assert coarse.before == pytest.approx(exact.before, abs=3.0)
    if shift == 0:
        assert coarse.difference == engine.difference == exact.difference == 0
    elif shift <= 100:
        assert engine.difference < 0.01


@for_each("fields", [
    {}, {"qk_norm": True}, {"qk_norm": True, "qk_gain": True}, {"n_kv_heads": 2}, {"mixer": "shared_qk"},
    {"mixer": "similarity"},
])  # fmt: skip
def test_what_meets_the_rotation_turns_into_what_was_recorded(fields):
    model = loud(tiny(position="rope", **fields))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    group = model.config.n_heads // model.config.n_kv_heads
    for head in range(model.config.n_heads):
        q, k = rotary.before_rotation(model, recording, 1, head)
        turned = rotary.rotated(q, range(len(q)), model.config.rope_theta)
        assert turned == pytest.approx(recording["blocks.1.q_rot"][head], rel=1e-4, abs=1e-4)
        turned = rotary.rotated(k, range(len(k)), model.config.rope_theta)
        assert turned == pytest.approx(recording["blocks.1.k_rot"][head // group], rel=1e-4, abs=1e-4)


def partly(**fields) -> Transformer:
    """Heads of 8 of which the first 4 dimensions turn, as in GPT-NeoX and Pythia."""
    return loud(tiny(position="rope", d_model=32, rope_fraction=0.5, rope_theta=100.0, **fields))


def recorded_head(model: Transformer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and k of a head before rotation, and its scores as the model computed them."""
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    return *rotary.before_rotation(model, recording, 1, 2), recording["blocks.1.scores"][2].astype(np.float64)


def test_a_head_that_turns_in_part_has_the_model_s_own_scores():
    q, k, scores = recorded_head(partly())
    assert scores.std() > 0.5  # unequal, or the comparisons below would prove nothing
    terms = [
        [
            rotary.pair_terms(q[m], k[n], m, n, 100.0, 4).sum() + rotary.unturned(q[m], k[n], 4)
            for n in range(6)
        ]
        for m in range(6)
    ]
    assert np.array(terms) / math.sqrt(8) == pytest.approx(scores, rel=1e-4, abs=1e-4)
    assert rotary.layouts(q, k, 100.0, 4).half == pytest.approx(scores, rel=1e-4, abs=1e-4)
    curve = [rotary.score_curve(q[5], k[n], 100.0, np.array([5 - n]), 4)[0] for n in range(6)]
    assert np.array(curve) / math.sqrt(8) == pytest.approx(scores[5], rel=1e-4, abs=1e-4)
    for found in rotary.shift_check(q[5], k[1], 5, 1, 0, 100.0, 4)[1:]:  # float32 and float64
        assert found.before / math.sqrt(8) == pytest.approx(scores[5, 1], rel=1e-4, abs=1e-4)


def test_only_what_turns_has_a_layout():
    q, k, _ = recorded_head(partly())
    found = rotary.layouts(q, k, 100.0, 4)
    assert found.difference("permuted") < 1e-12 and found.difference("wrong") > 1e-3
    assert max(found.moved[name] for name in ("half", "permuted", "wrong")) < 1e-12
    one_pair = rotary.layouts(q, k, 100.0, 2)  # one pair: the layouts are the same, whatever stays
    assert one_pair.difference("wrong") < 1e-12 and one_pair.difference("crossed") < 1e-12
    rng = np.random.default_rng(1)
    found = rotary.layouts(rng.standard_normal((9, 16)), rng.standard_normal((9, 16)), 10_000.0)
    assert found.difference("permuted") < 1e-12
    assert found.difference("wrong") > 0.1 and found.difference("crossed") > 0.1
    assert (
        max(found.moved[name] for name in ("half", "permuted", "wrong"))
        < 1e-12
        < 0.1
        < found.moved["crossed"]
    )


def test_the_mix_up_in_a_model_that_turns_in_part():
    model, ids = partly(), some_tokens(partly().config, 1, 8)[0].tolist()
    loss = rotary.wrong_layout_loss(model, ids)
    assert loss is not None and abs(loss.right - loss.wrong) > 1e-3

    def swapped(x: Tensor) -> Tensor:
        """Half-split on reordered dimensions is interleaved; what does not turn is not moved."""
        order = [*rotary.half_split_order(4), 4, 5, 6, 7]
        return x[..., order]

    edits = {f"blocks.{i}.{name}": swapped for i in range(2) for name in ("q", "k")}
    interleaved = next_token_losses(record(model, ids, edits=edits)).mean()
    assert loss.wrong == pytest.approx(interleaved, abs=1e-4)
    narrow = loud(tiny(position="rope", rope_fraction=0.5))  # heads of 4, one pair: nothing to mix up
    same = rotary.wrong_layout_loss(narrow, ids)
    assert same is not None and same.right == pytest.approx(same.wrong, abs=1e-4)


@for_each("mixer", ["none", "mean"])
def test_models_without_scores_have_nothing_to_turn(mixer):
    model = loud(tiny(position="rope", mixer=mixer))
    assert rotary.before_rotation(model, record(model, [1, 2, 3]), 0, 0) is None
    assert rotary.wrong_layout_loss(model, [1, 2, 3]) is None


def test_interleaved_equals_gpt_j_s():
    gptj = pytest.importorskip(
        "transformers.models.gptj.modeling_gptj", reason="transformers is not installed"
    )
    x = torch.randn(1, 5, 2, 8, generator=torch.Generator().manual_seed(0))  # (batch, position, head, d_head)
    table = gptj.create_sinusoidal_positions(5, 8)  # sines, then cosines
    sin, cos = table[None, :, :4], table[None, :, 4:]
    ours = rotary.rotate_interleaved(x.transpose(1, 2), cos, sin).transpose(1, 2)
    assert torch.allclose(ours, gptj.apply_rotary_pos_emb(x, sin, cos), atol=1e-6)


def test_a_rope_with_another_base_is_turned_by_that() -> None:
    class Slower(Rope):
        def __init__(self, config: ResolvedConfig) -> None:
            super().__init__(config)
            self.theta = 100.0

    class Backwards(Rope):
        def prepare(self, length: int, like: torch.Tensor, start: int = 0) -> Seams:
            seams = super().prepare(length, like, start)
            return replace_tables(seams)

    config = tiny(position="rope")
    model = build(config, parts=swapped(HEALTHY, "slower", positions={"rope": Slower})).eval()
    found = rotary.turned_by(model)
    assert found == rotary.Turned(100.0, 4)
    recording = record(model, [1, 2, 3, 4, 5])
    q, _ = rotary.before_rotation(model, recording, 1, 2)
    turned = rotary.rotated(q, range(5), found.base, found.rotary)
    assert turned == pytest.approx(recording["blocks.1.q_rot"][2], abs=1e-5)
    assert rotary.turned_by(build(config)) == rotary.Turned(config.rope_theta, 4)
    assert rotary.turned_by(build(tiny(position="learned"))) is None
    assert rotary.wrong_layout_loss(model, [1, 2, 3]) is not None
    other = build(config, parts=swapped(HEALTHY, "backwards", positions={"rope": Backwards})).eval()
    assert rotary.turned_by(other) is None


def replace_tables(seams: Any) -> Any:
    """The sines change sign: it turns the other way."""
    return type(seams)(seams.cos, -seams.sin)
