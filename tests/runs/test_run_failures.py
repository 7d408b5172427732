"""What the run service survives: killed and starved workers, divergence, a full disk, a dead server, its own end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.checkpoints import load_state
from engine.errors import RunError
from runs.manager import RunManager
from runs.process_guards import FIRST
from runs.processes import describe_exit
from runs.snapshots import GATE
from runs.transport import Pipe
from tests.runs.puppets import Puppet
from tests.runs.running import (
    LONG,
    ME,
    MODEL,
    OWN_PID,
    PROFILE,
    SHORT,
    Make,
    begun,
    ended,
    files,
    freeze,
    lives,
    look,
    managers,
    pid,
    reached,
    serve_runs,
    settled,
    spec,
    wait,
    warm_spare,
    workers_of,
)

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="these tests look at processes through /proc"
)
resource = pytest.importorskip("resource")  # Windows has none


@pytest.fixture
def make(tmp_path: Path, transport: dict[str, Any]) -> Iterator[Make]:
    with managers(tmp_path, **transport) as make:
        yield make


def test_a_killed_worker_ends_its_run_and_nothing_else(make: Make) -> None:
    manager = make()
    often = spec(replace(LONG, snapshot_every=20))
    run, other = manager.start(often, ME), manager.start(often, ME)
    reached(manager, run, 45)
    reached(manager, other, 1)
    os.kill(pid(manager, run), signal.SIGKILL)
    view = ended(manager, run)
    assert view.status == "failed" and view.resumable
    assert "signal 9" in view.message and "memory" in view.message and "curve so far is kept" in view.message
    last = view.snapshots[-1]
    assert last >= 40 and f"step {last:,}" in view.message and view.history.steps[-1] >= last
    reached(manager, other, look(manager, other).step + 5)

    assert not list(files(manager, run).folder.glob(".*")), "no half-written file stays"
    manager.extend(run, ME, 25)
    after = ended(manager, run)
    assert (after.status, after.message, after.step) == ("finished", "", last + 25)
    assert (np.diff(after.history.steps) > 0).all(), (
        "what came after the snapshot was written anew, not twice"
    )
    before = dict(zip(view.history.steps.tolist(), view.history.losses, strict=True))
    again = dict(zip(after.history.steps.tolist(), after.history.losses, strict=True))
    both = [step for step in before.keys() & again.keys() if step <= last]
    assert both and all(again[step] == before[step] for step in both)


def test_a_worker_killed_before_its_first_snapshot(tmp_path: Path, puppets: type[Puppet]) -> None:
    with managers(tmp_path) as make:
        manager = make()
        run = manager.start(spec(LONG), ME)
        (worker,) = puppets.alive
        worker.end(-signal.SIGKILL)
        view = look(manager, run)
        assert view.status == "failed" and not view.resumable and "continued" not in view.message
        with pytest.raises(RunError, match="Start it again"):
            manager.extend(run, ME, 10)
        assert look(manager, manager.restart(run, ME)).status == "starting"


def oom_score(process: int) -> int:
    return int(Path(f"/proc/{process}/oom_score_adj").read_text())


def test_a_killed_spare_is_replaced_and_a_start_takes_the_warm_one(
    make: Make, transport: dict[str, Any]
) -> None:
    own = oom_score(OWN_PID)
    manager = make(spare=True)
    spare = warm_spare(manager)
    assert manager.runs(ME) == []
    os.kill(spare, signal.SIGKILL)
    run = manager.start(spec(), ME)  # perhaps before anybody has noticed
    view = ended(manager, run)
    assert view.status == "finished" or "signal 9" in view.message
    another = warm_spare(manager)
    assert another != spare
    run = manager.start(spec(LONG), ME)
    assert pid(manager, run) == another, "the process that has imported torch already is the one that trains"
    reached(manager, run, 1)
    if not transport:  # where memory runs out, a training ends and not the server
        assert oom_score(another) == max(own, FIRST) > 500 and oom_score(OWN_PID) == own


def test_divergence_is_said_and_only_snapshots_that_lead_on_are_kept(make: Make) -> None:
    manager = make()
    wild = replace(SHORT, steps=300, learning_rate=1e3, snapshot_every=1, sample_every=0)
    run = manager.start(spec(wild), ME)
    view = ended(manager, run)
    assert view.status == "failed" and "diverged" in view.message and "lower learning rate" in view.message
    assert view.step < 300 and len(view.history.steps) == view.step
    assert not np.isfinite([view.history.losses[-1], view.history.grad_norms[-1]]).all()
    assert view.resumable and view.best_quick is not None and view.best is None
    assert any("no snapshot is saved" in warning for warning in view.warnings)
    last = max(view.snapshots)
    assert last < view.step - 1, "the state after the last good loss leads into the divergence"
    assert f"step {last:,}" in view.message
    assert {int(p.stem[5:]) for p in files(manager, run).folder.glob("step-*")} == set(view.snapshots)
    manager.set_learning_rate(run, ME, 1e-4)
    manager.extend(run, ME, 5)
    after = ended(manager, run)
    assert after.status == "finished", after.message
    assert np.isfinite(after.history.losses[after.history.steps > last]).all()


def test_a_worker_over_its_memory_limit_is_ended(make: Make) -> None:
    manager = make(max_worker_bytes=2**30)
    run = begun(manager)
    worker = pid(manager, run)
    manager.scheduler.profile = replace(manager.profile, max_worker_bytes=50 * 2**20)  # less than torch needs
    view = ended(manager, run)
    assert view.status == "failed" and view.step >= 5
    assert "GB of memory" in view.message and "smaller batch" in view.message
    wait(lambda: not lives(worker), 30)


@pytest.mark.exhaustive
def test_a_worker_that_gets_no_more_memory_says_so(make: Make) -> None:
    manager = make(spare=True)
    spare = warm_spare(manager)
    room = int(Path(f"/proc/{spare}/statm").read_text().split()[0]) * resource.getpagesize() + 200 * 2**20
    resource.prlimit(spare, resource.RLIMIT_AS, (room, room))
    large = replace(MODEL, context=256, d_model=128, n_layers=8)  # about 600 MB in backward
    text = spec().text
    assert text is not None
    run = manager.start(spec(replace(LONG, batch_size=64, eval_tokens=256), large, text=text * 4), ME)
    view = ended(manager, run)
    assert view.status == "failed"
    assert "not enough memory" in view.message and "smaller batch" in view.message.lower()
    assert ended(manager, manager.start(spec(), ME)).status == "finished"


def test_a_full_disk_costs_snapshots_and_not_the_run(make: Make) -> None:
    manager = make()
    run = manager.start(spec(replace(LONG, snapshot_every=20)), ME)
    reached(manager, run, 30)
    # No file of this process may grow beyond 4 kB from now on: each write fails in the middle, as on a full disk
    resource.prlimit(pid(manager, run), resource.RLIMIT_FSIZE, (4096, 4096))
    wait(lambda: look(manager, run).warnings)
    at = look(manager, run)
    assert at.active and "could not be saved" in at.warnings[0] and "continues without it" in at.warnings[0]
    reached(manager, run, at.step + 100)
    manager.stop(run, ME)
    view = ended(manager, run)
    assert view.status == "stopped" and view.resumable and len(view.warnings) == 1
    assert view.history.evaluations[-1].step == view.step > view.snapshots[-1]
    folder = files(manager, run).folder
    whole = {"text.txt", *(f"step-{s:09d}.safetensors" for s in view.snapshots)}
    assert {p.name for p in folder.iterdir()} == whole, "no torn file"
    newest = files(manager, run).snapshots[view.snapshots[-1]].path
    assert load_state(newest)[0].step == view.snapshots[-1]


@pytest.mark.parametrize(
    "patience",
    ["scheduler.STOP_GRACE", pytest.param("processes.SILENT_SECONDS", marks=pytest.mark.exhaustive)],
)
def test_a_worker_that_does_not_stop_is_ended_by_force(
    make: Make, monkeypatch: pytest.MonkeyPatch, patience: str
) -> None:
    monkeypatch.setattr(f"runs.{patience}", 2.5)
    manager = make()
    run = begun(manager)
    worker = pid(manager, run)
    freeze(worker)
    manager.stop(run, ME)
    manager.stop(run, ME)  # an impatient second click
    with pytest.raises(RunError, match="being stopped"):
        manager.pause(run, ME)
    view = ended(manager, run)
    assert view.status == "stopped" and "did not stop in time" in view.message
    wait(lambda: not lives(worker), 30)


@pytest.mark.exhaustive
def test_a_frozen_worker_cannot_hold_up_the_manager(make: Make) -> None:
    manager = make()
    run = begun(manager)
    freeze(pid(manager, run))
    for _ in range(3000):  # far more than a pipe holds
        if not look(manager, run).active:
            break
        manager.set_prompt(run, ME, "the dog " * 50)
    assert ended(manager, run).status == "failed"


@pytest.mark.exhaustive
def test_twenty_runs_leave_nothing_behind(tmp_path: Path) -> None:
    threads, processes = set(threading.enumerate()), set(workers_of(OWN_PID))
    descriptors = len(os.listdir("/proc/self/fd"))
    manager = RunManager(PROFILE, tmp_path, spare=False)
    for n in range(20):
        run = manager.start(spec(LONG), ME)
        if n % 7 == 0:  # the others are ended while they are still starting
            reached(manager, run, 1)
            manager.stop(run, ME)
            ended(manager, run)
        manager.remove(run, ME)
    wait(lambda: set(workers_of(OWN_PID)) <= processes, 60)
    assert not list(tmp_path.glob("manager-*/run-*"))
    manager.close()
    manager.close()
    assert set(threading.enumerate()) <= threads and set(workers_of(OWN_PID)) <= processes
    assert [path.name for path in tmp_path.iterdir()] == [GATE]
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    with pytest.raises(RunError, match="shutting down"):
        manager.start(spec(), ME)


def test_a_forgotten_manager_cleans_up_too(tmp_path: Path) -> None:
    threads, processes = set(threading.enumerate()), set(workers_of(OWN_PID))
    manager = RunManager(PROFILE, tmp_path, spare=False)
    begun(manager, 1)
    del manager  # a cleared cache does no more
    wait(lambda: set(threading.enumerate()) <= threads and set(workers_of(OWN_PID)) <= processes, 15)
    wait(lambda: [path.name for path in tmp_path.iterdir()] == [GATE], 15)


@pytest.mark.parametrize("frozen", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_killed_server_leaves_no_orphan_and_the_next_one_sweeps(tmp_path: Path, frozen: bool) -> None:
    server = serve_runs(tmp_path, "wait")
    assert server.stdout is not None and server.stdout.readline() == "training\n"
    workers = wait(lambda: workers_of(server.pid))
    for worker in workers if frozen else ():
        freeze(worker)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    wait(lambda: not any(lives(worker) for worker in workers), 30)
    assert len(list(tmp_path.glob("manager-*"))) == 1, "nobody was there to remove it"
    RunManager(PROFILE, tmp_path, spare=False).close()
    assert [path.name for path in tmp_path.iterdir()] == [GATE]


def test_exit_codes_are_sentences() -> None:
    for code, says in ((-9, "signal 9"), (-11, "SIGSEGV"), (1, "exit code 1"), (-99, "signal 99")):
        assert says in describe_exit(code, "last words") and describe_exit(code)[-1] == "."


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Managers that wait 2.5 s for a sign of life, which comes every second."""
    monkeypatch.setattr("runs.processes.SILENT_SECONDS", 2.5)
    with managers(tmp_path) as make:
        yield make


