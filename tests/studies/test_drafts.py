"""Speculative decoding: the rule changes no distribution, greedy drafts change no text, and lengths are counted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import SampleConfig
from engine.data.progress import finish
from engine.errors import ConfigError
from engine.recording import record
from engine.sample import generate, warp
from engine.sample.decoder import Decoder
from studies.generation.drafts import (
    FARTHEST,
    Comparison,
    Lookup,
    ModelDraft,
    Pass,
    Plan,
    Times,
    acceptance,
    by_length,
    check,
    comparing,
    drafter_of,
    expected,
    first_blocks,
    measured_times,
    passes,
    residual,
)
from studies.generation.row_products import FewRows
from tests.engine.cases import for_each
from tests.engine.helpers import ARCHITECTURES, loud, tiny
from tests.models import REAL, SHIPPED, opened

GREEDY = SampleConfig(temperature=0.0)
PLANS = [
    Plan("lookup", 4, least=1),
    Plan("small", 4),
    Plan("layers", 3, depth=1),
    Plan("lookup", 8, pays=True),
]


def model(seed: int = 3, **fields: Any) -> Any:
    return loud(tiny(**fields), seed=seed, factor=3.0)


@for_each("q", [(1, 0, 0, 0), (5, 1, 2, 2), (2, 3, 4, 1), (0, 0, 3, 7), (4, 3, 2, 1)])
def test_the_first_token_has_exactly_the_large_models_probability(q: tuple[int, ...]) -> None:
    """Over all drafted tokens, in exact fractions but for the floats that the functions return."""
    p = np.array([0.4, 0.3, 0.2, 0.1])
    drafted = np.array(q) / sum(q)
    total = [Fraction(0)] * 4
    for token, share in enumerate(drafted.tolist()):
        if share:
            accepted = Fraction(acceptance(p, drafted, token))
            total[token] += Fraction(share) * accepted
            for other, rest in enumerate(residual(p, drafted, token).tolist()):
                total[other] += Fraction(share) * (1 - accepted) * Fraction(rest)
    assert [float(each) for each in total] == pytest.approx(p.tolist(), abs=1e-15)


@for_each("token", range(4))
def test_a_token_that_was_copied_changes_no_probability(token: int) -> None:
    p = np.array([0.4, 0.3, 0.2, 0.1])
    accepted, rest = acceptance(p, None, token), residual(p, None, token)
    result = (1 - accepted) * rest
    result[token] += accepted
    assert rest[token] == 0 and result.tolist() == pytest.approx(p.tolist(), abs=1e-15)


@for_each("plan", PLANS[:3], ids=str)
def test_pairs_of_tokens_are_drawn_as_often_as_without_drafts(plan: Plan) -> None:
    """Both tokens of a text, 2,000 times, against the product of the model's own probabilities."""
    large, small, ids = model(vocab_size=5), model(7, vocab_size=5), [1, 2, 1]
    drafter = drafter_of(plan, large, small, len(ids), GREEDY)
    tally: Counter[tuple[int, ...]] = Counter()
    count, drafted = 2000, 0
    for seed in range(count):
        sampling = SampleConfig(temperature=1.3, seed=seed)
        if isinstance(drafter, ModelDraft):
            drafter.sampling = sampling
        records = list(passes(large, ids, 2, sampling, drafter, plan.ahead))
        tally[tuple(token for record in records for token in record.tokens)] += 1
        drafted += sum(len(record.drafted) for record in records)
    warm = SampleConfig(temperature=1.3)
    chi, cells = 0.0, 0
    for a in range(5):
        for b in range(5):
            first, second = (
                warp(large(torch.tensor([text]))[0, -1].detach(), warm).softmax(-1)
                for text in (ids, [*ids, a])
            )
            wanted = count * float(first[a] * second[b])
            chi, cells = chi + (tally[a, b] - wanted) ** 2 / wanted, cells + 1
    assert drafted >= count / 2
    assert chi < cells - 1 + 4 * math.sqrt(2 * (cells - 1)), chi


@for_each("plan", PLANS, ids=str)
@for_each("name", SHIPPED)
def test_greedy_drafts_leave_the_text_as_it_is_past_a_full_context(name: str, plan: Plan) -> None:
    large, tokenizer = opened(name)
    small = opened(SHIPPED[0] if name == SHIPPED[1] else SHIPPED[1])[0]
    ids = tokenizer.encode("KING RICHARD II:\nthe king, the king, the k")
    drafter = drafter_of(plan, large, small, len(ids), GREEDY)
    times = Times((1.0, *[1.1] * FARTHEST), 0.0) if plan.pays else None
    records = list(passes(large, ids, 150, GREEDY, drafter, plan.ahead, times=times))
    written = [token for record in records for token in record.tokens]
    assert written == list(generate(large, ids, 150, GREEDY)) and len(ids) + 150 > large.config.context
    assert len(records) < 150 and any(record.accepted < len(record.drafted) for record in records)


