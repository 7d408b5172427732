"""What belongs to the server and not to any page: the run manager, and what a stranger is told of an error."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import streamlit as st
from streamlit import config
from streamlit.runtime.caching.ttl_cache import TTLCache
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.testing.v1 import AppTest

from engine.errors import PretrainedError
from runs import profiles
from runs.manager import RunManager
from runs.room_table import RoomError
from studies.costs.ledger import shape_trace
from tests.aside import aside
from tests.runs.running import LONG, lives, look, pid, reached, spec, wait
from ui import memo, model_bar, models, server
from ui import session as state
from ui.models import REAL_MODEL
from ui.operate import expire_sessions, log
from ui.training_step import NEWEST

ME = "me"
GO_AHEAD = server._go_ahead


@pytest.fixture(autouse=True)
def own_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A server of the test's own: its files lie with the test's, and it has no manager yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(state, "_MADE", [])
    monkeypatch.setattr(state, "_make_manager", lambda: RunManager(profiles.current(), spare=False))
    monkeypatch.setattr(server, "_settle", lambda: None)
    monkeypatch.setattr(server, "_go_ahead", lambda: None)
    monkeypatch.setattr(log, "arrange", lambda: None)  # its filter would stay for all tests that follow
    before = {name: config.get_option(name) for name in ("client.showErrorDetails", "server.allowedHosts")}
    yield
    state.close_manager()
    for name, value in before.items():
        config.set_option(name, value)


def within_a_server(look: Callable[[], Any] = lambda: None) -> Any:
    async def serve() -> Any:
        async with server.lifespan(None):
            return look()

    return aside(serve())


def empty_caches() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()
    memo.clear()


def test_emptied_caches_leave_the_runs_where_they_are() -> None:
    manager = state.manager()
    run = manager.start(spec(LONG), ME)
    reached(manager, run, 1)
    process = pid(manager, run)
    empty_caches()
    assert state.manager() is manager and [view.id for view in state.manager().runs(ME)] == [run]
    reached(manager, run, look(manager, run).step + 5)
    assert pid(manager, run) == process
    state.close_manager()
    wait(lambda: not lives(process), 30)


def test_without_a_lifespan_there_is_one_manager_however_many_ask_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[RunManager] = []

    def make() -> RunManager:
        made.append(RunManager(profiles.current(), tmp_path, spare=False))
        return made[-1]

    monkeypatch.setattr(state, "_make_manager", make)
    with ThreadPoolExecutor(8) as threads:
        gate = threading.Barrier(8)
        found = list(threads.map(lambda _: gate.wait() is None or state.manager(), range(8)))
    assert len(made) == 1 and all(manager is made[0] for manager in found)
    state.close_manager()
    assert state.manager() is made[1], "after the end of a server there may be another"


def test_rooms_last_as_long_as_the_server_and_count_the_address_of_whoever_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    monkeypatch.setattr(state, "address", lambda: "192.0.2.7")
    rooms, most = state.rooms(), profiles.current().max_rooms_address
    for n in range(most):
        rooms.ask(f"cookie{n}", "One?", ["a", "b"])
    empty_caches()
    assert state.rooms() is rooms
    with pytest.raises(RoomError, match=f"Your network has {most} rooms open"):
        state.rooms().ask("one more", "One?", ["a", "b"])
    state.close_manager()
    assert state.rooms() is not rooms and state.rooms().mine("cookie0") is None


@pytest.mark.parametrize("profile, shown", [("local", True), ("hosted", False)])
def test_a_hosted_server_shows_no_stranger_a_trace(
    monkeypatch: pytest.MonkeyPatch, profile: str, shown: bool
) -> None:
    def page() -> None:
        raise KeyError("/home/somebody/secret")

    monkeypatch.setenv(profiles.VARIABLE, profile)

    def look() -> tuple[bool, RunManager]:
        said = AppTest.from_function(page, default_timeout=60).run().exception[0]
        return "secret" in said.message + "".join(said.stack_trace), state.manager()

    said, manager = within_a_server(look)
    assert said == shown
    assert state._MADE == [] and not manager.scheduler.store.folder.exists(), (
        "the end of the server is the end of its runs"
    )


def test_a_server_is_there_before_all_that_it_makes_ready_and_ends_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    up, told = threading.Event(), []

    def slow() -> None:
        told.append(up.wait(10))

    monkeypatch.setattr(server, "_go_ahead", slow)

    def look() -> None:
        assert not told
        up.set()

    within_a_server(look)
    assert told == [True]


@pytest.mark.parametrize(
    ("there", "fails"), [(["smollm2-135m"], False), (["smollm2-135m"], True), ([], False)]
)
def test_the_model_that_home_shows_is_read_ahead_where_there_is_one(
    there: list[str], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []

    def read(name: str) -> None:
        if fails:
            raise PretrainedError("its file is torn")
        found.append(name)

    monkeypatch.setenv(profiles.VARIABLE, "hosted")
    monkeypatch.setattr(state, "published", lambda: there)
    monkeypatch.setattr(model_bar, "read_ahead", read)
    GO_AHEAD()
    assert found == ([REAL_MODEL] if there and not fails else [])


def test_of_a_model_that_was_read_ahead_tokens_are_named_and_shapes_traced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = models._shipped("shakespeare-classic")
    monkeypatch.setattr(models, "published", lambda _: loaded)
    shape_trace.cache_clear()
    memo.clear()
    model_bar.read_ahead("shakespeare-classic")
    monkeypatch.setattr(model_bar, "names_of", lambda _: pytest.fail("named again"))
    subject = model_bar.subject_from("shakespeare-classic", NEWEST, (), loaded, "", ())
    assert len(subject.vocabulary) == subject.config.vocab_size
    shape_trace(subject.config, subject.model.parts)
    assert shape_trace.cache_info().hits == 1


@pytest.mark.parametrize(
    ("profile", "service", "environment", "said"),
    [
        ("local", "local", {}, []),
        ("hosted", "hosted", {"GLASSFORMER_TRUST_PROXY": "1"}, []),
        ("local", "local", {"GLASSFORMER_TRUST_PROXY": "1"}, ["GLASSFORMER_TRUST_PROXY is set, but"]),
        ("hosted", "local", {}, ["has the profile `local`, this server `hosted`"]),
    ],
)
def test_settings_that_hardly_mean_what_they_say_are_said(
    monkeypatch: pytest.MonkeyPatch, profile: str, service: str, environment: dict[str, str], said: list[str]
) -> None:
    monkeypatch.delenv("GLASSFORMER_TRUST_PROXY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    manager = cast(RunManager, SimpleNamespace(profile=profiles.PROFILES[service]))
    found = server.doubts(profiles.PROFILES[profile], manager)
    assert len(found) == len(said) and all(part in one for part, one in zip(said, found, strict=True))


def test_a_server_lets_closed_tabs_go_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ended, delays = [0.0], list[str](), list[float]()
    storage = MemorySessionStorage()
    assert isinstance(storage._cache, TTLCache)
    storage._cache._timer = lambda: now[0]

    def close(name: str) -> None:
        tab = SimpleNamespace(id=name, shutdown=lambda: ended.append(name))
        storage.save(SimpleNamespace(session=tab))  # type: ignore[arg-type]

    def kept() -> list[str]:
        return [each.session.id for each in storage.list()]

    async def serve() -> None:
        async with server.lifespan(None), asyncio.timeout(10):
            loop = asyncio.get_running_loop()

            def soon(delay: float, look: Callable[..., None], *rest: Any) -> None:
                delays.append(delay)
                loop.call_soon(look, *rest)

            with monkeypatch.context() as patch:
                patch.setattr(loop, "call_later", soon)
                close("early")
                now[0] = 60.0
                close("late")
            now[0] = 119.0
            expire_sessions.end_expired(storage)
            assert not ended and kept() == ["early", "late"], "it may come back"
            now[0] = 121.0
            while not ended:
                await asyncio.sleep(0)
            assert ended == ["early"] and kept() == ["late"]
            now[0] = 181.0
            close("last")
            assert ended == ["early", "late"] and kept() == ["last"], "not only removed, but ended"

    aside(serve())
    assert all(120 < delay < 121 for delay in delays) and len(delays) == 2, (
        "the two minutes that Streamlit gives"
    )
