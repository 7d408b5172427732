"""RoPE in numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ShapeError
from engine.model import Transformer, build
from engine.parts.positions import PositionHooks, Rope
from engine.parts.registry import HEALTHY, swapped
from engine.recording import next_token_losses, record
from studies.positions import rope
from studies.positions.alibi import visible
from studies.positions.position_scores import entrances, position_scores
from studies.positions.rope import layouts
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def turned(x: np.ndarray, position: float, base: float) -> np.ndarray:
    """The reference: half-split pairs as complex numbers times e^(i position theta)."""
    half = len(x) // 2
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * position * base ** (-np.arange(half) / half))
    return np.concatenate((z.real, z.imag))


def test_frequencies_are_the_paper_s():
    assert rope.frequencies(8, 10_000.0) == pytest.approx([1.0, 0.1, 0.01, 0.001])
    assert rope.frequencies(2, 500.0) == pytest.approx([1.0])
    for wrong in (0, 1, 7, -2):
        with pytest.raises(ShapeError, match="pairs"):
            rope.frequencies(wrong, 10_000.0)
    gptj = pytest.importorskip("transformers.models.gptj.modeling_gptj", reason="no transformers")
    x = torch.randn(1, 5, 2, 8, generator=torch.Generator().manual_seed(0))  # (batch, position, head, d_head)
    table = gptj.create_sinusoidal_positions(5, 8)  # sines, then cosines
    sin, cos = table[None, :, :4], table[None, :, 4:]
    ours = rope.rotate_interleaved(x.transpose(1, 2), cos, sin).transpose(1, 2)
    assert torch.allclose(ours, gptj.apply_rotary_pos_emb(x, sin, cos), atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5000), st.sampled_from([100.0, 10_000.0, 1_000_000.0]), st.sampled_from([2, 4, 32]))
def test_vectors_turn_like_complex_numbers(position: int, base: float, width: int):
    x = np.random.default_rng(position).standard_normal(width)
    assert rope.rotated(x[None], [position], base)[0] == pytest.approx(turned(x, position, base), abs=1e-9)


def test_pair_terms_sum_to_the_score_and_one_of_them_by_hand():
    q, k = np.random.default_rng(0).standard_normal((2, 8))
    terms = rope.pair_terms(q, k, 9, 4, 100.0)
    assert terms.sum() == pytest.approx(turned(q, 9, 100.0) @ turned(k, 4, 100.0))
    angle = 5 * 100 ** (-2 / 8)  # pair 1: dimensions 1 and 5, distance 5
    a, b = complex(q[1], q[5]), complex(k[1], k[5])
    assert terms[1] == pytest.approx((a * b.conjugate() * np.exp(1j * angle)).real)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 100_000), st.integers(0, 2**31))
def test_a_shift_of_both_leaves_the_score(query: int, key: int, shift: int, seed: int):
    q, k = np.random.default_rng(seed).standard_normal((2, 32))
    coarse, engine, exact = rope.shift_check(q, k, query, key, shift, 10_000.0)
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
        pair = zip(("q_rot", "k_rot"), (head, head // group), strict=True)
        for x, (name, own) in zip(rope.before_rotation(model, recording, 1, head), pair, strict=True):
            found = rope.rotated(x, range(len(x)), model.config.rope_theta)
            assert found == pytest.approx(recording[f"blocks.1.{name}"][own], rel=1e-4, abs=1e-4)


def partly(**fields) -> Transformer:
    """Heads of 8 of which the first 4 dimensions turn, as in GPT-NeoX and Pythia."""
    return loud(tiny(position="rope", d_model=32, rope_fraction=0.5, rope_theta=100.0, **fields))


def recorded_head(model: Transformer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q and k of a head before rotation, and its scores as the model computed them."""
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    return *rope.before_rotation(model, recording, 1, 2), recording["blocks.1.scores"][2].astype(np.float64)


def test_a_head_that_turns_in_part_has_the_model_s_own_scores():
    q, k, scores = recorded_head(partly())
    assert scores.std() > 0.5  # unequal, or the comparisons below would prove nothing
    for m, n in np.ndindex(6, 6):
        score = rope.pair_terms(q[m], k[n], m, n, 100.0, 4).sum() + rope.unturned(q[m], k[n], 4)
        assert score / math.sqrt(8) == pytest.approx(scores[m, n], rel=1e-4, abs=1e-4)
    assert rope.layouts(q, k, 100.0, 4).half == pytest.approx(scores, rel=1e-4, abs=1e-4)
    curve = [rope.score_curve(q[5], k[n], 100.0, np.array([5 - n]), 4)[0] for n in range(6)]
    assert np.array(curve) / math.sqrt(8) == pytest.approx(scores[5], rel=1e-4, abs=1e-4)
    for found in rope.shift_check(q[5], k[1], 5, 1, 0, 100.0, 4)[1:]:  # float32 and float64
        assert found.before / math.sqrt(8) == pytest.approx(scores[5, 1], rel=1e-4, abs=1e-4)