@pytest.mark.parametrize("paused", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_stopped_worker_is_replaced_and_its_run_goes_on(impatient: Make, paused: bool) -> None:
    manager = impatient()
    run = manager.start(spec(replace(LONG, snapshot_every=20)), ME)
    before = reached(manager, run, 45)
    if paused:
        manager.pause(run, ME)
        settled(manager, run)
    stopped = pid(manager, run)
    freeze(stopped)
    (warning,) = wait(lambda: look(manager, run).warnings, 60)
    assert not lives(stopped)
    last = look(manager, run).snapshots[-1]
    assert "stopped responding" in warning and f"from step {last:,}" in warning
    if paused:
        assert look(manager, run).status == "paused"
        manager.resume(run, ME)
    after = reached(manager, run, before.step + 100)
    assert after.status == "running" and after.message == ""
    assert (np.diff(after.history.steps) > 0).all(), "no step is there twice"


@pytest.mark.exhaustive
def test_after_a_stop_of_the_whole_server_nobody_is_late(impatient: Make) -> None:
    manager = impatient()
    run = begun(manager)
    workers = manager.scheduler.workers
    with manager.scheduler.lock:  # no other round
        workers._listened -= 3600.0
        assert workers.silent() == []
    reached(manager, run, look(manager, run).step + 100)


@pytest.mark.exhaustive
def test_a_worker_outlives_the_thread_that_asked_for_it(impatient: Make) -> None:
    """Streamlit's threads end with every run of a page; Linux would end what they had started."""
    manager, started = impatient(opener=Pipe), []
    thread = threading.Thread(target=lambda: started.append(manager.start(spec(LONG), ME)))
    thread.start()
    thread.join()
    reached(manager, started[0], 20)
