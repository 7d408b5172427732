"""Who trains, who waits and how many processes live: the table of states, and the limits in every state."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

from engine.errors import RunError
from engine.training.records import Done, Step
from runs.manager import RunManager, Status
from runs.protocol import Failed, Records, SnapshotSaved, Started, Stop
from runs.state import ACTIVE, FOLLOWS, Run
from tests.runs.puppets import Puppet
from tests.runs.running import LONG, SHORT, Clock, Make, look, spec

STATES: tuple[Status, ...] = get_args(Status)


def test_a_run_becomes_only_what_the_table_allows(tmp_path: Path) -> None:
    run = Run("id", "me", spec(), tmp_path, 0.0)
    for before, after in itertools.product(STATES, STATES):
        run.status = before
        version = run.version
        if after in FOLLOWS[before]:
            run.become(after, "why")
            assert (run.status, run.message) == (after, "why") and run.version > version, (before, after)
        else:
            with pytest.raises(ValueError, match=f"{before} cannot become {after}"):
                run.become(after)
            assert run.status == before and run.version == version, (before, after)
    assert set(FOLLOWS) == set(STATES)
    ended = set(STATES) - set(ACTIVE)
    assert all(FOLLOWS[status] == {"queued"} for status in ended), "an end is left by queueing again alone"
    assert all(ended & FOLLOWS[status] >= {"stopped", "failed"} for status in ACTIVE)
    assert [status for status in STATES if "starting" in FOLLOWS[status]] == ["queued"], (
        "nobody skips the queue"
    )
    assert [status for status in STATES if status in FOLLOWS[status]] == ["paused"]


def _happen(manager: RunManager, puppet: Puppet, random: Random) -> None:
    if puppet.ending or puppet.job is None:
        puppet.end(random.choice([0, -9]))
        return
    who = random.randrange(len(puppet.jobs)) if len(puppet.jobs) > 1 else 0
    done = Done(3, "stopped" if (who, Stop()) in puppet.told else "finished", "", 1.0)
    kept = SnapshotSaved(5, str(puppet.jobs[who].folder / "step-000000005.safetensors"), 10)
    step = Records((Step(1, 2.0, 1.0, 0.1, 10, 0.1),))
    happen: list[Callable[[], None]] = [
        lambda: puppet.say(Started("float32"), entrant=who),
        lambda: puppet.say(Started("float32"), step, kept, entrant=who),
        lambda: puppet.say(Started("float32"), Records((done,)), entrant=who),
        lambda: puppet.say(Failed("It failed."), entrant=who),
        lambda: puppet.end(-9),
    ]
    random.choices(happen, [4, 4, 3, 1, 1])[0]()


def _ask(manager: RunManager, owner: str, random: Random, races: bool) -> None:
    mine = [view.id for view in manager.runs(owner)]
    if not mine or random.random() < 0.2:
        if races and random.random() < 0.3:
            manager.start_race([spec(SHORT)] * random.choice([2, 3]), owner)
        else:
            manager.start(spec(LONG), owner)
        return
    run = random.choice(mine)
    ways = ("watch", "pause", "resume", "step", "stop", "extend", "remove")
    (way,) = random.choices(ways, [3, 3, 4, 2, 1, 2, 1])
    rest = {"watch": (), "extend": (owner, 10)}.get(way, (owner,))
    getattr(manager, way)(run, *rest)


@pytest.mark.parametrize("seeds", [9, pytest.param(18, marks=pytest.mark.exhaustive)])
def test_whatever_happens_the_limits_hold_and_every_way_of_the_table_is_gone(
    seeds: int, make: Make, puppets: type[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: set[tuple[Status, Status]] = set()
    become = Run.become

    def watched(run: Run, status: Status, message: str = "", **rest: Any) -> None:
        way = run.status, status
        become(run, status, message, **rest)  # raises for a way that the table does not have
        gone.add(way)

    monkeypatch.setattr(Run, "become", watched)
    for seed in range(seeds):
        random, clock = Random(seed), Clock()
        puppets.alive.clear()
        puppets.most = 0
        manager = make(
            clock=clock, spare=seed % 2 == 0, max_runs=2, max_paused=2, max_queued=5, lease_seconds=15
        )
        limit = manager.profile.max_workers
        for _ in range(700):
            turn = random.random()
            if turn < 0.45:
                with suppress(RunError):
                    _ask(manager, random.choice("abcd"), random, races=seed % 3 == 2)
            elif turn < 0.85:
                if puppets.alive:
                    _happen(manager, random.choice(sorted(puppets.alive, key=lambda p: p.pid)), random)
            else:
                clock.now += random.choice([1.0, 5.0, 20.0, 40.0])
                manager.scheduler.tick()
            views = [view for owner in "abcd" for view in manager.runs(owner)]
            assert len(puppets.alive) <= limit and len(manager.processes()) == len(puppets.alive)
            assert len({v.race or v.id for v in views if v.status in ("starting", "running")}) <= 2
            runs = [run for run in manager.scheduler.runs if run.status in ("starting", "running")]
            assert len({run.seat.worker for run in runs if run.seat}) <= 2, "a race is in one process"
            places = {v.queue_position for v in views} - {0}
            assert places == set(range(1, len(places) + 1))
        assert puppets.most <= limit
        _nobody_waits_for_ever(manager, puppets)
    assert {(a, b) for a, after in FOLLOWS.items() for b in after} == gone


def _nobody_waits_for_ever(manager: RunManager, puppets: type[Puppet]) -> None:
    """When processes do their work and end, everybody who waits and is watched gets a turn."""
    for _ in range(200):
        views = [view for owner in "abcd" for view in manager.runs(owner)]
        if not any(view.status in ("queued", "starting", "running") for view in views):
            return
        for view in views:
            manager.watch(view.id)
        for puppet in list(puppets.alive):
            if puppet.ending:
                puppet.end()
            elif puppet.job is not None:
                now = {view.id: view.status for view in views}
                for who, job in enumerate(puppet.jobs):
                    if now.get(job.run) in ("starting", "running"):
                        puppet.say(Started("float32"), Records((Done(9, "finished", "", 1.0),)), entrant=who)
                    elif (who, Stop()) in puppet.told:
                        puppet.say(Records((Done(9, "stopped", "", 1.0),)), entrant=who)
        manager.scheduler.tick()
    raise AssertionError("somebody waits for ever")


def test_a_place_that_becomes_free_is_not_for_those_who_have_left(make: Make, puppets: type[Puppet]) -> None:
    clock = Clock()
    manager = make(clock=clock, max_runs=1, lease_seconds=15)
    first, gone, there = (manager.start(spec(LONG), owner) for owner in "abc")
    clock.now += 16  # no round of housekeeping comes between
    manager.watch(there)
    manager.remove(first, "a")
    assert look(manager, gone).status == "paused" and look(manager, there).status == "starting"
    assert [p.job.run for p in puppets.alive if p.job and not p.ending] == [there]


def test_who_needs_no_new_process_goes_first_where_there_is_none(make: Make, puppets: type[Puppet]) -> None:
    """Else all wait: the first for a process, and those that have one for the first."""
    manager = make(clock=Clock(), max_runs=1, max_paused=2)  # four processes
    begin, me = lambda: manager.start(spec(LONG), "me"), "me"
    a = begin()
    manager.pause(a, me)
    b = begin()
    manager.pause(b, me)
    c, n = begin(), begin()
    manager.resume(a, me)
    manager.pause(c, me)  # n begins
    m = begin()
    manager.resume(b, me)
    manager.pause(n, me)  # a goes on
    manager.resume(c, me)
    assert [look(manager, run).queue_position for run in (a, b, c, m)] == [0, 2, 3, 1]
    manager.pause(a, me)
    assert (look(manager, b).status, look(manager, m).queue_position, len(puppets.alive)) == ("running", 1, 4)
    for puppet in list(puppets.alive):
        if puppet.job is not None and puppet.job.run == b:
            puppet.end()
    assert look(manager, m).status == "starting", "now there is one"


def test_a_frozen_process_that_was_to_be_saved_is_ended(make: Make, puppets: type[Puppet]) -> None:
    clock = Clock()
    manager = make(clock=clock, max_runs=1, max_paused=0)
    run = manager.start(spec(LONG), "me")
    manager.pause(run, "me")  # its process is to save, and does nothing
    (puppet,) = puppets.alive
    assert Stop() in puppet.heard and look(manager, run).status == "paused"
    manager.resume(run, "me")
    assert look(manager, run).status == "queued", "it waits for its process to end"
    clock.now += 31
    manager.watch(run)
    manager.scheduler.tick()
    assert puppet.ending
    puppet.end(-9)
    assert look(manager, run).status == "starting" and len(puppets.alive) == 1


def test_unwatched_a_run_pauses_and_watched_it_goes_on_but_not_one_that_its_owner_paused(
    make: Make, puppets: type[Puppet]
) -> None:
    clock = Clock()
    manager = make(clock=clock, lease_seconds=15)
    mine, held = (manager.start(spec(LONG), "me") for _ in range(2))
    for puppet in puppets.alive:
        puppet.say(Started("float32"))
    manager.pause(held, "me")
    clock.now += 10
    manager.watch(mine)
    clock.now += 10  # 20 s after the start, 10 s after the last look
    manager.scheduler.tick()
    assert look(manager, mine).status == "running"
    clock.now += 10
    manager.scheduler.tick()
    assert look(manager, mine).status == "paused" and "nobody was watching" in look(manager, mine).message
    for run in (mine, held):
        manager.watch(run)
    assert (look(manager, mine).status, look(manager, mine).message) == ("running", "")
    assert look(manager, held).status == "paused"


def test_a_full_queue_is_no_fault_of_who_looks(make: Make, puppets: type[Puppet]) -> None:
    clock = Clock()
    manager = make(clock=clock, max_runs=1, max_queued=1, lease_seconds=15)
    first = manager.start(spec(LONG), "me")
    clock.now += 16
    manager.scheduler.tick()
    assert look(manager, first).status == "paused" and "nobody was watching" in look(manager, first).message
    others = [manager.start(spec(LONG), owner) for owner in ("b", "c")]
    manager.watch(first)  # there is no place in the queue: no error, and it is tried again
    assert look(manager, first).status == "paused"
    manager.remove(others[1], "c")
    manager.watch(first)
    assert look(manager, first).queue_position == 1


def test_when_everybody_leaves_nobody_who_waited_is_started(make: Make, puppets: type[Puppet]) -> None:
    """21 closed browsers once started 23 processes: each paused run let the next, as unwatched, begin."""
    clock = Clock()
    manager = make(clock=clock, max_runs=1, max_queued=20, lease_seconds=15)
    runs = [manager.start(spec(LONG), f"owner {n}") for n in range(21)]
    (first,) = puppets.alive
    first.say(Started("float32"))
    clock.now += 16
    for _ in range(3):
        manager.scheduler.tick()
        assert puppets.alive == {first}
    assert {look(manager, run).status for run in runs} == {"paused"}
    for run in runs:  # everybody comes back
        manager.watch(run)
    assert [look(manager, run).status for run in runs] == ["running", *["queued"] * 20]
    for n in range(20):  # and leaves one after the other, each just after a place became free
        clock.now += 1
        for run in runs[n + 1 :]:
            manager.watch(run)
        clock.now += 14.5
        manager.scheduler.tick()
    assert puppets.most <= manager.profile.max_workers
