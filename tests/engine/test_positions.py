"""What the position schemes do, in numbers: ALiBi, sine waves and T5's buckets, against the papers' formulas."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, Position
from engine.errors import ConfigError, ShapeError
from engine.model import build, count_parameters
from engine.parts.positions import Alibi, PositionHooks, Sinusoidal, sinusoidal_table
from engine.parts.registry import HEALTHY, POSITIONS, swapped
from engine.recording import record
from studies.positions import alibi, sinusoids, t5_buckets
from studies.positions.schemes import HOOK_NAMES, SCHEMES, parameters_added, similarity
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def test_the_slopes_of_eight_heads_and_how_far_they_reach():
    found = alibi.slopes(8)
    assert found.slope.tolist() == [2.0**-i for i in range(1, 9)]
    assert np.exp(-found.slope * found.to_a_third) == pytest.approx(np.full(8, 1 / math.e))
    assert np.exp(-found.slope * found.to_a_percent) == pytest.approx(np.full(8, 0.01))
    # 1 percent at ln(100) / slope: 9.2, 18.4, ... 1178.9
    assert [found.within(n) for n in (9, 10, 128, 1178, 1179)] == [0, 1, 4, 7, 8]
    assert (found.steepest, found.flattest) == (1 / 2, 1 / 256)
    assert found.farthest(128) == pytest.approx(math.exp(-127 / 256)) and found.farthest(1) == 1
    factors = alibi.factors(np.array([1.0, 0.5]), np.array([0, 2]))
    assert factors == pytest.approx(np.array([[1, math.exp(-2)], [1, math.exp(-1)]]))


@for_each("heads", range(1, 33))
def test_every_number_of_heads_has_as_many_slopes_by_the_rule(heads):
    found, rule = alibi.slopes(heads, 4.0).slope, alibi.slope_rule(heads)
    power = 2 ** int(math.log2(heads))
    assert (rule.power, rule.rest) == (power, heads - power)
    by_rule = [[4 * 2 ** (-8 * (i + 1) / n) for i in range(n)] for n in (power, 2 * power)]
    assert found == pytest.approx([*by_rule[0], *by_rule[1][::2][: heads - power]])


def test_alibi_by_hand():
    bias, inf = alibi.alibi_bias(2, 3, 2.0), math.inf  # slopes 1/16 and 1/256, doubled
    assert bias[0].tolist() == [[0, -inf, -inf], [-0.125, 0, -inf], [-0.25, -0.125, 0]]
    both = alibi.alibi_bias(2, 3, 2.0, causal=False)
    assert (both[1] * 128).tolist() == [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]
    found = alibi.alibi_effect(np.zeros((3, 3)), math.log(2), alibi.visible(3, True))
    assert found.before == pytest.approx(np.array([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))
    assert found.after == pytest.approx(np.array([[1, 0, 0], [1 / 3, 2 / 3, 0], [1 / 7, 2 / 7, 4 / 7]]))
    assert found.distance_before == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert found.distance_after == pytest.approx((0 + 1 / 3 + 4 / 7) / 3)
    assert found.moved == pytest.approx((0 + 1 / 6 + 5 / 21) / 3)
    far = alibi.alibi_effect(np.array([[0.0, -900.0], [900.0, 0.0]]), 1e6, alibi.visible(2, True))
    assert far.moved == pytest.approx(1 / 2)  # all of row 1, nothing of row 0
    free = alibi.alibi_effect(np.zeros((2, 2)), math.log(3), alibi.visible(2, False))
    assert free.after == pytest.approx(np.array([[3, 1], [1, 3]]) / 4)
    found = alibi.farthest_key(0.25, 17)
    assert found.penalty == 4 and found.factor == pytest.approx(0.0183156, abs=1e-7)


@for_each("fields", [{"causal": True}, {"causal": False}, {"window": 3}], ids=["causal", "encoder", "window"])
def test_an_alibi_model_s_pattern_is_the_bare_one_with_its_slope(fields):
    model = loud(tiny(position="alibi", **fields))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        own = alibi.recorded_slope(model.config, head)
        found = alibi.alibi_effect(recording["blocks.1.scores"][head], own, recording.seen(), own)
        assert found.after == pytest.approx(recording["blocks.1.pattern"][head], abs=1e-5)
        q, k = recording["blocks.1.q"][head], recording["blocks.1.k"][head]
        seen = np.isfinite(found.bare)
        assert found.bare[seen] == pytest.approx((q @ k.T / math.sqrt(model.config.d_head))[seen], abs=1e-4)


@for_each("window", [0, 3])
def test_steeper_slopes_look_nearer(window):
    model = loud(tiny(position="learned", window=window))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    before, gentle = alibi.distances_of_heads(recording, 0, 1.0)
    same, steep = alibi.distances_of_heads(recording, 0, 1000.0)
    patterns = recording["blocks.0.pattern"]
    assert before == pytest.approx([alibi.mean_distance(p) for p in patterns], abs=1e-5)
    assert before.tolist() == same.tolist() and (gentle <= before + 1e-12).all() and (steep < gentle).all()


def test_an_alibi_of_another_slope_is_taken_out_with_that() -> None:
    class Steeper(Alibi):
        def prepare(self, length: int, like: torch.Tensor, start: int = 0) -> PositionHooks:
            hooks: Any = super().prepare(length, like, start)
            return type(hooks)(2 * hooks.table)

    config = tiny(position="alibi").resolved()
    steeper = swapped(HEALTHY, "steeper", positions={"alibi": Steeper})
    for head in range(config.n_heads):
        once = alibi.recorded_slope(config, head)
        assert alibi.recorded_slope(config, head, steeper) == pytest.approx(2 * once) and once > 0
    for position in ("rope", "t5"):
        assert alibi.recorded_slope(tiny(position=position).resolved(), 0) == 0


CONFIG = ModelConfig(vocab_size=65, context=64, d_model=64, n_layers=1, n_heads=4)
ALL = get_args(Position)


def fresh(scheme):
    return build(replace(CONFIG, position=scheme), seed=7).requires_grad_(False).eval()


def test_every_scheme_of_the_engine_is_on_the_bench():
    assert set(SCHEMES) == set(POSITIONS) == set(ALL)
    assert {scheme.hook for scheme in SCHEMES.values()} == set(HOOK_NAMES)


@for_each("scheme", ALL)
def test_a_scheme_enters_where_it_is_said_to(scheme):
    hooks = fresh(scheme).positions.prepare(12, torch.zeros(1))
    q = torch.randn(1, 4, 12, 16, generator=torch.Generator().manual_seed(0))
    scores = torch.zeros(1, 4, 12, 12)
    added = hooks.embed(torch.zeros(1, 12, 64)) is not None
    turned, biased = not torch.equal(hooks.rotate(q, q)[0], q), not torch.equal(hooks.bias(scores), scores)
    seam = SCHEMES[scheme].hook
    assert (added, turned, biased) == (seam == "embed", seam == "rotate", seam == "bias")


@for_each("scheme", ALL)
@for_each("config", [CONFIG, ModelConfig(vocab_size=30, context=100, d_model=48, n_layers=3, n_heads=6)])
def test_parameters_added_are_counted_on_the_models(scheme, config):
    with_it, without = (count_parameters(replace(config, position=one)) for one in (scheme, "none"))
    assert parameters_added(config, scheme) == with_it - without


def test_similarities_are_those_of_the_schemes_formulas():
    waves = fresh("sinusoidal")
    waves.embedding.zero_()
    for model, width in ((waves, 64), (fresh("rope"), 16)):
        angles = np.arange(128)[:, None] * 10_000 ** (-np.arange(0, width, 2) / width)
        assert np.allclose(similarity(model, 128).values[0], np.cos(angles).mean(1), atol=1e-4)
    values = similarity(fresh("alibi"), 40).values
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert np.allclose(values[head], np.exp(-slope * np.arange(40)), atol=1e-6)
    model = fresh("t5")
    model.positions.weight.copy_(torch.arange(32.0)[:, None] * torch.tensor([0.0, 0.1, -0.1, 1.0]))
    values = similarity(model, 200).values
    assert np.allclose(values[0], 1) and np.allclose(values.max(1), 1)
    assert (values[1, 0], values[1, 199]) == pytest.approx((math.exp(-3.1), 1))
    assert values[2, 5] == pytest.approx(math.exp(-0.5))


def test_an_untrained_table_knows_no_distance():
    assert np.allclose(similarity(fresh("none"), 40).values, 1)
    learned = similarity(fresh("learned"), 256)
    values = learned.values[0]
    near = values[1:48]
    assert abs(near.mean() - 0.5) < 0.05 and near.std() < 0.05, "token and place are equally long"
    assert learned.range_apart == (values[1:].min(), values[1:].max())
    found = similarity(fresh("alibi"), 40)
    assert found.range_at(16) == pytest.approx((math.exp(-16 / 4), math.exp(-16 / 256)), abs=1e-6)
    assert found.range_apart == pytest.approx((math.exp(-39 / 4), math.exp(-1 / 256)), abs=1e-6)


def by_hand(p: int, dimension: int, width: int, base: float) -> float:
    angle = p / base ** (2 * (dimension // 2) / width)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


@for_each("width, base, start", [(2, 1e4, 0), (8, 1e4, 3), (12, 50.0, 100), (6, 1e6, 511)])
def test_the_table_is_the_formula(width, base, start):
    expected = np.array([[by_hand(p, i, width, base) for i in range(width)] for p in range(start, start + 7)])
    assert sinusoidal_table(7, width, base, start).numpy() == pytest.approx(expected, abs=1e-4)
    assert sinusoids.table64(7, width, base, start) == pytest.approx(expected, abs=1e-12)


def test_the_part_adds_the_table_of_base_10000_bit_by_bit():
    part, like = Sinusoidal(ModelConfig(d_model=16, position="sinusoidal")), torch.zeros(1, 5, 16)
    for start in (0, 9):
        assert torch.equal(part.prepare(5, like, start).embed(like), sinusoidal_table(5, 16, 10_000.0, start))


@for_each("k", [-9, 0, 1, 40])
def test_one_matrix_carries_every_position_k_further(k):
    matrix = sinusoids.rotation_matrix(k, 12, 300.0)
    for p in range(10, 30):
        here, there = (np.array([by_hand(x, i, 12, 300.0) for i in range(12)]) for x in (p, p + k))
        assert matrix @ here == pytest.approx(there, abs=1e-12)
    assert matrix @ matrix.T == pytest.approx(np.eye(12), abs=1e-12)  # it keeps lengths
    assert not matrix[np.kron(np.eye(6), np.ones((2, 2))) == 0].any()  # nothing outside the blocks


def test_the_residual_is_rounding_and_would_be_seen_if_it_were_more(monkeypatch):
    for k in (2, -5):
        residual = sinusoids.rotation_residual(64, k, 64)
        assert 0 < residual.float64 < 1e-12 and 1e-8 < residual.float32 < 1e-4
    right = sinusoids.turn
    monkeypatch.setattr(sinusoids, "turn", lambda angle: right(angle).T)  # turned the wrong way
    assert sinusoids.rotation_residual(64, 2, 64).float64 > 0.5


def test_likeness_depends_on_the_distance_alone():
    found = sinusoids.similarity(40, 32, 1_000.0)
    for p, q in ((0, 0), (3, 17), (39, 0)):
        expected = sum(by_hand(p, i, 32, 1_000.0) * by_hand(q, i, 32, 1_000.0) for i in range(32))
        assert found.dots[p, q] == pytest.approx(expected, abs=1e-4)
        assert found.by_distance[abs(p - q)] == pytest.approx(expected, abs=1e-10)
    assert found.deviation < 1e-4 and found.deviation64 < 1e-12
    assert found.by_distance[0] == pytest.approx(16)  # the squared length, d/2
    table = sinusoids.table64(40, 32, 1_000.0)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    assert found.cosines == pytest.approx(unit @ unit.T, abs=1e-5)
    assert found.cosine_by_distance == pytest.approx(unit[0] @ unit.T, abs=1e-10)
    assert found.vector_length == pytest.approx(np.linalg.norm(table[7])) == 4.0
    assert sinusoids.similarity(64, 64).most_alike == 1
    assert sinusoids.similarity(64, 2).most_alike == 44  # one hand: 7 rounds take 43.98 positions
    assert sinusoids.similarity(2, 4).most_alike == 1


@for_each(("width", "base"), [(0, 10.0), (3, 10.0), (-2, 10.0), (4, 0.5), (4, float("nan")), (4, 1e13)])
def test_what_has_no_frequencies_is_refused(width, base):
    with pytest.raises(ConfigError):
        sinusoids.frequencies(width, base)


@for_each(("length", "width", "base"), [(64, 64, 10_000.0), (7, 2, 3.0), (512, 10, 5.0), (6, 4, 2.0)])
def test_waves_that_go_round_within_the_table_are_counted(length, width, base):
    found = sinusoids.waves(length, width, base)
    by_pair = [2 * math.pi * base ** (2 * i / width) for i in range(width // 2)]
    assert found.wavelength == pytest.approx(by_pair)
    assert found.theta == pytest.approx(2 * np.pi / np.array(by_pair))
    assert found.longer == sum(w > length for w in by_pair)
    assert found.ratio == pytest.approx(base ** (2 / width))


@for_each(("p", "k", "pair"), [(5, 2, 8), (0, 7, 0), (30, -30, 3)])
def test_a_turned_pair(p, k, pair):
    found = sinusoids.turned_pair(p, k, pair, 64)
    theta = 10_000 ** (-2 * pair / 64)
    assert found.theta == pytest.approx(theta) and found.angle == pytest.approx(k * theta)
    assert found.end_angle == pytest.approx((p + k) * theta)
    assert found.start == pytest.approx([math.sin(p * theta), math.cos(p * theta)])
    assert found.end == pytest.approx([math.sin((p + k) * theta), math.cos((p + k) * theta)], abs=1e-12)
    assert found.carried == pytest.approx(found.end, abs=1e-12)
    assert found.block == pytest.approx(sinusoids.turn(k * theta))


def test_worked_buckets_of_t5():
    found = {b.number: b.words for b in t5_buckets.bucket_ranges(False, 32, 128)}
    assert len(found) == 32
    assert [found[i] for i in (0, 15, 16, 17, 30, 31)] == [
        "0", "-15", "-16 to -18", "-19 to -20", "-99 to -112", "-113 and beyond",
    ]  # fmt: skip
    both = {b.number: b.words for b in t5_buckets.bucket_ranges(True, 32, 128)}
    assert len(both) == 31 and 16 not in both  # later, but at distance 0: there is no such token
    assert [both[i] for i in (7, 8, 15, 17, 24, 31)] == [
        "-7", "-8 to -11", "-91 and beyond", "1", "8 to 11", "91 and beyond",
    ]  # fmt: skip


@for_each("bidirectional", [True, False])
def test_ranges_cover_every_offset_once(bidirectional):
    ranges = t5_buckets.bucket_ranges(bidirectional, 16, 50)
    offsets = np.arange(-300, 301 if bidirectional else 1)
    buckets = t5_buckets.bucket_of(offsets, bidirectional, 16, 50)
    for offset, bucket in zip(offsets.tolist(), buckets, strict=True):
        same_side = [b for b in ranges if (b.first > 0) == (offset > 0) and abs(b.first) <= abs(offset)]
        assert [b.number for b in same_side if b.last is None or abs(offset) <= abs(b.last)] == [bucket]


@for_each("wrong", [(False, 32, 16), (False, 32, 1), (True, 2, 128), (False, 1, 128), (True, 128, 32)])
def test_buckets_without_room_are_refused(wrong):
    with pytest.raises(ShapeError, match="room"):
        t5_buckets.bucket_of(np.arange(3), *wrong)


@for_each("causal", [True, False])
def test_the_learned_bias_is_what_the_model_adds(causal):
    model = loud(tiny(position="t5", causal=causal))
    weight = t5_buckets.t5_weights(model)
    assert weight is not None and weight.shape == (32, 4)
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        q, k = recording["blocks.0.q"][head], recording["blocks.0.k"][head]
        added = recording["blocks.0.scores"][head] - q @ k.T / math.sqrt(model.config.d_head)
        matrix = t5_buckets.t5_matrix(weight, head, len(q), not causal)
        seen = np.isfinite(matrix)
        assert seen.all() != causal and added[seen] == pytest.approx(matrix[seen], abs=1e-4)
    line = t5_buckets.t5_bias(weight, [-3, 0], not causal)
    assert line[2].tolist() == [weight[3, 2], weight[0, 2]]
    assert t5_buckets.t5_weights(loud(tiny(position="rope"))) is None


def test_what_a_learned_bias_favours_and_what_is_unmet():
    x = np.arange(10.0)
    assert t5_buckets.slope_of_learned(np.stack((-0.5 * x + 3, 0 * x)), x) == pytest.approx([-0.5, 0])
    found = t5_buckets.learned_bias(a_bias(), causal=True, context=16)  # distances 0 to 15: a bucket each
    assert found.last == 15 and found.favours.tolist() == [0, 3, 0]
    assert found.alibi_slope[0] == pytest.approx(0.1) and found.alibi_slope[2] == 0
    assert found.spread.tolist() == pytest.approx([1.5, 2.0, 0.0]) and found.loudest == 1
    assert found.factor == pytest.approx(math.exp(2.0))
    assert t5_buckets.learned_bias(a_bias(_0=900.0), True, 16).factor == pytest.approx(math.exp(50))
    weight = a_bias(**{f"_{n}": 7.0 for n in range(16, 32)})
    found = t5_buckets.learned_bias(weight, causal=True, context=16).unmet
    assert (found.buckets, found.distance, found.mean) == (16, 16, 7.0)
    assert found.met_mean == pytest.approx(np.mean([-1.5, 0, 0]))
    both = t5_buckets.learned_bias(np.arange(32.0)[:, None], causal=False, context=64).unmet
    # from 91 on: buckets 15 (before) and 31 (after); 64 to 90 fall into 14 and 30, which begin at 64
    met = {t5_buckets.bucket_of(np.array([o]), True, 32, 128)[0] for o in range(-63, 64)}
    unmet = sorted(set(range(32)) - met - {16})  # 16: later at distance 0, which is no offset
    assert both.buckets == len(unmet) and both.mean == pytest.approx(np.mean(unmet))
    assert t5_buckets.learned_bias(a_bias(), causal=True, context=200).unmet is None
    assert t5_buckets.learned_bias(a_bias(), causal=True, context=1).last == 0


@for_each("bidirectional", [True, False])
@for_each(("buckets", "far"), [(4, 8), (32, 128), (64, 100), (128, 1024)])
def test_what_is_said_of_all_buckets_is_so(bidirectional, buckets, far):
    found = t5_buckets.buckets_of(bidirectional, buckets, far)
    offsets = np.arange(-4 * far, (4 * far if bidirectional else 0) + 1)
    number = t5_buckets.bucket_of(offsets, bidirectional, buckets, far)
    shared = {n for n in number.tolist() if (number == n).sum() > 1}
    alone = [abs(o) for o, n in zip(offsets.tolist(), number.tolist(), strict=True) if n not in shared]
    assert set(range(found.exact)) <= set(alone)
    assert found.unused == buckets - len(set(number.tolist())) == (1 if bidirectional else 0)
    last = number[offsets == offsets.min()][0]
    assert found.open_from == np.abs(offsets[number == last]).min()
    assert len(found.ranges) == len(set(number.tolist()))


def a_bias(**rows: float) -> np.ndarray:
    """(32 buckets, 3 heads): head 0 favours distance 0, head 1 distance 3, head 2 nothing."""
    weight = np.zeros((32, 3), np.float32)
    weight[:, 0] = -np.arange(32) / 10
    weight[3, 1] = 2.0
    for name, value in rows.items():
        weight[int(name[1:])] = value
    return weight
