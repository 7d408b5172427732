"""One run manager for several servers: in a process of this machine, and as an actor of a Ray cluster of three nodes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from engine.errors import ConfigError, RunError
from runs import cluster, service, shared
from runs.cluster import ManagerActor
from runs.process_guards import ROOT
from runs.profiles import Profile
from runs.quizzes import FIRST
from runs.room_table import RoomError
from runs.service import RunService, SocketLine, serve
from runs.shared import SharedRuns, open_manager, open_quizzes, open_rooms
from tests.runs.running import LONG, ME, PROFILE, WARM, freeze, lives, reached, spec, wait
from ui import session
from ui.operate import health

LIMITED = replace(PROFILE, max_rooms_address=2, max_answers_address=3, max_starts_address=2)
shared_by_servers = pytest.mark.exhaustive
Servers = Callable[..., SharedRuns]
BOTH_WAYS = ["socket", pytest.param("cluster", marks=shared_by_servers)]
SERVICE = (
    "from runs import profiles; from tests.runs.running import PROFILE; profiles.PROFILES['local'] = PROFILE;"
)
SERVICE += "from deploy import run_service; run_service.main()"


@pytest.fixture(params=BOTH_WAYS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Servers]:
    """Makes servers that share a service of their own; it ends after the test."""
    if request.param == "cluster":
        yield request.getfixturevalue("actor")
        return
    made: list[RunService] = []

    def make(address: Callable[[], str] = str, profile: Profile = PROFILE) -> SharedRuns:
        if not made:
            made.append(RunService(profile, folder=tmp_path, spare=False, opener=WARM))
            threading.Thread(target=serve, args=(made[0], tmp_path), daemon=True).start()
        return SharedRuns(SocketLine(tmp_path), address)

    yield make
    for held in made:
        held.manager.close()


@pytest.fixture
def actor(share: Callable[..., SharedRuns], monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Makes servers that share an actor of their own."""
    name = f"test-{time.monotonic_ns()}"
    monkeypatch.setattr(cluster, "version", lambda: name)
    made: list[SharedRuns] = []

    def make(address: Callable[[], str] = str, profile: Profile = PROFILE) -> SharedRuns:
        made.append(share(profile, address))
        return made[-1]

    yield make
    for runs in made:
        runs.close()
    if made:
        made[0]._line._ray.kill(made[0]._line._connected())


@dataclass
class Held:
    """A service in a process of its own: how servers are made that share it, what else a server's environment has,
    and what starts it again where nobody else does.
    """

    server: Servers
    environment: dict[str, str]
    start: Callable[[], None]


