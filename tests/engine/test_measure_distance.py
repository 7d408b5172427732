"""ALiBi in numbers: the paper's own, and by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, Position
from engine.measure import distance
from engine.measure.recording import record
from engine.measure.schemes import SCHEMES, SEAM_WORDS, parameters_added, similarity
from engine.model import build, count_parameters
from engine.parts.positions import Alibi, Seams
from engine.parts.registry import HEALTHY, POSITIONS, swapped
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def test_the_slopes_of_eight_heads_and_how_far_they_reach():
    found = distance.slopes(8)
    assert found.slope.tolist() == [2.0**-i for i in range(1, 9)]
    assert np.exp(-found.slope * found.to_a_third) == pytest.approx(np.full(8, 1 / math.e))
    assert np.exp(-found.slope * found.to_a_percent) == pytest.approx(np.full(8, 0.01))
    # 1 percent at ln(100) / slope: 9.2, 18.4, ... 1178.9
    assert [found.within(n) for n in (9, 10, 128, 1178, 1179)] == [0, 1, 4, 7, 8]
    assert (found.steepest, found.flattest) == (1 / 2, 1 / 256)
    assert found.farthest(128) == pytest.approx(math.exp(-127 / 256)) and found.farthest(1) == 1
    factors = distance.factors(np.array([1.0, 0.5]), np.array([0, 2]))
    assert factors == pytest.approx(np.array([[1, math.exp(-2)], [1, math.exp(-1)]]))


@for_each("heads", range(1, 33))
def test_every_number_of_heads_has_as_many_slopes_by_the_rule(heads):
    found, rule = distance.slopes(heads, 4.0).slope, distance.slope_rule(heads)
    power = 2 ** int(math.log2(heads))
    assert (rule.power, rule.rest) == (power, heads - power)
    by_rule = [[4 * 2 ** (-8 * (i + 1) / n) for i in range(n)] for n in (power, 2 * power)]
    assert found == pytest.approx([*by_rule[0], *by_rule[1][::2][: heads - power]])


def test_alibi_by_hand():
    bias, inf = distance.alibi_bias(2, 3, 2.0), math.inf  # slopes 1/16 and 1/256, doubled
    assert bias[0].tolist() == [[0, -inf, -inf], [-0.125, 0, -inf], [-0.25, -0.125, 0]]
    both = distance.alibi_bias(2, 3, 2.0, causal=False)
    assert (both[1] * 128).tolist() == [[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]
    found = distance.alibi_effect(np.zeros((3, 3)), math.log(2), distance.visible(3, True))
    assert found.before == pytest.approx(np.array([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]]))
    assert found.after == pytest.approx(np.array([[1, 0, 0], [1 / 3, 2 / 3, 0], [1 / 7, 2 / 7, 4 / 7]]))
    assert found.distance_before == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert found.distance_after == pytest.approx((0 + 1 / 3 + 4 / 7) / 3)
    assert found.moved == pytest.approx((0 + 1 / 6 + 5 / 21) / 3)
    far = distance.alibi_effect(np.array([[0.0, -900.0], [900.0, 0.0]]), 1e6, distance.visible(2, True))
    assert far.moved == pytest.approx(1 / 2)  # all of row 1, nothing of row 0
    free = distance.alibi_effect(np.zeros((2, 2)), math.log(3), distance.visible(2, False))
    assert free.after == pytest.approx(np.array([[3, 1], [1, 3]]) / 4)
    found = distance.farthest_key(0.25, 17)
    assert found.penalty == 4 and found.factor == pytest.approx(0.0183156, abs=1e-7)


@for_each("fields", [{"causal": True}, {"causal": False}, {"window": 3}], ids=["causal", "encoder", "window"])
def test_an_alibi_model_s_pattern_is_the_bare_one_with_its_slope(fields):
    model = loud(tiny(position="alibi", **fields))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    for head in range(4):
        own = distance.own_slope(model.config, head)
        found = distance.alibi_effect(recording["blocks.1.scores"][head], own, recording.seen(), own)
        assert found.after == pytest.approx(recording["blocks.1.pattern"][head], abs=1e-5)
        q, k = recording["blocks.1.q"][head], recording["blocks.1.k"][head]
        seen = np.isfinite(found.bare)
        assert found.bare[seen] == pytest.approx((q @ k.T / math.sqrt(model.config.d_head))[seen], abs=1e-4)


@for_each("window", [0, 3])
def test_steeper_slopes_look_nearer(window):
    model = loud(tiny(position="learned", window=window))
    recording = record(model, some_tokens(model.config, 1)[0].tolist())
    before, gentle = distance.distances_of_heads(recording, 0, 1.0)
    same, steep = distance.distances_of_heads(recording, 0, 1000.0)
    patterns = recording["blocks.0.pattern"]
    assert before == pytest.approx([distance.mean_distance(p) for p in patterns], abs=1e-5)
    assert before.tolist() == same.tolist() and (gentle <= before + 1e-12).all() and (steep < gentle).all()


def test_an_alibi_of_another_slope_is_taken_out_with_that() -> None:
    class Steeper(Alibi):
        def prepare(self, length: int, like: torch.Tensor, start: int = 0) -> Seams:
            return Doubled(super().prepare(length, like, start))

    class Doubled(Seams):
        def __init__(self, inner: Seams) -> None:
            self.inner = inner

        def bias(self, scores: torch.Tensor) -> torch.Tensor:
            return self.inner.bias(self.inner.bias(scores))

    config = tiny(position="alibi").resolved()
    steeper = swapped(HEALTHY, "steeper", positions={"alibi": Steeper})
    for head in range(config.n_heads):
        once = distance.own_slope(config, head)
        assert distance.own_slope(config, head, steeper) == pytest.approx(2 * once) and once > 0
    for position in ("rope", "t5"):
        assert distance.own_slope(tiny(position=position).resolved(), 0) == 0


CONFIG = ModelConfig(vocab_size=65, context=64, d_model=64, n_layers=1, n_heads=4)
ALL = get_args(Position)


def fresh(scheme):
    return build(replace(CONFIG, position=scheme), seed=7).requires_grad_(False).eval()


def test_every_scheme_of_the_engine_is_on_the_bench():
    assert set(SCHEMES) == set(POSITIONS) == set(ALL)
    assert {scheme.seam for scheme in SCHEMES.values()} == set(SEAM_WORDS)


@for_each("scheme", ALL)
def test_a_scheme_enters_where_it_is_said_to(scheme):
    seams = fresh(scheme).positions.prepare(12, torch.zeros(1))
    q = torch.randn(1, 4, 12, 16, generator=torch.Generator().manual_seed(0))
    scores = torch.zeros(1, 4, 12, 12)
    acts = {
        "embed": seams.embed(torch.zeros(1, 12, 64)) is not None,
        "rotate": not torch.equal(seams.rotate(q, q)[0], q),
        "bias": not torch.equal(seams.bias(scores), scores),
    }
    assert [seam for seam, does in acts.items() if does] == [one for one in (SCHEMES[scheme].seam,) if one]


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
