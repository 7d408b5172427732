"""Neurons and activation functions, held against loops and against the model's own forward pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
import torch

from engine.data.progress import Progress, finish
from engine.errors import ShapeError
from engine.model import Transformer, build
from engine.parts.registry import FEEDFORWARDS
from engine.recording import record
from studies.costs.block import block, block_of, gate_paid, known, shares
from studies.costs.ledger import ledger
from studies.feedforward import activation_functions, neurons
from studies.feedforward.linearity import midpoints
from studies.feedforward.neurons import Scan
from tests.engine.cases import for_each
from tests.engine.helpers import loud, some_tokens, tiny

KINDS = [name for name, part in FEEDFORWARDS.items() if part.present]


def ids_of(model: Transformer, length: int, seed: int = 0) -> list[int]:
    return some_tokens(model.config, 1, length, seed)[0].tolist()


@for_each("ffn", KINDS)
def test_the_most_active_neurons_and_the_bend_are_the_models_own(ffn: str) -> None:
    model = loud(tiny(ffn=ffn))
    recording = record(model, [1, 5, 2, 9, 3])
    post = recording.stacked("ffn_post")
    peaks = np.abs(post).max(1)
    found = neurons.most_active(post, 7)
    order = [np.unravel_index(i, peaks.shape) for i in np.argsort(-peaks, axis=None)[:7]]
    assert [(p.layer, p.neuron) for p in found] == order
    assert [abs(p.value) for p in found] == [peaks[at] for at in order]
    assert all(p.value == post[p.layer, p.position, p.neuron] for p in found)
    assert FEEDFORWARDS[ffn].gated == (post.min() < -0.2)
    name = activation_functions.activation_name(model.config)
    read = activation_functions.bent_input(model.config)
    assert name is not None
    bent = activation_functions.functions(model.config)[name][1](
        torch.tensor(recording["blocks.0." + read])
    ).numpy()
    if read == "ffn_gate":
        pre = recording["blocks.0.ffn_pre"]
        bent = bent * (pre.clip(-7, 7) + 1 if ffn == "swiglu_clamped" else pre)
    np.testing.assert_allclose(bent, post[0], rtol=1e-5, atol=1e-6)


def test_sparsity_counts_zeros_or_small_values() -> None:
    post = np.array([[[0.0, 2.0], [0.0, 0.0]], [[1.0, 1.0], [-1.0, 0.01]]], dtype=np.float32)
    assert neurons.quiet_share(post, FEEDFORWARDS["relu"].exact_zeros).tolist() == [0.75, 0.0]
    assert neurons.quiet_share(post, FEEDFORWARDS["gelu"].exact_zeros).tolist() == [0.75, 0.25]
    assert neurons.quiet_share(np.zeros((1, 2, 2), np.float32), True).tolist() == [1.0]
    gates = np.arange(1000.0).reshape(10, 100)
    some, values = activation_functions.some_pairs(gates, 2 * gates, 50)
    assert len(set(some)) == 50 and np.array_equal(values, 2 * some)
    assert len(activation_functions.some_pairs(gates, gates, 5000)[0]) == 1000


@for_each("fields", [
    {}, {"norm": "rmsnorm"}, {"norm": "none"}, {"tie_embeddings": False}, {"ffn": "swiglu"},
    {"wiring": "post"},
])  # fmt: skip
def test_scores_are_what_a_unit_of_the_neuron_adds_to_the_logits(fields: dict) -> None:
    """One unit more of the neuron in the last layer, with the division of the final norm held where it is."""
    model = loud(tiny(**fields))
    unit = torch.zeros(1, 3, model.blocks[1].ffn.w_out.in_features)
    unit[0, -1, 5] = 1e-3
    edits = {"blocks.1.ffn_post": lambda x: x + unit}
    before, after = (record(model, [3, 1, 4], edits=e)["blocks.1.ffn_out"] for e in ({}, edits))
    write = (after - before)[-1].astype(np.float64) / 1e-3
    if "norm" not in fields and "wiring" not in fields:
        write = write - write.mean()
    if fields.get("norm") != "none" and "wiring" not in fields:
        write = write * model.norm_final.gain.detach().double().numpy()
    expected = model.output_matrix.detach().double().numpy() @ write
    found = neurons.token_scores(model, 1, 5)
    np.testing.assert_allclose(found, expected - expected.mean(), atol=3e-3 * abs(expected).max())


@for_each("ffn", ["relu", "gelu", "swiglu"])
def test_a_scan_finds_what_a_loop_over_windows_finds(ffn: str) -> None:
    model = loud(tiny(ffn=ffn))
    ids = ids_of(model, 61)
    asked: dict[str, int] = {"window": 6, "batch": 4, "top": 3, "apart": 4}
    assert list(neurons.scan(model, ids, **asked)) == [Progress(done, 60) for done in (24, 48, 60)]
    found = finish(neurons.scan(model, ids, **asked))
    assert len(found) == 2 == model.config.n_layers
    for layer, of in enumerate(found):
        assert (of.total, of.window) == (60, 6)
        name = f"blocks.{layer}.ffn_post"
        post = np.concatenate([record(model, ids[i : i + 6])[name] for i in range(0, 60, 6)])
        np.testing.assert_allclose(of.positive, (post > 0).mean(0), atol=1e-6)
        for sign, values, at in ((1, of.highest, of.highest_at), (-1, of.lowest, of.lowest_at)):
            stretches = (sign * post).reshape(15, 4, -1).max(1)  # of four tokens each
            best = -np.sort(-stretches, axis=0)[:3]
            np.testing.assert_allclose(sign * values.T, best, rtol=1e-4, atol=1e-5)
            there = np.take_along_axis(post, at.T, axis=0)
            np.testing.assert_allclose(there, values.T, rtol=1e-4, atol=1e-5)


def test_a_short_text_has_fewer_contexts() -> None:
    model = loud(tiny())
    state = finish(neurons.scan(model, [1, 2, 3], window=8, top=4, apart=2))[0]
    assert (state.total, state.window) == (3, 3) and (state.highest_at[:, 2:] == -1).all()
    assert np.isneginf(state.highest[:, 2:]).all() and np.isfinite(state.highest[:, :2]).all()
    with pytest.raises(ShapeError, match="no text"):
        list(neurons.scan(model, [], window=8))


@for_each("batch", [1, 2, 8])
def test_activations_near_are_the_recorded_ones(batch: int) -> None:
    model = loud(tiny(ffn="geglu"))
    ids = ids_of(model, 40)
    near = finish(neurons.activations_near(model, ids, 1, 3, [8, 0, 32], 8, batch=batch))
    own = [record(model, ids[start : start + 8])["blocks.1.ffn_post"][:, 3] for start in (8, 0, 32)]
    np.testing.assert_allclose(near, own, rtol=1e-4, atol=1e-6)


PHI = NormalDist().cdf


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


BY_HAND: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "relu2": lambda x: max(x, 0.0) ** 2,
    "gelu": lambda x: x * PHI(x),
    "silu": lambda x: x * sigmoid(x),
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@for_each("name", list(activation_functions.ACTIVATIONS))
def test_curves_and_slopes_are_those_of_the_formula(name: str) -> None:
    found, value = activation_functions.curve(name, -3.0, 5.0, 81), BY_HAND[name]
    assert (found.x[0], found.x[-1]) == (-3.0, 5.0)
    np.testing.assert_allclose(found.y, [value(x) for x in found.x], atol=1e-12)
    away = np.abs(found.x) > 1e-9  # ReLU has a corner at 0
    slopes = [(value(x + 1e-5) - value(x - 1e-5)) / 2e-5 for x in found.x[away]]
    np.testing.assert_allclose(found.slope[away], slopes, atol=1e-8)


def test_the_two_gelus_differ_by_half_a_thousandth() -> None:
    measured = activation_functions.worst_difference()
    x, difference = measured.x, measured.y
    worst = int(np.abs(difference).argmax())
    assert 4.7e-4 < abs(difference[worst]) < 4.8e-4 and 2.2 < abs(x[worst]) < 2.8
    np.testing.assert_allclose(difference, difference[::-1], atol=1e-12)  # gelu(x) - gelu(-x) = x for both
    axis, surface = activation_functions.gated_surface("swiglu", 2.0, 5)
    np.testing.assert_allclose(surface, np.outer(axis, [x * sigmoid(x) for x in axis]), atol=1e-6)
    values = np.array([[-5.0, -1.0], [0.5, 1.5]])
    found = activation_functions.spread(values, -2.0, 2.0, 4)
    np.testing.assert_allclose(found.density, [0, 0.25, 0.25, 0.25])
    assert (found.outside, found.negative, found.mean) == (0.25, 0.5, -1.0)
    assert found.std == pytest.approx(values.std())
    with pytest.raises(ValueError, match="no values"):
        activation_functions.spread(np.zeros(0))


def test_what_is_largest_along_a_text_and_a_vocabulary():
    values = np.array([[1.0, -5.0, 2.0], [3.0, 4.0, 4.5]])
    assert neurons.loudest(values) == (0, 1) and neurons.loudest(values[1]) == (2,)
    assert neurons.by_size(values[0], 2).tolist() == [1, 2]
    assert neurons.by_size(values[0]).tolist() == [0, 1, 2]
    found = neurons.along(np.array([0.5, -2.0, 1.0], dtype=np.float32))
    assert (found.at, found.peak, found.low, found.high) == (1, -2.0, -2.0, 1.0)
    assert found.sizes.tolist() == [0.25, 1.0, 0.5]
    assert neurons.along(np.array([0.5, -0.125])).sizes.tolist() == [1, 0.25]
    assert not neurons.along(np.zeros(3)).sizes.any()
    scores = np.array([0.1, -3.0, 2.0, -1.0, 5.0])
    found = neurons.promoted(scores, 2)
    assert found.raised.tolist() == [4, 2] and found.lowered.tolist() == [1, 3]
    assert found.order.tolist() == found.ends(3).tolist() == [4, 2, 0, 3, 1]
    assert found.ends(2).tolist() == [4, 2, 3, 1]
    assert set(neurons.promoted(scores, 9).raised).isdisjoint(neurons.promoted(scores, 9).lowered)


def scanned(lowest: list[float]) -> Scan:
    highest, low = np.array([[3.0, 1.0, -np.inf]]), np.array([[*lowest, np.inf]])
    return Scan(8, 4, highest, np.array([[7, 3, -1]]), low, np.array([[0, 5, -1]]), np.zeros(1))


def test_what_a_neuron_likes_and_which_of_its_sides_is_shown():
    up, down = scanned([-2.0, -1.0]), scanned([-4.0, -1.0])
    for side, shown in (("strongest", (False, True)), ("highest", (False, False)), ("lowest", (True, True))):
        assert tuple(neurons.shows_lowest(scan, 0, side) for scan in (up, down)) == shown
    assert [x.tolist() for x in neurons.top_activations(up, 0, False)] == [[7, 3], [3.0, 1.0]]
    assert [x.tolist() for x in neurons.top_activations(up, 0, True)] == [[0, 5], [-2.0, -1.0]]
    at, values = np.array([9, 4]), np.array([2.0, -4.0])
    near = np.array([[0.0, 2.0, 1.0, 0.5], [-4.0, 1.0, 2.0, 3.0]])
    assert neurons.windows(at, 4) == [8, 4]
    first, second = neurons.excerpts(at, values, near, 4, before=3, after=1)
    assert (first.at, first.first, first.missing, first.value) == (9, 8, 2, 2.0)
    assert first.strengths.tolist() == [0.0, 0.5, 0.25], "shares of 4, the strongest of both"
    assert (second.first, second.missing) == (4, 3) and second.strengths.tolist() == [-1.0, 0.25]
    (inner,) = neurons.excerpts(np.array([10]), np.array([1.0]), near[:1], 4, before=1, after=1)
    assert (inner.first, inner.missing) == (9, 0) and inner.strengths.tolist() == [2.0, 1.0, 0.5]
    ids = np.array([5, 7, 5, 9, 7])
    found = neurons.liked(np.array([1, 0, 2, 4, 3]), np.array([3.0, 2.0, 1.0, 0.5, 0.1]), ids)
    assert (found.token, found.count, found.positions, found.value) == (
        7,
        2,
        5,
        3.0,
    )  # 5 as often, but weaker
    assert neurons.liked(np.array([3]), np.array([-2.0]), ids).token == 9


@for_each("fields", [{}, {"ffn": "swiglu", "norm": "rmsnorm"}, {"ffn": "none"}, {"attention_bias": True}])
def test_a_block_has_what_the_built_one_has(fields):
    config = tiny(n_layers=3, **fields).resolved()
    own = build(config, device="meta").blocks[0]
    found = block_of(ledger(config))
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


def test_attention_with_held_weights_is_linear_and_a_network_is_not() -> None:
    model = loud(tiny(n_layers=2))
    off = midpoints(model, record(model, [1, 2, 3, 4, 5]))
    assert off.attention is not None and off.attention < 1e-6
    assert off.feedforward is not None and off.feedforward > 0.01
    model = loud(tiny(n_layers=1, ffn="none"))
    assert midpoints(model, record(model, [1, 2, 3])).feedforward is None
