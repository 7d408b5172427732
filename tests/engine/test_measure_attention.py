"""What is measured of attention, against computations done another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.errors import ConfigError
from engine.measure import heads, one_head, repeating, scaling
from engine.measure.ablation import Switches, compare, each_head_off, kl_divergence, reordered
from engine.measure.distance import visible
from engine.measure.recording import record
from engine.measure.shared_keys import shared_keys
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY, swapped
from engine.presets import PRESETS
from engine.progress import finish
from tests.engine.cases import for_each
from tests.engine.helpers import induction_model, loud, tiny

IDS = (3, 1, 4, 1, 5, 9, 2)


def model_of(**fields) -> Transformer:
    return loud(tiny(**fields), factor=4.0)


def test_an_even_head_has_the_largest_entropy():
    even = np.tril(np.ones((6, 6), np.float32)) / np.arange(1, 7, dtype=np.float32)[:, None]
    assert heads.relative_entropy(even, visible(6, True)) == pytest.approx(1, abs=1e-6)
    assert heads.entropy(even) == pytest.approx(np.log(np.arange(1, 7)), abs=1e-6)
    assert heads.relative_entropy(np.full((5, 5), 0.2), visible(5, False)) == pytest.approx(1)
    numbers = heads.head_numbers(np.ones((2, 3, 1, 1), np.float32), visible(1, True))
    for none in (numbers.first, numbers.previous, numbers.relative_entropy):
        assert np.isnan(none).all()
    assert (numbers.entropy == 0).all()


@for_each("fields, parts", [
    ({}, HEALTHY),
    ({"causal": False}, HEALTHY),
    ({"window": 3}, HEALTHY),
    ({}, swapped(HEALTHY, "no mask", mask=lambda length, like, start=0: None)),
    ({"window": 2}, swapped(HEALTHY, "no mask", mask=lambda length, like, start=0: None)),
], ids=["causal", "encoder", "window", "no mask", "no mask but a window"])  # fmt: skip
def test_a_head_that_cannot_but_be_even_is_perfectly_even(fields, parts):
    """What is visible is the model's own mask's to say."""
    model = build(tiny(mixer="mean", **fields), parts=parts)
    recording = record(model.eval(), IDS)
    numbers = heads.head_numbers(recording.stacked("pattern"), recording.seen())
    assert numbers.relative_entropy == pytest.approx(np.ones((2, 4)), abs=1e-6)
    assert numbers.first == pytest.approx(np.full((2, 4), numbers.even_first), abs=1e-6)
    assert numbers.previous == pytest.approx(np.full((2, 4), numbers.even_previous), abs=1e-6)
    np.testing.assert_array_equal(recording.seen(), recording["blocks.0.pattern"][0] > 0)
    found = heads.stages(model, recording, 0, 0)
    for query, row in enumerate(recording.seen()):
        assert one_head.keys_seen(found, query) == np.flatnonzero(row).tolist()
        assert one_head.written_out(found, query, query).seen == row.sum()


def test_the_numbers_of_a_model_are_those_of_a_slow_loop():
    recording = record(model_of(), IDS)
    patterns = recording.stacked("pattern")
    numbers = heads.head_numbers(patterns, recording.seen())
    for at in np.ndindex(patterns.shape[:2]):
        p = patterns[at].astype(float)
        n = len(p)
        cells = [(q, k) for q in range(n) for k in range(q + 1)]
        assert numbers.first[at] == pytest.approx(p[1:, 0].mean())
        assert numbers.previous[at] == pytest.approx(np.diagonal(p, -1).mean())
        assert numbers.distance[at] == pytest.approx(sum(p[q, k] * (q - k) for q, k in cells) / n)
        assert numbers.entropy[at] == pytest.approx(sum(-p[c] * math.log(p[c]) for c in cells) / n)


def test_a_hand_built_induction_model_scores_one_and_copies():
    model = induction_model()
    found = finish(repeating.repeated(model))
    assert found is not None
    scores = found.induction
    # The first token sees only itself and takes itself for its own predecessor: the one query that asks for
    # it looks at two places alike.
    assert scores[1, 0] == pytest.approx((11 + 0.5) / 12, abs=1e-3)
    assert scores[0].max() < 0.1 and scores[1, 1:].max() < 0.1
    ids = (3, 7, 1, 9, 4, 3, 7, 1, 9)
    recording = record(model, ids)
    assert heads.previous_score(recording["blocks.0.pattern"][0]) == pytest.approx(1, abs=1e-3)
    assert recording.logits[6:].argmax(-1).tolist() == [1, 9, 4]  # it goes on as it did the first time


def test_the_sink_is_measured_against_the_value_vectors():
    recording = record(model_of(n_kv_heads=2), IDS)
    found = heads.sink(recording)
    assert found.first_norm.shape == (2, 2) and found.share.shape == (2, 4)
    v = np.linalg.norm(recording["blocks.1.v"], axis=-1)
    assert found.first_norm[1, 1] == pytest.approx(v[1, 0], rel=1e-5)
    assert found.other_norm[1, 0] == pytest.approx(v[0, 1:].mean(), rel=1e-5)
    sizes = recording["blocks.1.pattern"][3] * v[1]  # the fourth query head reads the second key-value head
    assert found.written[1, 3] == pytest.approx(np.mean(sizes[1:, 0] / sizes[1:].sum(1)), rel=1e-5)
    silent = record(model_of(n_kv_heads=2), IDS, edits={"blocks.0.v": torch.zeros_like})
    assert heads.sink(silent).written[0].tolist() == [0] * 4


def test_a_resting_place_is_the_key_that_all_later_queries_look_at():
    p = np.zeros((2, 2, 20, 20), np.float32)
    p[..., 0] = 1
    p[1, 0, 6:, 0], p[1, 0, 6:, 5] = 0.25, 0.75
    assert heads.resting_place(p) == (1, 0, 5, pytest.approx(0.75))
    assert heads.resting_place(p[..., :8, :8]) is None


@for_each("fields", [
    {}, {"wiring": "none", "mixer": "mean"}, {"causal": False}, {"position": "rope", "n_kv_heads": 2},
])  # fmt: skip
def test_nothing_switched_changes_nothing_and_everything_can_be_switched(fields):
    model = model_of(**fields)
    before = record(model, IDS)
    same = compare(model, before, Switches())
    assert np.array_equal(same.after.logits, before.logits) and np.abs(same.kl).max() < 1e-9
    for how in ("zero", "mean"):
        off = tuple(np.ndindex(2, 4))
        everything = Switches(False, False, False, heads_off=off, ablation=how, order="shuffled", place=3)
        found = compare(model, before, everything)
        assert np.isfinite(found.kl[3:]).all() and np.isnan(found.kl[:3]).all()
        assert (found.loss_after is None) == (not model.config.causal)


def test_what_one_head_off_or_reordered_tokens_change():
    model = model_of()
    before = record(model, IDS)
    found = compare(model, before, Switches(heads_off=((1, 1),)))
    log_p, log_q = (torch.tensor(r.logits).double().log_softmax(-1) for r in (before, found.after))
    wanted = F.kl_div(log_q, log_p, log_target=True, reduction="none").sum(-1)
    np.testing.assert_allclose(found.kl, wanted, atol=1e-12)
    assert found.loss_after == pytest.approx(F.nll_loss(log_q[:-1], torch.tensor(IDS[1:])).item())
    assert kl_divergence(log_p.numpy(), log_p.numpy()).max() == 0
    for order in ("shuffled", "reversed"):
        moved = reordered(IDS, Switches(order=order, place=4, seed=3))
        assert moved[4:] == IDS[4:] and sorted(moved[:4]) == sorted(IDS[:4]) and moved != IDS
    assert reordered(IDS, Switches(place=4)) == IDS


@for_each("how, fields", [
    ("zero", {}),
    ("mean", {"wiring": "parallel", "position": "alibi", "n_kv_heads": 2}),
    ("zero", {"wiring": "post", "position": "rope", "window": 3}),
    ("mean", {"wiring": "none", "causal": False, "attention_bias": True}),
], ids=str)  # fmt: skip
def test_each_head_off_is_one_comparison_after_the_other(how, fields):
    model = model_of(**fields)
    before = record(model, IDS)
    found = finish(each_head_off(model, before, how, copies=3))
    for at in np.ndindex(found.shape):
        alone = compare(model, before, Switches(heads_off=(at,), ablation=how))
        assert found[at] == pytest.approx(alone.kl.mean(), abs=1e-6)


def test_the_spread_is_the_square_root_and_the_scale_undoes_it():
    assert scaling.spread(32) == pytest.approx(5.657, rel=0.02)
    assert scaling.spread(128) == pytest.approx(11.31, rel=0.02)
    plain, scaled = (scaling.scaling((16, 256), e, seed=1) for e in (0.0, 0.5))
    assert plain.spread == pytest.approx(np.sqrt([16, 256]), rel=0.1)
    assert scaled.spread == pytest.approx([1, 1], rel=0.1)
    assert plain.entropy[1] < plain.entropy[0] < scaled.entropy[1]
    assert plain.slope[1] < plain.slope[0] < scaled.slope.min()
    scores = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 2
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    p = scaling.softmax(scores.numpy())
    assert scaling.jacobian_norm(p) == pytest.approx(jacobian.norm().item())
    assert scaling.mean_slope(p) == pytest.approx(jacobian.abs().mean().item())


def test_what_sharing_keys_saves_at_llama_70b():
    config = PRESETS["llama2-70b"].model.resolved()
    found, full = shared_keys(config, 64, 8), shared_keys(config, 64, 64)
    assert found.cache_bytes_per_token == 2 * 80 * 8 * 128 * 2 == 327_680
    assert full.cache_bytes_per_token == 8 * found.cache_bytes_per_token
    assert found.cache_bytes == 4096 * 327_680
    assert found.parameters == 2 * 8192 * 1024
    with pytest.raises(ConfigError):
        shared_keys(config, 64, 7)
