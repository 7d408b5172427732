"""Windows that repeat their own beginning: what they hold, how many there are, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.data.corpora import from_text
from engine.errors import ConfigError
from engine.training.batches import Batches
from engine.training.repeats import parted, piece_lengths, with_repeats
from engine.training.train import train
from studies.shapes.batch_example import shifted_batch
from tests.engine.cases import for_each
from tests.engine.trainings import CORPUS, MODEL, TRAIN

LETTERS = from_text("the quick brown fox jumps over the lazy dog, " * 40)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(
    length=st.integers(2, 40), rows=st.integers(1, 12), share=st.floats(0.05, 1.0), seed=st.integers(0, 99)
)
def test_a_repeating_window_is_its_first_piece_over_and_over(
    length: int, rows: int, share: float, seed: int
) -> None:
    windows = torch.arange(rows * length).reshape(rows, length)  # every token is another one
    found = with_repeats(windows, share, 7, _generator(seed))
    shortest, longest = max(1, length // 6), max(1, length * 5 // 12)
    for row, tokens, period, random in zip(windows, found.tokens, found.period, found.random, strict=True):
        if period == 0:
            assert torch.equal(tokens, row) and not random
            continue
        assert shortest <= period <= longest
        once = tokens[:period].tolist()
        assert tokens.tolist() == [once[i % int(period)] for i in range(length)]
        assert max(once) < 7 if random else once == row[:period].tolist()


def test_as_many_windows_repeat_as_asked_for_and_a_third_of_them_is_random() -> None:
    windows = torch.full((20_000, 96), 9)
    found = with_repeats(windows, 0.4, 5, _generator(3))
    repeating = found.period > 0
    assert repeating.float().mean() == pytest.approx(0.4, abs=0.02)
    assert (found.random.sum() / repeating.sum()).item() == pytest.approx(1 / 3, abs=0.02)
    assert set(found.period[repeating].tolist()) == set(range(16, 41))  # of 96: every length, both ends
    assert set(found.tokens[found.random].unique().tolist()) == set(range(5))
    assert (found.tokens[~found.random] == 9).all()
    assert piece_lengths(96) == piece_lengths(97) == (16, 40)
    found = with_repeats(torch.arange(300).reshape(100, 3), 1.0, 4, _generator(0))
    assert (found.period == 1).all() and (found.tokens == found.tokens[:, :1]).all()


@given(length=st.integers(4, 40), seed=st.integers(0, 50))
def test_a_window_is_parted_where_it_begins_again(length: int, seed: int) -> None:
    window = torch.arange(length)[None]
    found = with_repeats(window, 1.0, 10_000, _generator(seed))
    pieces = parted(found.tokens[0].tolist())
    assert [len(piece) for piece in pieces[:-1]] == [int(found.period)] * (len(pieces) - 1)
    assert [token for piece in pieces for token in piece] == found.tokens[0].tolist()
    assert parted(window[0].tolist()) == (tuple(range(length)),)


@for_each("objective", ["next_token", "masked"])
def test_the_batches_of_a_training_repeat_and_go_on_alike_after_a_pause(objective: str) -> None:
    masked = objective == "masked"
    model = replace(MODEL, context=24, vocab_size=LETTERS.vocab_size + masked, causal=not masked)
    config = replace(TRAIN, batch_size=200, repeat=0.5, objective=objective)
    batch = Batches(LETTERS, model, config).at(3)
    text = torch.where(batch.targets >= 0, batch.targets, batch.inputs) if masked else batch.inputs
    assert batch.inputs.shape == (200, 24)
    # the text itself has no period below 11, so a window with one was made to repeat
    periods = [next((p for p in range(1, 11) if _has_period(row.tolist(), p)), 0) for row in text]
    assert 60 <= sum(p > 0 for p in periods) <= 140
    if not masked:
        assert torch.equal(batch.targets[:, :-1], batch.inputs[:, 1:])
        of = [(row, p) for row, p in zip(batch.targets.tolist(), periods, strict=True) if p]
        assert all(row[i] == row[i - p] for row, p in of for i in range(p, 24)), "the last target too"
    again = Batches(LETTERS, model, config).at(3)
    assert torch.equal(batch.inputs, again.inputs) and torch.equal(batch.targets, again.targets)


def _has_period(row: list[int], period: int) -> bool:
    return all(row[i] == row[i - period] for i in range(period, len(row)))


def test_without_repeats_the_batches_are_what_they_were() -> None:
    plain, repeating = (Batches(CORPUS, MODEL, replace(TRAIN, repeat=share)) for share in (0.0, 1.0))
    assert torch.equal(plain.starts(5)[0], repeating.starts(5)[0])
    starts = plain.starts(5)[0]
    rows = [CORPUS.train[int(s) : int(s) + MODEL.context] for s in starts]
    assert torch.equal(plain.at(5).inputs, torch.stack(rows))
    held = [
        torch.cat([b.inputs.flatten() for b in batches.windows(CORPUS.validation, 0)])
        for batches in (plain, repeating)
    ]
    assert torch.equal(*held), "a loss on held-out text is measured on the text as it is"
    found = shifted_batch(CORPUS, MODEL, replace(TRAIN, repeat=1.0), 2)
    assert found.shifted == found.pairs


def test_repeats_without_scores_of_the_heads_are_refused() -> None:
    """Nobody would see what they are for."""
    with pytest.raises(ConfigError, match="needs score_heads"):
        train(MODEL, replace(TRAIN, repeat=0.5), CORPUS)
