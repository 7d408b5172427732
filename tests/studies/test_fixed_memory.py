"""Memories of fixed size: what they hold and give back, against loops over single pairs."""

import numpy as np
import pytest
import torch

from engine.data.progress import finish
from engine.parts.blocks import PassContext
from studies.attention.fixed_memory import (
    RULES,
    Pairs,
    draw_pairs,
    given_back,
    held_bytes,
    last_key_again,
    reading,
    recall,
    written,
)
from studies.attention.recall_task import LENGTH, Before, FixedMemory, Look, learn, recaller, texts
from studies.experiments.fixed_memory import Plan, shipped
from studies.guesses.attention import written_twice


def orthogonal(count: int) -> Pairs:
    return Pairs(np.eye(8)[:count], np.eye(8)[::-1][:count])


@pytest.mark.parametrize("rule", ["adding", "delta"])
def test_orthogonal_keys_give_back_their_values_exactly(rule) -> None:
    pairs = orthogonal(8)
    assert given_back(pairs, rule) == pytest.approx(pairs.values)
    assert recall(pairs, rule).right.all() and recall(pairs, rule).numbers == 64


def test_adding_reads_every_value_by_the_likeness_of_its_key() -> None:
    pairs = draw_pairs(20, 3, 0.4)
    for key, read in zip(pairs.keys, given_back(pairs, "adding"), strict=True):
        by_hand = sum((key @ k) * v for k, v in zip(pairs.keys, pairs.values, strict=True))
        assert read == pytest.approx(by_hand)


def test_the_delta_rule_gives_back_the_last_value_exactly_and_is_one_triangular_system() -> None:
    pairs = draw_pairs(40, 1, 0.3)
    assert given_back(pairs, "delta")[-1] == pytest.approx(pairs.values[-1])
    likeness = np.tril(pairs.keys @ pairs.keys.T, -1)
    corrected = np.linalg.solve(np.eye(40) + likeness, pairs.values)
    assert written(pairs, "delta") == pytest.approx(pairs.keys.T @ corrected)


def test_the_cache_is_softmax_attention_over_all_pairs_and_grows() -> None:
    pairs = draw_pairs(12, 0)
    scores = np.exp(pairs.keys[5] @ pairs.keys.T * 32**0.5)
    assert given_back(pairs, "cache")[5] == pytest.approx(scores / scores.sum() @ pairs.values)
    assert recall(pairs, "cache").numbers == 12 * 64


def test_a_key_written_twice_gives_the_new_value_by_the_delta_rule_alone() -> None:
    pairs = last_key_again(orthogonal(6))
    assert given_back(pairs, "delta")[0] == pytest.approx(pairs.values[-1])
    assert given_back(pairs, "adding")[0] == pytest.approx(pairs.values[0] + pairs.values[-1])
    assert recall(pairs, "delta").right[[0, -1]].all(), "the value that counts is the last"
    truth = written_twice(orthogonal(6))
    assert truth is not None and truth.right == "both"
    assert truth.numbers["old"] == pytest.approx(2**-0.5) and truth.numbers["new"] == pytest.approx(2**-0.5)


@pytest.mark.parametrize("seed", range(3))
def test_unlike_keys_favour_adding_and_alike_ones_the_delta_rule(seed) -> None:
    right = {
        likeness: {rule: recall(draw_pairs(48, seed, likeness), rule).right.sum() for rule in RULES}
        for likeness in (0.0, 0.5)
    }
    assert right[0.0]["cache"] == 48 > right[0.0]["adding"] > right[0.0]["delta"]
    assert right[0.5]["cache"] > right[0.5]["delta"] > right[0.5]["adding"]


def test_likeness_is_the_mean_cosine_of_two_keys() -> None:
    keys = draw_pairs(400, 0, 0.6).keys
    cosines = (keys @ keys.T)[np.triu_indices(400, 1)]
    assert cosines.mean() == pytest.approx(0.6, abs=0.03)


def test_bytes_of_the_cache_grow_with_the_text_and_others_do_not() -> None:
    timed = finish(reading((16, 32)))
    assert timed.lengths == (16, 32)
    assert timed.bytes["cache"] == (held_bytes("cache", 16), 2 * held_bytes("cache", 16))
    assert timed.bytes["adding"] == timed.bytes["delta"] == (8 * 64 * 64 * 4,) * 2
    assert all(second > 0 for seconds in timed.seconds.values() for second in seconds)


@pytest.mark.parametrize("delta", [False, True])
def test_a_layer_reads_what_its_matrix_holds_token_by_token(delta: bool) -> None:
    model = recaller("delta" if delta else "adding", 16, 0)
    layer = model.blocks[0].mixer
    assert isinstance(layer, FixedMemory)
    x = torch.randn(1, 9, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        q, k, v = (each[0].transpose(0, 1) for each in layer.heads(x))  # (head, token, d_head)
        q, k = torch.nn.functional.normalize(q, dim=-1), torch.nn.functional.normalize(k, dim=-1)
        rate = torch.ones(16, 9) if layer.rate is None else layer.rate(x)[0].sigmoid().t()
        state, read = torch.zeros(16, 4, 4), []
        for t in range(9):
            known = torch.einsum("hd,hde->he", k[:, t], state) if delta else 0.0
            state = state + torch.einsum("hd,he->hde", k[:, t], rate[:, t, None] * (v[:, t] - known))
            read.append(torch.einsum("hd,hde->he", q[:, t], state) / layer.scale)
        by_token = layer.output(torch.stack(read, 1).transpose(0, 1).flatten(1))
        assert layer(x, PassContext())[0] == pytest.approx(by_token, abs=1e-5)


def test_a_known_key_is_one_that_came_before_and_has_its_value_again() -> None:
    read, known = texts(3, torch.Generator().manual_seed(0))
    for row, marks in zip(read.view(3, LENGTH, 2).tolist(), known.tolist(), strict=True):
        seen: dict[int, int] = {}
        for (key, value), mark in zip(row, marks, strict=True):
            assert mark == (key in seen) and seen.get(key, value) == value
            seen[key] = value


def test_no_token_reads_a_later_one() -> None:
    model = Before(recaller("hybrid", 4, 0), 0).eval()
    read, _ = texts(1, torch.Generator().manual_seed(0))
    other = read.clone()
    other[0, 20:] = read[0, 20:].flip(0)
    with torch.no_grad():
        assert model(read)[0, :20] == pytest.approx(model(other)[0, :20], abs=1e-5)


def test_a_training_begins_as_the_stored_one_does() -> None:
    run = next(run for run in shipped() if run.plan == Plan("adding", 16, 0))
    first = next(learn("adding", 16, 0))
    assert first == Look(run.steps[0], pytest.approx(run.right[0], abs=2e-3))


def test_a_guess_is_asked_where_both_values_can_be_told_from_noise() -> None:
    asked = [written_twice(draw_pairs(48, seed, 0.5)) for seed in range(20)]
    assert None in asked and all(truth is None or truth.right == "both" for truth in asked)