@pytest.fixture(params=BOTH_WAYS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    if request.param == "cluster":
        server, nodes = request.getfixturevalue("actor"), request.getfixturevalue("nodes")
        yield Held(server, {cluster.VARIABLE: nodes.address}, lambda: None)
        return
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        own = {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "GLASSFORMER_PROFILE": "local"}
        command = [sys.executable, "-c", SERVICE, str(tmp_path)]
        started.append(subprocess.Popen(command, cwd=ROOT, env=os.environ | own))

    start()
    yield Held(lambda: SharedRuns(SocketLine(tmp_path)), {service.VARIABLE: str(tmp_path)}, start)
    for process in started:
        process.terminate()
        process.wait(30)


def test_a_run_started_at_one_server_is_seen_steered_and_looked_into_at_another(server: Servers) -> None:
    first, second = server(), server()
    run = first.start(spec(name="shared"), ME)
    view = wait(lambda: (found := second.view(run)) and not found.active and found)
    assert (view.status, view.name, view.step) == ("finished", "shared", 30)
    assert second.view(run) is view, "a curve that has not changed is not sent again"
    assert second.runs(ME) == [view] and second.runs(ME)[0] is view and second.runs("somebody else") == []
    assert second.race(run) == ()
    assert second.may_control(run, ME) and not second.may_control(run, "somebody else")
    here, there = first.model(run, 20).model.state_dict(), second.model(run, 20).model.state_dict()
    assert here.keys() == there.keys() and all(torch.equal(here[name], there[name]) for name in here)
    with pytest.raises(ConfigError, match="d_model") as caught:
        first.start(spec(model=spec().model.__class__(30, d_model=17, n_heads=2)), ME)
    assert (caught.value.field, caught.value.value) == ("n_heads", 2)
    with pytest.raises(RunError, match="no longer exists"):
        first.pause("nobody's", ME)
    second.remove(run, ME)
    assert first.view(run) is None


def test_limits_are_those_of_all_servers_for_the_address_of_whoever_asks(server: Servers) -> None:
    asker = ["192.0.2.7"]
    runs, other = (server(lambda: asker[0], LIMITED) for _ in range(2))
    rooms = open_rooms(runs, lambda: asker[0])
    asked = [rooms.ask(owner, "One?", ["a", "b"]) for owner in ("lecturer", "student")]
    for person in range(3):
        rooms.choose(asked[0].room, str(person), 1, 0)
    with pytest.raises(RoomError, match="3 people on your network have answered"):
        rooms.choose(asked[0].room, "3", 1, 0)
    with pytest.raises(RoomError, match="Your network has 2 rooms open"):
        rooms.ask("another student", "One?", ["a", "b"])
    quizzes = open_quizzes(runs, lambda: asker[0])
    quiz = quizzes.start("lecturer", 7, ((2,), (2,)))
    quizzes.hand_out("lecturer", FIRST)
    for person in range(3):
        open_quizzes(other, lambda: asker[0]).answer(quiz.room, str(person), FIRST, (0,))
    with pytest.raises(RoomError, match="3 people on your network have answered, the limit for one form"):
        quizzes.answer(quiz.room, "3", FIRST, (0,))
    assert open_quizzes(other, str).look(quiz.room).counts[FIRST].counts == ((3, 0),)
    phone = open_rooms(other, str)
    assert phone.look(asked[0].room).counts == (3, 0) and phone.choice(asked[0].room, "2") == 0
    assert phone.mine("2") is None
    for each in (runs, other):
        each.start(spec(), ME)
    with pytest.raises(RunError, match="Your network has started 2 runs"):
        runs.start(spec(), "another")
    asker[0] = "198.51.100.9"
    assert rooms.choose(asked[0].room, "3", 1, 0).counts == (4, 0)
    assert runs.start(spec(), "another")


SERVER = """
import sys, time
from runs import cluster, shared
from tests.runs.running import LONG, PROFILE, reached, spec
cluster.version = lambda: sys.argv[1]
runs = shared.open_manager(PROFILE, str)
run = runs.start(spec(LONG), "me")
reached(runs, run, 5)
print(run, flush=True)
time.sleep(600)
"""


@shared_by_servers
def test_a_server_that_is_killed_loses_no_training(held: Held) -> None:
    command = [sys.executable, "-c", SERVER, cluster.version()]
    environment = os.environ | held.environment | {"PYTHONPATH": str(ROOT)}
    killed = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    assert killed.stdout is not None
    run = killed.stdout.readline().strip()
    killed.kill()
    killed.wait()
    runs = held.server()
    step = runs.view(run).step
    assert reached(runs, run, step + 200).status == "running"
    runs.stop(run, ME)
    wait(lambda: not runs.view(run).active)
    assert runs.view(run).status == "stopped"


def beaten(runs: SharedRuns) -> int:
    """The process of the service, once it answers."""

    def answer() -> int:
        try:
            return runs._ask(60.0, "beat")
        except RunError:
            return 0

    return wait(answer)


def test_where_the_service_dies_its_trainings_end_and_servers_find_a_new_one(held: Held) -> None:
    runs = held.server()
    run = runs.start(spec(LONG), ME)
    reached(runs, run, 5)
    workers, before = [process.pid for process in runs.processes()], beaten(runs)
    os.kill(before, signal.SIGKILL)
    with pytest.raises(RunError, match="does not respond"):
        runs.view(run)
    held.start()
    wait(lambda: not any(lives(worker) for worker in workers))
    assert beaten(runs) != before
    assert runs.view(run) is None and runs.start(spec(), ME)


@shared_by_servers
def test_a_service_that_stands_still_is_said_to_and_comes_back(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = held.server()
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(shared, "QUIET_SECONDS", 3.0)
    monkeypatch.setattr(session, "manager", lambda: runs)

    async def drawn() -> bool:
        return True

    monkeypatch.setattr(health, "draw_home", drawn)

    def seconds() -> float:
        begun = time.monotonic()
        with pytest.raises(RunError, match="does not respond"):
            runs.runs(ME)
        return time.monotonic() - begun

    assert runs.runs(ME) == []
    process = beaten(runs)
    freeze(process)
    try:
        assert 1.5 < seconds() < 10
        assert seconds() < 1.5, "the next who ask are told at once"
        client = TestClient(Starlette(routes=list(health.routes())))  # an error in it would be raised here
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
    finally:
        os.kill(process, signal.SIGCONT)
    time.sleep(3.1)
    assert wait(lambda: beaten(runs)) == process and runs.runs(ME) == []


@shared_by_servers
def test_without_a_server_the_trainings_end(ray: Any) -> None:
    class Impatient(ManagerActor):
        def __init__(self) -> None:
            cluster.ALONE_SECONDS = 3.0
            super().__init__(PROFILE)

    actor = ray.remote(Impatient).options(max_concurrency=8, num_cpus=0, lifetime="detached").remote()
    assert ray.get(actor.call.remote("", "manager.start", spec(LONG), ME))
    (process,) = wait(
        lambda: [p.pid for p in ray.get(actor.call.remote("", "manager.processes")) if p.runs and p.pid]
    )
    assert lives(process)
    own = ray.get(actor.beat.remote())
    wait(lambda: not lives(process) and not lives(own), 60)


def test_a_fault_of_the_manager_is_a_sentence_and_in_the_log(
    server: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    runs = server()
    with pytest.raises(RunError, match="could not do that"):
        runs.call("manager.runs")
    assert "TypeError" in caplog.text
    assert runs.runs(ME) == [], "and it may ask on"


@pytest.mark.parametrize("server", ["socket"], indirect=True)
def test_a_client_that_ends_within_a_message_takes_nothing_along(server: Servers, tmp_path: Path) -> None:
    runs = server()
    run = runs.start(spec(LONG), ME)
    reached(runs, run, 5)
    for sent in (b"", b"\0\0\1\0half of a message"):
        with socket.socket(socket.AF_UNIX) as torn:
            torn.connect(str(tmp_path / service.version()))
            torn.sendall(sent)
    assert reached(runs, run, runs.view(run).step + 5).active


def test_one_server_alone_imports_nothing_of_ray(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from runs import shared;"
        "from tests.runs.running import PROFILE; shared.open_manager(PROFILE, str).close();"
        "sys.exit('ray' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    environment.pop(cluster.VARIABLE, None)
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment).returncode == 0


def test_another_version_of_the_code_is_another_manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine").mkdir()
    monkeypatch.setattr(service, "ROOT", tmp_path)
    names = set()
    for text in ("a = 1", "a = 2"):
        (tmp_path / "engine" / "a.py").write_text(text)
        names |= {service.version(), service.version()}
    assert len(names) == 2


def test_a_cluster_that_cannot_be_reached_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cluster.VARIABLE, "10.0.0.7:6379")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"Ray is not installed"):
        open_manager(PROFILE, str)