def test_only_what_turns_has_a_layout():
    q, k, _ = recorded_head(partly())
    found = rope.layouts(q, k, 100.0, 4)
    assert found.difference("permuted") < 1e-12 and found.difference("wrong") > 1e-3
    assert max(found.moved[name] for name in ("half", "permuted", "wrong")) < 1e-12
    one_pair = rope.layouts(q, k, 100.0, 2)  # one pair: the layouts are the same, whatever stays
    assert one_pair.difference("wrong") < 1e-12 and one_pair.difference("crossed") < 1e-12
    found = rope.layouts(*np.random.default_rng(1).standard_normal((2, 9, 16)), 10_000.0)
    assert found.difference("permuted") < 1e-12
    assert min(found.difference("wrong"), found.difference("crossed"), found.moved["crossed"]) > 0.1


def test_the_mix_up_in_a_model_that_turns_in_part():
    model, ids = partly(), some_tokens(partly().config, 1, 8)[0].tolist()
    loss = rope.wrong_layout_loss(model, ids)
    assert loss is not None and abs(loss.right - loss.wrong) > 1e-3
    order = [*rope.half_split_order(4), 4, 5, 6, 7]  # half-split on reordered dimensions is interleaved
    edits = {f"blocks.{i}.{name}": lambda x: x[..., order] for i in range(2) for name in ("q", "k")}
    interleaved = next_token_losses(record(model, ids, edits=edits)).mean()
    assert loss.wrong == pytest.approx(interleaved, abs=1e-4)
    narrow = loud(tiny(position="rope", rope_fraction=0.5))  # heads of 4, one pair: nothing to mix up
    same = rope.wrong_layout_loss(narrow, ids)
    assert same is not None and same.right == pytest.approx(same.wrong, abs=1e-4)


@for_each("mixer", ["none", "mean"])
def test_models_without_scores_have_nothing_to_turn(mixer):
    model = loud(tiny(position="rope", mixer=mixer))
    assert rope.before_rotation(model, record(model, [1, 2, 3]), 0, 0) is None
    assert rope.wrong_layout_loss(model, [1, 2, 3]) is None
    assert rope.wrong_layout_loss(loud(tiny(position="rope")), [1]) is None
    assert rope.wrong_layout_loss(loud(tiny(position="alibi")), [1, 2, 3]) is None


def test_a_rope_with_another_base_is_turned_by_that() -> None:
    class Slower(Rope):
        def __init__(self, config: ResolvedConfig) -> None:
            super().__init__(config)
            self.theta = 100.0

    class Backwards(Rope):
        def prepare(self, length: int, like: torch.Tensor, start: int = 0) -> PositionHooks:
            hooks: Any = super().prepare(length, like, start)
            return type(hooks)(hooks.cos, -hooks.sin)

    config = tiny(position="rope")
    model = build(config, parts=swapped(HEALTHY, "slower", positions={"rope": Slower})).eval()
    found = rope.turned_by(model)
    assert found == rope.Rotation(100.0, 4)
    recording = record(model, [1, 2, 3, 4, 5])
    q, _ = rope.before_rotation(model, recording, 1, 2)
    own = rope.rotated(q, range(5), found.base, found.rotary)
    assert own == pytest.approx(recording["blocks.1.q_rot"][2], abs=1e-5)
    assert rope.turned_by(build(config)) == rope.Rotation(config.rope_theta, 4)
    assert rope.turned_by(build(tiny(position="learned"))) is None
    assert rope.wrong_layout_loss(model, [1, 2, 3]) is not None
    other = build(config, parts=swapped(HEALTHY, "backwards", positions={"rope": Backwards})).eval()
    assert rope.turned_by(other) is None


RANDOM = np.random.default_rng(4)


