"""Descriptors that run out: a line in the log, not a flood."""

import asyncio
import logging
import resource

import pytest

from tests.engine.cases import for_each
from ui.operate import file_descriptors


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
