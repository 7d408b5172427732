"""What the living map draws, held against the recording by arithmetic that is written out here."""

from __future__ import annotations

import itertools
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.parts.positions import alibi_slopes
from engine.recording import record
from engine.sample.stages import stages
from studies.home import living_map
from studies.residual.lens import logit_lens
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.models import REAL, SHIPPED, TEXTS, opened


@cache
def both(name, text):
    """The model and the ids of a text, its recording, and its map."""
    model, tokenizer = opened(name)
    ids = tokenizer.encode(text)
    return model, ids, record(model, ids), living_map.read(model, ids)


@for_each("text", TEXTS)
@for_each("name", [*SHIPPED, *REAL])
def test_the_lanes_are_the_recordings(name, text):
    model, ids, full, whole = both(name, text)
    found = whole.lanes
    shown, layers = min(len(ids), 16), model.config.n_layers
    assert found.earlier == len(ids) - shown
    ends = "norm2" if model.parts.wiring(model.config).ends_normed else "resid_post"
    each = model.config.d_model // 16  # the shipped widths are multiples of sixteen
    assert found.pooled == (each, each)
    arrays = found.arrays
    writes = {"resid_mid": "middle", "attn_out": "attention", "ffn_out": "feedforward"}
    drawn_of = {activation: arrays[name] for activation, name in writes.items()}
    for array, drawn in (drawn_of | {ends: arrays["stream"][1:], "resid_pre": arrays["stream"][:-1]}).items():
        wanted = full.stacked(array)[:, -shown:].reshape(layers, shown, 16, each).mean(-1)
        np.testing.assert_allclose(drawn, wanted, rtol=1e-4, atol=1e-4)
    rows = full.stacked("pattern")[:, :, -shown:]
    np.testing.assert_array_equal(found.patterns[..., 1:], rows[..., -shown:])
    np.testing.assert_allclose(found.patterns[..., 0], rows[..., :-shown].sum(-1), atol=1e-5)
    for layer, lane in np.ndindex(layers, shown):
        row = full[f"blocks.{layer}.ffn_post"][len(ids) - shown + lane]
        wanted = sorted(range(len(row)), key=lambda n: (-abs(float(row[n])), n))[:6]
        assert arrays["neurons"][layer, lane].tolist() == wanted
        assert arrays["active"][layer, lane].tolist() == row[wanted].tolist()


@for_each("text", TEXTS)
@for_each("name", [*SHIPPED, *REAL])
def test_what_is_said_is_the_lens_and_the_outlook_is_the_samplers(name, text):
    model, _, full, found = both(name, text)
    shown = len(found.lanes.arrays["stream"][0])
    lens = logit_lens(model, full)
    logits = living_map.depth_logits(model, found.streams)
    said = living_map.likeliest_tokens(logits)
    np.testing.assert_array_equal(said.tokens, lens.likeliest[:, -shown:, :3])
    np.testing.assert_allclose(said.chances, lens.here[:, -shown:, :3], rtol=1e-4)
    last = living_map.outlook(logits[:, -1])
    np.testing.assert_allclose(found.logits, logits[-1, -1], atol=1e-4)
    for temperature, top_k in itertools.product((0.1, 0.7, 1.0, 2.0), (0, 5, 40)):
        wanted = stages(found.logits, SampleConfig(temperature=temperature, top_k=top_k))[-1].probabilities
        given = shares(last, -1, temperature, top_k)
        np.testing.assert_allclose(given, wanted[last.tokens[-1]], rtol=2e-3, atol=1e-5)


def shares(last, depth, temperature, top_k):
    """What the browser makes of an outlook (tests/js/livemap.test.js): the probabilities of the kept."""
    logits = last.logits[depth].astype(np.float64)
    kept = logits >= logits[min(top_k, len(logits)) - 1] if top_k else logits == logits
    powers = np.where(kept, np.exp((logits - logits[0]) / temperature), 0.0)
    beyond = 0.0
    if not top_k:
        at = [abs(t - temperature) < 1e-9 for t in living_map.TEMPERATURES].index(True)
        beyond = float(np.exp(float(last.rest[depth, at]) - logits[0] / temperature))
    return powers / (powers.sum() + beyond)


