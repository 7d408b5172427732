"""What the living map draws, held against the recording by arithmetic that is written out here."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.measure import living, living_places, living_said
from engine.measure.lens import logit_lens
from engine.measure.recording import record
from engine.sample.stages import stages
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.models import REAL, SHIPPED, TEXTS, opened


@for_each("text", TEXTS)
@for_each("name", [*SHIPPED, *REAL])
def test_the_lanes_are_the_recordings(name, text):
    model, tokenizer = opened(name)
    ids = tokenizer.encode(text)
    full = record(model, ids)
    found = living.read(model, ids).lanes
    shown, layers = min(len(ids), 16), model.config.n_layers
    assert found.earlier == len(ids) - shown
    ends_normed = model.parts.wiring(model.config).ends_normed
    names = ["blocks.0.resid_pre"]
    names += [f"blocks.{i}.{'norm2' if ends_normed else 'resid_post'}" for i in range(layers)]
    each = model.config.d_model // 16  # the shipped widths are multiples of sixteen
    assert found.pooled == (each, each)
    for depth, array in enumerate(names):
        wanted = full[array][-shown:].reshape(shown, 16, each).mean(-1)
        np.testing.assert_allclose(found.stream[depth], wanted, rtol=1e-4, atol=1e-4)
    for layer in range(layers):
        block = f"blocks.{layer}."
        for array, drawn in (
            ("resid_mid", found.middle),
            ("attn_out", found.attention),
            ("ffn_out", found.feedforward),
        ):
            wanted = full[block + array][-shown:].reshape(shown, 16, each).mean(-1)
            np.testing.assert_allclose(drawn[layer], wanted, rtol=1e-4, atol=1e-4)
        pattern, post = full[f"{block}pattern"], full[f"{block}ffn_post"]
        for head in range(model.config.n_heads):
            rows = pattern[head][-shown:]
            np.testing.assert_array_equal(found.patterns[layer, head, :, 1:], rows[:, -shown:])
            earlier = [sum(map(float, row[: len(ids) - shown])) for row in rows]
            np.testing.assert_allclose(found.patterns[layer, head, :, 0], earlier, atol=1e-5)
        for lane in range(shown):
            row = post[len(ids) - shown + lane]
            wanted = sorted(range(len(row)), key=lambda n: (-abs(float(row[n])), n))[:6]
            assert found.neurons[layer, lane].tolist() == wanted
            assert found.active[layer, lane].tolist() == [float(row[n]) for n in wanted]


@for_each("text", TEXTS)
@for_each("name", [*SHIPPED, *REAL])
def test_what_is_said_is_the_lens_and_the_outlook_is_the_samplers(name, text):
    model, tokenizer = opened(name)
    ids = tokenizer.encode(text)
    found = living.read(model, ids)
    shown = len(found.lanes.stream[0])
    lens = logit_lens(model, record(model, ids))
    logits = living_said.depth_logits(model, found.streams)
    said = living_said.said(logits)
    np.testing.assert_array_equal(said.tokens, lens.likeliest[:, -shown:, :3])
    np.testing.assert_allclose(said.chances, lens.here[:, -shown:, :3], rtol=1e-4)
    last = living_said.outlook(logits[:, -1])
    np.testing.assert_allclose(found.logits, logits[-1, -1], atol=1e-4)
    for temperature in (0.1, 0.7, 1.0, 2.0):
        for top_k in (0, 5, 40):
            config = SampleConfig(temperature=temperature, top_k=top_k)
            wanted = stages(found.logits, config)[-1].probabilities
            given = shares(last, -1, temperature, top_k)
            np.testing.assert_allclose(given, wanted[last.tokens[-1]], rtol=2e-3, atol=1e-5)


def shares(last, depth, temperature, top_k):
    """What the browser makes of an outlook (tests/js/livemap.test.js): the probabilities of the kept."""
    logits = last.logits[depth].astype(np.float64)
    kept = logits >= logits[min(top_k, len(logits)) - 1] if top_k else logits == logits
    powers = np.where(kept, np.exp((logits - logits[0]) / temperature), 0.0)
    beyond = 0.0
    if not top_k:
        at = [abs(t - temperature) < 1e-9 for t in living_said.TEMPERATURES].index(True)
        beyond = float(np.exp(float(last.rest[depth, at]) - logits[0] / temperature))
    return powers / (powers.sum() + beyond)


def test_the_rest_is_all_that_is_not_kept():
    logits = torch.linspace(-3, 3, 400)[torch.randperm(400, generator=torch.Generator().manual_seed(1))]
    found = living_said.outlook(logits[None])
    assert found.tokens.shape == (1, 128) and found.rest.shape == (1, 20)
    others = sorted(logits.tolist())[: 400 - 128]
    for at, t in ((0, 0.1), (9, 1.0), (19, 2.0)):
        wanted = np.log(sum(np.exp(np.float64(one) / t) for one in others))
        assert found.rest[0, at] == pytest.approx(wanted, rel=1e-5)
    assert (living_said.outlook(logits[None, :128]).rest == -np.inf).all()  # nothing is left


@for_each("fields", [
    {"ffn": "none"}, {"mixer": "none"}, {"wiring": "parallel"}, {"wiring": "post"}, {"wiring": "none"},
    {"norm": "none"}, {"causal": False}, {"mixer": "mean"}, {"d_model": 20, "n_heads": 2},
])  # fmt: skip
def test_every_kind_of_model_has_lanes(fields):
    model = loud(tiny(**fields))
    found = living.read(model, [1, 2, 3, 4, 5])
    assert found.lanes.stream.shape == (3, 5, 16)
    assert (found.lanes.patterns is None) == (fields.get("mixer") == "none")
    assert (found.lanes.neurons is None) == (fields.get("ffn") == "none")
    assert living_said.said(living_said.depth_logits(model, found.streams)).tokens.shape == (3, 5, 3)


def test_strips_and_what_is_typical():
    assert set(np.diff(living_places.edges(20))) == {1, 2} and living_places.edges(20)[-1] == 20
    vector = np.arange(20.0)
    at = living_places.edges(20)
    wanted = [vector[a:b].mean() for a, b in pairwise(at)]
    np.testing.assert_allclose(living_places.strips(vector)[0], wanted)
    assert living_places.edges(7).tolist() == list(range(8))
    values = np.array([[[900.0, -5000.0], [1.0, -2.0], [3.0, 0.0]], [[0.0, 0.0], [1.0, 1.0], [8.0, -9.0]]])
    assert living.typical(values).tolist() == [3.0, 1.0]
