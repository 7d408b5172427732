"""Two runs that are to be compared train together; and what is done to a run by hand is kept with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import ConfigError, RunError
from engine.service import places
from engine.service.changes import Change
from engine.service.manager import RunManager
from tests.engine.running import LONG, PROFILE, SHORT, ended, look, managers, reached, spec, wait

ME = "me"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., RunManager]]:
    with managers(tmp_path, max_runs=1) as make:
        yield make


def test_a_pair_trains_together_where_there_is_one_place(make: Callable[..., RunManager]) -> None:
    manager = make(max_beside=1)
    one, other = manager.start_pair(spec(LONG, name="a"), spec(LONG, name="b"), ME)
    assert (look(manager, one).beside, look(manager, other).beside) == (other, one)
    third = manager.start(spec(LONG, name="c"), ME)
    reached(manager, one, 5)
    reached(manager, other, 5)
    assert look(manager, third).place == 1, "who is of no pair waits for a place"
    manager.stop(other, ME)
    ended(manager, other)
    assert look(manager, third).place == 1, "there is one place, and the first of the pair has it"
    manager.stop(one, ME)
    reached(manager, third, 5)


def test_a_second_pair_waits(make: Callable[..., RunManager]) -> None:
    manager = make(max_beside=1)
    first = manager.start_pair(spec(LONG), spec(LONG), ME)
    second = manager.start_pair(spec(LONG), spec(LONG), "another")
    assert [look(manager, run).place for run in (*first, *second)] == [0, 0, 1, 2]
    assert manager.profile.max_workers == 1 + 1 + 4 + 1


def test_a_pair_is_started_whole_or_not_at_all(make: Callable[..., RunManager]) -> None:
    manager = make(max_beside=1, max_runs_kept=1)
    with pytest.raises(RunError, match="remove one first"):
        manager.start_pair(spec(LONG), spec(LONG), ME)
    assert not manager.runs(ME)
    too_long = replace(LONG, steps=manager.profile.max_steps + 1)
    with pytest.raises(ConfigError, match="must be at most"):
        manager.start_pair(spec(LONG), spec(too_long), ME)
    assert not manager.runs(ME)


def test_what_has_ended_is_the_first_of_a_pair_of_which_only_the_second_is_trained(
    make: Callable[..., RunManager],
) -> None:
    manager = make(max_beside=1, threads_per_run=2)
    one = manager.start(spec(SHORT, name="a"), ME)
    before = ended(manager, one)
    other = manager.start_beside(one, spec(SHORT, name="b"), ME)
    assert (look(manager, one).beside, look(manager, other).beside) == (other, one)
    inside = manager._inside
    assert not places.shares(inside.runs, inside.profile, inside.runs[other]), (
        "the first needs no threads any more"
    )
    assert ended(manager, other).status == "finished"
    assert look(manager, one).history.steps.tolist() == before.history.steps.tolist()
    with pytest.raises(RunError):
        manager.start_beside(one, spec(SHORT), "another")
    with pytest.raises(RunError):
        manager.start_beside("no such run", spec(SHORT), ME)
    assert set(run.id for run in manager.runs(ME)) == {one, other}


def test_a_pair_shares_the_threads_of_one() -> None:
    assert [replace(PROFILE, threads_per_run=n).threads(pair=True) for n in (1, 2, 4)] == [1, 1, 2]
    assert replace(PROFILE, threads_per_run=4).threads(pair=False) == 4


def test_what_is_done_by_hand_stays_with_a_run_and_in_its_name(make: Callable[..., RunManager]) -> None:
    manager = make()
    run = manager.start(spec(replace(LONG, snapshot_every=10), name="fast"), ME)
    reached(manager, run, 25)
    manager.pause(run, ME)
    manager.set_learning_rate(run, ME, 0.5)
    view = look(manager, run)
    (change,) = view.changes
    assert (change.what, change.value) == ("learning_rate", 0.5) and change.step == view.step
    assert view.name == f"fast (by hand: learning rate 0.5 from step {view.step:,})" and view.given == "fast"
    manager.rename(run, ME, "slow")
    assert look(manager, run).name.startswith("slow (by hand")
    manager.set_learning_rate(run, ME, 0.25)
    assert [c.value for c in look(manager, run).changes] == [0.25], "the last at a step counts"


def test_further_steps_are_a_change_and_what_is_written_anew_moves(make: Callable[..., RunManager]) -> None:
    manager = make()
    run = manager.start(spec(SHORT, name="fast"), ME)
    assert ended(manager, run).changes == ()
    manager.extend(run, ME, 12)
    wait(lambda: look(manager, run).step == 42)
    assert ended(manager, run).changes == (Change(30, look(manager, run).changes[0].seconds, "steps", 12),)
    assert look(manager, run).name == "fast (by hand: 12 further steps from step 30)"
    with pytest.raises(ConfigError):
        manager.extend(run, ME, 0)
    assert len(look(manager, run).changes) == 1