def test_the_rest_is_all_that_is_not_kept():
    logits = torch.linspace(-3, 3, 400)[torch.randperm(400, generator=torch.Generator().manual_seed(1))]
    found = living_map.outlook(logits[None])
    assert found.tokens.shape == (1, 128) and found.rest.shape == (1, 20)
    others = sorted(logits.tolist())[: 400 - 128]
    for at, t in ((0, 0.1), (9, 1.0), (19, 2.0)):
        wanted = np.log(sum(np.exp(np.float64(one) / t) for one in others))
        assert found.rest[0, at] == pytest.approx(wanted, rel=1e-5)
    assert (living_map.outlook(logits[None, :128]).rest == -np.inf).all()  # nothing is left


@for_each("fields", [
    {"ffn": "none"}, {"mixer": "none"}, {"wiring": "parallel"}, {"wiring": "post"}, {"wiring": "none"},
    {"norm": "none"}, {"causal": False}, {"mixer": "mean"}, {"d_model": 20, "n_heads": 2},
])  # fmt: skip
def test_every_kind_of_model_has_lanes(fields):
    model = loud(tiny(**fields))
    found = living_map.read(model, [1, 2, 3, 4, 5]).lanes
    assert found.arrays["stream"].shape == (3, 5, 16)
    assert (found.patterns is None) == (fields.get("mixer") == "none")
    assert ("neurons" not in found.arrays) == (fields.get("ffn") == "none")


def test_strips_and_what_is_typical():
    at, vector = living_map.edges(20), np.arange(20.0)
    assert set(np.diff(at)) == {1, 2} and at[-1] == 20
    np.testing.assert_allclose(living_map.strips(vector)[0], [vector[a:b].mean() for a, b in pairwise(at)])
    assert living_map.edges(7).tolist() == list(range(8))
    values = np.array([[[900.0, -5000.0], [1.0, -2.0], [3.0, 0.0]], [[0.0, 0.0], [1.0, 1.0], [8.0, -9.0]]])
    assert living_map.typical(values).tolist() == [3.0, 1.0]


IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def rms(rows):
    return np.sqrt(np.square(rows.astype(np.float64)).mean(-1))


@for_each("wiring", ["pre", "post", "parallel", "none"])
@for_each("norm", ["layernorm", "rmsnorm", "none"])
def test_norms_are_those_that_are_read(wiring, norm):
    model = loud(tiny(context=12, wiring=wiring, norm=norm))
    full, found = record(model, IDS), living_map.read(model, IDS).lanes.arrays
    if norm == "none":
        assert not any("norm" in name for name in found)
        return
    ends = wiring == "post"
    assert ("attention_norm" not in found) == ends and ("final_norm" not in found) == ends
    sizes = [(found["stream_sizes"][0], "blocks.0.resid_pre")]
    sizes.append((found["stream_sizes"][2], f"blocks.1.{'norm2' if ends else 'resid_post'}"))
    for name, bare in (("attention_norm", "norm1"), ("feedforward_norm", "norm1" if ends else "norm2")):
        for layer in range(2 if name in found else 0):
            array = f"blocks.{layer}.{bare}"
            np.testing.assert_allclose(found[name][layer], full[array], rtol=1e-5)  # 16 numbers: a cell each
            sizes.append((found[f"{name}_sizes"][layer], array))
    if not ends:
        sizes.append((found["final_norm_sizes"][0], "norm_final"))
    if "middle_sizes" in found:
        sizes.append((found["middle_sizes"][1], "blocks.1.resid_mid"))
    for size, array in sizes:
        np.testing.assert_allclose(size, rms(full[array]), rtol=1e-5)


