"""What a server says to who runs it: whether it is ready, how it is, and what happens."""

import asyncio
import json
import logging
from collections.abc import Iterator
from functools import partial
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from engine.data.progress import single_piece
from engine.errors import ConfigError
from runs import profiles
from runs.events import LOG, note
from runs.profiles import PROFILES
from runs.state import Process, Standing
from tests.aside import aside
from tests.engine.cases import for_each
from tests.runs.running import SHORT, ended, lives, spec, wait, warm_spare
from ui import background_jobs, memo, server, session, websocket_filter
from ui.operate import health, log, metrics

WARM, COLD, BUSY = Process(1, (), True), Process(2, (), False), Process(3, ("a run",), True)


class Asked:
    """A server's `/healthz`, at moments and with processes that are chosen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.processes = 1000.0, [COLD]
        self.page: list[bool] = [True]  # whether it can be drawn; once for each time that this was tried

        async def draw() -> bool:
            self.page.append(self.page[-1])
            return self.page[-1]

        monkeypatch.setattr(health, "draw_home", draw)
        monkeypatch.setattr(health, "monotonic", lambda: self.now)
        monkeypatch.setattr(session, "manager", lambda: SimpleNamespace(processes=lambda: self.processes))
        self.client = TestClient(Starlette(routes=list(health.routes())))

    def __call__(self, *processes: Process, later: float = 0.0) -> tuple[int, dict[str, bool]]:
        self.processes, self.now = list(processes), self.now + later
        found = self.client.get("/healthz")
        assert found.headers["cache-control"] == "no-store"
        return found.status_code, found.json()


def test_it_is_not_ready_until_the_spare_is_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    assert asked(COLD) == asked(BUSY) == (503, {"ready": False, "spare": False, "page": True})
    assert asked(WARM) == (200, {"ready": True, "spare": True, "page": True})
    monkeypatch.setattr(session, "profile", lambda: PROFILES["small"])
    assert Asked(monkeypatch)(BUSY) == (200, {"ready": True, "spare": False, "page": True})


def test_the_first_who_asks_hours_later_is_answered_by_a_server_that_has_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    monkeypatch.setattr(health, "AHEAD", 0.0)
    asked.processes, asked.page = [WARM], [True]
    aside(health.look_ahead())

    async def slow() -> bool:
        await asyncio.sleep(60)
        return True

    monkeypatch.setattr(health, "draw_home", slow)
    monkeypatch.setattr(health, "PATIENCE", 0.01)
    assert asked(BUSY, later=10_000) == (200, {"ready": True, "spare": False, "page": True})


def test_nobody_takes_readiness_away_by_starting_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    asked(WARM)
    assert asked(BUSY, COLD, later=500) == (200, {"ready": True, "spare": False, "page": True})
    assert asked(COLD, later=59)[0] == 200, "the one that trained was removed, the next is warmed"
    assert asked(COLD, later=2)[0] == 503, "no process becomes warm: something is wrong here"
    assert asked(WARM)[0] == 200


def test_it_is_not_ready_while_no_page_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    asked.page = [False]
    assert asked(WARM) == (503, {"ready": False, "spare": True, "page": False})
    asked.page = [True]
    assert asked(WARM, later=1)[0] == 503 and asked.page == [True], "it is tried again after a while"
    assert asked(WARM, later=health.AGAIN)[0] == 200
    asked.page = [False]
    assert asked(WARM, later=1)[0] == 200 and asked.page == [False], "and once a minute where it could be"
    assert asked(WARM, later=health.LASTS)[0] == 503

    async def fails() -> bool:
        raise OSError("no thread is left")

    monkeypatch.setattr(health, "draw_home", fails)
    assert asked(WARM, later=health.AGAIN)[0] == 503


WORKERS = (Process(1, ("a",), True, 100), Process(2, ("b",), True, 23), Process(3, (), True, 7))
NOW = Standing(("running", "running", "queued", "failed"), 3, WORKERS, 4096, 250)


def told() -> dict[str, float]:
    found, observe = metrics.registry(lambda: NOW, lambda: 17, lambda: [30, 12])
    for seconds in (0.01, 0.2, 0.2, 4.0):
        observe(seconds)
    lines = [line for line in generate_latest(found).decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_the_numbers_of_a_moment() -> None:
    text = told()
    assert text["glassformer_sessions"] == 17 and text["glassformer_queue"] == 3
    states = {"running": 2, "queued": 1, "failed": 1, "paused": 0, "starting": 0, "finished": 0, "stopped": 0}
    assert {name: text[f'glassformer_runs{{state="{name}"}}'] for name in states} == states
    workers = {"training": (2, 123), "spare": (1, 7), "starting": (0, 0), "measuring": (2, 42)}
    for name, (count, held) in workers.items():
        assert text[f'glassformer_workers{{state="{name}"}}'] == count
        assert text[f'glassformer_worker_bytes{{state="{name}"}}'] == held
    assert text["glassformer_snapshot_bytes"] == 4096 and text["glassformer_steps"] == 250
    assert 20e6 < text["glassformer_server_bytes"] < 20e9
    # The buckets around the goal of a second: of four runs of a page, three took a quarter or less.
    for bound, count in {"0.025": 1, "0.15": 1, "0.25": 3, "3.0": 3, "5.0": 4, "+Inf": 4}.items():
        assert text[f'glassformer_rerun_seconds_bucket{{le="{bound}"}}'] == count
    assert text["glassformer_rerun_seconds_sum"] == pytest.approx(4.41)


@for_each("wanted", ["http", "0", "65536", "127.0.0.1:"])
def test_what_is_no_port(wanted: str) -> None:
    with pytest.raises(ConfigError, match=r"GLASSFORMER_METRICS = .* must be a port"):
        metrics.address(wanted)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[StringIO]:
    monkeypatch.setenv(log.VARIABLE, "json")
    out, root = StringIO(), logging.getLogger()
    before = LOG.handlers[:], root.handlers[:]
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(log, "OTHERS", ())  # the handlers of those are pytest's here
    log.arrange()
    yield out
    LOG.handlers[:], root.handlers[:] = before


def test_an_event_is_one_line_of_json(written: StringIO) -> None:
    note("run", run="tW4EYA", status="failed", step=12)
    (line,) = written.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {"level": "info", "event": "run", "run": "tW4EYA", "status": "failed", "step": 12}


def test_a_trace_says_where_and_not_what_somebody_typed(written: StringIO) -> None:
    typed = "It's me, Anna,\nsaid she. " * 3

    def draw() -> None:
        try:
            {}[typed]
        except KeyError as error:
            tests = [ValueError(f"no such text: {typed!r} nor {'B'!r}"), RuntimeError(f"“{typed}” is long")]
            raise ExceptionGroup("in a page", tests) from error

    try:
        draw()
    except ExceptionGroup:
        logging.getLogger("ui.page_frame").exception("a part could not be drawn")
    try:
        raise ValueError("x" * 1000)
    except ValueError:
        logging.getLogger("ui.page_frame").exception("another")
    logging.getLogger("ui.page_frame").error("nothing was raised", exc_info=True)
    rows = [json.loads(line) for line in written.getvalue().splitlines()]  # each trace is one line
    assert rows[0]["level"] == "error" and rows[0]["logger"] == "ui.page_frame"
    lines = [row["trace"] for row in rows]
    assert "Anna" not in lines[0] and "said she" not in lines[0]
    for kept in ("{}[typed]", "in draw", "test_operate.py", "KeyError: …", "ValueError: no such text: … nor …",
                 "RuntimeError: … is long", "ExceptionGroup: in a page"):  # fmt: skip
        assert kept in lines[0], kept
    assert lines[1].endswith("x…") and 150 < lines[1].count("x") <= 200 + len("except")
    assert lines[2].endswith("None")


def test_an_event_is_short_and_one_line_however_a_stranger_writes_it(written: StringIO) -> None:
    log_of_another = logging.getLogger("ui.page_frame")
    log_of_another.warning("no fragment %s", "x\n[ERROR] the disk is full\r\x1b[2J\u2028" + "y" * 1_000_000)
    note("run", run="\n" * 10)
    for line in written.getvalue().splitlines():
        assert len(line) < 2 * log.LONGEST and len(json.loads(line)["event"]) <= 2 * log.LONGEST
        assert json.loads(line)["event"].isprintable()
    assert len(written.getvalue().splitlines()) == 2


def test_what_is_said_again_and_again_is_counted(written: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])

    def flood(text: str) -> None:
        try:
            {}[text]
        except KeyError:
            logging.getLogger("ui.page_frame").exception("%s: not drawn", text)

    def other() -> None:
        try:
            [][1]
        except IndexError:
            logging.getLogger("ui.page_frame").exception("not drawn")

    for n in range(log.MOST + 200):
        flood(str(n))
        note("run", step=n)  # the server's own events are all told
    other()
    now[0] += log.PERIOD
    flood("last")
    rows = [json.loads(line) for line in written.getvalue().splitlines()]
    assert sum(row["event"] == "run" for row in rows) == log.MOST + 200
    told = [row["event"] for row in rows if row["event"] != "run"]
    assert told == [f"{n}: not drawn" for n in range(log.MOST)] + [
        "not drawn", "last: not drawn (200 more were not logged)"
    ]  # fmt: skip


def test_a_manager_tells_how_it_stands_and_what_happens(tmp_path: Any, written: StringIO) -> None:
    from runs.manager import RunManager
    from tests.runs.running import PROFILE

    manager = RunManager(PROFILE, tmp_path)
    try:
        spare = warm_spare(manager)
        (worker,) = manager.standing().workers
        assert worker.kind == "spare" and 50e6 < worker.bytes < 5e9
        run = manager.start(spec(SHORT), "the secret of a browser")
        assert ended(manager, run).status == "finished"
        now = manager.standing()
        kept = sum(path.stat().st_size for path in tmp_path.rglob("*.safetensors"))
        assert now.statuses == ("finished",) and now.queued == 0 and now.snapshot_bytes == kept > 0
        assert now.steps == SHORT.steps
        wait(lambda: not lives(spare))
    finally:
        manager.close()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    states = [line["status"] for line in lines if line["event"] == "run"]
    assert states[0] == "starting" and states[-1] == "finished"
    assert {line["run"] for line in lines if line["event"] == "run"} == {run[:6]}
    assert any(line["event"] == "worker ended" and line["pid"] == spare for line in lines)
    assert "secret" not in written.getvalue() and run not in written.getvalue()


@for_each(
    "address, chosen, profile",
    [
        ("localhost", "", "local"), ("127.0.0.1", "", "local"), ("0.0.0.0", "", "hosted"), (None, "", "hosted"),
        ("0.0.0.0", "local", "local"), ("192.0.2.7", "small", "small"),
    ],
)  # fmt: skip
def test_a_server_that_others_reach_is_hosted_unless_it_says_otherwise(
    address: str | None, chosen: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(profiles.VARIABLE, chosen)
    monkeypatch.setattr(server.config, "get_option", lambda name: {"server.address": address}[name])
    server.heed_settings()
    assert profiles.current().name == profile


@for_each(
    "address, profile, named, serves",
    [
        ("localhost", "local", [], False), ("localhost", "local", ["evil.example"], True), ("0.0.0.0", "local", [], True),
        ("localhost", "hosted", [], True), ("127.0.0.1", "local", [], False),
    ],
)  # fmt: skip
def test_a_computer_for_itself_is_reached_by_its_names_alone(
    address: str, profile: str, named: list[str], serves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that has its name mean this computer makes its page and our server the same origin."""
    options: dict[str, Any] = {"server.address": address, "server.allowedHosts": named}
    real = server.config.get_option
    monkeypatch.setattr(
        server.config, "get_option", lambda name: options[name] if name in options else real(name)
    )
    monkeypatch.setattr(server.config, "set_option", options.__setitem__)
    server._set_limits(profiles.PROFILES[profile])
    for host, allowed in {
        "evil.example:8501": serves,
        "localhost:8501": named == [],
        "[::1]:8501": named == [],
    }.items():
        headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
        scope = {"type": "websocket", "headers": headers}
        assert (websocket_filter.same_origin(scope) is not None) == allowed, host


