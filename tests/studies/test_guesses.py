"""Which guess holds, each worked out here another way, for several models and settings."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data.tokenizers.bpe import pieces as cut
from engine.model import build
from engine.recording import record
from studies.attention.ablation import UnmaskedReading, without_mask
from studies.attention.scaling import WIDTHS
from studies.circuits.induction import Repeat, read_twice
from studies.costs.ledger import ledger
from studies.costs.presets import PRESETS
from studies.costs.since_2023 import CARDS
from studies.experiments import reward_runs
from studies.experiments.bug_races import Comparison, Side
from studies.experiments.no_residual import shipped
from studies.guesses import attention, closest, order, reward, sampling, sizes, tokens, training
from studies.positions.permutation import order_effect
from studies.tokens.bpe_watch import watch
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny
from tests.engine.naive import merge_everywhere

IDS = (3, 1, 4, 1, 5, 9, 2, 6)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def loss_of(logits: torch.Tensor, ids: tuple[int, ...]) -> float:
    """Mean nats of ids[1:], from logits (place, vocab)."""
    return float(F.cross_entropy(logits[:-1].double(), torch.tensor(ids[1:])))


def test_a_guess_that_cannot_be_told_from_the_right_one_is_not_offered() -> None:
    found = closest(10, {"ten": 10.0, "as good": 10.1, "twenty": 20.0})
    assert found is not None and (found.right, found.offered) == ("ten", ("ten", "twenty"))
    assert closest(10, {"ten": 10.0, "as good": 10.1}) is None, "one is no choice"
    assert closest(10, {"five": 5.0, "twenty": 20.0}) is None, "none of them holds"
    base = PRESETS["gpt2"].model
    table = ledger(replace(base, vocab_size=10_000_000, n_layers=1))
    blocks = ledger(replace(base, vocab_size=10, context=8, n_layers=40, position="rope"))
    for one, right in ((table, "twice"), (blocks, "four")):
        assert sizes.wider(one, ledger(replace(one.config, **sizes.twice_as_wide(one.config)))).right == right


@for_each("seed", range(6))
@for_each("now", WIDTHS)
def test_the_largest_weight_at_another_width(now: int, seed: int) -> None:
    other = 4 if now >= 32 else 128
    assert attention.other_width(now) == other
    drawn = np.random.default_rng(seed).standard_normal((max(WIDTHS), 17))
    most = [softmax(drawn[:width, 1:].T @ drawn[:width, 0]).max() for width in (now, other)]
    divided = [softmax(drawn[:w, 1:].T @ drawn[:w, 0] / math.sqrt(w)).max() for w in (now, other)]
    found = attention.width(now, seed)
    told = [found.numbers[name] for name in ("before", "after", "divided_before", "divided_after")]
    assert told == pytest.approx([*most, *divided])
    moved = most[1] - most[0]
    assert found.right == ("same" if abs(moved) <= 0.05 else "sharper" if moved > 0 else "flatter")


def model_of(**fields: Any) -> Any:
    return loud(tiny(**({"position": "learned", "context": 24} | fields)), factor=4.0).requires_grad_(False)


@for_each("before, after, right", [
    (2.0, 0.1, "nothing"), (2.0, 2.1, "same"), (2.0, 1.85, "same"), (2.0, 3.0, "higher"), (2.0, 1.0, None),
])  # fmt: skip
def test_the_loss_without_its_mask(before: float, after: float, right: str | None) -> None:
    rows = [np.array([x - 0.5, x + 0.5]) for x in (before, after)]
    empty = np.zeros((1, 1))
    found = attention.unmasked(UnmaskedReading(np.zeros((1, 1, 2, 2)), empty, *rows))
    assert (found and found.right) == right
    if found:
        assert found.numbers == pytest.approx({"before": before, "after": after})


@for_each("layers", [1, 2, 3])
def test_the_losses_without_a_mask_are_those_of_a_twin_that_has_none(layers: int) -> None:
    model = model_of(n_layers=layers)
    recording, tokens = record(model, IDS), torch.tensor([IDS])
    bare = build(replace(model.config, causal=False)).requires_grad_(False)
    bare.load_state_dict(model.state_dict())
    own, twin = loss_of(model(tokens)[0], IDS), loss_of(bare(tokens)[0], IDS)
    found = without_mask(model, recording)
    assert (found.mean_with, found.mean_without) == pytest.approx((own, twin), abs=1e-4)
    parts = attention.dearest_part(model, recording)
    if parts is not None:
        assert (parts.numbers["whole"], parts.numbers["mask"]) == pytest.approx((own, twin), abs=1e-4)
        assert parts.offered == ("mask", "scale", "position")
        assert parts.numbers[parts.right] == max(parts.numbers[name] for name in parts.offered)


def test_only_what_a_model_has_is_offered() -> None:
    model = model_of(position="none")
    found = attention.dearest_part(model, record(model, IDS))
    assert found is None or found.offered == ("mask", "scale")
    found = attention.dearest_part(model_of(causal=False), record(model_of(causal=False), IDS))
    assert found is None, "without a next token there is no loss"
    repeat = repeat_of([[0.1, 0.0], [0.9, 0.2]], [[0.8, 0.0], [0.1, 0.2]])
    assert attention.candidates(repeat) == {"copies": (1, 0), "before": (0, 0), "idle": (0, 1)}
    assert attention.candidates(repeat_of([[0.1, 0.2]], [[0.9, 0.9]])) == {}, "no head copies"


def repeat_of(scores: list[list[float]], previous: list[list[float]]) -> Repeat:
    ones = np.ones(4)
    return Repeat((1, 2, 3, 4), ones, ones, np.array(scores), np.array(previous))


def test_the_head_that_is_missed_most(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(n_layers=2, n_heads=2)
    once = (1, 5, 2, 7)
    measured = read_twice(model, once)
    scores = np.array([[0.0, 0.1], [0.9, 0.2]])
    repeat = replace(measured, scores=scores, previous=np.zeros((2, 2)))
    heads = attention.candidates(repeat)
    assert heads == {"copies": (1, 0), "idle": (0, 0)}
    losses = {}
    for name, (layer, head) in heads.items():

        def probe(at: str, x: torch.Tensor, layer: int = layer, head: int = head) -> torch.Tensor:
            if at == f"blocks.{layer}.z":
                x = x.clone()
                x[:, head] = 0
            return x

        logits = model(torch.tensor([[*once, *once]]), probe)[0]
        losses[name] = loss_of(logits[4:], once)
    monkeypatch.setattr(attention, "LEAST", 0.0)
    found = attention.missed_head(model, repeat)
    assert found is not None and found.right == max(losses, key=losses.__getitem__)
    assert {name: found.numbers[name] for name in losses} == pytest.approx(losses, abs=1e-4)
    assert found.numbers["whole"] == pytest.approx(measured.second_loss)
    monkeypatch.setattr(attention, "LEAST", 99.0)
    assert attention.missed_head(model, repeat) is None, "two that cost alike are no question"


@for_each("seed", range(20))
def test_what_top_p_keeps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal(int(rng.integers(3, 90))) * rng.uniform(0.1, 4)).astype(np.float32)
    p = sorted(softmax(logits.astype(np.float64)), reverse=True)
    count = 1 + int((np.cumsum(p) < 0.9).sum())
    found = sampling.nucleus(logits)
    if found is None:
        return
    n = found.numbers
    assert (found.right, n["found"], n["sum"]) == ("sum", count, count)
    assert n["mass"] == pytest.approx(sum(p[:count]), abs=1e-5)
    assert n["each"] == sum(one >= 0.1 for one in p) if "each" in n else not any(one >= 0.1 for one in p)
    assert n["share"] == round(0.9 * len(p))
    assert len({n[name] for name in found.offered}) == len(found.offered) > 1


@for_each("first, second", [(2.0, 1.0), (1.16, 1.0), (5.0, 2.0), (3.0, 3.0), (1e6, 1.0), (2.0, 0.8)])
def test_what_a_colder_draw_makes_of_the_two_likeliest(first: float, second: float) -> None:
    logits = np.log(np.array([0.1, second, first, 0.2]))
    found = sampling.colder(logits)
    ratio = first / second
    if not 1.1 <= ratio < 1e4:
        assert found is None
        return
    assert found is not None and found.right == "squared"
    cold = softmax(logits / 0.5)
    assert found.numbers["found"] == pytest.approx(cold[2] / cold[1])
    assert found.numbers["same"] == pytest.approx(ratio)
    assert ("doubled" in found.offered) == (abs(2 * ratio - ratio**2) > 0.1 * max(2 * ratio, ratio**2))


@for_each("name", [*PRESETS])
def test_a_model_twice_as_wide(name: str) -> None:
    before = ledger(PRESETS[name].model)
    after = ledger(replace(before.config, **sizes.twice_as_wide(before.config)))
    found = sizes.wider(before, after)
    times = after.total / before.total
    assert found.numbers == {"times": times, "before": before.total, "after": after.total}
    assert found.right == ("twice" if times < 2.1 else "four" if times > 3.8 else "between")
    assert 1.9 < times <= 4


@for_each("heads", [1, 2, 3, 4, 12])
@for_each("tokens_read, batch", [(1024, 1), (77, 3)])
def test_a_cache_of_one_key_head(heads: int, tokens_read: int, batch: int) -> None:
    before = ledger(replace(PRESETS["gpt2"].model, n_kv_heads=heads))
    after = ledger(replace(before.config, n_kv_heads=1))
    found = sizes.single_key_head(before, after, "bfloat16", batch, tokens_read)
    if heads == 1:
        assert found is None
        return
    assert found is not None and found.right == "part"
    one = 12 * 2 * 64 * 2 * tokens_read * batch  # layers, keys and values, numbers of a head, bytes
    assert (found.numbers["before"], found.numbers["found"]) == (heads * one, one)
    assert found.numbers["half"] == (heads + 1) * one / 2 and found.numbers["same"] == heads * one


@for_each(
    "alone, kept, right",
    [(0.2, 0.3, "less"), (0.5, 0.3, "alike"), (5.6, 0.4, "far"), (0.6, 0.3, None), (0.0, 0.3, None)],
)
def test_what_a_cache_costs_without_the_first_tokens(alone: float, kept: float, right: str | None) -> None:
    found = sizes.without_first(alone, kept)
    assert (found and found.right) == right


@for_each("name, count, right", [
    ("gpt2", 16, "same"), ("gpt2", 1024, "between"), ("gpt2", 524_288, "twice"), ("mistral-7b", 65_536, "same"),
])  # fmt: skip
def test_the_work_of_a_token_after_twice_the_text(name: str, count: int, right: str) -> None:
    counted = ledger(PRESETS[name].model)
    found = sizes.longer(counted, count)
    c = counted.config
    assert found.right == right
    seen = [min(n, c.window) if c.window else n for n in (count, 2 * count)]
    more = 4 * c.n_layers * c.n_heads * c.d_head * (seen[1] - seen[0])  # q.k and the sum, multiply and add
    assert found.numbers["after"] - found.numbers["before"] == pytest.approx(more, rel=0.01)


@for_each("name, count, right", [
    ("deepseek-v3", 8192, "twice"), ("gemma3-27b", 1024, "between"), ("gpt-oss-20b", 16, "twice"),
    ("gpt-oss-20b", 128, "between"), ("qwen3-next-80b-a3b", 64, "twice"),
])  # fmt: skip
def test_the_cache_of_a_text_twice_as_long(name: str, count: int, right: str) -> None:
    found = sizes.longer_cache(CARDS[name], count)
    assert found.right == right and right in found.offered
    windowed, layers, window = CARDS[name].windows
    seen = [
        sum(min(n, window) for _ in range(windowed)) + n * (layers - windowed) for n in (count, 2 * count)
    ]
    assert found.numbers["times"] == pytest.approx(seen[1] / seen[0])


def test_how_far_a_model_without_residuals_comes() -> None:
    rights = {training.without_residuals(pair).right for pair in shipped().values()}
    assert rights == {"behind", "stuck"}, "it changes with the depth and the norm"
    for pair in shipped().values():
        found = training.without_residuals(pair)
        gap, stuck = pair.replaced.losses[-1] - pair.added.losses[-1], pair.replaced.losses[-1] > 3.25
        assert found.right == ("level" if gap < 0.1 else "stuck" if stuck else "behind")
        told = (found.numbers["with"], found.numbers["without"], found.numbers["counting"])
        assert told == (pair.added.losses[-1], pair.replaced.losses[-1], pair.counting)


@for_each("healthy, broken, died, right", [
    (2.1, 0.1, None, "better"), (2.1, 2.11, None, "same"), (2.1, 2.9, None, "worse"), (2.1, math.nan, 7, "worse"),
])  # fmt: skip
def test_what_a_mistake_does_to_the_loss(healthy: float, broken: float, died: int | None, right: str) -> None:
    sides = [Side(loss, 200, "", "", 0.0, at) for loss, at in ((healthy, None), (broken, died))]
    found = training.mistake(Comparison(*sides))
    assert found is not None and found.right == right and found.numbers["healthy"] == healthy
    assert found.numbers["broken"] == pytest.approx(broken, nan_ok=True)
    assert training.mistake(Comparison(*(replace(side, loss=math.nan) for side in sides))) is None or died


@for_each("words, new", [((0, 1, 2), (2, 1, 0)), ((0, 1, 2, 3), (0, 1, 3, 2)), ((0, 1, 0), (2, 1, 0))])
@for_each("scheme, causal", [("none", False), ("none", True), ("rope", False), ("alibi", True)])
def test_whose_rows_change_without_positions(words: Any, new: Any, scheme: Any, causal: bool) -> None:
    found = order.reordered(order_effect(words, np.array(new)), scheme, causal)
    if [words[i] for i in new] == list(words):
        assert found is None, "it reads the same"
        return
    mask = causal if scheme != "none" else not causal
    assert order.next_setting(scheme, causal) == ("none", mask)

    def seen(place: int, text: list[int]) -> Counter[int]:
        return Counter(text[: place + 1] if mask else text)

    after = [words[i] for i in new]
    changed = sum(seen(at, list(words)) != seen(new.index(at), after) for at in range(len(words)))
    assert found is not None and found.numbers["changed"] == changed and found.numbers["words"] == len(words)
    assert found.right == ("none" if not changed else "all" if changed == len(words) else "some")


@for_each("text", ["she sells sea shells by the sea shore", "aaaa abab ababab abab", "low low lower"])
def test_the_next_merge_is_the_most_frequent_pair_of_what_is_left(text: str) -> None:
    seen = watch(text, 12)
    own = seen.tokenizer
    ids = {token: i for i, token in enumerate(own.base)}
    rows = [[ids[letter.encode()] for letter in piece] for piece in cut(text, "words")]
    for step, merge in enumerate(own.merges):
        rows = [merge_everywhere(row, merge.pair, merge.token) for row in rows]
        counts = Counter(pair for row in rows for pair in pairwise(row))
        found = tokens.next_merge(seen, step)
        if found is None:
            continue
        assert counts[found.pairs[found.right]] == max(counts.values()) == found.counts[found.right]
        assert len(set(found.pairs)) == len(found.pairs) > 1
    assert tokens.next_merge(seen, len(own.merges) - 1) is None and tokens.next_merge(seen, -1) is None


@for_each("count, right", [(1, "one"), (2, "character"), (4, "other"), (8, "byte")])
def test_the_pieces_of_a_picture(count: int, right: str) -> None:
    text = "👍🏽"  # two characters of four bytes
    found = tokens.picture(text, lambda read: range(count))
    assert found is not None and found.right == right and found.numbers["found"] == count
    assert (found.numbers["character"], found.numbers["byte"]) == (2, 8)


@for_each("seed", range(8))
def test_the_nearest_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((20, 6))
    met = np.sort(rng.choice(20, 12, replace=False))
    token = int(met[seed])
    around = matrix - matrix[met].mean(0)  # what all rows share says nothing of one
    unit = around / np.linalg.norm(around, axis=1, keepdims=True)

    def by_nearness(one: int) -> list[int]:
        return sorted((int(i) for i in met if i != one), key=lambda i: -float(unit[i] @ unit[one]))

    found = tokens.nearest_row(matrix, token, met)
    assert found is not None and found.token == by_nearness(token)[1]
    assert found.offered[found.right] == by_nearness(found.token)[0]
    cosines = [float(unit[i] @ unit[found.token]) for i in found.offered]
    assert found.cosine == pytest.approx(cosines, abs=1e-5)
    assert len(set(found.offered)) == len(found.offered) > 1 and found.token not in found.offered
    assert tokens.nearest_row(matrix, token, met[:4]) is None


@pytest.mark.parametrize(
    "after, right", [((0.0, 0.01, 0.02), "none"), ((0.2, 0.1, 0.15), "half"), ((0.4, 0.6, 0.5), "same")]
)
def test_what_is_left_of_right_sums_is_judged_by_the_median(after: tuple[float, ...], right: str) -> None:
    first = reward_runs.shipped()[0].looks[0]
    runs = [(replace(first, first_try=0.45), replace(first, first_try=value, reward=1.0)) for value in after]
    truth = reward.hacked(runs)
    assert truth is not None and truth.right == right
    assert truth.numbers == {"before": 0.45, "after": sorted(after)[1], "reward": 1.0}
    assert reward.hacked([]) is None
