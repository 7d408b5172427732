"""Runs that wait, rest and are forgotten: places, leases, budgets, and the folders of their snapshots."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RunError
from engine.training.records import Done
from runs.protocol import Records, Started
from runs.snapshots import GATE, MAX_SNAPSHOTS, Store, clear_partial, thinned
from runs.transport import Pipe
from tests.runs.puppets import Puppet
from tests.runs.running import (
    LONG,
    ME,
    SHORT,
    Clock,
    Make,
    ended,
    files,
    lives,
    look,
    pid,
    reached,
    spec,
    wait,
)


def test_a_queue_is_first_come_first_served(make: Make, puppets: type[Puppet]) -> None:
    manager = make(max_runs=1, max_runs_each=4, max_queued=3)
    runs = [manager.start(spec(LONG), ME) for _ in range(4)]
    assert [look(manager, run).queue_position for run in runs] == [0, 1, 2, 3]
    with pytest.raises(RunError, match="Remove one first"):
        manager.start(spec(), ME)
    with pytest.raises(RunError, match="3 runs are already waiting"):
        manager.start(spec(), "another")
    manager.remove(runs[1], ME)
    assert [look(manager, run).queue_position for run in (runs[0], runs[2], runs[3])] == [0, 1, 2]
    manager.stop(runs[3], ME)  # never began
    assert (look(manager, runs[3]).status, look(manager, runs[3]).queue_position) == ("stopped", 0)
    manager.remove(runs[0], ME)
    assert (
        look(manager, runs[2]).status in ("starting", "running")
        and look(manager, runs[2]).queue_position == 0
    )


def _end(puppets: type[Puppet]) -> None:
    """Ends the processes that were told to end."""
    for puppet in list(puppets.alive):
        if puppet.ending:
            puppet.end()


def test_runs_are_renamed_and_removed_and_no_two_of_an_owner_have_the_same_name(
    make: Make, puppets: type[Puppet]
) -> None:
    manager = make()
    ids = [manager.start(spec(name=name), ME) for name in ("a", "a", "b" * 80, "b" * 80, "", "")]
    ids.append(manager.restart(ids[1], ME))
    names = [view.name for view in manager.runs(ME)]
    assert names == ["a", "a (2)", "b" * 80, "b" * 74 + " (2)", "", "", "a (3)"]
    manager.rename(ids[0], ME, "a")
    manager.rename(ids[2], ME, "a")
    assert [view.name for view in manager.runs(ME)][:3] == ["a", "a (2)", "a (4)"]
    folder = files(manager, ids[1]).folder
    manager.remove(ids[1], ME)
    assert manager.view(ids[1]) is None and ids[1] not in [view.id for view in manager.runs(ME)]
    _end(puppets)
    wait(lambda: not folder.exists(), 30)


def test_too_many_paused_processes_are_saved_and_go_on_exactly(make: Make) -> None:
    manager = make(max_runs=2, max_paused=0)
    exact = replace(LONG, steps=200)
    run, reference = manager.start(spec(exact), ME), manager.start(spec(exact), ME)
    reached(manager, run, 20)
    worker = pid(manager, run)
    manager.pause(run, ME)
    wait(lambda: all(run not in process.runs for process in manager.processes()))
    wait(lambda: not lives(worker), 30)
    parked = look(manager, run)
    assert parked.status == "paused" and parked.snapshots[-1] == parked.step < exact.steps
    manager.resume(run, ME)
    assert ended(manager, run).status == ended(manager, reference).status == "finished"
    np.testing.assert_array_equal(look(manager, run).history.steps, np.arange(1, 201))
    np.testing.assert_array_equal(look(manager, run).history.losses, look(manager, reference).history.losses)


def test_long_unwatched_runs_are_removed(make: Make, puppets: type[Puppet]) -> None:
    clock = Clock()
    manager = make(clock=clock, lease_seconds=15, forget_seconds=1800)
    paused, done = manager.start(spec(LONG), ME), manager.start(spec(), ME)
    for puppet in list(puppets.alive):
        puppet.say(Started("float32"))
        if puppet.jobs[0].run == done:
            puppet.say(Records((Done(30, "finished", "", 1.0),)))
            puppet.end()
    (worker,) = puppets.alive
    folders = [files(manager, run).folder for run in (paused, done)]
    clock.now += 16
    manager.scheduler.tick()
    assert look(manager, paused).status == "paused"
    clock.now += 1700
    manager.watch(paused)  # its owner is there: neither goes, and it resumes
    clock.now += 1700
    manager.scheduler.tick()
    assert look(manager, paused).status == "paused" and look(manager, done).status == "finished"
    clock.now += 1801
    manager.scheduler.tick()
    assert manager.view(paused) is None and manager.view(done) is None
    assert worker.ending
    worker.end()
    wait(lambda: not any(folder.exists() for folder in folders), 30)


def test_snapshots_stay_within_their_budgets(make: Make) -> None:
    size = 4 * 3 * 3000  # a little more than one snapshot of this model
    manager = make(snapshot_bytes=8 * size, snapshot_bytes_total=12 * size)
    train = replace(SHORT, steps=60, snapshot_every=2)
    runs = [manager.start(spec(train), ME) for _ in range(2)]
    for run in runs:
        view = ended(manager, run)
        assert view.snapshots[0] == 0 and view.snapshots[-1] == 60 and len(view.snapshots) < 31
    found = {run: list(files(manager, run).folder.glob("*.safetensors")) for run in runs}
    for run in runs:
        assert sorted(int(f.stem.removeprefix("step-")) for f in found[run]) == list(
            look(manager, run).snapshots
        ), "the view and the disk agree"
        assert sum(f.stat().st_size for f in found[run]) <= 8 * size
    assert sum(f.stat().st_size for some in found.values() for f in some) <= 12 * size


@given(
    st.dictionaries(st.integers(0, 10_000), st.integers(1, 100), min_size=1, max_size=300),
    st.integers(0, 5000),
)
def test_thinning_keeps_the_newest_and_if_it_can_the_first(sizes: dict[int, int], budget: int) -> None:
    kept = thinned(sizes, budget)
    assert kept == sorted(kept) and set(kept) <= set(sizes)
    assert kept[-1] == max(sizes) and len(kept) <= MAX_SNAPSHOTS
    assert sum(sizes[step] for step in kept) <= budget or kept == [max(sizes)]
    assert kept[0] == min(sizes) or len(kept) == 1
    assert thinned({step: sizes[step] for step in kept}, budget) == kept


def forked(work: Callable[[], object]) -> int:
    """A process of its own that does the work and ends without any farewell, as if it were killed."""
    if (pid := os.fork()) == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def names(folder: Path) -> list[str]:
    """What is left there: only the gate, since a server that starts may be waiting at it."""
    return [path.name for path in folder.iterdir()]


def test_a_store_comes_and_goes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.make()
    (folder / "x").write_bytes(b"x")
    (folder / ".x.tmp").write_bytes(b"x")
    clear_partial(folder)
    assert [p.name for p in folder.iterdir()] == ["x"]
    store.remove(tmp_path)  # not a run's folder: untouched
    store.remove(folder)
    assert not folder.exists() and tmp_path.exists()
    store.close()
    assert names(tmp_path) == [GATE]


def test_a_folder_that_is_removed_under_a_server_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    store = Store()
    assert store.make().is_dir()
    shutil.rmtree(place)
    folder = store.make()
    assert folder.is_dir() and folder.is_relative_to(place)
    store.write_text(folder, b"a text")
    other = Store()
    assert store.folder.is_dir(), "its lock is held: a server that starts does not sweep it"
    shutil.rmtree(place)
    worker = Pipe(1)  # its errors are written there, too
    worker.kill(), worker.wait(), worker.release()
    for each in (other, store):
        each.close()


def test_only_dead_managers_are_swept(tmp_path: Path) -> None:
    assert exit_code(forked(lambda: Store(tmp_path).make())) == 0
    (dead,) = tmp_path.glob("manager-*")
    first = Store(tmp_path)
    assert not dead.exists()
    run = first.make()
    second = Store(tmp_path)
    assert run.is_dir() and first.folder != second.folder
    first.close()
    assert not first.folder.exists() and second.folder.is_dir()
    second.close()
    assert names(tmp_path) == [GATE]


def test_many_processes_may_begin_and_end_at_once(tmp_path: Path) -> None:
    def come_and_go() -> None:
        for _ in range(8):
            store = Store(tmp_path)
            run = store.make()
            (run / "file").write_bytes(b"mine")
            assert (run / "file").read_bytes() == b"mine"
            store.close()
            assert not store.folder.exists()

    processes = [forked(come_and_go) for _ in range(3)]
    assert list(map(exit_code, processes)) == [0, 0, 0]
    assert names(tmp_path) == [GATE]


def test_the_usual_place_is_private_and_one_that_others_may_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usual = Store()
    assert usual.parent.parent == tmp_path
    assert usual.parent.stat().st_mode & 0o077 == usual.folder.stat().st_mode & 0o077 == 0
    usual.close()
    assert names(usual.parent) == [GATE]
    usual.parent.chmod(0o777)
    store = Store()
    assert store.parent != usual.parent and store.parent.parent == tmp_path
    store.close()
    assert names(usual.parent) == [GATE]
