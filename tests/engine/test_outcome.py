"""What came of sampling, against arithmetic written out here."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from engine.config import SampleConfig
from engine.sample import stages
from engine.sample.outcome import last_torn, likeliest_ids, outcome, removed_by, tally

PROBABILITIES = (0.4, 0.3, 0.15, 0.1, 0.05)


def test_an_outcome_is_counted_in_the_models_own_probability():
    records = stages(torch.tensor(PROBABILITIES).log(), SampleConfig(temperature=2.0, top_k=3))
    found = outcome(records)
    assert (found.vocab, found.left, found.removed) == (5, 3, 2)
    assert found.cut == pytest.approx(0.15, abs=1e-6)  # of the model's, not of what temperature 2 makes of it
    roots = [math.sqrt(p) for p in PROBABILITIES[:3]]
    kept = [r / sum(roots) for r in roots]
    assert found.before == pytest.approx(math.exp(-sum(p * math.log(p) for p in PROBABILITIES)), abs=1e-5)
    assert found.after == pytest.approx(math.exp(-sum(p * math.log(p) for p in kept)), abs=1e-5)


def test_where_nothing_is_removed_nothing_is_cut():
    found = outcome(stages(torch.tensor(PROBABILITIES).log(), SampleConfig()))
    assert (found.left, found.cut) == (5, 0.0)


def test_the_stage_that_removed_a_token_is_named():
    records = stages(torch.tensor(PROBABILITIES).log(), SampleConfig(top_k=4, top_p=0.8))
    assert removed_by(records) == {4: "top_k", 3: "top_p"}


def torn(*choices: int) -> np.ndarray:
    """(position, vocab) logits that leave so many equally likely of 8 tokens."""
    return np.array([[0.0] * n + [-50.0] * (8 - n) for n in choices], dtype=np.float32)


def test_the_last_place_where_the_next_token_is_open():
    assert last_torn(torn(8, 5, 3, 1), 4) == 1 and last_torn(torn(8, 5, 3, 1), 3.5) == 1
    assert last_torn(torn(1, 2, 6), 4) == 2
    assert last_torn(torn(1, 3, 2, 1), 4) == 1, "nowhere: where it is torn most"
    assert last_torn(np.full((3, 8), np.nan, dtype=np.float32), 4) == 2
    assert last_torn(torn(8, 1) + 1000, 7.9) == 0, "no overflow"


def test_the_likeliest_come_first():
    values = np.array([0.1, 0.5, 0.5, 0.2])
    assert likeliest_ids(values, 3).tolist() == [1, 2, 3]


def test_a_tally_counts_draws_and_how_far_they_are_away():
    found = tally(np.array(PROBABILITIES), (np.arange(8) + 0.5) / 8)
    ends = [0.0, *np.cumsum(PROBABILITIES)]
    counts = [sum(low <= (i + 0.5) / 8 < high for i in range(8)) for low, high in pairwise(ends)]
    assert found.counts.tolist() == counts and found.total == 8
    assert found.expected.tolist() == pytest.approx([8 * p for p in PROBABILITIES])
    assert found.shares.tolist() == pytest.approx([c / 8 for c in counts])
    worst = sum(max(0.0, c / 8 - p) for c, p in zip(counts, PROBABILITIES, strict=True))
    assert found.away == pytest.approx(worst)  # what some have too much, others have too little


def test_a_tally_of_one_token_is_as_far_as_it_can_be():
    assert tally(np.array([0.0, 1.0]), np.array([0.5])).away == 0.0
    assert tally(np.array([0.999, 0.001]), np.array([0.9999])).away == pytest.approx(0.999)
