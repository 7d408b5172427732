"""Runs that are compared: a race, in turns in one process and one place; a pair side by side; what is done by hand."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ConfigError, RunError
from engine.training.records import Done, Step
from runs.manager import RunManager
from runs.profiles import estimate_bytes
from runs.protocol import Records, Started
from tests.runs import running
from tests.runs.puppets import Puppet
from tests.runs.running import (
    ME,
    MODEL,
    PROFILE,
    SHORT,
    Clock,
    Make,
    ended,
    files,
    lives,
    look,
    managers,
    pid,
    reached,
    spec,
    wait,
)

LONG = replace(running.LONG, steps=30_000, snapshot_every=50)
WIDE = replace(MODEL, d_model=32)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with managers(tmp_path, max_runs=1) as make:
        yield make


def trio(manager: RunManager, owner: str = ME) -> tuple[str, ...]:
    return manager.start_race(
        [spec(LONG, name="a"), spec(LONG, WIDE, name="b"), spec(LONG, name="c")], owner, "which?"
    )


def race_of(manager: RunManager, run: str) -> str:
    race = look(manager, run).race
    assert race is not None
    return race


def test_a_race_is_ordinary_runs_in_one_process(make: Make) -> None:
    manager = make()
    alone = ended(manager, manager.start(spec(SHORT), ME))
    runs = manager.start_race([spec(SHORT, name="a"), spec(SHORT, WIDE, name="b"), spec(SHORT)], ME, "which?")
    processes = {pid(manager, run) for run in runs}
    assert len(processes) == 1
    views = [ended(manager, run) for run in runs]
    assert [view.status for view in views] == ["finished"] * 3
    assert len({view.race for view in views}) == 1 and alone.race is None
    assert [view.race_title for view in views] == ["which?"] * 3
    assert [view.id for view in manager.race(race_of(manager, runs[0]))] == list(runs)
    assert views[2].history.losses.tolist() == alone.history.losses.tolist(), "as if it were alone"
    assert [view.snapshots for view in views] == [alone.snapshots] * 3
    assert manager.model(runs[1]).config.d_model == 32
    assert len({files(manager, run).folder for run in runs}) == 3
    wait(lambda: not any(lives(process) for process in processes))


def test_a_race_has_one_place_and_others_wait(make: Make, puppets: type[Puppet]) -> None:
    manager = make()
    runs = trio(manager)
    other = manager.start(spec(LONG, name="alone"), "another")
    second = trio(manager, "a third")
    assert [look(manager, run).queue_position for run in (other, *second)] == [1, 2, 2, 2], (
        "a race waits as one"
    )
    (process,) = puppets.alive
    assert [job.run for job in process.jobs] == list(runs)
    for entrant, run in enumerate(runs):
        assert look(manager, other).queue_position == 1
        process.say(Started("float32"), entrant=entrant)
        manager.stop(run, ME)
        process.say(Records((Done(5, "stopped", "", 1.0),)), entrant=entrant)
    assert [look(manager, run).status for run in runs] == ["stopped"] * 3
    assert look(manager, other).status == "starting" and {
        look(manager, run).queue_position for run in second
    } == {1}


def test_one_is_paused_stepped_and_cancelled_and_the_others_go_on(make: Make) -> None:
    manager = make()
    one, two, three = trio(manager)
    for run in (one, two, three):
        reached(manager, run, 20)
    shares = [look(manager, run).share for run in (one, two, three)]
    assert max(shares) - min(shares) < 0.1, "they take turns"
    manager.pause(one, ME)
    wait(lambda: look(manager, one).status == "paused")
    reached(manager, two, look(manager, two).step + 40)  # its last records have come
    at = look(manager, one).step
    reached(manager, two, look(manager, two).step + 100)
    assert look(manager, one).step == at and look(manager, one).status == "paused"
    manager.step(one, ME)
    wait(lambda: look(manager, one).step == at + 1)
    manager.stop(two, ME)
    assert ended(manager, two).status == "stopped" and look(manager, two).history.evaluations[-1].complete
    reached(manager, three, look(manager, three).step + 100)
    manager.resume(one, ME)
    reached(manager, one, at + 50)
    manager.remove(three, ME)
    assert not manager.view(three) and len(manager.race(race_of(manager, one))) == 2
    reached(manager, one, look(manager, one).step + 50)
    assert len(manager.processes()) == 1


@pytest.mark.exhaustive
def test_unwatched_all_are_paused_and_one_look_lets_all_go_on(make: Make) -> None:
    clock = Clock()
    manager = make(clock=clock, lease_seconds=15, max_paused=0)
    runs = trio(manager)
    for run in runs:
        reached(manager, run, 10)
    clock.now += 10
    manager.watch(runs[1])
    clock.now += 10
    manager.scheduler.tick()
    assert all(look(manager, run).active and look(manager, run).status != "paused" for run in runs)
    clock.now += 16
    manager.scheduler.tick()
    assert [look(manager, run).status for run in runs] == ["paused"] * 3
    manager.scheduler.tick()  # no process may be kept: it saves all, and ends
    wait(lambda: not manager.processes())
    steps = [max(look(manager, run).snapshots) for run in runs]
    assert min(steps) >= 10
    manager.watch(runs[2])
    for run, step in zip(runs, steps, strict=True):
        reached(manager, run, step + 5)
    assert len({pid(manager, run) for run in runs}) == 1 and len(manager.processes()) == 1


def test_a_killed_process_ends_the_race_which_goes_on_from_its_snapshots(
    make: Make,
) -> None:
    manager = make()
    runs = trio(manager)
    reached(manager, runs[2], 5)
    manager.stop(runs[2], ME)
    stopped = ended(manager, runs[2])
    for run in runs[:2]:
        reached(manager, run, 110)
    os.kill(pid(manager, runs[0]), signal.SIGKILL)
    views = [ended(manager, run) for run in runs]
    assert [view.status for view in views] == ["failed", "failed", "stopped"]
    assert all("signal 9" in view.message for view in views[:2])
    assert not any(list(files(manager, run).folder.glob(".*")) for run in runs)
    with pytest.raises(RunError, match="another browser"):
        manager.revive(race_of(manager, runs[0]), "a stranger")
    manager.revive(race_of(manager, runs[0]), ME)
    for run, view in zip(runs[:2], views[:2], strict=True):
        last = max(view.snapshots)
        again = reached(manager, run, last + 60)
        assert again.changes == () and again.total_steps == LONG.steps, "nothing was done by hand"
        assert (np.diff(again.history.steps) > 0).all()
    assert len({pid(manager, run) for run in runs[:2]}) == 1
    assert look(manager, runs[2]).version == stopped.version, "who was stopped stays so"


def test_what_a_race_may_ask_for_and_that_it_counts_as_one(make: Make, puppets: type[Puppet]) -> None:
    manager = make(max_race=3, max_steps=1000, max_race_seconds=10)
    ask = manager.start_race
    with pytest.raises(RunError, match="2 to 3 runs here, not 1"):
        ask([spec(SHORT)], ME)
    with pytest.raises(RunError, match="2 to 3 runs here, not 4"):
        ask([spec(SHORT)] * 4, ME)
    half = replace(SHORT, steps=501)
    with pytest.raises(RunError, match="1,002 steps in all; at most 1,000"):
        ask([spec(half), spec(half)], ME)
    timed = replace(SHORT, steps=1000, seconds=5.5)
    with pytest.raises(RunError, match=r"11 s of compute in all; at most 10"):
        ask([spec(timed), spec(timed)], ME)
    with pytest.raises(ConfigError, match="steps"):
        ask([spec(replace(SHORT, steps=1001)), spec(SHORT)], ME)
    large = replace(MODEL, d_model=128, n_layers=4)
    need = estimate_bytes(large, SHORT)
    libraries = 350 * 2**20  # are needed once
    manager.scheduler.profile = replace(manager.profile, max_worker_bytes=2 * need - libraries)
    started = ask([spec(SHORT, large), spec(SHORT, large)], ME)
    assert len(started) == 2
    for run in started:
        manager.remove(run, ME)
    manager.scheduler.profile = replace(manager.profile, max_worker_bytes=2 * need - libraries - 1)
    with pytest.raises(RunError, match="GB of memory"):
        ask([spec(SHORT, large), spec(SHORT, large)], ME)
    assert manager.runs(ME) == []
    manager = make(max_runs_each=2, max_queued_each=1)
    trio(manager)
    trio(manager)
    with pytest.raises(RunError, match="Remove one first"):
        trio(manager)
    assert len(manager.runs(ME)) == 6, "all of it, or none"


@pytest.mark.exhaustive
def test_where_there_are_places_a_race_is_spread_over_processes(make: Make) -> None:
    manager = make(max_runs=3, race_workers=2)
    runs = trio(manager)
    for run in runs:
        reached(manager, run, 50)
    assert len({pid(manager, run) for run in runs}) == 2
    manager.stop(runs[1], ME)
    ended(manager, runs[1])
    reached(manager, runs[0], look(manager, runs[0]).step + 50)


def test_a_pair_trains_together_in_one_place_and_others_wait(make: Make, puppets: type[Puppet]) -> None:
    manager = make(max_beside=1)
    assert manager.profile.max_workers == 1 + 1 + 4 + 1
    one, other = manager.start_comparison(spec(running.LONG, name="a"), spec(running.LONG, name="b"), ME)
    assert (look(manager, one).beside, look(manager, other).beside) == (other, one)
    third = manager.start(spec(running.LONG, name="c"), ME)
    second = manager.start_comparison(spec(LONG), spec(LONG), "another")
    assert [look(manager, run).queue_position for run in (one, other, third, *second)] == [0, 0, 1, 2, 3]
    training = {puppet.jobs[0].run: puppet for puppet in puppets.alive}
    assert set(training) == {one, other}
    for run in (other, one):
        training[run].say(Started("float32"))
        assert look(manager, third).queue_position == 1, (
            "there is one place, and the pair or its first has it"
        )
        manager.stop(run, ME)
        training[run].say(Records((Done(5, "stopped", "", 1.0),)))
        assert look(manager, run).status == "stopped"
    assert look(manager, third).status == "starting"


def test_a_pair_is_started_whole_or_not_at_all_and_shares_threads(make: Make) -> None:
    manager = make(max_beside=1, max_runs_each=1)
    with pytest.raises(RunError, match="Remove one first"):
        manager.start_comparison(spec(LONG), spec(LONG), ME)
    assert not manager.runs(ME)
    too_long = replace(LONG, steps=manager.profile.max_steps + 1)
    with pytest.raises(ConfigError, match="must be at most"):
        manager.start_comparison(spec(LONG), spec(too_long), ME)
    assert not manager.runs(ME)
    assert [replace(PROFILE, threads_per_run=n).threads(compared=True) for n in (1, 2, 4)] == [1, 1, 2]
    assert replace(PROFILE, threads_per_run=4).threads(compared=False) == 4


def test_what_has_ended_is_the_first_of_a_pair_of_which_only_the_second_is_trained(
    make: Make, puppets: type[Puppet]
) -> None:
    manager = make(max_beside=1, threads_per_run=2)
    finished = Records((Step(1, 2.0, 1.0, 0.1, 10, 0.1), Done(1, "finished", "", 1.0)))
    one = manager.start(spec(SHORT, name="a"), ME)
    (first,) = puppets.alive
    first.say(Started("float32"), finished)
    first.end()
    other = manager.start_beside(one, spec(SHORT, name="b"), ME)
    assert (look(manager, one).beside, look(manager, other).beside) == (other, one)
    second = manager.scheduler.get(other)
    assert second is not None and manager.scheduler.threads(second) == 2, "the first needs none any more"
    (process,) = puppets.alive
    assert [job.run for job in process.jobs] == [other]
    process.say(Started("float32"), finished)
    assert [look(manager, run).status for run in (one, other)] == ["finished"] * 2
    assert look(manager, one).history.steps.tolist() == [1]
    with pytest.raises(RunError):
        manager.start_beside(one, spec(SHORT), "another")
    with pytest.raises(RunError):
        manager.start_beside("no such run", spec(SHORT), ME)
    assert set(run.id for run in manager.runs(ME)) == {one, other}


def test_what_is_done_by_hand_stays_with_a_run_and_in_its_name(make: Make, puppets: type[Puppet]) -> None:
    manager = make()
    run = manager.start(spec(LONG, name="fast"), ME)
    (process,) = puppets.alive
    process.say(Started("float32"))
    manager.pause(run, ME)
    process.say(Records((Step(1, 2.0, 1.0, 0.1, 10, 0.1),)))  # was under way
    manager.set_learning_rate(run, ME, 0.5)
    view = look(manager, run)
    (change,) = view.changes
    assert (change.what, change.value) == ("learning_rate", 0.5) and change.step == view.step == 1
    assert view.name == f"fast (by hand: learning rate 0.5 from step {view.step:,})" and view.given == "fast"
    manager.rename(run, ME, "slow")
    assert look(manager, run).name.startswith("slow (by hand")
    manager.set_learning_rate(run, ME, 0.25)
    assert [c.value for c in look(manager, run).changes] == [0.25], "the last at a step counts"
