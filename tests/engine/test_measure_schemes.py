"""What is said of the position schemes is what their parts do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from engine.config import ModelConfig, Position
from engine.measure.schemes import SCHEMES, SEAM_WORDS, parameters_added, similarity
from engine.model import build, count_parameters
from engine.parts.registry import POSITIONS
from tests.engine.cases import for_each

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
    assert [seam for seam, does in acts.items() if does] == (
        [SCHEMES[scheme].seam] if SCHEMES[scheme].seam else []
    )


@for_each("scheme", ALL)
def test_relative_schemes_see_the_distance_alone(scheme):
    """The scores of equal content, moved along by five places."""
    seams = fresh(scheme).positions.prepare(20, torch.zeros(1))
    generator = torch.Generator().manual_seed(2)
    content = torch.randn(64, generator=generator)
    table = seams.embed(torch.zeros(1))
    x = content.expand(20, 64) + (0 if table is None else table)
    heads = x.view(20, 4, 16).transpose(0, 1)[None]
    q, k = seams.rotate(heads, heads)
    scores = seams.bias(q @ k.transpose(-1, -2))[0]
    moved = torch.allclose(scores[:, 10, 4], scores[:, 15, 9], atol=1e-3) and torch.allclose(
        scores[:, 12, 1], scores[:, 17, 6], atol=1e-3
    )
    distance_counts = not torch.allclose(scores[:, 10, 4], scores[:, 10, 7], atol=1e-3)
    assert distance_counts == (scheme != "none")
    assert moved == (SCHEMES[scheme].carries != "absolute")


@for_each("scheme", ALL)
@for_each("config", [CONFIG, ModelConfig(vocab_size=30, context=100, d_model=48, n_layers=3, n_heads=6)])
def test_parameters_added_are_counted_on_the_models(scheme, config):
    counted = count_parameters(replace(config, position=scheme)) - count_parameters(
        replace(config, position="none")
    )
    assert parameters_added(config, scheme) == counted


@for_each("scheme", ALL)
def test_similarities_are_at_most_one(scheme):
    found = similarity(fresh(scheme), 256)
    reach = 64 if scheme == "learned" else 256
    assert found.values.shape == (4 if scheme in ("alibi", "t5") else 1, reach)
    assert len(found.lines) == len(found.values)
    assert found.distance.tolist() == list(range(reach)) and found.values.max() <= 1 + 1e-6
    if scheme != "t5":
        assert np.allclose(found.values[:, 0], 1)


def test_similarities_are_those_of_the_schemes_formulas():
    model = fresh("sinusoidal")
    model.embedding.zero_()
    by_formula = [np.mean([math.cos(d * 10_000 ** (-2 * i / 64)) for i in range(32)]) for d in range(128)]
    assert np.allclose(similarity(model, 128).values[0], by_formula, atol=1e-5)
    by_formula = [np.mean([math.cos(d * 10_000 ** (-2 * i / 16)) for i in range(8)]) for d in range(128)]
    assert np.allclose(similarity(fresh("rope"), 128).values[0], by_formula, atol=1e-4)
    values = similarity(fresh("alibi"), 40).values
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert np.allclose(values[head], np.exp(-slope * np.arange(40)), atol=1e-6)
    model = fresh("t5")
    model.positions.weight.copy_(torch.arange(32.0)[:, None] * torch.tensor([0.0, 0.1, -0.1, 1.0]))
    values = similarity(model, 200).values
    assert np.allclose(values[0], 1) and np.allclose(values.max(1), 1)
    assert values[1, 0] == pytest.approx(math.exp(-3.1))
    assert values[1, 199] == pytest.approx(1)
    assert values[2, 5] == pytest.approx(math.exp(-0.5))


def test_an_untrained_table_knows_no_distance():
    values = similarity(fresh("learned"), 256).values[0, 1:48]
    assert (
        abs(values.mean() - 0.5) < 0.05 and values.std() < 0.05
    )  # token and place are equally long at random
    found = similarity(fresh("alibi"), 40)
    assert found.range_at(16) == pytest.approx((math.exp(-16 / 4), math.exp(-16 / 256)), abs=1e-6)
    assert found.range_apart == pytest.approx((math.exp(-39 / 4), math.exp(-1 / 256)), abs=1e-6)
    values = similarity(fresh("learned"), 256).values[0]
    assert similarity(fresh("learned"), 256).range_apart == (values[1:].min(), values[1:].max())
