"""Slow measurements: done once for all who ask, shown while they go on, left when nobody wants them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from engine.errors import ShapeError
from engine.progress import Progress, Steps, finish
from ui import slow
from ui.slow import Jobs


def counted(calls: list[int], until: threading.Event | None = None) -> Callable[[], Steps[str]]:
    def steps() -> Steps[str]:
        calls.append(1)
        for i in range(3):
            yield Progress(i, 3)
            if until is not None:
                until.wait(5)
        return "found"

    return steps


def test_finish_gives_what_the_generator_returns() -> None:
    assert finish(counted([])()) == "found"


def test_two_who_ask_for_the_same_get_one_measurement() -> None:
    jobs, calls = Jobs(), []
    first, second = jobs.of(("a",), counted(calls)), jobs.of(("a",), counted(calls))
    assert first is second and first.wait(5)
    assert (first.result, calls) == ("found", [1])
    assert jobs.of(("b",), counted(calls)).wait(5) and calls == [1, 1]


def test_cancelled_means_no_result_and_the_generator_is_closed() -> None:
    go, closed = threading.Event(), []

    def steps() -> Steps[str]:
        try:
            yield Progress(0, 2)
            go.wait(5)
            yield Progress(1, 2)
        finally:
            closed.append(True)
        return "never"

    job = Jobs().of(("a",), steps)
    job.cancel()
    go.set()
    assert job.wait(5) and job.left and job.result is None
    assert closed in ([True], [])  # not begun, or begun and closed


def test_unwatched_means_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "UNWATCHED", -1.0)
    job = Jobs().of(("a",), counted([]))
    assert job._ended.wait(5) and job.left


def test_one_at_a_time_and_a_waiting_one_can_be_cancelled() -> None:
    jobs, go = Jobs(), threading.Event()
    first = jobs.of(("a",), counted([], go))
    calls: list[int] = []
    second = jobs.of(("b",), counted(calls))
    assert not second.wait(0.3) and calls == []
    second.cancel()
    assert second.wait(5) and second.left and calls == []
    go.set()
    assert first.wait(5) and first.result == "found"


def test_old_results_go() -> None:
    jobs, calls = Jobs(kept=2), []
    for name in "abcd":
        assert jobs.of((name,), counted(calls)).wait(5)
    jobs.of(("a",), counted(calls)).wait(5)
    assert len(calls) == 5
    jobs.of(("d",), counted(calls)).wait(5)
    assert len(calls) == 5


def page(kind: str) -> None:
    import time

    import streamlit as st

    from engine.errors import ShapeError
    from engine.progress import Progress
    from ui.slow import measured

    def steps():  # type: ignore[no-untyped-def]
        yield Progress(1, 4)
        if kind == "slow":
            time.sleep(1.2)
            yield Progress(2, 4)
        if kind == "refused":
            raise ShapeError("the two texts differ in length")
        if kind == "broken":
            raise ZeroDivisionError
        return 42

    st.write(measured(("test_slow", kind), steps, "Counting"))


def run(kind: str) -> AppTest:
    return AppTest.from_function(page, kwargs={"kind": kind}, default_timeout=20).run()


def test_a_quick_one_is_there_at_once() -> None:
    at = run("quick")
    assert at.markdown[0].value == "`42`" and not at.button


def test_a_slow_one_shows_its_bar_and_then_its_result() -> None:
    at = run("slow")
    assert [button.label for button in at.button] == ["Cancel"]
    assert "`None`" in [m.value for m in at.markdown]
    slow._jobs().of(("test_slow", "slow"), lambda: pytest.fail("began twice")).wait(10)
    assert "`42`" in [m.value for m in at.run().markdown] and not at.button


def test_cancel_is_said_and_can_be_undone() -> None:
    slow._jobs().forget(("test_slow", "slow"))
    at = run("slow")
    at.button[0].click().run()
    assert "stopped before the end" in at.caption[0].value
    at.button[0].click().run()
    assert [button.label for button in at.button] == ["Cancel"]


def test_what_is_refused_is_a_sentence_and_what_is_broken_is_raised() -> None:
    at = run("refused")
    assert at.error[0].value == "the two texts differ in length" and not at.exception
    assert run("broken").exception
    assert issubclass(ShapeError, Exception)


def test_leaving_ends_all_that_is_under_way() -> None:
    jobs, go = Jobs(), threading.Event()
    first, second = jobs.of(("a",), counted([], go)), jobs.of(("b",), counted([]))
    threading.Timer(0.2, go.set).start()
    jobs.leave()
    assert first.ended and second.ended and second.left
