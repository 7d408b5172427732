"""Where a router sends a text, and the stored trainings of mixtures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.data.corpora import from_text
from engine.data.progress import Progress, finish
from engine.errors import CheckpointError
from engine.probe import Recorder
from studies.experiments import expert_runs
from studies.experiments.command import to_json
from studies.experiments.expert_runs import DENSE, KINDS, PLANS, SEEDS, TRAINING, Plan, model_of
from studies.feedforward.experts import EXCERPT, Routing, routing
from studies.guesses.training import busiest
from tests.engine.helpers import VERSE, loud, tiny


def test_routing_counts_what_the_recording_has() -> None:
    model = loud(tiny(n_experts=4, context=64), factor=8)
    tokens = torch.randint(11, (1000,), generator=torch.Generator().manual_seed(2))
    found = routing(model, tokens)
    recorder = Recorder(only=["routing"])
    model(tokens[:960].view(15, 64), recorder)  # whole windows
    for layer, each in enumerate(found):
        weights = recorder[f"blocks.{layer}.routing"].reshape(960, 4).detach().numpy()
        np.testing.assert_allclose(each.shares, (weights > 0).sum(0) / (2 * 960))
        first = weights.argmax(1)
        for expert in range(4):
            of_expert = tokens[:960].numpy()[first == expert]
            np.testing.assert_array_equal(each.counts[expert], np.bincount(of_expert, minlength=11))
        np.testing.assert_array_equal(each.first, first[:EXCERPT])


def of(counts: list[list[int]], shares: list[float]) -> Routing:
    return Routing(np.array(shares), np.array(counts), np.zeros(0))


def test_a_character_tells_its_expert_or_as_much_as_chance() -> None:
    sorted_, even = of([[50, 0], [0, 50]], [0.5, 0.5]), of([[25, 25], [25, 25]], [0.5, 0.5])
    assert sorted_.predictable == 1.0 and even.predictable == 0.5
    assert of([[60, 30], [0, 10]], [0.9, 0.1]).predictable == 0.9, "by character, not by expert"
    assert abs(sorted_.shuffled() - 0.5) < 0.12 and sorted_.shuffled() == sorted_.shuffled()
    np.testing.assert_allclose(sorted_.lift(np.array([0, 1]), 2), [[2, 0], [0, 2]])
    np.testing.assert_allclose(sorted_.class_shares(np.array([1, 1]), 2), [0, 1])
    np.testing.assert_allclose(even.lift(np.array([0, 1]), 2), 1)
    assert np.isnan(sorted_.lift(np.array([0, 0]), 2)[:, 1]).all(), "a class that does not occur"
    assert of([[9], [0]], [0.95, 0.05]).unused == 0 and of([[9], [0]], [0.96, 0.04]).unused == 1


def test_a_training_is_stored_and_read_as_it_was(tmp_path) -> None:
    text = from_text(VERSE, "verse")
    config = replace(TRAINING, steps=2, batch_size=2, eval_every=0)
    run = expert_runs.trained(Plan("bias", 1), text, config)
    assert run.steps[-1] == 2 and run.shares.shape[1:] == (4, 8) and run.seconds > 0
    np.testing.assert_allclose(run.shares.sum(-1), 1)
    assert run.text == text.tokenizer.decode(text.validation[:EXCERPT].tolist())
    path = tmp_path / "experts.json"
    path.write_text(json.dumps(to_json([run])))
    (read,) = expert_runs.stored(path)
    assert read.plan == run.plan and read.final[3].predictable == pytest.approx(run.final[3].predictable)
    with pytest.raises(CheckpointError, match="lacks 8 of 9"):
        expert_runs.shipped(path)


def test_twins_that_are_trained_in_turns_are_those_that_are_trained_alone() -> None:
    text, config = (
        from_text(VERSE, "verse"),
        replace(TRAINING, steps=3, batch_size=2, eval_every=0, snapshot_every=1),
    )
    seen: list[Progress] = []
    together = finish(expert_runs.learn_twins("loss", 1, text, config), seen.append)
    assert [run.plan for run in together] == [Plan("none", 1), Plan("loss", 1)]
    for run in together:
        alone = expert_runs.trained(run.plan, text, config)
        np.testing.assert_array_equal(run.shares, alone.shares)
        assert run.steps == alone.steps == (0, 1, 2, 3)
    assert seen[-1].done == seen[-1].total == 6
    assert next([len(run.steps) for run in each.so_far] for each in seen if each.so_far) == [1, 1]


def test_the_dense_twin_computes_as_much_as_a_mixture() -> None:
    dense, mixture = model_of(DENSE), model_of("none")
    assert dense.d_ff == mixture.d_ff * (mixture.active_experts + mixture.shared_experts)
    assert len(PLANS) == len(KINDS) * len(SEEDS) and len(SEEDS) >= 3


def test_the_stored_medians_are_those_of_the_runs() -> None:
    runs = expert_runs.shipped()
    for kind in KINDS:
        for layer in range(4):
            finals = [run.final[layer] for run in runs if run.plan.kind == kind]
            found = expert_runs.balance(runs, kind, layer)
            assert found.largest == sorted(each.shares.max() for each in finals)[1]
            assert found.predictable == sorted(each.predictable for each in finals)[1]
            assert found.shuffled < found.predictable


def test_a_guess_is_asked_where_the_share_is_clear() -> None:
    truths = [busiest(share) for share in (0.26, 0.34, 0.39, 0.55, 0.61, 0.65)]
    assert [truth and truth.right for truth in truths] == ["fair", None, "half", "half", None, "most"]
