"""What is measured of attention and read off its heads, against computations done another way."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.data.progress import finish
from engine.errors import ConfigError
from engine.model import Transformer, build
from engine.parts.attention import Attention
from engine.parts.registry import HEALTHY, Parts, swapped
from engine.recording import Recording, record
from pages.inside.attention import steps
from studies.attention import head_patterns, heads, scaling, shared_keys, single_head
from studies.attention.ablation import (
    Switches,
    changes_nothing,
    compare,
    consequence,
    each_head_off,
    edits_for,
    is_silent,
    kl_divergence,
    missed,
    reordered,
    writes_a_bias,
)
from studies.attention.attention_targets import by_distance, shares, target_keys, words_of
from studies.attention.heads import even_pattern
from studies.attention.scaling import KEYS, among_zeros, theory
from studies.circuits import induction
from studies.costs.presets import PRESETS
from studies.lab.faults import PARTS
from studies.positions.alibi import visible
from tests.engine.cases import for_each
from tests.engine.helpers import induction_model, loud, tiny
from tests.engine.toys import TOYS, PlainProducts

IDS = (3, 1, 4, 1, 5, 9, 2)


def model_of(**fields) -> Transformer:
    return loud(tiny(**fields), factor=4.0)


def test_an_even_head_has_the_largest_entropy():
    even = np.tril(np.ones((6, 6), np.float32)) / np.arange(1, 7, dtype=np.float32)[:, None]
    assert heads.relative_entropy(even, visible(6, True)) == pytest.approx(1, abs=1e-6)
    assert heads.entropy(even) == pytest.approx(np.log(np.arange(1, 7)), abs=1e-6)
    assert heads.relative_entropy(np.full((5, 5), 0.2), visible(5, False)) == pytest.approx(1)
    numbers = heads.head_numbers(np.ones((2, 3, 1, 1), np.float32), visible(1, True))
    assert not numbers.choice
    rows = np.array([[1, 0, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])  # the first query has no choice
    assert heads.relative_entropy(rows, visible(3, True)) == pytest.approx(0.5)
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
    found = single_head.head_stages(model, recording, 0, 0)
    for query, row in enumerate(recording.seen()):
        assert single_head.keys_seen(found, query) == np.flatnonzero(row).tolist()
        assert single_head.written_out(found, query, query).seen == row.sum()


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
    found = finish(induction.repeated(model))
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
        everything = Switches(False, False, False, heads_off=off, ablation=how, order="shuffled", order_end=3)
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
        moved = reordered(IDS, Switches(order=order, order_end=4, seed=3))
        assert moved[4:] == IDS[4:] and sorted(moved[:4]) == sorted(IDS[:4]) and moved != IDS
    assert reordered(IDS, Switches(order_end=4)) == IDS


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
    found, full = shared_keys.shared_keys(config, 64, 8), shared_keys.shared_keys(config, 64, 64)
    assert found.cache_bytes_per_token == 2 * 80 * 8 * 128 * 2 == 327_680
    assert full.cache_bytes_per_token == 8 * found.cache_bytes_per_token
    assert shared_keys.cache_saving(found, full) == 7 / 8 and shared_keys.cache_saving(full, full) == 0
    assert shared_keys.served_by(6, 3).tolist() == [0, 0, 1, 1, 2, 2]
    assert found.cache_bytes == 4096 * 327_680
    assert found.parameters == 2 * 8192 * 1024
    with pytest.raises(ConfigError):
        shared_keys.shared_keys(config, 64, 7)


MODEL = loud(tiny(n_kv_heads=2, position="rope", qk_norm=True, attention_bias=True), factor=4.0)
RECORDING = record(MODEL, IDS)
LAYER, HEAD, QUERY, KEY = 1, 3, 5, 2


class Capped(Attention):
    """Scores that are no multiple of the products (Gemma 2 caps them so)."""

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return super().scores(q, k).tanh()


def test_the_vectors_are_the_heads_own_and_those_of_the_key_value_head_it_reads():
    found = single_head.vectors(RECORDING, LAYER, HEAD)
    for name, place in {"q": 3, "q_rot": 3, "k": 1, "k_rot": 1, "v": 1}.items():
        np.testing.assert_array_equal(found[name], RECORDING[f"blocks.{LAYER}.{name}"][place])
    assert [single_head.key_value_head(RECORDING, LAYER, h) for h in range(4)] == [0, 0, 1, 1]


def test_the_gap_is_to_the_pattern_that_the_model_used():
    found = single_head.head_stages(MODEL, RECORDING, LAYER, HEAD)
    assert single_head.gap(found, RECORDING, LAYER, HEAD) < 1e-5
    name = f"blocks.{LAYER}.pattern"
    tampered = RECORDING[name].copy()
    tampered[HEAD, QUERY, KEY] += 0.25
    other = Recording(RECORDING.config, RECORDING.ids, {**RECORDING.arrays, name: tampered})
    assert single_head.gap(found, other, LAYER, HEAD) == pytest.approx(0.25, abs=1e-5)
    assert single_head.gap(found, other, LAYER, 0) > 0.01, "another head has another pattern"
    w = single_head.written_out(found, QUERY, KEY)
    assert sum(a * b for a, b in w.pairs) == pytest.approx(w.raw)
    assert w.scaled == pytest.approx(w.raw / math.sqrt(len(w.pairs))) == w.masked and w.bias is None
    assert w.exponential == pytest.approx(math.exp(w.masked - w.largest))
    assert w.weight == pytest.approx(w.exponential / w.total) and w.seen == QUERY + 1
    assert w.weight == pytest.approx(RECORDING[f"blocks.{LAYER}.pattern"][HEAD, QUERY, KEY], abs=1e-6)
    assert w.largest == max(single_head.written_out(found, QUERY, k).masked for k in range(QUERY + 1))
    best = single_head.strongest_key(found, QUERY)
    assert single_head.written_out(found, QUERY, best).masked == w.largest


def test_a_bias_is_added_before_the_mask():
    model = loud(tiny(position="alibi"), factor=4.0)
    recording = record(model, IDS)
    found = single_head.head_stages(model, recording, 0, 2)
    w = single_head.written_out(found, QUERY, KEY)
    assert w.bias is not None and w.bias < 0 and w.masked == pytest.approx(w.scaled + w.bias)
    own = np.tril(recording["blocks.0.scores"][2])
    np.testing.assert_allclose(np.tril(single_head.biased(found)), own, atol=1e-4)


@for_each("parts, kind, name", [
    (HEALTHY, "root", "÷ √d"),
    (PARTS["unscaled_scores"], "none", "scores"),
    (swapped(HEALTHY, "plain", mixers={"attention": PlainProducts}), "none", "scores"),
    (TOYS["mixer"], "number", "scores"),
    (swapped(HEALTHY, "capped", mixers={"attention": Capped}), "own", "scores"),
], ids=lambda x: x.name if isinstance(x, Parts) else "")  # fmt: skip
def test_every_equation_that_is_printed_is_true(parts: Parts, kind: str, name: str):
    """Whatever stands to the left and to the right of each = in numbers."""
    model = loud(tiny(), factor=4.0) if parts is HEALTHY else build(tiny(), parts=parts).eval()
    found = single_head.head_stages(model, record(model, IDS), 0, 1)
    w = single_head.written_out(found, QUERY, KEY)
    assert single_head.scaled_by(w.divisor, 4) == kind and steps.names_of(found)["÷ √d"] == name
    said = steps.arithmetic(list("abcdefg"), w, QUERY, KEY).replace("−", "-")
    assert ("\\sqrt" in said) == (kind == "root")
    assert ("computed by this model's mixer from the product" in said) == (kind == "own")
    for left, right in re.findall(r"= ([-\d.]+ / [^=]+) = ([-\d.]+)\$", said):
        numbers = [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", left)]
        below = math.sqrt(numbers[1]) if "sqrt" in left else numbers[1]
        assert numbers[0] / below == pytest.approx(float(right), abs=2e-4)
    if kind == "none":
        assert w.scaled == pytest.approx(w.raw) and f"s = {w.scaled:.4f}$: the unscaled product" in said


def test_lengths_are_those_of_the_chosen_token():
    """What the heads write together is their sum: b_O, which no head writes, is not in it."""
    model = loud(tiny(n_kv_heads=2, attention_bias=True), factor=4.0)
    with torch.no_grad():
        model.blocks[LAYER].mixer.w_o.bias.fill_(0.5)
    recording = record(model, IDS)
    each = [single_head.head_stages(model, recording, LAYER, head) for head in range(model.config.n_heads)]
    together = np.linalg.norm(sum(stages.written[QUERY] for stages in each))
    seen = single_head.lengths(model, recording, each[0], LAYER, QUERY)
    assert seen.together == pytest.approx(together, rel=1e-5)
    assert seen.together != pytest.approx(
        np.linalg.norm(recording[f"blocks.{LAYER}.attn_out"][QUERY]), rel=0.01
    )
    found = single_head.head_stages(MODEL, RECORDING, LAYER, HEAD)
    seen = single_head.lengths(MODEL, RECORDING, found, LAYER, QUERY)
    rows = MODEL.blocks[LAYER].mixer.w_o.weight[:, 4 * HEAD : 4 * HEAD + 4].detach().numpy()
    own = rows @ RECORDING[f"blocks.{LAYER}.z"][HEAD, QUERY]
    written, stream = (RECORDING[f"blocks.{LAYER}.{name}"][QUERY] for name in ("attn_out", "resid_pre"))
    bias = MODEL.blocks[LAYER].mixer.w_o.bias.detach().numpy()
    sizes = [float(np.linalg.norm(x)) for x in (written - bias, stream, own)]
    assert [seen.together, seen.before, seen.head] == pytest.approx(sizes, rel=1e-5)


def numbers(**fields: list[list[float]]) -> heads.HeadNumbers:
    values = dict.fromkeys(("entropy", "relative_entropy", "distance", "previous", "first"), np.zeros((2, 2)))
    values |= {name: np.array(value) for name, value in fields.items()}
    return heads.HeadNumbers(**{"induction": None, **values}, even_first=0.2, even_previous=0.2)


def test_followers_are_those_from_the_threshold_on_most_first():
    given = numbers(previous=[[0.4, 0.39], [0.9, 0.1]], first=[[0.1, 0.2], [0.3, 0.25]])
    previous, broad, first = head_patterns.followers(given)
    assert broad.heads == () and broad.habit == "broad"
    assert previous.heads == (heads.HeadValue(1, 0, 0.9), heads.HeadValue(0, 0, 0.4))
    assert first.heads == () and first.most == heads.HeadValue(1, 0, 0.3)
    with_induction = head_patterns.followers(replace(given, induction=np.eye(2)))
    assert [f.habit for f in with_induction] == ["previous", "induction", "broad", "first"]
    given = replace(numbers(first=[[0.5, 0.7], [0.63, 0.1]]), even_first=0.32)  # five tokens
    np.testing.assert_allclose(head_patterns.bar(given, "first"), np.full((2, 2), 0.64))
    np.testing.assert_allclose(head_patterns.bar(given, "previous"), np.full((2, 2), 0.4))
    assert head_patterns.habit_of_each(given) == [None, ("first", 0.7), None, None]


def test_narrow_habits_come_before_wide_ones_and_kinds_stand_together():
    given = replace(
        numbers(previous=[[0.45, 0.1], [0.1, 0.1]], relative_entropy=[[0.2, 0.8], [0.3, 0.9]]),
        by_target={"own_word": np.array([[0.95, 0.1], [0.7, 0.1]])},
        even_by_target={"own_word": 0.3},
    )
    wanted = [("previous", 0.45), ("broad", 0.8), ("own_word", 0.7), ("broad", 0.9)]
    assert head_patterns.habit_of_each(given) == wanted
    assert head_patterns.grouped(given, 4) == [0, 2, 3, 1] and head_patterns.grouped(given, 1) == [0, 2, 3]
    assert head_patterns.grouped(given, 4, strong=True) == [0] and head_patterns.clearest(given) == 0
    quiet = replace(given, even_by_target={"own_word": 0.4}, relative_entropy=np.zeros((2, 2)))
    assert head_patterns.habit_of_each(quiet)[2] is None and head_patterns.grouped(quiet, 4, strong=True) == [
        0
    ]


def test_who_looks_nearby_minds_its_word_only_if_distance_alone_would_leave_it_more_often():
    given = replace(
        numbers(),
        by_target={
            "own_word": np.array([[0.9, 0.9], [0.55, 0.5]]),
            "near": np.array([[0.8, 0.8], [0.1, 0.3]]),
        },
        even_by_target={"own_word": 0.26, "near": 0.2},
        word_by_distance=np.array([[0.8, 0.84], [0.2, 0.1]]),
    )
    bars = [[1 - 0.6 * 0.2, 1 - 0.6 * 0.16], [0.52, 0.52]]  # twice the even share is the least
    np.testing.assert_allclose(head_patterns.bar(given, "own_word"), bars)
    assert head_patterns.habit_of_each(given) == [("own_word", 0.9), ("near", 0.8), ("own_word", 0.55), None]
    assert [(h.layer, h.head) for h in head_patterns.followers(given)[1].heads] == [(0, 0), (1, 0)]
    assert head_patterns.ranked(given, "own_word", strong=True) == [0, 2]


def test_the_habit_of_each_head_and_their_order():
    given = numbers(
        previous=[[0.5, 0.1], [0.1, 0.1]], first=[[0.9, 0.8], [0.1, 0.3]],
        induction=[[0.0, 0.0], [0.45, 0.1]], duplicate=[[math.nan, 0.0], [0.6, 0.1]],
    )  # fmt: skip
    assert head_patterns.habit_of_each(given) == [("previous", 0.5), ("first", 0.8), ("duplicate", 0.6), None]
    assert list(head_patterns.measured_habits(given)) == [
        "previous",
        "induction",
        "duplicate",
        "broad",
        "first",
    ]
    counted = head_patterns.counts(given)
    assert (counted.heads, counted.named, counted.resting, counted.several) == (4, 2, 1, 1)
    assert {k: n for k, n in counted.by_habit.items() if n} == {"previous": 1, "first": 1, "duplicate": 1}
    for habit, strong, order in (
        (None, False, [0, 1, 2, 3]), (None, True, [0, 2]),  # resting alone is not counted
        ("first", False, [0, 1, 3, 2]), ("first", True, [0, 1]),
        ("previous", False, [0, 1, 2, 3]),  # of equal ones the lower comes first
        ("duplicate", False, [2, 3, 1, 0]),  # what could not be measured comes last
        ("name_mover", False, [0, 1, 2, 3]), ("name_mover", True, []),
    ):  # fmt: skip
        assert head_patterns.ranked(given, habit, strong=strong) == order, habit


def test_the_extremes_are_named_with_their_own_numbers():
    relative = [[0.5, 0.9], [0.1, 0.7]]
    given = numbers(relative_entropy=relative, entropy=[[1, 2], [0.25, 1.5]], distance=[[1, 2], [3, 9]])
    broad, sharp, far = heads.HeadValue(0, 1, 0.9), heads.HeadValue(1, 0, 0.1), heads.HeadValue(1, 1, 9.0)
    assert head_patterns.extremes(given) == head_patterns.Extremes(broad, sharp, 0.25, far)
    assert head_patterns.extremes(numbers(relative_entropy=[[math.nan] * 2] * 2)) is None


def test_the_query_that_tells_most_about_a_head():
    pattern = np.eye(6)
    pattern[1, 0], pattern[2, 1] = 0.1, 0.99  # of the earlier half
    pattern[3] = [0.8, 0.0, 0.2, 0.0, 0.0, 0.0]  # most on the first, where heads rest
    pattern[4] = [0.1, 0.0, 0.0, 0.5, 0.4, 0.0]
    pattern[5] = [0.0, 0.0, 0.0, 0.0, 0.3, 0.7]  # most on itself
    assert single_head.telling_query(pattern) == 4
    pattern[3] = [0.5, 0.0, 0.5, 0.0, 0.0, 0.0]
    assert single_head.telling_query(pattern) == 3  # of equal ones the earlier
    pattern[3:] = np.eye(6)[3:]
    pattern[5, 4] = 0.1
    assert single_head.telling_query(pattern) == 5
    assert [single_head.telling_query(np.eye(n)) for n in (1, 2)] == [0, 1]


def test_the_candidates_are_the_likeliest_of_both_and_probabilities_belong_to_the_place():
    found = compare(MODEL, RECORDING, Switches(heads_off=((1, 3), (0, 1)), order_end=QUERY))
    read = consequence(found, QUERY, 3)
    p, q = (np.exp(r.log_probabilities[QUERY]) for r in (found.before, found.after))
    assert set(read.tokens) == {*np.argsort(-p)[:3], *np.argsort(-q)[:3]}
    assert read.tokens[:3].tolist() == np.argsort(-p)[:3].tolist()
    np.testing.assert_allclose(read.before, p[read.tokens], rtol=1e-6)
    np.testing.assert_allclose(read.after, q[read.tokens], rtol=1e-6)
    assert read.kl == pytest.approx(float((p * np.log(p / q)).sum()), rel=1e-5)
    assert read.mean_kl == pytest.approx(float(found.kl.mean())) and read.mean_kl != read.kl
    assert found.loss_after is not None and read.change == found.loss_after - (found.loss_before or 0)


def test_what_is_missed_and_what_switches_amount_to():
    assert changes_nothing(Switches(order_end=3, seed=7, ablation="mean"))
    one_off = {"heads_off": ((0, 0),)}
    for other in ({"mask": False}, {"scale": False}, {"position": False}, {"order": "reversed"}, one_off):
        assert not changes_nothing(Switches(**other))
    every = tuple(np.ndindex(2, 4))
    for off, how, silent in ((every, "zero", True), (every[1:], "zero", False), (every, "mean", False)):
        assert is_silent(tiny().resolved(), Switches(heads_off=off, ablation=how)) is silent
    values = finish(each_head_off(MODEL, RECORDING))
    found = missed(values)
    assert values[found.layer, found.head] == values.max() == found.most and found.least == values.min()
    nothing = missed(np.full((2, 2), np.nan))
    assert (nothing.layer, nothing.head) == (0, 0) and math.isnan(nothing.most)


@for_each("fields", [{}, {"attention_bias": True}, {"attention_bias": True, "mixer": "mean"}], ids=str)
def test_an_output_bias_is_what_is_left_when_every_head_is_off(fields):
    model = loud(tiny(**fields), factor=4.0)
    every = Switches(heads_off=tuple(np.ndindex(2, 4)))
    silent = record(model, IDS, edits=edits_for(model, every))
    assert bool(np.any(silent["blocks.0.attn_out"])) == writes_a_bias(model)


def test_theory_of_the_scale_and_one_score_among_zeros():
    for exponent in (0.0, 0.5, 0.25):
        found, expected = scaling.scaling((64,), exponent), theory(64, exponent)
        assert found.spread[0] == pytest.approx(expected.spread, rel=0.1)
        assert found.expected[0] == pytest.approx(expected.spread)
    assert theory(64, 0.5).plain_spread == 8 and theory(64, 0.5).spread == 1
    even = scaling.scaling((64,), 3.0)  # scores that are all but 0: the weights are all but even
    assert even.entropy[0] == pytest.approx(theory(64, 3.0).entropy, abs=1e-4) == math.log(KEYS)
    assert even.slope[0] == pytest.approx(theory(64, 3.0).slope, rel=1e-4)
    found = among_zeros(14, 99, 128)
    assert found.exponential == pytest.approx(1_202_604.28, rel=1e-6)
    assert found.weight == pytest.approx(1_202_604.28 / (1_202_604.28 + 99))
    assert found.divided == pytest.approx(14 / 11.3137085, rel=1e-6)
    assert found.divided_weight == pytest.approx(math.exp(found.divided) / (math.exp(found.divided) + 99))


SIGNS = list("ab cde, ab")
CODES = [ord(c) for c in SIGNS]
BEFORE = np.tri(len(SIGNS), dtype=bool)


def test_words_begin_after_blanks_and_with_tokens_that_bring_their_own():
    assert words_of(SIGNS).tolist() == [0, 0, -1, 1, 1, 1, -1, -1, 2, 2]
    assert words_of(["The", " lib", "rary", ".", " It"]).tolist() == [0, 1, 1, -1, 2]
    masks = target_keys(CODES, SIGNS).items()
    where = {name: [np.flatnonzero(row).tolist() for row in mask] for name, mask in masks}
    assert where["word_start"][5] == [2, 3] and where["word_start"][4] == [], "beyond the second letter"
    assert where["own_word"][5] == [3, 4, 5] and where["own_word"][3] == [] and where["own_word"][6] == []
    assert where["breaks"][9] == [2, 6, 7] and where["breaks"][6] == [2, 7]
    assert where["same"][8] == [0] and where["same"][7] == [2] and where["same"][3] == []
    assert where["itself"][0] == [] and where["itself"][4] == [4]
    assert where["near"][3] == [] and where["near"][5] == [2, 3, 4, 5, 6, 7, 8]


def test_a_share_is_the_mean_over_the_queries_that_have_such_a_place():
    even = even_pattern(BEFORE)
    breaks = np.zeros_like(even)
    breaks[:3, 0] = breaks[3:, 2] = 1
    found = shares(np.stack([even, breaks])[None], BEFORE, CODES, SIGNS)
    wanted = np.mean([1 / 4, 1 / 5, 1 / 6, 1 / 7, 2 / 8, 3 / 9, 3 / 10])  # queries 3 to 9
    assert found.even["breaks"] == pytest.approx(wanted)
    np.testing.assert_allclose(found.weight["breaks"], [[wanted, 1.0]])
    assert found.even["itself"] == pytest.approx(np.mean([1 / (i + 1) for i in range(1, 10)]))
    assert "word_start" not in found.weight, "one letter alone has such a place"


def test_what_distance_alone_gives_is_the_mean_of_each_distance():
    pattern = np.tril(np.random.default_rng(3).random((4, 4)))
    pattern /= pattern.sum(-1, keepdims=True)
    usual = [np.diagonal(pattern, -d).mean() for d in range(4)]
    wanted = np.array([[usual[max(i - j, 0)] for j in range(4)] for i in range(4)]) * np.tri(4)
    found = by_distance(pattern[None], np.tri(4, dtype=bool))[0]
    np.testing.assert_allclose(found, wanted / wanted.sum(-1, keepdims=True))


def test_a_head_that_stops_at_the_blank_minds_its_word_and_one_that_only_looks_back_does_not():
    texts = list("abcd efgh ijkl")
    places, words = np.arange(14), words_of(texts)
    back = np.tril(0.8 ** np.abs(places[:, None] - places))
    both = np.stack([back, back * (words == words[:, None])])
    both /= both.sum(-1, keepdims=True)
    found = shares(both[None], np.tri(14, dtype=bool), [ord(c) for c in texts], texts)
    own, distance = found.weight["own_word"][0], found.word_by_distance[0]
    assert own[0] < distance[0] + 0.01, "its distances explain what it does"
    assert own[1] == 1 and distance[1] < 0.95, "its distances alone would lead out of the word"
