"""Order: attention without positions cannot see it, attention with them can."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine.measure import permutation
from engine.measure.order_effect import SAME, order_effect, setting_of
from engine.measure.recording import next_token_losses, record
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

WORDS = ["the", "cat", "that", "the", "dog", "chased", "sat", "on", "the", "mat"]
IDS = permutation.word_ids(WORDS)
TOKENS = (3, 1, 4, 1, 5, 9, 2, 6)


def test_orders_are_what_they_are_called():
    assert permutation.new_order(5, "reverse").tolist() == [4, 3, 2, 1, 0]
    assert permutation.new_order(5, "rotate").tolist() == [1, 2, 3, 4, 0]
    for seed, length in product(range(60), (2, 3, 9)):
        order = permutation.new_order(length, "shuffle", seed)
        assert sorted(order) == list(range(length)) and (order != np.arange(length)).any()
    one, again, other = (permutation.new_order(9, "shuffle", seed).tolist() for seed in (3, 3, 4))
    assert one == again != other
    assert [permutation.new_order(n, "shuffle").tolist() for n in (0, 1)] == [[], [0]]


@for_each("tokens, expected", [
    (list("to be or"), "orbe to "), (list("one"), "one"), (list("a\nb  c"), "cb  a\n"),
    (["The", " cat", " s", "at"], " sat catThe"), (list(" a b"), "ba  "),
])  # fmt: skip
def test_words_move_as_a_whole(tokens, expected):
    order = permutation.word_order(tokens, "reverse")
    assert sorted(order) == list(range(len(tokens))) and "".join(tokens[i] for i in order) == expected


@for_each("position", permutation.SCHEMES)
@for_each(
    "fields",
    [{}, {"wiring": "post"}, {"mixer": "shared_qk"}, {"qk_norm": True}, {"ffn": "swiglu", "norm": "rmsnorm"}],
    ids=str,
)
def test_a_whole_model_without_positions_and_mask_sees_no_order(position, fields):
    model = loud(tiny(position=position, **fields), factor=4.0)
    order = permutation.new_order(len(TOKENS), "shuffle", 2)
    by = {(s.position, s.mask): s for s in permutation.in_order_and_out(model, TOKENS, order)}
    assert list(by) == [(True, True), (False, True), (True, False), (False, False)]
    assert by[False, False].relative < 2e-5
    assert by[False, True].relative > 0.01 and by[True, True].relative > 0.01
    assert (by[True, False].relative > 1e-4) == (position != "none")
    assert by[True, False].loss_in is None and by[False, False].loss_out is None


def test_the_losses_are_those_of_the_text_in_each_order():
    model = loud(tiny(position="rope"), factor=4.0)
    order = permutation.new_order(len(TOKENS), "reverse")
    first = permutation.in_order_and_out(model, TOKENS, order)[0]
    texts = [record(model, ids) for ids in (TOKENS, TOKENS[::-1])]
    losses = [next_token_losses(text).mean() for text in texts]
    assert (first.loss_in, first.loss_out) == pytest.approx(losses, abs=1e-5)
    before, after = (text["norm_final"] for text in texts)
    size = np.sqrt((before**2).sum(-1).mean())
    assert first.moved == pytest.approx(np.linalg.norm(after[::-1] - before, axis=-1) / size, abs=1e-5)
    assert first.relative == pytest.approx(float(np.sqrt((first.moved**2).mean())))


FOUR, BACK = (0, 1, 2, 3), np.array([3, 2, 1, 0])


def test_every_scheme_is_compared_with_its_own_mask():
    assert permutation.Plan("rope") == permutation.Plan("rope", causal=False)
    found = order_effect(FOUR, BACK)
    assert set(found.found) == {(s, mask) for s in permutation.SCHEMES for mask in (False, True)}
    for scheme, mask in (("rope", True), ("rope", False), ("none", True), ("t5", False)):
        alone = permutation.compare(FOUR, BACK, permutation.Plan(scheme, mask))
        assert found.largest(scheme, mask) == alone.largest == np.abs(alone.matched - alone.before).max()
    assert found.largest("rope", True) != found.largest("rope", False)
    assert found.verdict("none", False) == "one bag" and found.largest("none", False) < SAME
    assert found.verdict("none", True) == "mask leaks" and found.largest("none", True) > SAME
    assert found.verdict("alibi", False) == "distances kept"
    assert found.verdict("alibi", True) == "order counts"
    for scheme in ("sinusoidal", "learned", "rope", "t5"):
        assert found.verdict(scheme, False) == found.verdict(scheme, True) == "order counts"
    assert order_effect(FOUR, np.array([1, 2, 3, 0])).verdict("alibi", False) == "order counts"
    assert order_effect((0, 1, 0), np.array([2, 1, 0])).verdict("rope", True) == "reads the same"


@for_each("causal", [True, False])
def test_a_setting_is_found_by_its_switches(causal):
    model = loud(tiny(position="rope", causal=causal))
    settings = permutation.in_order_and_out(model, (1, 2, 3), permutation.new_order(3, "reverse"))
    for position, mask in product((True, False), repeat=2):
        found = setting_of(settings, position, mask)
        if mask and not causal:
            assert found is None
        else:
            assert (found.position, found.mask) == (position, mask)
