"""What the living map draws, held against the recording by arithmetic that is written out here."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.measure import living, living_places, living_said
from engine.measure.lens import logit_lens
from engine.measure.living_places import placed
from engine.measure.recording import record
from engine.parts.positions import alibi_slopes
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


IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def rms(rows):
    return [math.sqrt(sum(float(x) ** 2 for x in row) / len(row)) for row in rows]


@for_each("wiring", ["pre", "post", "parallel", "none"])
@for_each("norm", ["layernorm", "rmsnorm", "none"])
def test_norms_are_those_that_are_read(wiring, norm):
    model = loud(tiny(context=12, wiring=wiring, norm=norm))
    full, found = record(model, IDS), living.read(model, IDS).lanes
    if norm == "none":
        assert all(value is None for value in vars(found.norms).values())
        return
    ends = wiring == "post"
    assert (found.norms.attention is None) == ends and (found.norms.final is None) == ends
    for name, bare in (("attention", "norm1"), ("feedforward", "norm1" if ends else "norm2")):
        strips, sizes = getattr(found.norms, name), getattr(found.norms, f"{name}_sizes")
        if strips is None:
            continue
        for layer in range(2):
            rows = full[f"blocks.{layer}.{bare}"]
            np.testing.assert_allclose(strips[layer], rows, rtol=1e-5)  # sixteen numbers: a cell each
            np.testing.assert_allclose(sizes[layer], rms(rows), rtol=1e-5)
    if not ends:
        np.testing.assert_allclose(found.norms.final_sizes[0], rms(full["norm_final"]), rtol=1e-5)
    np.testing.assert_allclose(found.sizes[0], rms(full["blocks.0.resid_pre"]), rtol=1e-5)
    last = full[f"blocks.1.{'norm2' if ends else 'resid_post'}"]
    np.testing.assert_allclose(found.sizes[2], rms(last), rtol=1e-5)
    if found.middle_sizes is not None:
        np.testing.assert_allclose(found.middle_sizes[1], rms(full["blocks.1.resid_mid"]), rtol=1e-5)


def test_a_place_is_a_vector_a_turn_or_a_handicap():
    learned = loud(tiny(context=12, position="learned"))
    full, found = record(learned, IDS), living.read(learned, IDS).lanes.placed
    np.testing.assert_allclose(found.entering, np.stack([full["embed"], full["pos_embed"]]), rtol=1e-5)
    np.testing.assert_allclose(found.entering_sizes[1], rms(full["pos_embed"]), rtol=1e-5)
    assert found.turned is None and found.added is None
    # RoPE (Su et al. 2021): pair i of d/2 turns by place / base^(2i/d) radians
    turns = loud(tiny(context=12, d_model=32, position="rope", rope_theta=100.0))
    found = living.read(turns, IDS).lanes.placed
    slow = 100.0 ** (-2 * 3 / 8)
    for place in range(len(IDS)):
        assert found.turned[0, place] == pytest.approx(math.degrees(place) % 360, abs=1e-3)
        assert found.turned[1, place] == pytest.approx(math.degrees(place * slow) % 360, abs=1e-3)
    assert found.entering is None and found.added is None
    # ALiBi (Press et al. 2022): each step of distance costs a head its slope
    far = loud(tiny(context=12, position="alibi"))
    found = living.read(far, IDS).lanes.placed
    for head, slope in enumerate(alibi_slopes(4)):
        assert found.added[head, 0].tolist() == [0, 0]
        assert found.added[head, 7].tolist() == pytest.approx([-slope, -7 * slope])


def test_a_part_of_the_head_may_turn():
    model = loud(tiny(context=12, d_model=64, position="rope", rope_fraction=0.5, rope_theta=50.0))
    found = placed(model, record(model, IDS), len(IDS), len(IDS))
    slow = 50.0 ** (-2 * 3 / 8)  # eight of a head's sixteen numbers: four pairs
    assert found.turned[1, 9] == pytest.approx(math.degrees(9 * slow) % 360, abs=1e-3)
    model = loud(tiny(causal=False, context=12))
    first = living.read(model, IDS, None, True)
    assert first.kept is None
    again = living.read(model, [*IDS, 7], first, True)
    np.testing.assert_allclose(again.streams, living.read(model, [*IDS, 7]).streams)


def texts(base):
    """(before, after): a token more, a letter changed, many more, all others, shorter, the same, beyond the lanes."""
    yield base[:5], base[:6]
    yield base[:5], [*base[:4], 7]
    yield base[:5], base[:15]
    yield base[:5], [7, 7, 7]
    yield base[:9], base[:4]
    yield base[:6], base[:6]
    yield base[:16], base[:17]
    yield base[:20], base[:23]
    yield base[:20], base[:40]
    yield base[:24], base[:10]


def alike(model, before, after, atol):
    """What is read of a text by the help of another is what is read of it alone."""
    had = living.read(model, before, None, True)
    grown, alone = living.read(model, after, had, True), living.read(model, after)
    assert grown.ids == alone.ids and grown.shapes == alone.shapes
    pairs = [(grown.lanes, alone.lanes), (grown.lanes.norms, alone.lanes.norms)]
    pairs += [(grown.lanes.placed, alone.lanes.placed), (grown.said, alone.said), (grown.end, alone.end)]
    for ours, theirs in pairs:
        for name, wanted in vars(theirs).items():
            if isinstance(wanted, np.ndarray) and name not in ("neurons", "tokens"):
                np.testing.assert_allclose(getattr(ours, name), wanted, atol=atol, rtol=1e-3, err_msg=name)
    np.testing.assert_allclose(grown.streams, alone.streams, atol=atol, rtol=1e-3)
    np.testing.assert_allclose(grown.logits, alone.logits, atol=10 * atol, rtol=1e-3)
    assert grown.lanes.earlier == alone.lanes.earlier
    np.testing.assert_array_equal(grown.said.tokens[:, :, 0], alone.said.tokens[:, :, 0])


@for_each("position", ["learned", "rope", "alibi"])
def test_a_text_that_grew_is_read_as_if_it_were_new(position):
    model = loud(tiny(context=48, position=position), factor=4.0)
    base = [(7 * i * i + 3) % 11 for i in range(40)]
    for before, after in texts(base):
        alike(model, before, after, 1e-4)


@pytest.mark.exhaustive
@pytest.mark.skipif(not REAL, reason="the real model is not installed")
def test_the_real_models_text_that_grew_is_read_as_if_it_were_new():
    model, tokenizer = opened(*REAL)
    ids = list(
        tokenizer.encode("The old library stood at the end of the street, and every morning its doors")
    )
    alike(model, ids[:5], ids[:6], 2e-3)
    alike(model, ids[:16], ids[:17], 2e-3)


def test_only_what_follows_is_computed(monkeypatch):
    model = loud(tiny(context=48))
    asked = []
    monkeypatch.setattr(
        living, "record", lambda m, ids, **how: asked.append(len(ids)) or record(m, ids, **how)
    )
    first = living.read(model, IDS, None, True)
    living.read(model, [*IDS, 7], first, True)
    living.read(model, [*IDS[:-1], 7, 8], first, True)
    living.read(model, [7, *IDS], first, True)
    living.read(model, IDS, living.read(model, IDS), True)  # nothing was kept
    assert asked == [10, 1, 2, 11, 10, 10]