def test_a_place_is_a_vector_a_turn_or_a_handicap():
    learned = loud(tiny(context=12, position="learned"))
    full, found = record(learned, IDS), living_map.read(learned, IDS).lanes.arrays
    np.testing.assert_allclose(found["entering"], np.stack([full["embed"], full["pos_embed"]]), rtol=1e-5)
    np.testing.assert_allclose(found["entering_sizes"][1], rms(full["pos_embed"]), rtol=1e-5)
    assert "turned" not in found and "added" not in found
    # RoPE (Su et al. 2021): pair i of d/2 turns by place / base^(2i/d) radians
    for width, fields in ((32, {"rope_theta": 100.0}), (64, {"rope_theta": 50.0, "rope_fraction": 0.5})):
        turns = loud(tiny(context=12, d_model=width, position="rope", **fields))  # a head's four pairs
        found = living_map.read(turns, IDS).lanes.arrays
        for pair, slow in ((0, 1.0), (1, fields["rope_theta"] ** (-2 * 3 / 8))):
            angles = np.degrees(np.arange(len(IDS)) * slow) % 360
            np.testing.assert_allclose(found["turned"][pair], angles, atol=1e-3)
        assert "entering" not in found and "added" not in found
    # ALiBi (Press et al. 2022): each step of distance costs a head its slope
    found = living_map.read(loud(tiny(context=12, position="alibi")), IDS).lanes.arrays
    for head, slope in enumerate(alibi_slopes(4)):
        assert found["added"][head, 0].tolist() == [0, 0]
        assert found["added"][head, 7].tolist() == pytest.approx([-slope, -7 * slope])


def test_an_encoder_s_text_is_read_anew():
    model = loud(tiny(causal=False, context=12))
    first = living_map.read(model, IDS, None, True)
    assert first.cache is None
    again = living_map.read(model, [*IDS, 7], first, True)
    np.testing.assert_allclose(again.streams, living_map.read(model, [*IDS, 7]).streams)


@for_each("gap, lane", [(0, 15), (3, 15), (4, 0), (9, 5), (19, 15)])
def test_a_gap_is_predicted_at_its_lane_and_one_before_the_lanes_at_the_last(gap, lane):
    model = loud(tiny(causal=False, context=20))
    ids = [(7 * i * i + 3) % 11 for i in range(20)]  # lanes 4 to 19 are drawn
    reading = living_map.read(model, ids, gap=gap)
    assert reading.predicted_lane == lane
    np.testing.assert_array_equal(reading.logits, record(model, ids).get("logits")[4 + lane])


def alike(model, before, *texts):
    """What is read of a text by the help of another is what is read of it alone."""
    had = living_map.read(model, before, None, True)
    for after in texts:
        grown, alone = living_map.read(model, after, had, True), living_map.read(model, after)
        assert grown.ids == alone.ids and grown.shapes == alone.shapes
        assert grown.lanes.earlier == alone.lanes.earlier
        assert grown.lanes.arrays.keys() == alone.lanes.arrays.keys()
        parts = [
            [vars(x), vars(x.lanes), x.lanes.arrays, vars(x.predictions), vars(x.end)] for x in (grown, alone)
        ]
        for ours, theirs in zip(*parts, strict=True):
            for name, wanted in theirs.items():
                if isinstance(wanted, np.ndarray) and name not in ("neurons", "tokens"):
                    np.testing.assert_allclose(ours[name], wanted, atol=1e-4, rtol=1e-3, err_msg=name)
        np.testing.assert_array_equal(grown.predictions.tokens[:, :, 0], alone.predictions.tokens[:, :, 0])


@for_each("position", ["learned", "rope", "alibi"])
def test_a_text_that_grew_is_read_as_if_it_were_new(position):
    model = loud(tiny(context=48, position=position), factor=4.0)
    base = [(7 * i * i + 3) % 11 for i in range(40)]
    # a token more, a letter changed, many more, all others; shorter, the same, beyond the lanes
    alike(model, base[:5], base[:6], [*base[:4], 7], base[:15], [7, 7, 7])
    for before, after in ((9, 4), (6, 6), (16, 17), (20, 23), (20, 40), (24, 10)):
        alike(model, base[:before], base[:after])


def test_only_what_follows_is_computed(monkeypatch):
    model, asked = loud(tiny(context=48)), []
    monkeypatch.setattr(living_map, "record", lambda m, i, **how: asked.append(len(i)) or record(m, i, **how))
    first = living_map.read(model, IDS, None, True)
    for ids in ([*IDS, 7], [*IDS[:-1], 7, 8], [7, *IDS]):
        living_map.read(model, ids, first, True)
    living_map.read(model, IDS, living_map.read(model, IDS), True)  # nothing was kept
    assert asked == [10, 1, 2, 11, 10, 10]
