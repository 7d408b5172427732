"""Dropout measured on a model, and the trainings with it that are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.data import corpora
from engine.experiments import dropout_runs
from engine.experiments.dropout_runs import LITTLE, PLANS, SEEDS, SHARES, WHOLE, Plan
from engine.lab.guesses import training
from engine.measure.feedforward.dropout import Dropper, drop_sum, passes
from engine.parts.registry import HEALTHY
from tests.engine.cases import for_each
from tests.engine.helpers import loud, tiny

IDS = (3, 1, 4, 1, 5, 9, 2, 6)


@for_each("share", (0.1, 0.5))
def test_division_keeps_the_mean_of_a_sum_and_its_variance_is_that_of_independent_terms(share):
    terms = np.linspace(-1, 3, 50)
    found = drop_sum(terms, share, masks=20_000)
    deviation = np.sqrt(share / (1 - share) * (terms**2).sum())
    assert found.scaled.mean() == pytest.approx(terms.sum(), abs=5 * deviation / np.sqrt(20_000))
    assert found.scaled.std() == pytest.approx(deviation, rel=0.03)
    assert found.plain.mean() == pytest.approx((1 - share) * terms.sum(), rel=0.01)


def test_a_sum_without_dropout_is_itself_under_every_mask():
    found = drop_sum(np.array([0.5, -2.0, 4.0]), 0.0, masks=7)
    assert found.total == 2.5 and found.scaled.tolist() == found.plain.tolist() == [2.5] * 7


@for_each("wiring", ("pre", "post", "parallel"))
def test_the_probe_drops_where_training_does(wiring, monkeypatch):
    trained, probed = [], []
    real = F.dropout

    def counting(x: torch.Tensor, p: float = 0.5, training: bool = True) -> torch.Tensor:
        trained.append(tuple(x.shape))
        return real(x, p, training)

    class Counting(Dropper):
        def __call__(self, name: str, x: torch.Tensor) -> torch.Tensor:
            dropped = super().__call__(name, x)
            if dropped is not x:
                probed.append(tuple(x.shape))
            return dropped

    model = loud(tiny(wiring=wiring, dropout=0.3, n_layers=2))
    tokens = torch.tensor(IDS)[None]
    with torch.no_grad():
        model(tokens, Counting(0.3, 0))
        HEALTHY.mode(model, True)
        monkeypatch.setattr(F, "dropout", counting)
        model(tokens)
    assert probed == trained and len(probed) == 1 + 3 * 2


def test_passes_without_dropout_are_the_models_own_prediction():
    model = loud(tiny())
    with torch.no_grad():
        own = torch.softmax(model(torch.tensor(IDS)[None])[0, 4].double(), -1)
    for probabilities in passes(model, IDS, 4, 0.0, count=2):
        assert probabilities == pytest.approx(own.numpy(), abs=1e-6)


def test_each_pass_has_masks_of_its_own_and_the_seed_decides_them():
    model = loud(tiny())
    some, again, other = (passes(model, IDS, 4, 0.3, count=3, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(some, again) and not np.allclose(some, other)
    assert not np.allclose(some[0], some[1])


def test_little_text_leaves_the_held_out_text_as_it_is():
    corpus = corpora.from_text("To be, or not to be, that is the question.\n" * 40)
    little = dropout_runs.shortened(corpus, 50)
    assert len(little.train) == 50 and torch.equal(little.validation, corpus.validation)
    assert dropout_runs.shortened(corpus, WHOLE) is corpus


def test_a_run_goes_through_its_file_unchanged():
    corpus = corpora.from_text("To be, or not to be, that is the question.\n" * 200)
    config = replace(dropout_runs.TRAINING, steps=2, eval_every=1, eval_tokens=256)
    run = dropout_runs.trained(Plan(2_000, 0.3, 1), corpus, config)
    assert run.steps == (0, 1, 2) and run.passes == pytest.approx(2 * 8 * 64 / 2_000)
    values: dict[str, Any] = dropout_runs.written(run)
    again = dropout_runs.opened(values)
    assert again.plan == run.plan and again.validation == pytest.approx(run.validation, rel=1e-4)


def test_all_trainings_are_stored_each_to_its_end():
    runs = dropout_runs.shipped()
    assert tuple(run.plan for run in runs) == PLANS
    assert {run.steps[-1] for run in runs} == {dropout_runs.TRAINING.steps}


@for_each("characters", (LITTLE, WHOLE))
def test_the_ends_are_medians_over_the_seeds(characters):
    runs = dropout_runs.shipped()
    for share, end in zip(SHARES, dropout_runs.ends(runs, characters), strict=True):
        some = [r for r in runs if r.plan.characters == characters and r.plan.dropout == share]
        assert end.seeds == len(some) == len(SEEDS) and end.dropout == share
        assert end.validation == float(np.median([run.validation[-1] for run in some]))
        assert end.spread == (min(r.validation[-1] for r in some), max(r.validation[-1] for r in some))


def test_a_difference_within_the_seeds_counts_as_none():
    bare = dropout_runs.Ends(0.0, 3, 1.0, 2.0, (1.9, 2.1), 1.9)
    for validation, spread, right in (
        (1.7, (1.6, 1.8), "helps"),
        (2.05, (2.0, 2.2), "nothing"),
        (2.4, (2.3, 2.5), "costs"),
    ):
        truth = training.dropped((bare, replace(bare, dropout=0.3, validation=validation, spread=spread)))
        assert truth is not None and truth.right == right
