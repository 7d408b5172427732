"""What the tests of the run service share: the smallest trainings, managers, a clock set by hand, and waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import ModelConfig, TrainConfig
from runs.manager import RunManager, RunSpec, RunView
from runs.process_guards import ROOT
from runs.profiles import PROFILES, Profile
from runs.state import Run
from runs.transport import Opener, Pipe
from tests.runs.nursery import Forked

TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind at all. " * 8
MODEL = ModelConfig(vocab_size=len(set(TEXT)), context=8, d_model=16, n_layers=1, n_heads=2)
SHORT = TrainConfig(
    steps=30,
    batch_size=2,
    precision="float32",
    schedule="constant",
    warmup_steps=0,
    eval_every=10,
    sample_every=10,
    sample_length=8,
    sample_prompt="the ",
    snapshot_every=10,
)
LONG = replace(SHORT, steps=90_000, eval_every=0, sample_every=0, snapshot_every=200)
ME = "me"
HERE, THERE = "192.0.2.7", "198.51.100.9"  # addresses of two networks
WARM: Opener = Forked if sys.platform == "linux" else Pipe
Make = Callable[..., RunManager]
OPTIONS = ("spare", "clock", "address", "opener")
PROFILE: Profile = replace(PROFILES["local"], max_runs=2, max_beside=0, threads_per_run=1, max_worker_bytes=0)


@contextmanager
def managers(folder: Path, **usual: Any) -> Iterator[Make]:
    """Makes managers of PROFILE with other fields, and closes them; `spare` and the like are RunManager's own. Their
    workers are forked, unless an `opener` is given.
    """
    made: list[RunManager] = []

    def make(**fields: Any) -> RunManager:
        standard: dict[str, Any] = {"spare": False, "opener": WARM}
        fields = standard | usual | fields
        own = {name: fields.pop(name) for name in OPTIONS if name in fields}
        made.append(RunManager(replace(PROFILE, **fields), folder, **own))
        return made[-1]

    yield make
    for manager in made:
        manager.close()


def spec(train: TrainConfig = SHORT, model: ModelConfig = MODEL, **fields: Any) -> RunSpec:
    return RunSpec(model, train, **{"corpus": "text", "text": TEXT, **fields})


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Asker:
    """In whose name the next thing is asked for."""

    address = HERE

    def __call__(self) -> str:
        return self.address


def wait(condition: Callable[[], Any], seconds: float = 300.0) -> Any:
    """The first true value of `condition`; fails after a while."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return value


def look(manager: RunManager, run_id: str) -> RunView:
    view = manager.view(run_id)
    assert view is not None
    return view


def ended(manager: RunManager, run_id: str) -> RunView:
    """The view once the run has ended."""
    wait(lambda: not look(manager, run_id).active)
    return look(manager, run_id)


def reached(manager: RunManager, run_id: str, step: int) -> RunView:
    """The view once a step is done; fails when the run ends before."""

    def there() -> bool:
        view = look(manager, run_id)
        assert view.active, (view.status, view.message)
        return view.step >= step

    wait(there)
    return look(manager, run_id)


def begun(manager: RunManager, step: int = 5, owner: str = ME) -> str:
    """A long run that has done so many steps."""
    run = manager.start(spec(LONG), owner)
    reached(manager, run, step)
    return run


def settled(manager: RunManager, run_id: str) -> RunView:
    """The view once nothing has come from the worker for a third of a second, as in a pause, and it wants nothing of
    the processor: one that waits for its turn on a busy machine is silent too.
    """
    while True:
        before = look(manager, run_id)
        time.sleep(0.35)
        if look(manager, run_id).version == before.version and not _computing(manager, run_id):
            return before


def _computing(manager: RunManager, run_id: str) -> bool:
    """Whether a thread of a run's process runs, or would if it were its turn."""
    return any("R" in _states(process.pid) for process in manager.processes() if run_id in process.runs)


def pid(manager: RunManager, run_id: str) -> int:
    """Of the process that does a run's training, once it is known (on another machine it has to be told)."""

    def known() -> int:
        (process,) = [process for process in manager.processes() if run_id in process.runs]
        return process.pid

    return wait(known)


def warm_spare(manager: RunManager) -> int:
    """The process of the spare, once it is ready."""
    return wait(lambda: next((p.pid for p in manager.processes() if not p.runs and p.ready), 0))


def files(manager: RunManager, run_id: str) -> Run:
    """The manager's own record of a run, with its folder and its snapshots."""
    found = manager.scheduler.get(run_id)
    assert found is not None
    return found


def lives(process: int) -> bool:
    """Whether a process runs (a zombie, or one long gone, does not)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def freeze(process: int) -> None:
    """Stops a process, and returns once it stands still: until then it may answer."""
    os.kill(process, signal.SIGSTOP)
    wait(lambda: _states(process) <= {"T"}, 30)


def _states(process: int) -> set[str]:
    """What the threads of a process do, by Linux's letters: R runs or would, T is stopped. None once it has ended."""
    found = set()
    for stat in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):  # this one has ended just now
            found.add(stat.read_text().rpartition(")")[2].split()[0])
    return found


def workers_of(parent: int | None = None) -> list[int]:
    """Worker processes on this machine, or those of one parent, zombies included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        if (parent is None and b"runs.worker" in command) or (
            parent is not None and int(stat.rpartition(")")[2].split()[1]) == parent
        ):
            found.append(int(folder.name))
    return found


OWN_PID = os.getpid()


SERVER = """
import sys, time
from pathlib import Path
from runs.manager import RunManager
from tests.runs.running import LONG, PROFILE, reached, spec
if __name__ == "__main__":
    manager = RunManager(PROFILE, Path(sys.argv[1]))
    run = manager.start(spec(LONG), "me")
    reached(manager, run, 5)
    sys.stdout.write("training\\n")
    sys.stdout.flush()
    if sys.argv[2] == "wait":
        time.sleep(600)
"""


def serve_runs(folder: Path, mode: str) -> subprocess.Popen[str]:
    """A server of its own with one training, which it says on its output; in mode `wait` it then stays."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder), mode],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
