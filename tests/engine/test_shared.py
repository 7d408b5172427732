"""One run manager for several servers."""

from __future__ import annotations

import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

from engine.errors import ConfigError, GlassformerError, RunError
from engine.service import shared
from engine.service.manager import RunManager
from engine.service.rooms import RoomError, Rooms
from engine.service.shared import (
    ROOM_LOOKS,
    ROOM_ORDERS,
    Desk,
    RemoteRuns,
    Request,
    open_manager,
    open_rooms,
    place,
)
from engine.service.transport import ROOT
from tests.engine.running import LONG, PROFILE, freeze, lives, spec, wait
from ui import session
from ui.operate import health

ME, KEY = "me", b"a secret of the tests"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(
        ("127.0.0.1", 0), KEY, lambda address: RunManager(PROFILE, tmp_path, spare=False, address=address)
    )
    threading.Thread(target=made.serve, daemon=True).start()
    yield made
    made.close()


@pytest.fixture
def server(desk: Desk) -> Callable[..., RemoteRuns]:
    return lambda address="": RemoteRuns(desk.where, KEY, lambda: address)


def test_a_run_started_at_one_server_is_seen_steered_and_looked_into_at_another(
    server: Callable[..., RemoteRuns],
) -> None:
    first, second = server(), server()
    run = first.start(spec(name="shared"), ME)
    view = wait(lambda: (found := second.view(run)) and not found.active and found)
    assert (view.status, view.name, view.step) == ("finished", "shared", 30)
    assert [v.id for v in second.runs(ME)] == [run] and second.runs("somebody else") == []
    assert second.may_control(run, ME) and not second.may_control(run, "somebody else")
    here, there = first.model(run, 20).model.state_dict(), second.model(run, 20).model.state_dict()
    assert here.keys() == there.keys() and all(torch.equal(here[name], there[name]) for name in here)
    second.remove(run, ME)
    assert first.view(run) is None


