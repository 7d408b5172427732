"""The process that holds the runs hangs, or strangers do: nobody waits for ever."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from engine.errors import RunError
from engine.service import shared
from engine.service.manager import RunManager
from engine.service.shared import Desk, RemoteRuns
from engine.service.transport import ROOT
from tests.engine.running import PROFILE, freeze, wait
from ui import state
from ui.operate import health

ME, KEY = "me", b"a secret of the tests"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(("127.0.0.1", 0), KEY, lambda address: RunManager(PROFILE, tmp_path, spare=False))
    threading.Thread(target=made.serve, daemon=True).start()
    yield made
    made.close()


def seconds(runs: RemoteRuns) -> float:
    begun = time.monotonic()
    with pytest.raises(RunError, match="does not answer"):
        runs.runs(ME)
    return time.monotonic() - begun


def test_a_service_that_stands_still_is_said_to_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {
        "GLASSFORMER_RUNS": f"127.0.0.1:{port}",
        "GLASSFORMER_SECRET": KEY.decode(),
        "GLASSFORMER_PROFILE": "small",
        "TMPDIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "engine.service.serve"]
    service = subprocess.Popen(command, cwd=ROOT, env=os.environ | own)
    monkeypatch.setattr(shared, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(shared, "QUIET_SECONDS", 3.0)

    def tried() -> RemoteRuns | None:
        try:
            return RemoteRuns(("127.0.0.1", port), KEY)
        except RunError:
            return None

    try:
        runs = wait(tried)
        monkeypatch.setattr(state, "manager", lambda: runs)
        assert runs.runs(ME) == []
        freeze(service.pid)
        assert 1.5 < seconds(runs) < 10
        assert seconds(runs) < 1.9, "the next who ask are told at once"
        client = TestClient(Starlette(routes=list(health.routes())))  # an error in it would be raised here
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()) == (503, {"ready": False, "spare": False})
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


def test_who_says_nothing_to_the_challenge_is_let_go(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "GREETING_SECONDS", 0.5)
    before = threading.active_count()
    silent = [socket.create_connection(desk.where, timeout=10) for _ in range(5)]
    for each in silent:
        while each.recv(1000):
            pass  # the challenge, and then the end
        each.close()
    wait(lambda: threading.active_count() <= before, 30)


def test_a_server_that_asks_seldom_is_not_let_go(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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