@for_each("d_rotary", [None, 4])
def test_the_score_and_the_pair_that_says_most(d_rotary):
    q, k = RANDOM.standard_normal((2, 8))
    found, width = rope.score_at(q, k, 9, 4, 100.0, d_rotary), d_rotary or 8
    a, b = (turned(x[:width], at, 100.0) for x, at in ((q, 9), (k, 4)))
    terms = (a * b).reshape(2, -1).sum(0)
    assert found.total == pytest.approx(terms.sum() + q[width:] @ k[width:])
    assert found.pair == np.abs(terms).argmax() and found.term == pytest.approx(terms[found.pair])
    one, other = (complex(x[found.pair], x[found.pair + width // 2]) for x in (a, b))
    assert found.near == (abs(np.angle(one / other)) < math.pi / 2)


def test_the_mean_score_is_the_mean_over_all_pairs_of_tokens():
    q, k = RANDOM.standard_normal((3, 8)), RANDOM.standard_normal((5, 8))
    found = rope.mean_score(q, k, 500.0, np.array([0, 1, 7]))
    for score, distance in zip(found, (0, 1, 7), strict=True):
        pairs = [turned(a, distance + 4, 500.0) @ turned(b, 4, 500.0) for a in q for b in k]
        assert score == pytest.approx(np.mean(pairs) / math.sqrt(8), abs=1e-9)
    part = rope.mean_score(q, k, 500.0, np.array([7]), 4)[0]
    pairs = [turned(a[:4], 7, 500.0) @ b[:4] + a[4:] @ b[4:] for a in q for b in k]
    assert part == pytest.approx(np.mean(pairs) / math.sqrt(8), abs=1e-9)


@for_each("reach", [1, 64, 1_000, 1_001, 16_384])
def test_near_distances_are_all_there_and_the_last_is_the_reach(reach):
    found = rope.some_distances(reach)
    assert found[0] == 0 and found[-1] == reach and (np.diff(found) > 0).all() and len(found) <= 2_001
    assert found[: min(reach, 1_000) + 1].tolist() == list(range(min(reach, 1_000) + 1))


def test_a_score_that_falls_and_comes_back():
    found = rope.decay(np.array([0, 1, 2, 4, 8]), np.array([4.0, 3.0, 1.9, 2.5, -1.0]))
    assert (found.start, found.last, found.reach, found.falls) == (4.0, -1.0, 8, True)
    assert found.lowest == (-1.0, 8) and found.highest == (4.0, 0)
    assert found.below_half == 2 and not found.stays
    assert rope.decay(np.array([0, 1, 2]), np.array([4.0, 1.9, 2.0])).stays  # half is not above half
    assert rope.decay(np.array([0, 3]), np.array([4.0, 2.0])).below_half is None
    rises = rope.decay(np.array([0, 5, 6]), np.array([1.0, 3.0, -3.0]))
    assert not rises.falls and rises.below_half is None and not rises.stays and rises.highest == (3.0, 5)
    assert not rope.decay(np.array([0, 1]), np.array([-1.0, -2.0])).falls
    found = rope.turns_within(8, 10_000.0, 63)
    assert found.count == pytest.approx([63 * 10.0**-i / (2 * math.pi) for i in range(4)])
    assert found.incomplete.tolist() == [False, False, True, True] and found.never == 2
    assert found.positions == pytest.approx([2 * math.pi * 10.0**i for i in range(4)])
    never = sum(8_192 * 500_000 ** (-i / 64) < 2 * math.pi for i in range(64))
    assert rope.turns_within(128, 500_000.0, 8_192).never == never


@for_each("causal", [True, False])
@for_each("name", ["half", "wrong"])
def test_a_layout_s_pattern_is_the_softmax_of_its_scores(causal, name):
    found = layouts(*RANDOM.standard_normal((2, 5, 4)), 100.0)
    seen = visible(5, causal)
    expected = np.exp(getattr(found, name)) * seen
    pattern = rope.layout_pattern(found, name, seen)
    assert pattern == pytest.approx(expected / expected.sum(-1, keepdims=True))


SMALL = {"vocab_size": 9, "d_model": 16, "n_layers": 3, "n_heads": 4, "context": 12}


def test_added_positions_are_the_product_of_embedding_plus_wave():
    model = build(ModelConfig(**SMALL, position="sinusoidal", norm="none", attention_bias=False), seed=3)
    found = position_scores(model, 5, 2, 1, 12)
    place = np.arange(12)[:, None]
    angle = place / 10_000 ** (2 * (np.arange(16) // 2) / 16)
    wave = np.where(np.arange(16) % 2, np.cos(angle), np.sin(angle))
    table = model.embedded(torch.arange(9)).detach().double().numpy()
    whole = model.blocks[0].mixer.w_qkv.weight.detach().double().numpy()  # W_Q, W_K, W_V, one below the other
    w_q, w_k = whole[:16][4:8], whole[16:32][4:8]  # head 1 of 4, 4 wide
    expected = ((table[5] + wave) @ w_q.T) @ ((table[2] + wave) @ w_k.T).T / math.sqrt(4)
    assert found.scores == pytest.approx(expected, abs=1e-5)
    row = found.apart(3)
    assert row.positions.tolist() == list(range(3, 12))
    assert row.scores == pytest.approx([expected[m, m - 3] for m in range(3, 12)], abs=1e-5)
    assert row.spread == pytest.approx(np.ptp(np.diagonal(expected, -3)), abs=1e-5)
    assert row.mean == pytest.approx(np.diagonal(expected, -3).mean(), abs=1e-6)
    assert row.spread > 1e-3
    model = build(ModelConfig(**SMALL, position="rope", n_kv_heads=2), seed=3)
    found = position_scores(model, 5, 2, 3, 12)
    for distance in (0, 1, 7):
        row = found.apart(distance)
        assert row.spread < 1e-5 and row.mean == pytest.approx(row.lowest, abs=1e-5)
    assert abs(found.apart(1).mean - found.apart(5).mean) > 1e-3


def test_the_scheme_enters_once_or_in_every_block():
    def lit(position):
        return [on for _, on in entrances(build(ModelConfig(**SMALL, position=position), seed=0))]

    assert lit("sinusoidal") == lit("learned") == [True, False, False, False]
    assert lit("rope") == lit("alibi") == lit("t5") == [False, True, True, True]
    assert lit("none") == [False] * 4