def test_free_memory_is_returned_while_a_tab_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    tabs, given = [0], []
    monkeypatch.setattr(server.asgi_limits, "open_tabs", lambda: tabs[0])
    monkeypatch.setattr(server, "return_memory", lambda: given.append(True))

    async def visited() -> None:
        returning = asyncio.create_task(server._return_what_is_free(0.02))
        await asyncio.sleep(0.2)
        assert not given, "nobody is there"
        tabs[0] = 1
        await asyncio.to_thread(wait, lambda: len(given) > 1)
        returning.cancel()

    aside(visited())


def test_what_was_measured_is_given_back_once_all_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    tabs, given, forgotten = [0], [], []
    warm: Any = SimpleNamespace(forgotten=lambda: forgotten.append(True))
    monkeypatch.setattr(server, "EMPTY_SECONDS", 0.2)
    monkeypatch.setattr(server.asgi_limits, "open_tabs", lambda: tabs[0])
    monkeypatch.setattr(server, "return_memory", lambda: given.append(True))
    monkeypatch.setattr(server, "_go_ahead", lambda: None)
    jobs = background_jobs.Jobs()
    monkeypatch.setattr(background_jobs, "_server", jobs)

    async def visited() -> None:
        sparing = asyncio.create_task(server._spare_memory(0.02, warm))
        await asyncio.sleep(0.5)
        assert not given, "nobody has been there"
        tabs[0] = 1
        for store in (memo.MEASURED, memo.LOADED):
            store.put("heads", [1.0], 100)
        assert jobs.of(("neurons",), partial(single_piece, max, 1, 2)).wait(5)
        await asyncio.sleep(0.5)
        assert (
            not given
            and memo.MEASURED.known("heads")
            and memo.LOADED.known("heads")
            and jobs.get(("neurons",))
        ), "one is there"
        tabs[0] = 0
        await asyncio.to_thread(wait, lambda: given)
        assert memo.MEASURED.known("heads") is memo.LOADED.known("heads") is jobs.get(("neurons",)) is None
        await asyncio.sleep(0.5)
        assert len(given) == len(forgotten) == 1, "and is warmed again"
        sparing.cancel()

    aside(visited())