@for_each("fields", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_greedy_drafts_leave_the_text_of_every_architecture(fields: dict[str, Any]) -> None:
    large, ids = model(**fields), [1, 2, 3, 1, 2]
    records = list(passes(large, ids, 30, GREEDY, Lookup(1), 5))
    assert [token for record in records for token in record.tokens] == list(generate(large, ids, 30, GREEDY))
    assert sum(len(record.drafted) for record in records) > 5


@for_each("name", REAL, without="SmolLM2 is not installed")
def test_a_real_model_repeats_a_text_in_few_passes_and_word_for_word(name: str) -> None:
    large, tokenizer = opened(name)
    ids = tokenizer.encode("The moon and the sun. The moon and the sun. The moon and the sun.")
    records = list(passes(large, ids, 16, GREEDY, Lookup(), 7))
    assert [token for record in records for token in record.tokens] == list(generate(large, ids, 16, GREEDY))
    assert len(records) <= 5


def test_a_pass_is_counted_by_what_was_checked() -> None:
    logits = torch.full((4, 6), -9.0)
    for at, right in enumerate((2, 3, 4, 5)):
        logits[at, right] = 1.0
    random = torch.Generator().manual_seed(0)
    record = check(logits, [2, 0, 4], [None] * 3, GREEDY, random)
    assert (record.accepted, record.token, record.checked, record.tokens) == (1, 3, 2, (2, 3))
    assert record.chances == (1.0, 0.0)
    whole = check(logits, [2, 3, 4], [None] * 3, GREEDY, random)
    assert (whole.accepted, whole.token, whole.checked, whole.tokens) == (3, 5, 3, (2, 3, 4, 5))


def test_the_formula_is_the_mean_over_all_ends_of_a_draft() -> None:
    for rate in (0.0, 0.3, 0.9):
        for ahead in range(9):
            ends = sum((n + 1) * rate**n * (1 - rate) for n in range(ahead)) + (ahead + 1) * rate**ahead
            assert expected(rate, ahead) == pytest.approx(ends)
            assert expected(rate, ahead) == pytest.approx((1 - rate ** (ahead + 1)) / (1 - rate))


def test_sums_over_passes() -> None:
    records = (Pass((1, 2, 3), 1, 9), Pass((4, 5), 2, 6), Pass((), 0, 7))
    compared = Comparison(records, (1, 9, 4, 5, 6, 7), (1.0, 2.0, 4.0), (2.0, 2.0, 2.0))
    assert (compared.drafted, compared.accepted, compared.checked, compared.rate) == (5, 3, 4, 0.75)
    assert compared.same and compared.per_pass == 2.0 and compared.ratio == 1.0
    assert compared.medians == (2.0, 2.0)
    torn = replace(compared, seconds=(1.0, 1.0, 9.0), seconds_plain=(2.0, 4.0, 4.0))
    assert torn.ratio == 4.0, "that of the medians, which are shown"
    assert not torn.steady and replace(torn, seconds=(1.0, 1.0, 3.0)).steady
    each = (expected(0.75, 3) + expected(0.75, 2) + 1) / 3
    assert compared.foreseen == pytest.approx(6 / each)
    nothing = Comparison((Pass((), 0, 7),), (8,), (1.0,), (1.0,))
    assert math.isnan(nothing.rate) and nothing.foreseen == 1 and not nothing.same


def test_a_lookup_copies_what_followed_the_longest_ending() -> None:
    random = torch.Generator()
    text = [1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3]
    assert Lookup(2).draft(text, 3, random)[0] == [4, 9, 2], "1 2 3 is longer than the later 2 3"
    assert Lookup(4).draft(text, 3, random) == ([], []), "no ending of 4 occurred"
    assert Lookup(1).draft([7, 8, 7, 8], 5, random)[0] == [7, 8, 7, 8, 7], "a draft goes on into itself"
    assert Lookup(2).draft([1, 2], 3, random)[0] == Lookup(2).draft(text, 0, random)[0] == []


def test_the_first_blocks_are_the_models_with_what_comes_after_them() -> None:
    large = model(n_layers=3)
    tokens = torch.tensor([[1, 2, 3]])
    for depth in (1, 2):
        early = first_blocks(large, depth)
        x = torch.from_numpy(record(large, (1, 2, 3))[f"blocks.{depth - 1}.resid_post"])[None]
        assert torch.equal(early(tokens), large.logits(x)) and early.config.n_layers == depth
    assert len(large.blocks) == large.config.n_layers == 3, "the model itself is as it was"


def test_a_draft_is_as_long_as_pays() -> None:
    flat, steep = Times((1.0,) * 9, 0.0), Times(tuple(float(n) for n in range(1, 10)), 0.0)
    assert flat.best(0.9, 8) == flat.best(0.1, 8) == 8, "where longer passes cost nothing"
    assert steep.best(0.9, 8) == 0, "where a pass over two costs two passes"
    costly = Times((1.0,) * 9, 0.5)
    rates = [max(range(9), key=lambda k: expected(a, k) / (1 + k / 2)) for a in (0.2, 0.6, 0.8, 0.9)]
    assert [costly.best(a, 8) for a in (0.2, 0.6, 0.8, 0.9)] == rates and rates[0] == 0 < rates[-1]
    assert costly.best(0.9, 1) == 1


def test_both_writers_read_the_same_prompt_and_all_is_measured() -> None:
    large, ids = model(), [1, 2, 3, 1, 2]
    compared = finish(comparing(large, None, ids, 9, GREEDY, Plan("lookup", 4, least=1, pays=True), rounds=2))
    assert compared.plain == tuple(generate(large, ids, 9, GREEDY)) and compared.same
    assert len(compared.seconds) == len(compared.seconds_plain) == 2 and min(compared.seconds) > 0
    assert compared.times is not None and len(compared.times.passes) == 5
    times = measured_times(large, Lookup(), list(range(5)) * 20, 3)
    assert len(times.passes) == 4 and min(times.passes) > 0


def test_lengths_are_those_of_passes() -> None:
    large, small, ids = model(), model(7), [1, 2, 3]
    points = finish(by_length(large, small, ids, 12, GREEDY, Plan("small")))
    assert [point.ahead for point in points] == list(range(1, FARTHEST + 1))
    for point in points[::3]:
        drafter = drafter_of(Plan("small"), large, small, 3, GREEDY)
        records = list(passes(large, ids, 12, GREEDY, drafter, point.ahead))
        assert point.per_pass == 12 / len(records)
        checked = sum(min(r.accepted + 1, len(r.drafted)) for r in records)
        assert point.rate == sum(r.accepted for r in records) / checked
        each = [sum(point.rate**n for n in range(len(r.drafted) + 1)) for r in records]
        assert point.formula == pytest.approx(sum(each) / len(each))


@for_each("rows", [2, 7, 16, 17])
@for_each("shape", [(1920, 320), (960, 576), (1021, 300)])
def test_a_few_rows_are_multiplied_as_by_the_library(rows: int, shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(shape), torch.randn(shape[0]), torch.randn(1, rows, shape[1])
    for b in (None, bias):
        with FewRows():
            ours = F.linear(x, weight, b)
        assert torch.allclose(ours, F.linear(x, weight, b), atol=1e-3) and ours.shape == (1, rows, shape[0])


def test_a_decoder_gives_the_logits_after_each_token() -> None:
    large = model()
    ids = [1, 2, 3, 4, 5]
    with torch.inference_mode():
        decoder = Decoder(large)
        decoder.read(ids[:2])
        each = decoder.read_each(ids[2:])
        assert torch.allclose(each, large(torch.tensor([ids]))[0, 2:], atol=1e-4)
        assert torch.equal(decoder.read_each([1]).new_tensor(decoder.length), torch.tensor(6.0))


@for_each(
    "plan, words",
    [
        (Plan("guess"), "must be one of"),  # type: ignore[arg-type]
        (Plan("lookup", 0), "must be from 1"),
        (Plan("lookup", 9), "must be from 1"),
        (Plan("lookup", least=0), "at least 1"),
        (Plan("layers", depth=2), "blocks of the draft"),
        (Plan("small"), "the same vocabulary"),
    ],
    ids=str,
)
def test_a_plan_that_makes_no_sense_is_refused(plan: Plan, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        drafter_of(plan, model(), model(vocab_size=9), 3, GREEDY)


def test_a_penalty_is_refused() -> None:
    with pytest.raises(ConfigError, match="with drafts"):
        next(passes(model(), [1], 3, SampleConfig(repetition_penalty=1.2), Lookup(), 3))
