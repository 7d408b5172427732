"""What is read off neurons and off a block's parameters, against counts done here."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ledger.block import block, block_of, gate_paid, known, shares
from engine.measure import activations
from engine.measure.firing import (
    along,
    by_size,
    excerpts,
    liked,
    loudest,
    places,
    promoted,
    shows_lowest,
    windows,
)
from engine.measure.neurons import Scan, scan
from engine.model import build
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny


def test_what_is_largest_along_a_text_and_a_vocabulary():
    values = np.array([[1.0, -5.0, 2.0], [3.0, 4.0, 4.5]])
    assert loudest(values) == (0, 1) and loudest(values[1]) == (2,)
    assert by_size(values[0], 2).tolist() == [1, 2] and by_size(values[0]).tolist() == [0, 1, 2]
    found = along(np.array([0.5, -2.0, 1.0], dtype=np.float32))
    assert (found.at, found.peak, found.low, found.high) == (1, -2.0, -2.0, 1.0)
    assert found.sizes.tolist() == [0.25, 1.0, 0.5]
    assert along(np.array([0.5, -0.125])).sizes.tolist() == [1, 0.25] and not along(np.zeros(3)).sizes.any()
    scores = np.array([0.1, -3.0, 2.0, -1.0, 5.0])
    found = promoted(scores, 2)
    assert found.raised.tolist() == [4, 2] and found.lowered.tolist() == [1, 3]
    assert found.order.tolist() == found.ends(3).tolist() == [4, 2, 0, 3, 1]
    assert found.ends(2).tolist() == [4, 2, 3, 1]
    assert set(promoted(scores, 9).raised).isdisjoint(promoted(scores, 9).lowered)


def scanned(highest: list[float], lowest: list[float]) -> Scan:
    at = np.array([[7, 3, -1]])
    return Scan(
        8,
        8,
        4,
        np.array([[*highest, -np.inf]]),
        at,
        np.array([[*lowest, np.inf]]),
        np.array([[0, 5, -1]]),
        np.zeros(1),
    )


def test_the_side_of_a_neuron_that_is_shown():
    up, down = scanned([3.0, 1.0], [-2.0, -1.0]), scanned([3.0, 1.0], [-4.0, -1.0])
    assert [shows_lowest(up, 0, side) for side in ("strongest", "highest", "lowest")] == [False, False, True]
    assert [shows_lowest(down, 0, side) for side in ("strongest", "highest", "lowest")] == [True, False, True]
    assert [x.tolist() for x in places(up, 0, False)] == [[7, 3], [3.0, 1.0]]
    assert [x.tolist() for x in places(up, 0, True)] == [[0, 5], [-2.0, -1.0]]


def test_an_excerpt_stays_in_its_window_and_keeps_each_tokens_own_strength():
    at, values = np.array([9, 4]), np.array([2.0, -4.0])
    near = np.array([[0.0, 2.0, 1.0, 0.5], [-4.0, 1.0, 2.0, 3.0]])
    assert windows(at, 4) == [8, 4]
    first, second = excerpts(at, values, near, 4, before=3, after=1)
    assert (first.at, first.first, first.missing, first.value) == (9, 8, 2, 2.0)
    assert first.strengths.tolist() == [0.0, 0.5, 0.25], "shares of 4, the strongest of both"
    assert (second.first, second.missing) == (4, 3) and second.strengths.tolist() == [-1.0, 0.25]
    (inner,) = excerpts(np.array([10]), np.array([1.0]), near[:1], 4, before=1, after=1)
    assert (inner.first, inner.missing) == (9, 0) and inner.strengths.tolist() == [2.0, 1.0, 0.5]


def test_excerpts_of_a_real_scan_frame_the_strongest_token():
    from engine.measure.neurons import activations_near

    model = loud(tiny(), factor=4.0)
    ids = some_tokens(model.config, batch=1, length=64)[0].numpy()
    found = list(scan(model, ids, 1, window=8))[-1]
    at, values = places(found, 5, False)
    near = activations_near(model, ids, 1, 5, windows(at, found.window), found.window)
    for excerpt in excerpts(at, values, near, found.window, 40, 16):
        own = excerpt.strengths[excerpt.at - excerpt.first] * np.abs(values).max()
        assert own == pytest.approx(excerpt.value, abs=1e-5) and len(excerpt.strengths) == 8


def test_the_two_gelus_are_farthest_apart_where_it_is_said():
    found = activations.worst_difference()
    assert found.worst == pytest.approx(np.abs(found.y).max())
    assert found.worst == pytest.approx(0.000473, abs=1e-6)
    there = np.interp(found.where, found.x, found.y)
    assert abs(there) == pytest.approx(found.worst, rel=1e-6) and found.where > 0


def test_pairs_belong_together():
    gates = np.arange(1000.0).reshape(10, 100)
    some, values = activations.some_pairs(gates, 2 * gates, 50)
    assert len(set(some)) == 50 and np.array_equal(values, 2 * some)
    assert len(activations.some_pairs(gates, gates, 5000)[0]) == 1000


@for_each(
    "fields", [{}, {"ffn": "swiglu", "norm": "rmsnorm"}, {"ffn": "none"}, {"attention_bias": True}], ids=str
)
def test_a_block_has_what_the_built_one_has(fields):
    config = tiny(n_layers=3, **fields).resolved()
    own = build(config, device="meta").blocks[0]
    found = block_of(config)
    assert found.total == sum(p.numel() for p in own.parameters())
    ffn = 0 if config.ffn == "none" else sum(p.numel() for p in own.ffn.parameters())
    assert found.feedforward == ffn and found.share == pytest.approx(ffn / found.total)
    assert found.attention == sum(p.numel() for p in own.mixer.parameters())
    assert sum(found.share_of(part) for part in ("attention", "feedforward", "norm")) == pytest.approx(1)


def test_gates_and_the_share_of_a_network():
    found = gate_paid(768, 4.0)
    assert found.plain.feedforward == found.gated.feedforward == 8 * 768**2 and found.rounding == 0
    assert found.full.feedforward == 12 * 768**2
    assert gate_paid(512, 4.0).rounding == 3 * 512 * 1368 - 8 * 512**2 == 4096
    assert block(512, 2048, "gelu").attention == 4 * 512**2 and block(512, 2048, "gelu").norm == 4 * 512
    found = shares(256, (1.0, 4.0))
    norms = 4 * 256
    for kind, matrices in ((found.plain, 2), (found.gated, 3)):
        expected = [m / (4 * 256**2 + norms + m) for m in (matrices * r * 256**2 for r in (1, 4))]
        assert kind.tolist() == pytest.approx(expected)
    assert found.four == found.plain[1]
    assert found.eight_thirds == block(256, 688, "swiglu").share == pytest.approx(found.four, abs=2e-3)
    found = {one.name: one for one in known()}
    gpt2, llama = found["GPT-2 small (published)"], found["LLaMA-2 7B (published)"]
    assert (gpt2.times, gpt2.gated, gpt2.block.total) == (4.0, False, 7_087_872)
    assert llama.gated and llama.block.feedforward == 3 * 4096 * 11_008


def test_what_a_neuron_likes_is_its_commonest_token():
    ids = np.array([5, 7, 5, 9, 7])
    found = liked(np.array([1, 0, 2, 4, 3]), np.array([3.0, 2.0, 1.0, 0.5, 0.1]), ids)
    assert (found.token, found.count, found.places, found.value) == (7, 2, 5, 3.0)  # 5 as often, but weaker
    assert liked(np.array([3]), np.array([-2.0]), ids).token == 9
