"""Forged origins and descriptors that run out: a line in the log, not a flood, and nobody is asked."""

import asyncio
import importlib.util
import logging
import resource
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from streamlit import net_util
from streamlit.web.server.server_util import is_url_from_allowed_origins
from streamlit.web.server.starlette import starlette_websocket

from tests.aside import aside
from tests.engine.cases import for_each
from ui.operate import file_descriptors, reject_foreign_origins


def as_streamlit_has_it() -> Any:
    """Streamlit's own module once more: a server that a test has begun in this process mends the first for good."""
    spec = importlib.util.spec_from_file_location("net_util_of_streamlit", net_util.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_another_sites_origin_is_refused_without_asking_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def world(url: str, **_: Any) -> Any:
        asked.append(url)
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", world)
    monkeypatch.setattr(net_util, "get_external_ip", as_streamlit_has_it().get_external_ip)
    assert not is_url_from_allowed_origins("http://elsewhere.example")
    assert asked, "Streamlit asks nobody any more: ui/operate/reject_foreign_origins.py may go"
    asked.clear()
    reject_foreign_origins.know_no_address()
    for origin in ("http://elsewhere.example", "http://None", "null", ""):
        assert not is_url_from_allowed_origins(origin)
    assert is_url_from_allowed_origins("http://localhost:8501") and not asked


def test_the_log_is_not_flooded_by_them_and_has_nothing_that_they_wrote(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now, closed = [100.0], []

    async def close(code: int) -> None:
        closed.append(code)

    def comes(times: int) -> None:
        stranger: Any = SimpleNamespace(headers={"Origin": "http://evil.example", "Host": "h"}, close=close)
        answer = starlette_websocket.create_websocket_handler(SimpleNamespace())  # type: ignore[arg-type]
        for _ in range(times):
            aside(answer(stranger))
            logger.warning("Error deserializing back message", exc_info=ValueError("what they wrote"))

    monkeypatch.setattr(reject_foreign_origins.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(starlette_websocket, "_is_origin_allowed", lambda *_: False)
    logger = logging.getLogger(starlette_websocket.__name__)
    monkeypatch.setattr(logger, "filters", [])
    monkeypatch.setattr(logger, "propagate", True)
    logger.addHandler(caplog.handler)
    try:
        reject_foreign_origins.say_seldom()
        reject_foreign_origins.say_seldom()
        comes(20)
        assert len({id(one) for one in caplog.records}) == 2 and closed == [1008] * 20
        now[0] += reject_foreign_origins.QUIET_SECONDS
        comes(1)
        logger.warning("something else")
    finally:
        logger.removeHandler(caplog.handler)
    said = list({id(one): one.getMessage() for one in caplog.records}.values())
    assert len(said) == 5 and said[4] == "something else" and "example" not in " ".join(said)
    assert not any(one.exc_info for one in caplog.records)


@for_each(
    "soft, hard, wanted",
    [(1024, 4096, 4096), (1024, resource.RLIM_INFINITY, file_descriptors.MOST), (4096, 4096, None)],
)
def test_it_takes_what_the_system_gives(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert file_descriptors.more_descriptors() == (wanted or soft)
    assert asked == ([] if wanted is None else [(wanted, hard)])


def test_it_is_said_seldom_and_everything_else_as_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now, other = [100.0], []
    monkeypatch.setattr(file_descriptors.time, "monotonic", lambda: now[0])
    loop = asyncio.new_event_loop()
    try:
        loop.set_exception_handler(lambda _, context: other.append(context["message"]))
        file_descriptors.say_seldom(loop)
        with caplog.at_level(logging.WARNING):
            for _ in range(2_000):
                error = OSError(24, "Too many open files")
                loop.call_exception_handler(
                    {"message": "socket.accept() out of system resource", "exception": error}
                )
            assert len(caplog.records) == 1 and not caplog.records[0].exc_info
            now[0] += file_descriptors.QUIET_SECONDS
            loop.call_exception_handler({"message": "socket.accept() out of system resource"})
            loop.call_exception_handler({"message": "a task failed"})
        assert len(caplog.records) == 2 and other == ["a task failed"]
    finally:
        loop.close()
