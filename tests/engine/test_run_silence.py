"""A worker that is stopped (SIGSTOP) says nothing and ends with nothing: it is noticed, replaced, and never
left behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.lifeline import FIRST
from engine.service.manager import RunManager
from tests.engine.running import (
    LONG,
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
ME = "me"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RunManager]]:
    """Managers that wait 2.5 s for a sign of life, which comes every second."""
    monkeypatch.setattr("engine.service.processes.SILENT_SECONDS", 2.5)
    with managers(tmp_path) as make:
        yield make


def test_a_stopped_worker_is_replaced_and_its_run_goes_on(make: Callable[..., RunManager]) -> None:
    manager = make()
    run = manager.start(spec(LONG), ME)
    before = reached(manager, run, 450)
    stopped = pid(manager, run)
    freeze(stopped)
    wait(lambda: look(manager, run).warnings, 60)
    assert not lives(stopped)
    (warning,) = look(manager, run).warnings
    assert (
        "did not answer any more" in warning and f"from step {look(manager, run).snapshots[-1]:,}" in warning
    )
    after = reached(manager, run, before.step + 1000)
    assert after.status == "running" and after.message == ""
    assert (after.history.steps[1:] > after.history.steps[:-1]).all(), "no step is there twice"


@pytest.mark.exhaustive
def test_a_stopped_worker_of_a_paused_run_is_replaced_when_it_goes_on(
    make: Callable[..., RunManager],
) -> None:
    manager = make()
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 250)
    manager.pause(run, ME)
    settled(manager, run)
    stopped = pid(manager, run)
    freeze(stopped)
    wait(lambda: look(manager, run).warnings, 60)
    assert look(manager, run).status == "paused" and not lives(stopped)
    manager.resume(run, ME)
    reached(manager, run, look(manager, run).snapshots[-1] + 100)


def test_a_run_that_was_asked_to_stop_has_stopped(make: Callable[..., RunManager]) -> None:
    manager = make()
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 5)
    freeze(pid(manager, run))
    manager.stop(run, ME)
    wait(lambda: not look(manager, run).active, 60)
    assert look(manager, run).status == "stopped" and "did not stop in time" in look(manager, run).message


@pytest.mark.exhaustive
def test_after_a_stop_of_the_whole_server_nobody_is_late(make: Callable[..., RunManager]) -> None:
    manager = make()
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 5)
    workers = manager._inside.workers
    with manager._inside.lock:  # no other round
        workers._listened -= 3600.0
        assert workers.silent() == []
    reached(manager, run, look(manager, run).step + 100)


def test_a_worker_outlives_the_thread_that_asked_for_it(make: Callable[..., RunManager]) -> None:
    """Streamlit's threads end with every run of a page; Linux would end what they had started."""
    manager, started = make(), []
    thread = threading.Thread(target=lambda: started.append(manager.start(spec(LONG), ME)))
    thread.start()
    thread.join()
    reached(manager, started[0], 200)


@pytest.mark.exhaustive
def test_a_killed_server_takes_stopped_workers_with_it(tmp_path: Path) -> None:
    server = serve_runs(tmp_path, "wait")
    assert server.stdout is not None and server.stdout.readline() == "training\n"
    workers = wait(lambda: workers_of(server.pid))
    for worker in workers:
        freeze(worker)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    wait(lambda: not any(lives(worker) for worker in workers), 30)


@pytest.mark.exhaustive
def test_where_memory_runs_out_a_training_ends_and_not_the_server(make: Callable[..., RunManager]) -> None:
    def score(process: int) -> int:
        return int(Path(f"/proc/{process}/oom_score_adj").read_text())

    manager, own = make(spare=True), score(os.getpid())
    spare = warm_spare(manager)
    assert score(spare) == max(own, FIRST) > 500
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 1)
    assert score(pid(manager, run)) == max(own, FIRST) and score(os.getpid()) == own
