"""Blocks without their feed-forward network: what is trained, and the runs that are shipped."""

from __future__ import annotations

import json
from statistics import median

import pytest

from engine.errors import CheckpointError
from engine.model import build
from studies.experiments import no_feedforward
from studies.experiments.no_feedforward import PLANS, SEEDS, Plan, ends, shipped, trained
from tests.engine.cases import for_each


@for_each("kind", ("whole", "attention", "deep attention"))
def test_only_the_network_and_the_number_of_blocks_differ(kind: str) -> None:
    model, how = Plan("repeat", kind, 2).recipe  # type: ignore[arg-type]
    other, same = Plan("repeat", "whole", 2).recipe
    assert how == same and how.seed == 2
    config, usual = model.resolved().to_dict(), other.resolved().to_dict()
    differ = {name for name in config if config[name] != usual[name]}
    assert differ <= {"ffn", "d_ff", "n_layers"} and (kind == "whole" or config["ffn"] == "none")


def test_three_times_as_many_blocks_of_attention_have_as_many_parameters() -> None:
    sizes = {
        kind: sum(p.numel() for p in build(Plan("repeat", kind, 0).recipe[0], 0).parameters())
        for kind in ("whole", "attention", "deep attention")
    }
    assert sizes["deep attention"] == pytest.approx(sizes["whole"], rel=0.01)
    assert sizes["attention"] < sizes["whole"] / 2
    assert {run.plan.kind: run.parameters for run in shipped() if run.plan.task == "repeat"} == sizes


def test_a_training_is_repeated_exactly_and_looks_at_held_out_problems() -> None:
    first, again = (trained(Plan("repeat", "attention", 0), steps=2) for _ in range(2))
    assert (first.validation, first.solved) == (again.validation, again.solved)
    assert first.steps[-1] == 2 and 0 <= first.solved[-1] < 0.5


def test_every_planned_run_is_shipped_and_the_ends_are_their_medians() -> None:
    runs = shipped()
    assert tuple(run.plan for run in runs) == PLANS and len(SEEDS) == 3
    for end in ends(runs):
        some = [run for run in runs if (run.plan.task, run.plan.kind) == (end.task, end.kind)]
        assert len(some) == 3 and end.solved == median(run.solved[-1] for run in some)
        assert end.validation == median(run.validation[-1] for run in some)


def test_a_missing_run_is_named(tmp_path) -> None:
    rows = json.loads(no_feedforward.PATH.read_text("utf-8"))
    part = tmp_path / "feedforward.json"
    part.write_text(json.dumps(rows[1:]), "utf-8")
    with pytest.raises(CheckpointError, match="lacks 1 of 36 runs"):
        shipped(part)