def test_a_view_is_sent_once_for_each_change(
    server: Callable[..., RemoteRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = server()
    run = runs.start(spec(), ME)
    wait(lambda: not runs.view(run).active)
    assert runs.view(run) is runs.view(run)
    heard: list[int] = []
    loads = pickle.loads
    monkeypatch.setattr(
        "engine.service.shared.pickle.loads", lambda data: heard.append(len(data)) or loads(data)
    )
    runs.view(run)
    assert min(heard) < 100, "of a curve that is known, only that it is"


def test_errors_come_back_as_what_they_are(server: Callable[..., RemoteRuns]) -> None:
    runs = server()
    with pytest.raises(ConfigError, match="d_model") as caught:
        runs.start(spec(model=spec().model.__class__(30, d_model=17, n_heads=2)), ME)
    assert (caught.value.field, caught.value.value) == ("n_heads", 2)
    with pytest.raises(RunError, match="no such run"):
        runs.pause("nobody's", ME)


def test_starts_are_counted_by_the_address_of_who_looks(
    desk: Desk, server: Callable[..., RemoteRuns]
) -> None:
    seen: list[str] = []
    count = desk.manager._starts.count
    desk.manager._starts.count = lambda address, most, now: seen.append(address) or count(address, most, now)  # type: ignore[method-assign]
    server("10.1.2.3").start(spec(), ME)
    server("10.9.9.9").start(spec(), "another")
    assert seen == ["10.1.2.3", "10.9.9.9"]


def test_who_does_not_know_the_secret_is_refused_and_the_others_are_served(
    desk: Desk, server: Callable[..., RemoteRuns]
) -> None:
    with pytest.raises(RunError, match="another GLASSFORMER_SECRET"):
        RemoteRuns(desk.where, b"a guess")
    with socket.create_connection(desk.where) as loose:  # says nothing at all that is asked for
        loose.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert server().runs(ME) == []


def test_only_what_pages_need_may_be_asked(desk: Desk, server: Callable[..., RemoteRuns]) -> None:
    for what in (
        "close",
        "tick",
        "_inside",
        "__class__",
        "folder",
        "room._rooms",
        "room._forget",
        "room.nothing",
    ):
        with Client(desk.where, authkey=KEY) as connection:
            connection.send_bytes(pickle.dumps(Request(what)))
            (well, said) = pickle.loads(connection.recv_bytes())
        assert not well and isinstance(said, RunError), what
    for name in ("tick", "_inside", "folder"):
        with pytest.raises(AttributeError):
            getattr(server(), name)
    for name in ("_rooms", "_forget", "nothing"):
        with pytest.raises(AttributeError):
            getattr(server().rooms, name)
    assert {name for name in vars(Rooms) if not name.startswith("_")} == ROOM_LOOKS | ROOM_ORDERS


def test_an_order_whose_answer_was_lost_is_not_given_again(
    server: Callable[..., RemoteRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = server()
    assert runs.runs(ME) == []
    receive, asking = Connection.recv_bytes, threading.current_thread()

    def lost(connection: Connection) -> bytes:
        if threading.current_thread() is not asking:  # the service's own
            return receive(connection)
        monkeypatch.setattr(Connection, "recv_bytes", receive)
        receive(connection)
        raise EOFError

    monkeypatch.setattr(Connection, "recv_bytes", lost)
    with pytest.raises(RunError, match="does not answer"):
        runs.start(spec(), ME)
    assert len(runs.runs(ME)) == 1, "it may have been carried out: asked twice, it would be two"


SERVE = [sys.executable, "-m", "engine.service.serve"]


def own_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in (("RUNS", f"127.0.0.1:{port}"), ("SECRET", KEY.decode())):
        monkeypatch.setenv(f"GLASSFORMER_{name}", value)
    monkeypatch.setenv("TMPDIR", str(folder))
    return "127.0.0.1", port


def opened(once: Callable[[], Any]) -> Any:

    def tried() -> Any:
        try:
            return once()
        except RunError:
            return None

    return wait(tried)


def test_the_service_as_a_process_ends_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_place(tmp_path, monkeypatch)
    service = subprocess.Popen(SERVE, cwd=ROOT)
    try:
        runs = opened(lambda: open_manager(PROFILE, str))
        assert isinstance(runs, RemoteRuns)
        run = runs.start(spec(LONG), ME)
        wait(lambda: (view := runs.view(run)) and view.step > 5)
        workers = [process.pid for process in runs.processes()]
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
        wait(lambda: not any(lives(worker) for worker in workers))
        with pytest.raises(RunError, match="does not answer"):
            runs.view(run)
        service = subprocess.Popen(SERVE, cwd=ROOT)
        opened(lambda: open_manager(PROFILE, str))
        assert runs.view(run) is None, "a server that was there before asks the new one"
        assert runs.start(spec(), ME)
    finally:
        service.kill()
        service.wait()


NO_PLACES = [
    ("7700", "sixteen letters.", "is no address"),
    ("host:", "sixteen letters.", "is no address"),
    ("host:99999", "sixteen letters.", "is no address"),
    ("host:7700", "", "needs GLASSFORMER_SECRET"),
    ("host:7700", "fifteen letters", "has 15 characters: choose at least 16"),
]


def test_a_place_that_is_none_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, secret, wrong in NO_PLACES:
        monkeypatch.setenv("GLASSFORMER_RUNS", said)
        monkeypatch.setenv("GLASSFORMER_SECRET", secret)
        with pytest.raises(GlassformerError, match=wrong):
            place()
    done = subprocess.run(SERVE, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and wrong in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("remote", [False, True])
def test_rooms_are_those_of_all_servers_with_the_limits_of_the_profile_for_the_address_of_whoever_asks(
    remote: bool, tmp_path: Path
) -> None:
    profile, asker = replace(PROFILE, max_rooms_address=2, max_answers_address=3), ["192.0.2.7"]
    desk = Desk(("127.0.0.1", 0), KEY, lambda _: RunManager(profile, tmp_path, spare=False))
    threading.Thread(target=desk.serve, daemon=True).start()
    here = RemoteRuns(desk.where, KEY, lambda: asker[0]) if remote else desk.manager
    try:
        rooms = open_rooms(here, lambda: asker[0])
        assert (type(rooms) is Rooms) != remote
        asked = [rooms.ask(owner, "One?", ["a", "b"]) for owner in ("lecturer", "student")]
        for person in range(3):
            rooms.choose(asked[0].room, str(person), 1, 0)
        with pytest.raises(RoomError, match="3 have answered from your network"):
            rooms.choose(asked[0].room, "3", 1, 0)
        with pytest.raises(RoomError, match="2 rooms of your network are open"):
            rooms.ask("another student", "One?", ["a", "b"])
        phone = open_rooms(RemoteRuns(desk.where, KEY, str), str) if remote else rooms
        assert phone.look(asked[0].room).counts == (3, 0) and phone.choice(asked[0].room, "2") == 0
        assert phone.mine("2") is None
        rooms.close("student")
        with pytest.raises(RoomError, match="closed"):
            phone.choose(asked[1].room, "a", 1, 0)
        asker[0] = "198.51.100.9"
        assert rooms.choose(asked[0].room, "3", 1, 0).counts == (4, 0)
        assert rooms.ask("another lecturer", "One?", ["a", "b"]).number == 1
    finally:
        desk.close()


def seconds(runs: RemoteRuns) -> float:
    begun = time.monotonic()
    with pytest.raises(RunError, match="does not answer"):
        runs.runs(ME)
    return time.monotonic() - begun


def test_a_service_that_stands_still_is_said_to_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSFORMER_PROFILE", "small")
    where = own_place(tmp_path, monkeypatch)
    service = subprocess.Popen(SERVE, cwd=ROOT)
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(shared, "QUIET_SECONDS", 3.0)

    try:
        runs = opened(lambda: RemoteRuns(where, KEY))
        monkeypatch.setattr(session, "manager", lambda: runs)
        assert runs.runs(ME) == []
        freeze(service.pid)
        assert 1.5 < seconds(runs) < 10
        assert seconds(runs) < 1.9, "the next who ask are told at once"

        async def drawn() -> bool:
            return True

        monkeypatch.setattr(health, "draw_home", drawn)
        client = TestClient(Starlette(routes=list(health.routes())))  # an error in it would be raised here
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (
            503,
            {"ready": False, "spare": False, "page": True},
        )
        time.sleep(3.1)
        stranger: list[float] = []  # a thread without a connection, to whom the kernel alone says good day
        asking = threading.Thread(target=lambda: stranger.append(seconds(runs)))
        asking.start()
        asking.join(15)
        assert stranger and 1.5 < stranger[0] < 10
        service.send_signal(signal.SIGCONT)
        time.sleep(3.1)
        assert runs.runs(ME) == []
    finally:
        service.kill()
        service.wait()


def test_who_says_nothing_is_let_go_and_a_server_that_asks_seldom_is_not(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "GREETING_SECONDS", 0.5)
    before = threading.active_count()
    silent = [socket.create_connection(desk.where, timeout=10) for _ in range(5)]
    for each in silent:
        while each.recv(1000):
            pass  # the challenge, and then the end
        each.close()
    wait(lambda: threading.active_count() <= before, 30)
    monkeypatch.setattr(shared, "GREETING_SECONDS", 0.5)
    runs = RemoteRuns(desk.where, KEY)
    mine = runs._mine.connection
    time.sleep(1.0)
    assert runs.runs(ME) == [] and runs._mine.connection is mine


@pytest.mark.parametrize("error", [OSError("too many open files"), RuntimeError("can't start new thread")])
def test_without_descriptors_it_waits_and_does_not_spin(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tries: list[int] = []
    accept = desk._listener.accept

    def none() -> None:
        tries.append(1)
        raise error

    monkeypatch.setattr(desk._listener, "accept", none)
    socket.create_connection(desk.where).close()  # ends the one `accept` that was under way
    begun = time.monotonic()
    time.sleep(1.0)
    count = len(tries)
    assert 1 <= count <= (time.monotonic() - begun) / shared.FAILED_SECONDS + 2
    monkeypatch.setattr(desk._listener, "accept", accept)
    assert RemoteRuns(desk.where, KEY).runs(ME) == []


def test_a_request_of_another_version_is_answered_with_a_sentence(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runs = RemoteRuns(desk.where, KEY, lambda: "")
    whole = runs.runs(ME)
    monkeypatch.setattr(desk.manager, "runs", lambda *_: {}["gone"])
    with pytest.raises(RunError, match="could not do that"):
        runs.runs(ME)
    assert "KeyError" in caplog.text
    monkeypatch.undo()
    assert runs.runs(ME) == whole, "and it may ask on"
